// Plans that are sound verify clean; every way of breaking one is refused for its own rule.
#include "generator/plan/verify.h"

#include <gtest/gtest.h>

#include <functional>
#include <set>

#include "tests/generator/plan_fixture.h"

namespace soliton {
namespace {

/// One thing that is done to a sound plan. `also`: rules that cannot help being broken with it.
struct BadPlan {
  std::string name;
  Rule rule;
  std::string
      message;  // exactly, for the tiny model on the CPU (on an H200 with num_ctas CTAs if that is not 0)
  std::function<void(Plan&)> damage;
  std::vector<Rule> also = {};
  PlanChoices choices = {};
};

PlanPhase& phase(Plan& plan, const std::string& name) {
  return named(plan.phases, name);
}
PlanVector& vector(Plan& plan, const std::string& name) {
  return named(plan.vectors, name);
}
PlanMatrix& matrix(Plan& plan, const std::string& name) {
  return named(plan.matrices, name);
}
PlanBarrier& barrier(Plan& plan, const std::string& name) {
  return named(plan.barriers, name);
}
PlanRegion& shared(Plan& plan, const std::string& name) {
  return named(plan.shared, name);
}
PlanRegion& workspace(Plan& plan, const std::string& name) {
  return named(plan.workspace, name);
}

/// Lets `phase` read another vector than the one it waits for.
void read_instead(Plan& plan, const std::string& reader, const std::string& other) {
  phase(plan, reader).reads = index_of(plan.vectors, other);
}
void read_and_await(Plan& plan, const std::string& reader, const std::string& other) {
  read_instead(plan, reader, other);
  phase(plan, reader).waits_for = index_of(plan.vectors, other);
}
/// Lets `to` clear a vector instead of `from`.
void move_clear(Plan& plan, const std::string& name, const std::string& from, const std::string& to) {
  std::erase(phase(plan, from).clears, index_of(plan.vectors, name));
  phase(plan, to).clears.push_back(index_of(plan.vectors, name));
}

const std::vector<BadPlan> kBadPlans = {
    // Pages.
    {.name = "LastTileOfACtaForgotten",
     .rule = Rule::kPageSkipped,
     .message = "qkv: tile 31: expected one CTA that reads its pages, got none",
     .damage = [](Plan& plan) { --phase(plan, "qkv").runs.back().count; }},
    {.name = "CtaForgotten",
     .rule = Rule::kPageSkipped,
     .message = "gate_up: tile 3: expected one CTA that reads its pages, got none",
     .damage = [](Plan& plan) { phase(plan, "gate_up").runs.resize(3); },
     .also = {Rule::kWaitUnsatisfied}},
    {.name = "TilesThatNobodyWasDealt",
     .rule = Rule::kPageSkipped,
     .message = "lm_head: tile 128: expected one CTA that reads its pages, got none",
     .damage =
         [](Plan& plan) {
           ++matrix(plan, "lm_head").num_tiles;
           plan.weight_bytes += tile_bytes(matrix(plan, "lm_head").padded);
         }},
    {.name = "CtaThatStaysAtItsTile",
     .rule = Rule::kPageRepeated,
     .message = "qkv: tile 5: expected to be read once, CTA 5 reads it again",
     .damage = [](Plan& plan) { phase(plan, "qkv").runs[5] = {.first = 5, .stride = 0, .count = 2}; },
     .also = {Rule::kPageSkipped},  // in the large model
     .choices = {.num_ctas = 32}},
    {.name = "CtaThatReadsEverything",
     .rule = Rule::kPageTwoOwners,
     .message = "lm_head: tile 1: expected one owner, got CTA 0 and CTA 1",
     .damage =
         [](Plan& plan) {
           phase(plan, "lm_head").runs[0] = {
               .first = 0, .stride = 1, .count = matrix(plan, "lm_head").num_tiles};
         }},
    {.name = "TwoCtasWithOneShare",
     .rule = Rule::kPageTwoOwners,
     .message = "gate_up: tile 1: expected one owner, got CTA 1 and CTA 2",
     .damage = [](Plan& plan) { phase(plan, "gate_up").runs[2] = phase(plan, "gate_up").runs[1]; },
     .also = {Rule::kPageSkipped}},
    {.name = "TileBehindTheLast",
     .rule = Rule::kPageOutOfRange,
     .message = "qkv: CTA 3: expected tiles 0 to 31, got 35",
     .damage = [](Plan& plan) { ++phase(plan, "qkv").runs[3].count; }},
    {.name = "TileBeforeTheFirst",
     .rule = Rule::kPageOutOfRange,
     .message = "qkv: CTA 0: expected tiles 0 to 31, got -4",
     .damage =
         [](Plan& plan) {
           TileRun& run = phase(plan, "qkv").runs[0];
           run = {.first = run.first - run.stride, .stride = run.stride, .count = run.count + 1};
         }},
    {.name = "TilesOfALargerMatrix",
     .rule = Rule::kPageOutOfRange,
     .message = "lm_head: CTA 3: expected tiles 0 to 126, got 127",
     .damage = [](Plan& plan) { --matrix(plan, "lm_head").num_tiles; }},

    // Waits.
    {.name = "WriterMissing",
     .rule = Rule::kWaitUnsatisfied,
     .message = "gate_up (layer 0): waits for middle, expected the phase before to write it, got o which "
                "writes nothing",
     .damage = [](Plan& plan) { phase(plan, "o").writes = -1; }},
    {.name = "WriterWritesSomethingElse",
     .rule = Rule::kWaitUnsatisfied,
     .message = "attention (layer 2): waits for qkv, expected the phase before to write it, got qkv which "
                "writes ffn",
     .damage = [](Plan& plan) { phase(plan, "qkv").writes = index_of(plan.vectors, "ffn"); },
     .also = {Rule::kClearedTooLate}},
    {.name = "AttentionWithoutSignatures",
     .rule = Rule::kWaitUnsatisfied,
     .message = "heads: CTA 0 has no tile of attention, expected signatures, got none",
     .damage = [](Plan& plan) { vector(plan, "heads").signatures = 0; }},
    {.name = "SignatureOfOneCtaMissing",
     .rule = Rule::kWaitUnsatisfied,
     .message = "heads: expected 0 or 4 signatures, got 3",
     .damage = [](Plan& plan) { --vector(plan, "heads").signatures; }},
    {.name = "CtaWithoutTileDoesNotSign",
     .rule = Rule::kWaitUnsatisfied,
     .message = "hidden: CTA 16 has no tile of down, expected signatures, got none",
     .damage =
         [](Plan& plan) {
           for (const char* name : {"middle", "hidden"}) vector(plan, name).signatures = 0;
           if (plan.model == "tiny-stories") return;
           // The large model has tiles for every CTA: take them away from the last.
           for (const char* name : {"o", "down"}) phase(plan, name).runs[16].count = 0;
         },
     .also = {Rule::kPageSkipped},
     .choices = {.num_ctas = 17}},
    {.name = "OfferMissing",
     .rule = Rule::kWaitUnsatisfied,
     .message = "offers: expected 4 offers and a stop word, got 4 words",
     .damage = [](Plan& plan) { --vector(plan, "offers").elements; }},
    {.name = "VectorOfALaterPhase",
     .rule = Rule::kWaitTooEarly,
     .message = "gate_up (layer 0): waits for hidden, expected the phase before to write it, got o which "
                "writes middle",
     .damage = [](Plan& plan) { read_and_await(plan, "gate_up", "hidden"); },
     .also = {Rule::kClearedWhileRead}},
    {.name = "PhasesInTheWrongOrder",
     .rule = Rule::kWaitTooEarly,
     .message = "gate_up (layer 0): waits for middle, expected the phase before to write it, got attention "
                "which writes heads",
     .damage = [](Plan& plan) { std::swap(phase(plan, "o"), phase(plan, "gate_up")); },
     .also = {Rule::kClearedWhileRead, Rule::kClearedTooLate}},
    {.name = "StepThatDoesNotBeginWithTheOffers",
     .rule = Rule::kWaitTooEarly,
     .message = "qkv (layer 0): waits for hidden, expected the phase before to write it, got lm_head which "
                "writes offers",
     .damage = [](Plan& plan) { phase(plan, "qkv").first_layer_reads = -1; },
     .also = {Rule::kClearedWhileRead}},
    {.name = "NoWait",
     .rule = Rule::kReadWithoutWait,
     .message = "gate_up (layer 0): reads middle, expected a wait for it, got a wait for nothing",
     .damage = [](Plan& plan) { phase(plan, "gate_up").waits_for = -1; }},
    {.name = "WaitForAnotherVector",
     .rule = Rule::kReadWithoutWait,
     .message = "gate_up (layer 5): reads heads, expected a wait for it, got a wait for middle",
     .damage = [](Plan& plan) { read_instead(plan, "gate_up", "heads"); },
     .choices = {.sync = SyncMode::kCounter}},
    {.name = "LayerZeroReadsTheOffersUnawaited",
     .rule = Rule::kReadWithoutWait,
     .message = "qkv (layer 0): reads offers, expected a wait for it, got a wait for ffn",
     .damage = [](Plan& plan) { phase(plan, "qkv").waits_for = index_of(plan.vectors, "ffn"); },
     .also = {Rule::kWaitTooEarly}},

    // Clearing. A step of the tiny model has 6 x 5 + 1 phases: qkv 0, attention 1, o 2, gate_up 3, down 4,
    // qkv 5.
    {.name = "NeverCleared",
     .rule = Rule::kNotCleared,
     .message = "heads: written in phases 1 and 6, expected a phase between that clears it",
     .damage = [](Plan& plan) { phase(plan, "gate_up").clears.clear(); }},
    {.name = "OffersNeverCleared",
     .rule = Rule::kNotCleared,
     .message = "offers: written in phases 30 and 61, expected a phase between that clears it",
     .damage = [](Plan& plan) { phase(plan, "attention").first_layer_clears.clear(); }},
    {.name = "ClearedOnlyInLayerZero",
     .rule = Rule::kNotCleared,
     .message = "middle: written in phases 2 and 7, expected a phase between that clears it",
     .damage =
         [](Plan& plan) { std::swap(phase(plan, "down").clears, phase(plan, "down").first_layer_clears); }},
    {.name = "ClearedByItsReader",
     .rule = Rule::kClearedWhileRead,
     .message = "heads: cleared in phase 2, expected phase 3 or later: it is read in phase 2",
     .damage = [](Plan& plan) { move_clear(plan, "heads", "gate_up", "o"); }},
    {.name = "OffersClearedByTheirReader",
     .rule = Rule::kClearedWhileRead,
     .message = "offers: cleared in phase 31, expected phase 32 or later: it is read in phase 31",
     .damage =
         [](Plan& plan) {
           std::swap(phase(plan, "qkv").first_layer_clears, phase(plan, "attention").first_layer_clears);
         }},
    {.name = "ClearedBeforeTheFirstRead",
     .rule = Rule::kClearedWhileRead,
     .message = "middle: cleared in phase 4 before anyone read what phase 2 wrote",
     .damage = [](Plan& plan) { read_instead(plan, "gate_up", "heads"); },
     .also = {Rule::kReadWithoutWait}},
    {.name = "ReadAgainAfterClearing",
     .rule = Rule::kClearedWhileRead,
     .message = "hidden: cleared in phase 6 and read in phase 8, written in phase 4",
     .damage = [](Plan& plan) { read_instead(plan, "gate_up", "hidden"); },
     .also = {Rule::kReadWithoutWait}},
    {.name = "ClearedTwoPhasesBeforeTheNextWrite",
     .rule = Rule::kClearedTooLate,
     .message = "qkv: cleared in phase 3, expected phase 2 or earlier: it is written in phase 5",
     .damage = [](Plan& plan) { move_clear(plan, "qkv", "o", "gate_up"); }},
    {.name = "ClearedInThePhaseThatWrites",
     .rule = Rule::kClearedTooLate,
     .message = "ffn: cleared in phase 8, expected phase 5 or earlier: it is written in phase 8",
     .damage = [](Plan& plan) { move_clear(plan, "ffn", "qkv", "gate_up"); }},

    // Memory.
    {.name = "InputUnderTheLastPage",
     .rule = Rule::kSharedOverlap,
     .message = "shared memory: pages ends at 196608, expected before x which begins at 196592",
     .damage = [](Plan& plan) { shared(plan, "x").offset -= 16; }},
    {.name = "BarriersUnderTheMail",
     .rule = Rule::kSharedOverlap,
     .message = "shared memory: mail ends at 205224, expected before barriers which begins at 205220",
     .damage = [](Plan& plan) { shared(plan, "barriers").offset -= 4; }},
    {.name = "PieceWithinAnother",
     .rule = Rule::kSharedOverlap,
     .message = "shared memory: pages ends at 196608, expected before mail which begins at 1024",
     .damage = [](Plan& plan) { shared(plan, "mail").offset = 1024; }},
    {.name = "OneByteTooManyOfSharedMemory",
     .rule = Rule::kSharedExceeded,
     .message = "shared memory: barriers ends at byte 205536, expected at most 205535",
     .damage =
         [](Plan& plan) {
           plan.limits.max_shared_bytes_per_block = static_cast<int>(plan.shared_bytes()) - 1;
         }},
    {.name = "RingTooLarge",
     .rule = Rule::kSharedExceeded,
     .message = "shared memory: x ends at byte 232448, expected at most 230000",
     .damage =
         [](Plan& plan) {
           plan.limits.max_shared_bytes_per_block = 230000;
           shared(plan, "x").offset = 232448 - shared(plan, "x").bytes;
         },
     .also = {Rule::kSharedOverlap}},
    {.name = "VectorsOverlap",
     .rule = Rule::kWorkspaceOverlap,
     .message = "workspace: qkv ends at 2048, expected before heads which begins at 2032",
     .damage = [](Plan& plan) { vector(plan, "heads").offset = vector(plan, "qkv").bytes() - 16; }},
    {.name = "SignaturesReachIntoTheNextVector",
     .rule = Rule::kWorkspaceOverlap,
     .message = "workspace: heads ends at 3088, expected before middle which begins at 3072",
     .damage =
         [](Plan& plan) {
           const PlanVector& heads = vector(plan, "heads");
           vector(plan, "middle").offset = heads.offset + 4ll * heads.elements;
         }},
    {.name = "PartialsOverOffers",
     .rule = Rule::kWorkspaceOverlap,
     .message = "workspace: offers ends at 8488, expected before partials which begins at 8448",
     .damage = [](Plan& plan) { workspace(plan, "partials").offset = vector(plan, "offers").offset; }},
    {.name = "VectorBehindTheWorkspace",
     .rule = Rule::kWorkspaceOverlap,
     .message = "workspace: ffn ends at byte 16640, expected at most 13568",
     .damage = [](Plan& plan) { vector(plan, "ffn").offset = plan.workspace_bytes(); }},
    {.name = "MatricesOverlap",
     .rule = Rule::kWeightsOverlap,
     .message = "packed weights: qkv[0] ends at 262144, expected before o[0] which begins at 262128",
     .damage = [](Plan& plan) { matrix(plan, "o").offset -= 16; }},
    {.name = "LayersOverlap",
     .rule = Rule::kWeightsOverlap,
     .message = "packed weights: down[0] ends at 1572864, expected before qkv[1] which begins at 1572848",
     .damage =
         [](Plan& plan) {
           for (PlanMatrix& each : plan.matrices) each.layer_stride -= 16;
         }},
    {.name = "LmHeadOverTheLastLayer",
     .rule = Rule::kWeightsOverlap,
     .message = "packed weights: down[5] ends at 9437184, expected before lm_head[0] which begins at 9437168",
     .damage = [](Plan& plan) { matrix(plan, "lm_head").offset -= 16; }},
    {.name = "MatrixBehindTheWeights",
     .rule = Rule::kWeightsOverlap,
     .message = "packed weights: lm_head[0] ends at byte 10485760, expected at most 10485759",
     .damage = [](Plan& plan) { --plan.weight_bytes; }},

    // What the card can hold.
    {.name = "RegistersOfAThread",
     .rule = Rule::kRegistersExceeded,
     .message = "registers: expected at most 255 a thread and 65536 an SM, got 256 x 192 threads",
     .damage = [](Plan& plan) { plan.registers_per_thread = 256; }},
    {.name = "RegistersOfAllThreads",
     .rule = Rule::kRegistersExceeded,
     .message = "registers: expected at most 255 a thread and 65536 an SM, got 208 x 320 threads",
     .damage = [](Plan& plan) { plan.registers_per_thread += 8; },
     .choices = {.consumer_warps = 8}},
    {.name = "TooManyWarps",
     .rule = Rule::kThreadsExceeded,
     .message = "threads per CTA: expected at most 160, got 192",
     .damage = [](Plan& plan) { plan.limits.max_threads_per_block = plan.threads() - 32; }},
    {.name = "MoreCtasThanSms",
     .rule = Rule::kTooManyCtas,
     .message = "CTAs: expected 1 to 3, one per SM, got 4",
     .damage = [](Plan& plan) { plan.limits.num_sms = plan.num_ctas - 1; }},
    {.name = "NoCta",
     .rule = Rule::kTooManyCtas,
     .message = "CTAs: expected 1 to 4, one per SM, got 0",
     .damage = [](Plan& plan) { plan.num_ctas = 0; },
     .also = {Rule::kWaitUnsatisfied}},

    // Barriers.
    {.name = "InputReportedIntoOneBarrier",
     .rule = Rule::kParityTwoAhead,
     .message = "input_read: a thread may be 2 uses ahead, expected as many barriers, got 1",
     .damage = [](Plan& plan) { barrier(plan, "input_read").slots = 1; }},
    {.name = "ProducerAheadOfItsRing",
     .rule = Rule::kParityTwoAhead,
     .message = "page_full: a thread may be 13 uses ahead, expected as many barriers, got 12",
     .damage = [](Plan& plan) { barrier(plan, "page_full").lead = plan.ring_slots + 1; }},
    {.name = "WindowLargerThanTheRing",
     .rule = Rule::kParityTwoAhead,
     .message = "window: expected 1 to 12 pages in flight, one per slot, got 13",
     .damage = [](Plan& plan) { plan.window = plan.ring_slots + 1; }},
    {.name = "NoPageInFlight",
     .rule = Rule::kParityTwoAhead,
     .message = "window: expected 1 to 12 pages in flight, one per slot, got 0",
     .damage = [](Plan& plan) { plan.window = 0; }},
    {.name = "ConsumersThatSkipPhasesOfASlot",
     .rule = Rule::kParityTwoAhead,
     .message = "ring: a consumer that goes on by 8 pages skips phases of a slot, expected a multiple of 8 "
                "slots, got 12",
     .damage = [](Plan& plan) { plan.page_stride = 8; }},
    {.name = "PageReleasedByAllButOne",
     .rule = Rule::kBarrierCount,
     .message = "page_empty: expected a count of 4, one of each thread that arrives, got 3",
     .damage = [](Plan& plan) { --barrier(plan, "page_empty").arrivals; }},
    {.name = "TileThatIsNeverFull",
     .rule = Rule::kBarrierCount,
     .message = "tile_full: expected a count of 4, one of each thread that arrives, got 5",
     .damage = [](Plan& plan) { ++barrier(plan, "tile_full").arrivals; }},

    // The residual stream.
    {.name = "DownDealtFromAnotherCta",
     .rule = Rule::kResidualMoved,
     .message = "down: CTA 0: expected the tiles of o (from 0, 4 of them), got from 3, 4",
     .damage =
         [](Plan& plan) {
           PlanPhase& down = phase(plan, "down");
           for (int cta = 0; cta < plan.num_ctas; ++cta) {
             down.runs[cta] = deal_tiles(matrix(plan, "down").num_tiles, 1, plan.num_ctas, cta);
           }
         }},
    {.name = "DownDealtInBlocks",
     .rule = Rule::kResidualMoved,
     .message = "down: CTA 0: expected the tiles of o (from 0, 4 of them), got from 0, 4",
     .damage =
         [](Plan& plan) {
           const int share = matrix(plan, "down").num_tiles / plan.num_ctas;
           for (int cta = 0; cta < plan.num_ctas; ++cta) {
             phase(plan, "down").runs[cta] = {.first = cta * share, .stride = 1, .count = share};
           }
         }},
};

void PrintTo(const BadPlan& bad, std::ostream* out) {
  *out << bad.name;
}

class VerifyRefuses : public testing::TestWithParam<BadPlan> {
 protected:
  /// The rules that the damaged plan breaks; `messages`: each as a line.
  std::set<Rule> broken(const std::string& model, const std::string& gpu, std::string& messages) const {
    Plan plan = shipped_plan(model, gpu, GetParam().choices);
    EXPECT_EQ(refusals(plan), "") << "sound before it is damaged";
    GetParam().damage(plan);
    std::set<Rule> rules;
    for (const Violation& violation : verify(plan)) {
      rules.insert(violation.rule);
      messages += violation.message + "\n";
    }
    return rules;
  }

