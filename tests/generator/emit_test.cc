// What is written is what was planned: golden text for the tiny model, and the golden plan.h compiled into
// this test. SOLITON_UPDATE_GOLDEN=1 rewrites tests/generator/golden; then read the diff.
#include "generator/emit.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>

#include "error_of.h"
#include "generator/text_writer.h"
#include "tests/generator/golden/plan.h"
#include "tests/generator/plan_fixture.h"

namespace soliton {
namespace {

namespace golden = soliton::generated;

const std::filesystem::path kGolden =
    std::filesystem::path(SOLITON_SOURCE_DIR) / "tests" / "generator" / "golden";

/// What follows `key` up to the end of its line.
std::string after(const std::string& text, const std::string& key) {
  const size_t position = text.find(key);
  EXPECT_NE(position, std::string::npos) << key;
  if (position == std::string::npos) return "";
  const size_t begin = position + key.size();
  return text.substr(begin, text.find('\n', begin) - begin);
}

bool operator==(const Vector& a, const Vector& b) {
  return a.offset == b.offset && a.elements == b.elements && a.signatures == b.signatures;
}

/// The vector as the kernel should see it: in words of 4 bytes.
Vector expected_vector(const Plan& plan, int index) {
  if (index < 0) return {};
  const PlanVector& vector = plan.vectors[index];
  return {.offset = vector.offset,
          .elements = vector.elements * vector.element_bytes / 4,
          .signatures = vector.signatures};
}

Vector expected_clears(const Plan& plan, const PlanPhase& phase) {
  return expected_vector(plan, phase.clears.empty() ? -1 : phase.clears.front());
}

void expect_phase(const Plan& plan, const std::string& name, const MatrixPhase& emitted) {
  const int index = index_of(plan.phases, name);
  const PlanPhase& phase = plan.phases[index];
  const PlanMatrix& matrix = plan.matrices[phase.matrix];
  EXPECT_EQ(emitted.index, index) << name;
  EXPECT_EQ(emitted.weights, matrix.offset) << name;
  EXPECT_EQ(emitted.layer_stride, matrix.layer_stride) << name;
  EXPECT_EQ(emitted.columns, matrix.columns) << name;
  EXPECT_EQ(emitted.padded, matrix.padded) << name;
  EXPECT_EQ(emitted.rows, matrix.rows) << name;
  EXPECT_EQ(emitted.num_tiles, matrix.num_tiles) << name;
  EXPECT_EQ(emitted.first_cta, phase.first_cta) << name;
  EXPECT_EQ(emitted.input, phase.input) << name;
  EXPECT_TRUE(emitted.input_vector == expected_vector(plan, phase.reads)) << name;
  EXPECT_EQ(emitted.first_norm, phase.first_norm) << name;
  EXPECT_EQ(emitted.norm_stride, phase.norm_stride) << name;
  EXPECT_EQ(emitted.output, phase.output) << name;
  if (phase.output != OutputKind::kLogits) {
    EXPECT_TRUE(emitted.output_vector == expected_vector(plan, phase.writes)) << name;
  }
  EXPECT_TRUE(emitted.clears == expected_clears(plan, phase)) << name;
}

TEST(Emit, GoldenTextOfTheTinyModel) {
  const std::map<std::string, std::string> files = emit(shipped_plan("tiny-stories", "cpu"));
  if (const char* update = std::getenv("SOLITON_UPDATE_GOLDEN"); update && std::string(update) == "1") {
    write_folder(kGolden, files);
  }
  ASSERT_EQ(files.size(), 3u);
  for (const auto& [name, text] : files) EXPECT_EQ(text, read_file(kGolden / name)) << name;
}

// From here on: what the compiler made of the golden plan.h.
TEST(Emit, PhasesReadBackAsPlanned) {
  const Plan plan = shipped_plan("tiny-stories", "cpu");
  expect_phase(plan, "qkv", golden::kQkv);
  expect_phase(plan, "o", golden::kO);
  expect_phase(plan, "gate_up", golden::kGateUp);
  expect_phase(plan, "down", golden::kDown);
  expect_phase(plan, "lm_head", golden::kLmHead);
  const PlanPhase& attention = named(plan.phases, "attention");
  EXPECT_EQ(golden::kAttention.index, index_of(plan.phases, "attention"));
  EXPECT_TRUE(golden::kAttention.input_vector == expected_vector(plan, attention.reads));
  EXPECT_TRUE(golden::kAttention.output_vector == expected_vector(plan, attention.writes));
  EXPECT_TRUE(golden::kAttention.clears == expected_clears(plan, attention));
}

TEST(Emit, NumbersReadBackAsPlanned) {
  const Plan plan = shipped_plan("tiny-stories", "cpu");
  using Numbers = golden::Plan;
  EXPECT_EQ(Numbers::kNumLayers, plan.facts.num_layers);
  EXPECT_EQ(Numbers::kNumHeads, plan.facts.num_heads);
  EXPECT_EQ(Numbers::kNumKvHeads, plan.facts.num_kv_heads);
  EXPECT_EQ(Numbers::kHeadDim, plan.facts.head_dim);
  EXPECT_EQ(Numbers::kHidden, plan.facts.hidden);
  EXPECT_EQ(Numbers::kNormEpsilon, static_cast<float>(plan.facts.norm_epsilon));
  EXPECT_FLOAT_EQ(Numbers::kScoreScale, static_cast<float>(1 / (8 * std::log(2.0))));  // head_dim is 64
  EXPECT_EQ(Numbers::kNumCtas, plan.num_ctas);
  EXPECT_EQ(Numbers::kConsumerWarps, plan.consumer_warps);
  EXPECT_EQ(Numbers::kThreads, plan.threads());
  EXPECT_EQ(Numbers::kRingSlots, plan.ring_slots);
  EXPECT_EQ(Numbers::kWindow, static_cast<uint32_t>(plan.window));
  EXPECT_EQ(Numbers::kPrefetchPages, plan.prefetch_pages);
  EXPECT_EQ(Numbers::kPrefetchNs, plan.prefetch_ns);
  EXPECT_EQ(Numbers::kTileSlots, plan.tile_slots);
  EXPECT_EQ(Numbers::kSync, SyncMode::kSelfValidating);
  EXPECT_EQ(Numbers::kNumBlocks, plan.num_blocks());
  EXPECT_EQ(Numbers::kMinPagesPerSplit, plan.min_pages_per_split);
  EXPECT_EQ(Numbers::kFirstResidualPhase, index_of(plan.phases, "o"));
  EXPECT_EQ(Numbers::kChunkColumns, plan.chunk_columns);
  EXPECT_EQ(Numbers::kXBytes, plan.x_bytes());
  EXPECT_EQ(Numbers::kResidualTiles, plan.residual_tiles());
  EXPECT_EQ(Numbers::kPartialWords, plan.partial_words());
  EXPECT_EQ(Numbers::kSharedBytes, plan.shared_bytes());
  EXPECT_TRUE(Numbers::kCandidates == expected_vector(plan, index_of(plan.vectors, "candidates")));
  EXPECT_EQ(Numbers::kPartials.offset, plan.workspace_region("partials").offset);
  EXPECT_EQ(Numbers::kPartials.elements * 4, plan.workspace_region("partials").bytes);
  EXPECT_EQ(Numbers::kCounterOffset, plan.workspace_region("counters").offset);
}

TEST(Emit, WidthsReadBackAsPlanned) {
  const Plan plan = shipped_plan("tiny-stories", "cpu");
  using Numbers = golden::Plan;
  ASSERT_EQ(Numbers::kNumWidths, 2);
  ASSERT_EQ(std::size(Numbers::kWidths), 2u);
  const Width& hidden = Numbers::kWidths[0];
  EXPECT_EQ(hidden.columns, plan.facts.hidden);
  EXPECT_EQ(hidden.padded, named(plan.matrices, "gate_up").padded);
  EXPECT_TRUE(hidden.normed);
  const Width& ffn = Numbers::kWidths[1];
  EXPECT_EQ(ffn.columns, plan.facts.ffn);
  EXPECT_EQ(ffn.padded, named(plan.matrices, "down").padded);
  EXPECT_FALSE(ffn.normed);
}

/// kWidths as it is written, with their number before them.
std::string emitted_widths(int hidden, int num_heads, int ffn) {
  ModelConfig model = shipped_model("tiny-stories");
  model.facts.hidden = hidden;
  model.facts.num_heads = num_heads;
  model.facts.ffn = ffn;
  const std::string text = emit(make_plan(model, shipped_gpu("cpu"))).at("plan.h");
  std::string widths = after(text, "kNumWidths = ");
  for (size_t at = text.find("{.columns = "); at != std::string::npos;
       at = text.find("{.columns = ", at + 1)) {
    widths += " " + text.substr(at, text.find('\n', at) - at);
  }
  return widths;
}

// The kernel is compiled for each width once, and norms inputs of this width if any phase does.
TEST(Emit, EveryWidthIsWrittenOnce) {
  EXPECT_EQ(emitted_widths(256, 4, 256), "1; {.columns = 256, .padded = 256, .normed = true},");
  EXPECT_EQ(emitted_widths(256, 12, 768),
            "2; {.columns = 256, .padded = 256, .normed = true}, {.columns = 768, .padded = 768, .normed = "
            "false},");
  EXPECT_EQ(emitted_widths(192, 8, 64),  // in units of 128 columns
            "3; {.columns = 64, .padded = 128, .normed = false}, {.columns = 192, .padded = 256, .normed = "
            "true}, {.columns = 512, .padded = 512, .normed = false},");
}

TEST(Emit, DescriptorReadsBackAsPlanned) {
  const Plan plan = shipped_plan("tiny-stories", "cpu");
  const Descriptor& descriptor = golden::kDescriptor;
  EXPECT_STREQ(descriptor.model, "tiny-stories");
  EXPECT_STREQ(descriptor.gpu, "cpu");
  EXPECT_EQ(hash_facts(descriptor.facts), hash_facts(plan.facts));  // every fact, to the last bit
  EXPECT_EQ(descriptor.facts_hash, hash_facts(plan.facts));
  EXPECT_EQ(descriptor.page_layout, kPageLayoutVersion);
  EXPECT_EQ(descriptor.compute_capability, 0);
  EXPECT_EQ(descriptor.num_ctas, plan.num_ctas);
  EXPECT_EQ(descriptor.threads_per_cta, plan.threads());
  EXPECT_EQ(descriptor.shared_bytes, plan.shared_bytes());
  EXPECT_EQ(descriptor.tree_costs.item_us, plan.limits.attention_item_us);
  EXPECT_EQ(descriptor.tree_costs.mma_us, plan.limits.attention_mma_us);
  EXPECT_EQ(descriptor.tree_costs.read_bytes_per_s, plan.limits.read_bandwidth_bytes_per_s);
  EXPECT_EQ(descriptor.tree_costs.exchange_bytes_per_s, plan.limits.exchange_bytes_per_s);
  EXPECT_EQ(descriptor.weight_bytes, plan.weight_bytes);
  EXPECT_EQ(descriptor.needed_weight_bytes, plan.needed_weight_bytes);
  EXPECT_EQ(descriptor.workspace_bytes, plan.workspace_bytes());
  EXPECT_EQ(descriptor.counter_offset, plan.workspace_region("counters").offset);
  EXPECT_EQ(descriptor.counter_bytes, plan.workspace_region("counters").bytes);
  ASSERT_EQ(plan.matrices.size(), static_cast<size_t>(kNumMatrices));
  for (int i = 0; i < kNumMatrices; ++i) {
    const PackedMatrix& emitted = descriptor.matrices[i];
    const PlanMatrix& planned = plan.matrices[i];
    EXPECT_EQ(emitted.name, planned.name);
    EXPECT_EQ(emitted.offset, planned.offset) << planned.name;
    EXPECT_EQ(emitted.layer_stride, planned.layer_stride) << planned.name;
    EXPECT_EQ(emitted.rows, planned.rows) << planned.name;
    EXPECT_EQ(emitted.columns, planned.columns) << planned.name;
    EXPECT_EQ(emitted.padded_columns, planned.padded) << planned.name;
    EXPECT_EQ(emitted.num_tiles, planned.num_tiles) << planned.name;
    EXPECT_EQ(emitted.row_order, planned.row_order) << planned.name;
  }
}

TEST(Emit, SamePlanSameBytes) {
  for (const char* model : kShippedModels) {
    EXPECT_EQ(emit(shipped_plan(model, "h200")), emit(shipped_plan(model, "h200"))) << model;
  }
}

TEST(Emit, NoPathsOfThisMachine) {
  for (const char* model : kShippedModels) {
    for (const auto& [name, text] : emit(shipped_plan(model, "h100"))) {
      EXPECT_EQ(text.find(SOLITON_SOURCE_DIR), std::string::npos) << model << ": " << name;
      EXPECT_EQ(text.find('\t'), std::string::npos) << model << ": " << name;
      EXPECT_EQ(text.back(), '\n') << model << ": " << name;
    }
  }
}

TEST(Emit, SaysWhereItComesFrom) {
  const auto files = emit(shipped_plan("llama-3.2-1b", "h100"));
  for (const char* name : {"plan.h", "kernel.cu"}) {
    EXPECT_EQ(files.at(name).substr(0, files.at(name).find('\n')),
              "// Generated from models/llama-3.2-1b.yaml for h100. Do not edit; run: soliton-gen "
              "models/llama-3.2-1b.yaml --gpu h100");
  }
  EXPECT_EQ(files.at("plan.txt").substr(0, 20), "llama-3.2-1b on h100");
}

// All roles walk the matrices of every layer and then the lm_head, and attention between qkv and o.
TEST(Emit, KernelCallsThePhasesInTheOrderOfTheStep) {
  const std::string kernel = emit(shipped_plan("llama-3.1-70b", "h200")).at("kernel.cu");
  size_t position = 0;
  for (const char* piece :
       {"MatrixPhase kMatrices[] = {\n  kQkv,\n  kO,\n  kGateUp,\n  kDown,\n  kLmHead,\n};",
        "int kPerLayer = 4;", "int kLast = Plan::kNumLayers * kPerLayer;",
        "const int layer = i == kLast ? 0 : i / kPerLayer;",
        "return {kMatrices[i == kLast ? kPerLayer : i % kPerLayer], layer};", "while (role.begin_step()) {",
        "for (int i = 0; i <= kLast; ++i) {",
        "if (i % kPerLayer == 1 && i < kLast) role.template attention<kAttention>(i / kPerLayer);",
        "role.matrix(matrix(i), matrix(i == kLast ? 0 : i + 1));", "role.end_step();"}) {
    const size_t next = kernel.find(piece, position);
    ASSERT_NE(next, std::string::npos) << piece;
    EXPECT_EQ(kernel.find(piece, next + 1), std::string::npos) << piece << " twice";
    position = next;
  }
}

// A float or double that is read back differs by nothing.
TEST(Emit, LiteralsReadBackExactly) {
  for (const double value : {1e-5, 1e-6, 1.0 / 3.0, 0.0625, 9.999999999999999e-6, 1e-38}) {
    for (const double theta : {10000.0, 500000.0, 1e12, 12345.678901234567, 9007199254740993.0}) {
      ModelConfig model = shipped_model("tiny-stories");
      model.facts.norm_epsilon = value;
      model.facts.rope_theta = theta;
      const std::string text = emit(make_plan(model, shipped_gpu("cpu"))).at("plan.h");
      EXPECT_EQ(std::strtof(after(text, "kNormEpsilon = ").c_str(), nullptr), static_cast<float>(value));
      EXPECT_EQ(std::strtod(after(text, ".norm_epsilon = ").c_str(), nullptr), value);
      const std::string emitted = after(text, ".rope_theta = ");
      EXPECT_EQ(std::strtod(emitted.c_str(), nullptr), theta);
      EXPECT_NE(emitted.find_first_of(".e"), std::string::npos) << emitted << " would be an integer";
    }
  }
}

TEST(Emit, OffsetsBeyondFourGigabytesAreWritten) {
  const Plan plan = shipped_plan("llama-3.1-70b", "h200");
  const int64_t offset = named(plan.matrices, "lm_head").offset;
  ASSERT_GT(offset, int64_t{1} << 32);
  const std::string text = emit(plan).at("plan.h");
  EXPECT_NE(text.find(fmt::format(".weights = {},", offset)), std::string::npos);
  EXPECT_NE(text.find(fmt::format(".weight_bytes = {},", plan.weight_bytes)), std::string::npos);
}

// With 132 CTAs gate_up begins where the 256 tiles of o end.
TEST(Emit, FirstCtaIsWritten) {
  const std::string text = emit(shipped_plan("llama-3.1-8b", "h200", {.num_ctas = 132})).at("plan.h");
  const size_t gate_up = text.find("constexpr MatrixPhase kGateUp{");
  ASSERT_NE(gate_up, std::string::npos);
  EXPECT_EQ(after(text.substr(gate_up), ".first_cta = "), "124,");
}

TEST(Emit, SynchronisationIsAConstantOfThePlan) {
  const auto sync = [](SyncMode mode) {
    return after(emit(shipped_plan("tiny-stories", "cpu", {.sync = mode})).at("plan.h"), "SyncMode kSync = ");
  };
  EXPECT_EQ(sync(SyncMode::kSelfValidating), "SyncMode::kSelfValidating;");
  EXPECT_EQ(sync(SyncMode::kCounter), "SyncMode::kCounter;");
}

// Models without it keep their walk.
TEST(Emit, TheWalkNormsHeadsWhereTheModelDoes) {
  ModelConfig model = shipped_model("tiny-stories");
  const auto kernel_of = [&](int rows) {
    return emit(std::vector{make_plan(model, shipped_gpu("cpu"), {.rows = rows})}).at("kernel.cu");
  };
  EXPECT_EQ(kernel_of(1).find("norm_heads"), std::string::npos);
  EXPECT_EQ(kernel_of(8).find("norm_heads"), std::string::npos);
  model.facts.head_norm = 1;
  EXPECT_EQ(kernel_of(1).find("norm_heads"), std::string::npos) << "attention does it";
  const std::string text = kernel_of(8);
  const size_t norms = text.find("role.norm_heads(i / kPerLayer);");
  ASSERT_NE(norms, std::string::npos);
  EXPECT_LT(norms, text.find("role.attend(i / kPerLayer);"));
}

TEST(Emit, BiasesAndNormedHeadsAreConstantsOfThePlan) {
  ModelConfig model = shipped_model("tiny-stories");
  model.facts.qkv_bias = 1;
  const std::string text = emit(make_plan(model, shipped_gpu("cpu"))).at("plan.h");
  EXPECT_EQ(after(text, "bool kQkvBias = "), "true;");
  EXPECT_EQ(after(text, "bool kHeadNorm = "), "false;");
  EXPECT_EQ(after(text, "int kQkvRows = "), "512;");
}

TEST(Emit, RopeKindAndTiedWeightsAreFacts) {
  ModelConfig model = shipped_model("tiny-stories");
  model.facts.rope_kind = RopeKind::kDefault;
  model.facts.tied_lm_head = 0;
  const std::string text = emit(make_plan(model, shipped_gpu("cpu"))).at("plan.h");
  EXPECT_EQ(after(text, ".rope_kind = "), "RopeKind::kDefault,");
  EXPECT_EQ(after(text, ".tied_lm_head = "), "0,");
}

}  // namespace
}  // namespace soliton