  /// Nothing is refused that is not wrong.
  std::set<Rule> allowed() const {
    std::set<Rule> rules(GetParam().also.begin(), GetParam().also.end());
    rules.insert(GetParam().rule);
    return rules;
  }
};

TEST_P(VerifyRefuses, TinyModelWithTheReason) {
  std::string messages;
  const std::string gpu = GetParam().choices.num_ctas > 0 ? "h200" : "cpu";
  const std::set<Rule> rules = broken("tiny-stories", gpu, messages);
  EXPECT_TRUE(rules.contains(GetParam().rule)) << messages;
  for (const Rule rule : rules) EXPECT_TRUE(allowed().contains(rule)) << rule_name(rule) << "\n" << messages;
  EXPECT_NE(("\n" + messages).find("\n" + GetParam().message + "\n"), std::string::npos)
      << "expected: " << GetParam().message << "\ngot:\n"
      << messages;
}

TEST_P(VerifyRefuses, LargeModel) {
  std::string messages;
  const std::set<Rule> rules = broken("llama-3.1-8b", "h200", messages);
  EXPECT_TRUE(rules.contains(GetParam().rule)) << messages;
  for (const Rule rule : rules) EXPECT_TRUE(allowed().contains(rule)) << rule_name(rule) << "\n" << messages;
}

INSTANTIATE_TEST_SUITE_P(Plan, VerifyRefuses, testing::ValuesIn(kBadPlans),
                         [](const auto& info) { return info.param.name; });

constexpr int kNumRules = static_cast<int>(Rule::kWeightsOverlap) + 1;

TEST(Verify, EveryRuleHasABadPlan) {
  std::set<Rule> rules;
  for (const BadPlan& bad : kBadPlans) rules.insert(bad.rule);
  EXPECT_EQ(rules.size(), static_cast<size_t>(kNumRules));
}

TEST(Verify, EveryRuleHasItsOwnName) {
  std::set<std::string> names;
  for (int rule = 0; rule < kNumRules; ++rule) names.insert(rule_name(static_cast<Rule>(rule)));
  EXPECT_EQ(names.size(), static_cast<size_t>(kNumRules));
  EXPECT_STREQ(rule_name(Rule::kPageSkipped), "page skipped");
  EXPECT_STREQ(rule_name(Rule::kWeightsOverlap), "weights overlap");
}

TEST(Verify, ShippedModelsAreSound) {
  for (const char* model : kShippedModels) {
    for (const char* gpu : kShippedGpus) {
      EXPECT_EQ(refusals(shipped_plan(model, gpu)), "") << model << " on " << gpu;
    }
  }
  EXPECT_EQ(refusals(shipped_plan("tiny-stories", "cpu")), "");
}

class VerifyAccepts : public testing::TestWithParam<std::tuple<const char*, const char*>> {};

TEST_P(VerifyAccepts, AnyCountOfCtasAndWarpsAndBothModes) {
  const auto [model, gpu] = GetParam();
  for (const int ctas : {1, 2, 3, 7, 128, 132}) {
    for (const int warps : {2, 4, 8}) {
      for (const SyncMode sync : {SyncMode::kSelfValidating, SyncMode::kCounter}) {
        EXPECT_EQ(
            refusals(shipped_plan(model, gpu, {.num_ctas = ctas, .consumer_warps = warps, .sync = sync})), "")
            << ctas << " CTAs, " << warps << " warps, sync " << static_cast<int>(sync);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Plan, VerifyAccepts,
                         testing::Combine(testing::ValuesIn(kShippedModels),
                                          testing::ValuesIn(kShippedGpus)));

TEST(Verify, RandomModelsAreSound) {
  for (int seed = 0; seed < kNumRandomModels; ++seed) {
    const RandomCase random = random_case(seed);
    EXPECT_EQ(refusals(make_plan(random.model, shipped_gpu("h200"), random.choices)), "")
        << random.describe();
  }
}

// What is refused at a limit plus one is accepted at the limit.
TEST(Verify, LimitsThemselvesAreFine) {
  Plan plan = shipped_plan("tiny-stories", "cpu", {.consumer_warps = 8});
  plan.limits.max_shared_bytes_per_block = static_cast<int>(plan.shared_bytes());
  plan.limits.max_threads_per_block = plan.threads();
  plan.limits.registers_per_sm = plan.registers_per_thread * plan.threads();
  plan.limits.max_registers_per_thread = plan.registers_per_thread;
  plan.limits.num_sms = plan.num_ctas;
  plan.window = plan.ring_slots;
  EXPECT_EQ(refusals(plan), "");
}

TEST(Verify, StridesThatDivideTheRingAreFine) {
  Plan plan = shipped_plan("tiny-stories", "cpu", {.ring_slots = 12});
  for (int stride = 1; stride <= 13; ++stride) {
    plan.page_stride = stride;
    EXPECT_EQ(verify(plan).empty(), 12 % stride == 0) << stride;
  }
}

/// A plan of one layer, whose step has 6 phases.
Plan one_layer() {
  ModelConfig model = shipped_model("tiny-stories");
  model.facts.num_layers = 1;
  return make_plan(model, shipped_gpu("cpu"));
}

// qkv is read in phase 1 and written in phase 6 again: phases 2 and 3 may clear it, 1 and 4 may not.
TEST(Verify, ClearsAreJudgedByDistance) {
  const auto cleared_in = [](const std::string& name) {
    Plan plan = one_layer();
    move_clear(plan, "qkv", "o", name);
    return refusals(plan);
  };
  EXPECT_EQ(
      cleared_in("attention"),
      "cleared while read: qkv: cleared in phase 1, expected phase 2 or later: it is read in phase 1\n");
  EXPECT_EQ(cleared_in("o"), "");
  EXPECT_EQ(cleared_in("gate_up"), "");
  EXPECT_EQ(
      cleared_in("down"),
      "cleared too late: qkv: cleared in phase 4, expected phase 3 or earlier: it is written in phase 6\n");
}

// Offers are written in phases 5, 11 and 17, and read in phases 6 and 12.
TEST(Verify, ClearsInLayerZeroAreJudgedByDistance) {
  const auto cleared_in = [](const std::string& name) {
    Plan plan = one_layer();
    phase(plan, name).first_layer_clears.swap(phase(plan, "attention").first_layer_clears);
    return refusals(plan);
  };
  EXPECT_EQ(
      cleared_in("qkv"),
      "cleared while read: offers: cleared in phase 6, expected phase 7 or later: it is read in phase 6\n");
  EXPECT_EQ(cleared_in("gate_up"),
            "cleared too late: offers: cleared in phase 9, expected phase 8 or earlier: it is written in "
            "phase 11\n");
}

// Under the grid counter nothing is cleared: a plan may say what it likes about it.
TEST(Verify, CounterPlansNeedNoClears) {
  Plan plan = shipped_plan("tiny-stories", "cpu", {.sync = SyncMode::kCounter});
  for (PlanPhase& each : plan.phases) {
    each.clears.clear();
    each.first_layer_clears.clear();
  }
  EXPECT_EQ(refusals(plan), "");
  plan.sync = SyncMode::kSelfValidating;
  EXPECT_NE(refusals(plan), "");
}

TEST(Verify, ListsAllThatIsWrong) {
  Plan plan = shipped_plan("tiny-stories", "cpu");
  --phase(plan, "qkv").runs.back().count;
  plan.window = 0;
  --plan.weight_bytes;
  EXPECT_EQ(refusals(plan),
            "page skipped: qkv: tile 31: expected one CTA that reads its pages, got none\n"
            "weights overlap: packed weights: lm_head[0] ends at byte 10485760, expected at most 10485759\n"
            "parity two ahead: window: expected 1 to 12 pages in flight, one per slot, got 0\n");
}

}  // namespace
}  // namespace soliton
