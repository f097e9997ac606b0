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

/// Deals the tiles of a phase again, as the kernel would.
void deal_again(Plan& plan, const std::string& name) {
  PlanPhase& dealt = phase(plan, name);
  const int num_tiles = plan.matrices[dealt.matrix].num_tiles;
  for (int cta = 0; cta < plan.num_ctas; ++cta) {
    dealt.runs[cta] = deal_tiles(num_tiles, dealt.first_cta, plan.num_ctas, cta);
  }
}
/// Gives a matrix other rows, with the tiles that they need; everything else follows.
void set_rows(Plan& plan, const std::string& name, int rows) {
  matrix(plan, name).rows = rows;
  matrix(plan, name).num_tiles = ceil_divide(rows, kTileRows);
  deal_again(plan, name);
  place(plan, {});
}
/// Moves a vector together with its piece of the workspace.
void move_vector(Plan& plan, const std::string& name, int64_t offset) {
  vector(plan, name).offset = workspace(plan, name).offset = offset;
}

const std::vector<BadPlan> kBadPlans = {
    // Structure.
    {.name = "NoTileSlot",
     .rule = Rule::kNumberOutOfRange,
     .message = "tile slots: expected 1 or more, got 0",
     .damage = [](Plan& plan) { plan.tile_slots = 0; }},
    {.name = "NoPageStride",
     .rule = Rule::kNumberOutOfRange,
     .message = "page stride: expected 1 or more, got 0",
     .damage = [](Plan& plan) { plan.page_stride = 0; }},
    {.name = "SplitsFromNoPages",
     .rule = Rule::kNumberOutOfRange,
     .message = "pages of a split of attention at least: expected 1 or more, got 0",
     .damage = [](Plan& plan) { plan.min_pages_per_split = 0; }},
    {.name = "RingTooSmallForKeysAndValues",
     .rule = Rule::kNumberOutOfRange,
     .message = "ring slots: expected 2 or more, got 1",
     .damage = [](Plan& plan) { plan.ring_slots = 1; }},
    {.name = "WarpsThatDoNotShareAPageEvenly",
     .rule = Rule::kNumberOutOfRange,
     .message = "consumer warps: expected 1, 2, 4, 8 or 16, got 3",
     .damage = [](Plan& plan) { plan.consumer_warps = 3; }},
    {.name = "NoWarps",
     .rule = Rule::kNumberOutOfRange,
     .message = "consumer warps: expected 1, 2, 4, 8 or 16, got 0",
     .damage = [](Plan& plan) { plan.consumer_warps = 0; }},
    {.name = "ClearsAVectorThatThereIsNot",
     .rule = Rule::kIndexOutOfRange,
     .message = "o: clears: expected an index of 0 to 5, got -1",
     .damage = [](Plan& plan) { phase(plan, "o").clears = {-1}; }},
    {.name = "ReadsAVectorThatThereIsNot",
     .rule = Rule::kIndexOutOfRange,
     .message = "o: reads: expected an index of -1 to 5, got 6",
     .damage = [](Plan& plan) { phase(plan, "o").reads = 6; }},
    {.name = "MatrixThatThereIsNot",
     .rule = Rule::kIndexOutOfRange,
     .message = "down: matrix: expected an index of -1 to 4, got 5",
     .damage = [](Plan& plan) { phase(plan, "down").matrix = 5; },
     .also = {Rule::kMatrixUse}},
    {.name = "TwoVectorsOfOneName",
     .rule = Rule::kNameRepeated,
     .message = "qkv: expected one vector, got 2",
     .damage = [](Plan& plan) { vector(plan, "heads").name = "qkv"; }},
    {.name = "TwoPhasesOfOneMatrix",
     .rule = Rule::kMatrixUse,
     .message = "matrix qkv: expected one phase that uses it, got 2",
     .damage = [](Plan& plan) { phase(plan, "lm_head").matrix = 0; }},
    {.name = "PhaseWithoutMatrix",
     .rule = Rule::kMatrixUse,
     .message = "o: expected a matrix, got none",
     .damage = [](Plan& plan) { phase(plan, "o").matrix = -1; }},
    {.name = "AttentionWithAMatrix",
     .rule = Rule::kMatrixUse,
     .message = "attention: expected no matrix, got one",
     .damage = [](Plan& plan) { phase(plan, "attention").matrix = 0; }},
    {.name = "ChoiceInEveryLayer",
     .rule = Rule::kStepShape,
     .message = "lm_head: expected the last phase to choose a token, once, got a choice of every layer",
     .damage = [](Plan& plan) { phase(plan, "lm_head").per_layer = true; }},
    {.name = "NoAttention",
     .rule = Rule::kStepShape,
     .message = "step: expected one attention phase, got 0",
     .damage =
         [](Plan& plan) {
           std::erase_if(plan.phases, [](const PlanPhase& p) { return p.name == "attention"; });
         }},
    {.name = "BarrierMissing",
     .rule = Rule::kPieceMissing,
     .message = "barriers: expected one step_read, got 0",
     .damage =
         [](Plan& plan) {
           std::erase_if(plan.barriers, [](const PlanBarrier& b) { return b.name == "step_read"; });
         }},
    {.name = "BarrierTwice",
     .rule = Rule::kPieceMissing,
     .message = "barriers: expected one ended, got 2",
     .damage = [](Plan& plan) { plan.barriers.push_back(PlanBarrier(plan.barriers.back())); }},
    {.name = "BarrierThatNobodyKnows",
     .rule = Rule::kPieceMissing,
     .message = "barriers: expected no spare, got one",
     .damage = [](Plan& plan) { plan.barriers.push_back({.name = "spare"}); }},
    {.name = "NoCounters",
     .rule = Rule::kPieceMissing,
     .message = "workspace: expected one counters, got 0",
     .damage = [](Plan& plan) { plan.workspace.pop_back(); }},

    // Pages.
    {.name = "LastTileOfACtaForgotten",
     .rule = Rule::kPageSkipped,
     .message = "qkv: tile 31: expected one CTA that reads its pages, got none",
     .damage = [](Plan& plan) { --phase(plan, "qkv").runs.back().count; },
     .also = {Rule::kDealtUnlike}},
    {.name = "CtaForgotten",
     .rule = Rule::kPageSkipped,
     .message = "gate_up: tile 3: expected one CTA that reads its pages, got none",
     .damage = [](Plan& plan) { phase(plan, "gate_up").runs.resize(3); },
     .also = {Rule::kWaitUnsatisfied, Rule::kDealtUnlike}},
    {.name = "TilesThatNobodyWasDealt",
     .rule = Rule::kPageSkipped,
     .message = "lm_head: tile 128: expected one CTA that reads its pages, got none",
     .damage =
         [](Plan& plan) {
           ++matrix(plan, "lm_head").num_tiles;
           plan.weight_bytes += tile_bytes({}, matrix(plan, "lm_head").padded);
         },
     .also = {Rule::kDealtUnlike, Rule::kMatrixShape}},
    {.name = "CtaThatStaysAtItsTile",
     .rule = Rule::kPageRepeated,
     .message = "qkv: tile 5: expected to be read once, CTA 5 reads it again",
     .damage = [](Plan& plan) { phase(plan, "qkv").runs[5] = {.first = 5, .stride = 0, .count = 2}; },
     .also = {Rule::kPageSkipped, Rule::kDealtUnlike},  // in the large model
     .choices = {.num_ctas = 32}},
    {.name = "CtaThatReadsEverything",
     .rule = Rule::kPageTwoOwners,
     .message = "lm_head: tile 1: expected one owner, got CTA 0 and CTA 1",
     .damage =
         [](Plan& plan) {
           phase(plan, "lm_head").runs[0] = {
               .first = 0, .stride = 1, .count = matrix(plan, "lm_head").num_tiles};
         },
     .also = {Rule::kDealtUnlike}},
    {.name = "TwoCtasWithOneShare",
     .rule = Rule::kPageTwoOwners,
     .message = "gate_up: tile 1: expected one owner, got CTA 1 and CTA 2",
     .damage = [](Plan& plan) { phase(plan, "gate_up").runs[2] = phase(plan, "gate_up").runs[1]; },
     .also = {Rule::kPageSkipped, Rule::kDealtUnlike}},
    {.name = "TileBehindTheLast",
     .rule = Rule::kPageOutOfRange,
     .message = "qkv: CTA 3: expected tiles 0 to 31, got 35",
     .damage = [](Plan& plan) { ++phase(plan, "qkv").runs[3].count; },
     .also = {Rule::kDealtUnlike}},
    {.name = "TileBeforeTheFirst",
     .rule = Rule::kPageOutOfRange,
     .message = "qkv: CTA 0: expected tiles 0 to 31, got -4",
     .damage =
         [](Plan& plan) {
           TileRun& run = phase(plan, "qkv").runs[0];
           run = {.first = run.first - run.stride, .stride = run.stride, .count = run.count + 1};
         },
     .also = {Rule::kDealtUnlike}},
    {.name = "TilesOfALargerMatrix",
     .rule = Rule::kPageOutOfRange,
     .message = "lm_head: CTA 3: expected tiles 0 to 126, got 127",
     .damage = [](Plan& plan) { --matrix(plan, "lm_head").num_tiles; },
     .also = {Rule::kDealtUnlike, Rule::kMatrixShape, Rule::kWeightsSize}},
    {.name = "RunsOfTwoCtasSwapped",
     .rule = Rule::kDealtUnlike,
     .message = "qkv: CTA 0: expected the tiles that the kernel deals it, 8 from 0 by 4, got 8 from 1 by 4",
     .damage = [](Plan& plan) { std::swap(phase(plan, "qkv").runs[0], phase(plan, "qkv").runs[1]); }},
    {.name = "FirstCtaOfOtherRuns",
     .rule = Rule::kDealtUnlike,
     .message =
         "gate_up: CTA 0: expected the tiles that the kernel deals it, 24 from 3 by 4, got 24 from 0 by 4",
     .damage = [](Plan& plan) { phase(plan, "gate_up").first_cta = 1; }},
    {.name = "FirstCtaThatThereIsNot",
     .rule = Rule::kDealtUnlike,
     .message = "qkv: expected a first CTA of 0 to 3, got 4",
     .damage = [](Plan& plan) { phase(plan, "qkv").first_cta = plan.num_ctas; }},
    {.name = "RunsOfACtaThatThereIsNot",
     .rule = Rule::kDealtUnlike,
     .message = "qkv: expected the tiles of 4 CTAs, got those of 5",
     .damage = [](Plan& plan) { phase(plan, "qkv").runs.emplace_back(); }},

    // Shapes.
    {.name = "TileMoreThanTheRowsFill",
     .rule = Rule::kMatrixShape,
     .message = "matrix qkv: expected 32 tiles, got 33",
     .damage =
         [](Plan& plan) {
           ++matrix(plan, "qkv").num_tiles;
           deal_again(plan, "qkv");
           place(plan, {});
         }},
    {.name = "RowsBeyondTheResidualStream",
     .rule = Rule::kMatrixShape,
     .message = "matrix down: expected 256 rows, got 240",
     .damage =
         [](Plan& plan) {
           set_rows(plan, "down", matrix(plan, "down").rows - kTileRows);
           set_rows(plan, "o", matrix(plan, "o").rows - kTileRows);
         },
     .also = {Rule::kWaitUnsatisfied}},
    {.name = "RowsBeyondQkv",
     .rule = Rule::kMatrixShape,
     .message = "matrix qkv: expected 512 rows, got 528",
     .damage = [](Plan& plan) { set_rows(plan, "qkv", matrix(plan, "qkv").rows + kTileRows); }},
    {.name = "HalfOfTheGateRows",
     .rule = Rule::kMatrixShape,
     .message = "matrix gate_up: expected 1536 rows, got 768",
     .damage = [](Plan& plan) { set_rows(plan, "gate_up", matrix(plan, "gate_up").rows / 2); }},
    {.name = "TokenThatThereIsNot",
     .rule = Rule::kMatrixShape,
     .message = "matrix lm_head: expected 2048 rows, got 2049",
     .damage = [](Plan& plan) { set_rows(plan, "lm_head", matrix(plan, "lm_head").rows + 1); }},
    {.name = "ColumnsThatTheVectorHasNot",
     .rule = Rule::kMatrixShape,
     .message = "matrix o: expected 256 columns, one of each element that is read, got 255",
     .damage = [](Plan& plan) { --matrix(plan, "o").columns; }},
    {.name = "PaddingOfHalfAUnit",
     .rule = Rule::kMatrixShape,
     .message = "matrix o: expected 256 columns with padding, got 320",
     .damage =
         [](Plan& plan) {
           matrix(plan, "o").padded += kColumnBlock * plan.consumer_warps / 2;
           place(plan, {});
         }},
    {.name = "PaddingOfAWholeUnit",
     .rule = Rule::kMatrixShape,
     .message = "matrix o: expected 256 columns with padding, got 384",
     .damage =
         [](Plan& plan) {
           matrix(plan, "o").padded += kColumnBlock * plan.consumer_warps;
           place(plan, {});
         }},
    {.name = "ColumnsCutOff",
     .rule = Rule::kMatrixShape,
     .message = "matrix o: expected 256 columns with padding, got 128",
     .damage =
         [](Plan& plan) {
           matrix(plan, "o").padded -= kColumnBlock * plan.consumer_warps;
           place(plan, {});
         }},
    {.name = "LayerWithoutItsCopy",
     .rule = Rule::kMatrixShape,
     .message = "matrix o: expected 6 copies, got 5",
     .damage = [](Plan& plan) { --matrix(plan, "o").copies; }},
    {.name = "LmHeadOfEveryLayer",
     .rule = Rule::kMatrixShape,
     .message = "matrix lm_head: expected 1 copies, got 2",
     .damage =
         [](Plan& plan) {
           PlanMatrix& lm_head = matrix(plan, "lm_head");
           lm_head.copies = 2;
           lm_head.layer_stride = lm_head.layer_bytes();
           plan.weight_bytes += lm_head.layer_bytes();
         }},
    {.name = "GateRowsInPlainOrder",
     .rule = Rule::kMatrixShape,
     .message = "matrix gate_up: expected gate and up rows, got plain ones",
     .damage = [](Plan& plan) { matrix(plan, "gate_up").row_order = RowOrder::kPlain; }},
    {.name = "CandidatesOfHalfAWord",
     .rule = Rule::kVectorShape,
     .message = "candidates: expected 8 bytes an element, got 4",
     .damage = [](Plan& plan) { vector(plan, "candidates").element_bytes = 4; }},
    {.name = "SignedCandidates",
     .rule = Rule::kVectorShape,
     .message = "candidates: expected no signatures beside a candidate of every CTA, got 4",
     .damage =
         [](Plan& plan) {
           vector(plan, "candidates").signatures = plan.num_ctas;
           place(plan, {});
         }},
    {.name = "HeadsThatNobodyHas",
     .rule = Rule::kVectorShape,
     .message = "heads: expected 256 elements, got 272",
     .damage =
         [](Plan& plan) {
           vector(plan, "heads").elements += 16;
           place(plan, {});
         },
     .also = {Rule::kMatrixShape}},
    {.name = "EmbeddingWithoutCandidates",
     .rule = Rule::kInputKind,
     .message = "gate_up: expected candidates to be read before the embedding, got nothing read",
     .damage = [](Plan& plan) { phase(plan, "gate_up").input = InputKind::kHidden; }},
    {.name = "CandidatesWithoutEmbedding",
     .rule = Rule::kInputKind,
     .message = "qkv: expected the embedding as input once candidates are read, got another",
     .damage = [](Plan& plan) { phase(plan, "qkv").input = InputKind::kNormed; }},
    {.name = "StepThatBeginsWithAnotherVector",
     .rule = Rule::kInputKind,
     .message = "qkv: expected layer 0 to read candidates, got post_attention",
     .damage =
         [](Plan& plan) { phase(plan, "qkv").first_layer_reads = index_of(plan.vectors, "post_attention"); },
     .also = {Rule::kWaitTooEarly, Rule::kClearedWhileRead, Rule::kClearedTooLate}},
    {.name = "NormedResidual",
     .rule = Rule::kInputKind,
     .message = "o: expected an input without norm, got a normed one",
     .damage =
         [](Plan& plan) {
           // Not down: its input comes in chunks, and a normed one must not.
           phase(plan, "o").input = InputKind::kNormed;
           phase(plan, "o").first_norm = 1;
           phase(plan, "o").norm_stride = 2;
         },
     .also = {Rule::kNormRow}},
    {.name = "ChunksOfHalfAPage",
     .rule = Rule::kMatrixShape,
     .message = "chunks: expected a multiple of 512 columns, got 768",
     .damage =
         [](Plan& plan) {
           plan.chunk_columns += kPageColumns / 2;
           place(plan, {});
         }},
    {.name = "ChunksOfNothing",
     .rule = Rule::kMatrixShape,
     .message = "chunks: expected a multiple of 512 columns, got 0",
     .damage = [](Plan& plan) { plan.chunk_columns = 0; }},
    {.name = "ChunksOfLessThanNothing",
     .rule = Rule::kMatrixShape,
     .message = "chunks: expected a multiple of 512 columns, got -512",
     .damage = [](Plan& plan) { plan.chunk_columns = -kPageColumns; }},
    {.name = "NormedInputInChunks",
     .rule = Rule::kMatrixShape,
     .message = "gate_up: expected its normed input of 256 columns in one chunk, got chunks of 128",
     .damage =
         [](Plan& plan) {
           plan.chunk_columns = matrix(plan, "gate_up").padded / 2;
           place(plan, {});
         }},
    {.name = "EmbeddingInChunks",
     .rule = Rule::kMatrixShape,
     .message = "qkv: expected its normed input of 256 columns in one chunk, got chunks of 128",
     .damage =
         [](Plan& plan) {
           plan.chunk_columns = matrix(plan, "qkv").padded / 2;
           place(plan, {});
         }},
    {.name = "NormBehindTheLast",
     .rule = Rule::kNormRow,
     .message = "lm_head (layer 0): expected a row of the norms of 0 to 12, got 13",
     .damage = [](Plan& plan) { ++phase(plan, "lm_head").first_norm; }},
    {.name = "NormedWithoutNorm",
     .rule = Rule::kNormRow,
     .message = "gate_up (layer 0): expected a row of the norms of 0 to 12, got -1",
     .damage =
         [](Plan& plan) {
           phase(plan, "gate_up").first_norm = -1;
           phase(plan, "gate_up").norm_stride = 0;
         }},
    {.name = "NormOfTheSameLayer",
     .rule = Rule::kNormRow,
     .message = "norms: row 1: expected one use, got 6",
     .damage = [](Plan& plan) { phase(plan, "gate_up").norm_stride = 0; }},
    {.name = "NormThatNobodyUses",
     .rule = Rule::kNormRow,
     .message = "down: expected no row of the norms for an input without norm, got 3",
     .damage = [](Plan& plan) { phase(plan, "down").first_norm = 3; }},

    // Waits.
    {.name = "AttentionDealtTilesInsteadOfSignatures",
     .rule = Rule::kWaitUnsatisfied,
     .message = "heads: CTA 0 has no tile of attention, expected signatures, got none",
     .damage =
         [](Plan& plan) {
           phase(plan, "attention").runs.resize(plan.num_ctas, {.count = 1});
           vector(plan, "heads").signatures = 0;
         },
     .also = {Rule::kDealtUnlike}},
    {.name = "AttentionOfNothing",
     .rule = Rule::kReadWithoutWait,
     .message = "attention (layer 0): expected to read what it waits for, got nothing",
     .damage = [](Plan& plan) { phase(plan, "attention").reads = phase(plan, "attention").waits_for = -1; },
     .also = {Rule::kClearedWhileRead},
     .choices = {.sync = SyncMode::kCounter}},
    {.name = "PhaseThatWritesWhatItReads",
     .rule = Rule::kReadWritten,
     .message = "o: expected to write another vector than it reads, got heads for both",
     .damage =
         [](Plan& plan) {
           phase(plan, "o").writes = index_of(plan.vectors, "heads");
           read_and_await(plan, "gate_up", "heads");
         },
     .choices = {.sync = SyncMode::kCounter}},
    {.name = "NothingAppends",
     .rule = Rule::kAppendedElsewhere,
     .message = "step: expected a residual phase right behind attention, got none",
     .damage =
         [](Plan& plan) {
           for (const char* name : {"o", "down"}) phase(plan, name).output = OutputKind::kSwiglu;
         },
     .also = {Rule::kMatrixShape, Rule::kVectorShape}},
    {.name = "AppendsBehindDown",
     .rule = Rule::kAppendedElsewhere,
     .message =
         "down: expected the first phase that adds to the residual stream right behind attention, got it "
         "behind gate_up",
     .damage =
         [](Plan& plan) {
           phase(plan, "o").output = OutputKind::kSwiglu;
           place(plan, {});
         },
     .also = {Rule::kMatrixShape, Rule::kVectorShape}},
    {.name = "WriterMissing",
     .rule = Rule::kWaitUnsatisfied,
     .message =
         "gate_up (layer 0): waits for post_attention, expected the phase before to write it, got o which "
         "writes nothing",
     .damage = [](Plan& plan) { phase(plan, "o").writes = -1; }},
    {.name = "WriterWritesSomethingElse",
     .rule = Rule::kWaitUnsatisfied,
     .message = "attention (layer 0): waits for qkv, expected the phase before to write it, got qkv which "
                "writes ffn",
     .damage = [](Plan& plan) { phase(plan, "qkv").writes = index_of(plan.vectors, "ffn"); },
     .also = {Rule::kClearedTooLate, Rule::kVectorShape}},
    {.name = "AttentionWithoutSignatures",
     .rule = Rule::kWaitUnsatisfied,
     .message = "heads: CTA 0 has no tile of attention, expected signatures, got none",
     .damage = [](Plan& plan) { vector(plan, "heads").signatures = 0; }},
    {.name = "AttentionReadsAPartOfWhatNobodySigned",
     .rule = Rule::kWaitUnsatisfied,
     .message = "qkv: attention reads a part of it, expected signatures, got none",
     .damage = [](Plan& plan) { vector(plan, "qkv").signatures = 0; }},
    {.name = "SignatureOfOneCtaMissingForAttention",
     .rule = Rule::kWaitUnsatisfied,
     .message = "qkv: expected 0 or 4 signatures, got 3",
     .damage = [](Plan& plan) { --vector(plan, "qkv").signatures; }},
    {.name = "SignatureOfOneCtaMissing",
     .rule = Rule::kWaitUnsatisfied,
     .message = "heads: expected 0 or 4 signatures, got 3",
     .damage = [](Plan& plan) { --vector(plan, "heads").signatures; }},
    {.name = "CtaWithoutTileDoesNotSign",
     .rule = Rule::kWaitUnsatisfied,
     .message = "hidden: CTA 16 has no tile of down, expected signatures, got none",
     .damage =
         [](Plan& plan) {
           for (const char* name : {"post_attention", "hidden"}) vector(plan, name).signatures = 0;
           if (plan.model == "tiny-stories") return;
           // The large model has tiles for every CTA: take them away from the last.
           for (const char* name : {"o", "down"}) phase(plan, name).runs[16].count = 0;
         },
     .also = {Rule::kPageSkipped, Rule::kDealtUnlike},
     .choices = {.num_ctas = 17}},
    {.name = "CandidateMissing",
     .rule = Rule::kVectorShape,
     .message = "candidates: expected 5 elements, got 4",
     .damage = [](Plan& plan) { --vector(plan, "candidates").elements; }},
    {.name = "VectorOfALaterPhase",
     .rule = Rule::kWaitTooEarly,
     .message = "gate_up (layer 0): waits for hidden, expected the phase before to write it, got o which "
                "writes post_attention",
     .damage = [](Plan& plan) { read_and_await(plan, "gate_up", "hidden"); },
     .also = {Rule::kClearedWhileRead}},
    {.name = "PhasesInTheWrongOrder",
     .rule = Rule::kWaitTooEarly,
     .message =
         "gate_up (layer 0): waits for post_attention, expected the phase before to write it, got attention "
         "which writes heads",
     .damage = [](Plan& plan) { std::swap(phase(plan, "o"), phase(plan, "gate_up")); },
     .also = {Rule::kClearedWhileRead, Rule::kClearedTooLate, Rule::kAppendedElsewhere}},
    {.name = "StepThatDoesNotBeginWithTheCandidates",
     .rule = Rule::kWaitTooEarly,
     .message = "qkv (layer 0): waits for hidden, expected the phase before to write it, got lm_head which "
                "writes candidates",
     .damage = [](Plan& plan) { phase(plan, "qkv").first_layer_reads = -1; },
     .also = {Rule::kClearedWhileRead, Rule::kInputKind}},
    {.name = "NoWait",
     .rule = Rule::kReadWithoutWait,
     .message = "gate_up (layer 0): reads post_attention, expected a wait for it, got a wait for nothing",
     .damage = [](Plan& plan) { phase(plan, "gate_up").waits_for = -1; }},
    {.name = "WaitForAnotherVector",
     .rule = Rule::kReadWithoutWait,
     .message = "gate_up (layer 0): reads heads, expected a wait for it, got a wait for post_attention",
     .damage = [](Plan& plan) { read_instead(plan, "gate_up", "heads"); },
     .choices = {.sync = SyncMode::kCounter}},
    {.name = "LayerZeroReadsTheCandidatesUnawaited",
     .rule = Rule::kReadWithoutWait,
     .message = "qkv (layer 0): reads candidates, expected a wait for it, got a wait for ffn",
     .damage = [](Plan& plan) { phase(plan, "qkv").waits_for = index_of(plan.vectors, "ffn"); },
     .also = {Rule::kWaitTooEarly}},

    // Clearing. A step of the tiny model has 6 x 5 + 1 phases: qkv 0, attention 1, o 2, gate_up 3, down 4,
    // qkv 5.
    {.name = "NeverCleared",
     .rule = Rule::kNotCleared,
     .message = "heads: written in phases 1 and 6, expected a phase between that clears it",
     .damage = [](Plan& plan) { phase(plan, "gate_up").clears.clear(); }},
    {.name = "CandidatesNeverCleared",
     .rule = Rule::kNotCleared,
     .message = "candidates: written in phases 30 and 61, expected a phase between that clears it",
     .damage = [](Plan& plan) { phase(plan, "attention").first_layer_clears.clear(); },
     .also = {Rule::kClearedUnlike}},
    {.name = "ClearedOnlyInLayerZero",
     .rule = Rule::kNotCleared,
     .message = "post_attention: written in phases 2 and 7, expected a phase between that clears it",
     .damage =
         [](Plan& plan) { std::swap(phase(plan, "down").clears, phase(plan, "down").first_layer_clears); },
     .also = {Rule::kClearedUnlike}},
    {.name = "ClearedByItsReader",
     .rule = Rule::kClearedWhileRead,
     .message = "heads: cleared in phase 2, expected phase 3 or later: it is read in phase 2",
     .damage = [](Plan& plan) { move_clear(plan, "heads", "gate_up", "o"); },
     .also = {Rule::kClearedUnlike}},
    {.name = "CandidatesClearedByTheirReader",
     .rule = Rule::kClearedWhileRead,
     .message = "candidates: cleared in phase 31, expected phase 32 or later: it is read in phase 31",
     .damage =
         [](Plan& plan) {
           std::swap(phase(plan, "qkv").first_layer_clears, phase(plan, "attention").first_layer_clears);
         },
     .also = {Rule::kClearedUnlike}},
    {.name = "ClearedBeforeTheFirstRead",
     .rule = Rule::kClearedWhileRead,
     .message = "post_attention: cleared in phase 4 before anyone read what phase 2 wrote",
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
     .damage = [](Plan& plan) { move_clear(plan, "qkv", "o", "gate_up"); },
     .also = {Rule::kClearedUnlike}},
    {.name = "ClearedInThePhaseThatWrites",
     .rule = Rule::kClearedTooLate,
     .message = "ffn: cleared in phase 8, expected phase 5 or earlier: it is written in phase 8",
     .damage = [](Plan& plan) { move_clear(plan, "ffn", "qkv", "gate_up"); },
     .also = {Rule::kClearedUnlike}},
    {.name = "TwoVectorsClearedAtOnce",
     .rule = Rule::kClearedUnlike,
     .message = "gate_up: expected to clear one vector at most, got 2",
     .damage = [](Plan& plan) { move_clear(plan, "qkv", "o", "gate_up"); },
     .also = {Rule::kClearedTooLate}},
    {.name = "CandidatesClearedByAnotherPhase",
     .rule = Rule::kClearedUnlike,
     .message = "o: expected to clear 0 more in layer 0 (nothing), got 1 (candidates)",
     .damage =
         [](Plan& plan) {
           std::swap(phase(plan, "o").first_layer_clears, phase(plan, "attention").first_layer_clears);
         }},
    {.name = "CandidatesClearedTwice",
     .rule = Rule::kClearedUnlike,
     .message = "attention: expected to clear 1 more in layer 0 (candidates), got 2 (candidates)",
     .damage =
         [](Plan& plan) {
           phase(plan, "attention").first_layer_clears.push_back(index_of(plan.vectors, "candidates"));
         }},

    // Memory.
    {.name = "VectorBeforeTheWorkspace",
     .rule = Rule::kMisplaced,
     .message = "workspace: heads: expected an offset of 0 or more, a multiple of 16, got -2080",
     .damage = [](Plan& plan) { move_vector(plan, "heads", -2 * vector(plan, "heads").bytes()); }},
    {.name = "VectorOffItsAlignment",
     .rule = Rule::kMisplaced,
     .message = "workspace: heads: expected an offset of 0 or more, a multiple of 16, got 2312",
     .damage = [](Plan& plan) { move_vector(plan, "heads", vector(plan, "heads").offset + 8); },
     .also = {Rule::kWorkspaceOverlap}},
    {.name = "MatrixOffItsAlignment",
     .rule = Rule::kMisplaced,
     .message = "matrix lm_head: expected an offset of 0 or more, a multiple of 16, got 9437192",
     .damage =
         [](Plan& plan) {
           matrix(plan, "lm_head").offset += 8;
           plan.weight_bytes += 8;
         }},
    {.name = "MatrixBeforeTheWeights",
     .rule = Rule::kMisplaced,
     .message = "matrix lm_head: expected an offset of 0 or more, a multiple of 16, got -1048576",
     .damage =
         [](Plan& plan) {
           PlanMatrix& lm_head = matrix(plan, "lm_head");
           lm_head.offset = -lm_head.layer_bytes();
           plan.weight_bytes -= lm_head.layer_bytes();
         }},
    {.name = "LayersOffTheirAlignment",
     .rule = Rule::kMisplaced,
     .message = "matrix qkv, next layer: expected an offset of 0 or more, a multiple of 16, got 1572872",
     .damage =
         [](Plan& plan) {
           for (PlanMatrix& each : plan.matrices) {
             if (each.copies > 1) each.layer_stride += 8;
           }
           matrix(plan, "lm_head").offset += 16ll * plan.facts.num_layers;
           plan.weight_bytes += 16ll * plan.facts.num_layers;
         }},
    {.name = "PagesBeforeSharedMemory",
     .rule = Rule::kMisplaced,
     .message = "shared memory: pages: expected an offset of 0 or more, a multiple of 16, got -16",
     .damage = [](Plan& plan) { shared(plan, "pages").offset = -16; }},
    {.name = "RingWithoutItsLastPage",
     .rule = Rule::kPieceTooSmall,
     .message = "shared memory: pages: expected 212992 bytes or more, got 196608",
     .damage = [](Plan& plan) { shared(plan, "pages").bytes -= kPageBytes; }},
    {.name = "InputWithoutItsLowParts",
     .rule = Rule::kPieceTooSmall,
     .message = "shared memory: x: expected 4224 bytes or more, got 2112",
     .damage = [](Plan& plan) { shared(plan, "x").bytes /= 2; }},
    {.name = "TilesTooSmall",
     .rule = Rule::kPieceTooSmall,
     .message = "shared memory: tiles: expected 1024 bytes or more, got 1020",
     .damage = [](Plan& plan) { shared(plan, "tiles").bytes -= 4; }},
    {.name = "AttentionPartsTooSmall",
     .rule = Rule::kPieceTooSmall,
     .message = "shared memory: attention: expected 1056 bytes or more, got 1052",
     .damage = [](Plan& plan) { shared(plan, "attention").bytes -= 4; }},
    {.name = "QueryTooSmall",
     .rule = Rule::kPieceTooSmall,
     .message = "shared memory: query: expected 1536 bytes or more, got 1532",
     .damage = [](Plan& plan) { shared(plan, "query").bytes -= 4; }},
    {.name = "StatusTooSmall",
     .rule = Rule::kPieceTooSmall,
     .message = "shared memory: statuses: expected 192 bytes or more, got 160",
     .damage = [](Plan& plan) { shared(plan, "status").bytes -= 32; }},
    {.name = "ResidualTooSmall",
     .rule = Rule::kPieceTooSmall,
     .message = "shared memory: residual: expected 256 bytes or more, got 252",
     .damage = [](Plan& plan) { shared(plan, "residual").bytes -= 4; }},
    {.name = "NewTokenTooSmall",
     .rule = Rule::kPieceTooSmall,
     .message = "shared memory: new_token: expected 256 bytes or more, got 252",
     .damage = [](Plan& plan) { shared(plan, "new_token").bytes -= 4; }},
    {.name = "SquaresTooSmall",
     .rule = Rule::kPieceTooSmall,
     .message = "shared memory: squares: expected 32 bytes or more, got 28",
     .damage = [](Plan& plan) { shared(plan, "squares").bytes -= 4; }},
    {.name = "DecisionTooSmall",
     .rule = Rule::kPieceTooSmall,
     .message = "shared memory: decision: expected 8 bytes or more, got 4",
     .damage = [](Plan& plan) { shared(plan, "decision").bytes -= 4; }},
    {.name = "BarriersTooSmall",
     .rule = Rule::kPieceTooSmall,
     .message = "shared memory: barriers: expected 360 bytes or more, got 352",
     .damage = [](Plan& plan) { shared(plan, "barriers").bytes -= 8; }},
    {.name = "PartialsTooSmall",
     .rule = Rule::kPieceTooSmall,
     .message = "workspace: partials: expected 4224 bytes or more, got 4220",
     .damage = [](Plan& plan) { workspace(plan, "partials").bytes -= 4; }},
    {.name = "CountersTooSmall",
     .rule = Rule::kPieceTooSmall,
     .message = "workspace: counters: expected 512 bytes or more, got 508",
     .damage = [](Plan& plan) { workspace(plan, "counters").bytes -= 4; }},
    {.name = "VectorLargerThanItsPiece",
     .rule = Rule::kPieceTooSmall,
     .message = "workspace: ffn: expected 3072 bytes or more, got 3056",
     .damage = [](Plan& plan) { workspace(plan, "ffn").bytes -= 16; }},
    {.name = "VectorBesideItsPiece",
     .rule = Rule::kVectorMoved,
     .message = "qkv: expected to lie at 16 as in the workspace, got 0",
     .damage = [](Plan& plan) { workspace(plan, "qkv").offset += 16; }},
    {.name = "BytesBehindTheWeights",
     .rule = Rule::kWeightsSize,
     .message = "packed weights: expected to end with the last matrix at byte 10485760, got 10485761",
     .damage = [](Plan& plan) { ++plan.weight_bytes; }},
    {.name = "VectorsOfBothModesOverlap",
     .rule = Rule::kWorkspaceOverlap,
     .message = "workspace: post_attention ends at 4608, expected before hidden which begins at 3584",
     .damage = [](Plan& plan) { move_vector(plan, "hidden", vector(plan, "post_attention").offset); },
     .choices = {.sync = SyncMode::kCounter}},
    {.name = "InputUnderTheLastPage",
     .rule = Rule::kSharedOverlap,
     .message = "shared memory: pages ends at 212992, expected before x which begins at 212976",
     .damage = [](Plan& plan) { shared(plan, "x").offset -= 16; }},
    {.name = "ResidualUnderTheAttentionParts",
     .rule = Rule::kSharedOverlap,
     .message = "shared memory: attention ends at 219296, expected before residual which begins at 219292",
     .damage = [](Plan& plan) { shared(plan, "residual").offset -= 4; }},
    {.name = "PieceWithinAnother",
     .rule = Rule::kSharedOverlap,
     .message = "shared memory: pages ends at 212992, expected before decision which begins at 1024",
     .damage = [](Plan& plan) { shared(plan, "decision").offset = 1024; }},
    {.name = "OneByteTooManyOfSharedMemory",
     .rule = Rule::kSharedExceeded,
     .message = "shared memory: barriers ends at byte 222200, expected at most 222199",
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
     .message = "workspace: qkv ends at 2064, expected before heads which begins at 2048",
     .damage = [](Plan& plan) { vector(plan, "heads").offset = vector(plan, "qkv").bytes() - 16; },
     .also = {Rule::kVectorMoved}},
    {.name = "SignaturesReachIntoTheNextVector",
     .rule = Rule::kWorkspaceOverlap,
     .message = "workspace: heads ends at 3344, expected before post_attention which begins at 3328",
     .damage =
         [](Plan& plan) {
           const PlanVector& heads = vector(plan, "heads");
           vector(plan, "post_attention").offset = heads.offset + 4ll * heads.elements;
         },
     .also = {Rule::kVectorMoved}},
    {.name = "PartialsOverCandidates",
     .rule = Rule::kWorkspaceOverlap,
     .message = "workspace: candidates ends at 8744, expected before partials which begins at 8704",
     .damage = [](Plan& plan) { workspace(plan, "partials").offset = vector(plan, "candidates").offset; }},
    {.name = "VectorBehindTheWorkspace",
     .rule = Rule::kWorkspaceOverlap,
     .message = "workspace: ffn ends at byte 16896, expected at most 13824",
     .damage = [](Plan& plan) { vector(plan, "ffn").offset = plan.workspace_bytes(); },
     .also = {Rule::kVectorMoved}},
    {.name = "MatricesOverlap",
     .rule = Rule::kWeightsOverlap,
     .message = "packed weights: qkv[0] ends at 262144, expected before o[0] which begins at 262128",
     .damage = [](Plan& plan) { matrix(plan, "o").offset -= 16; }},
    {.name = "LayersOverlap",
     .rule = Rule::kWeightsOverlap,
     .message = "packed weights: down[0] ends at 1572864, expected before qkv[1] which begins at 1572848",
     .damage =
         [](Plan& plan) {
           for (const char* name : {"qkv", "o", "gate_up", "down"}) matrix(plan, name).layer_stride -= 16;
         }},
    {.name = "LmHeadOverTheLastLayer",
     .rule = Rule::kWeightsOverlap,
     .message = "packed weights: down[5] ends at 9437184, expected before lm_head[0] which begins at 9437168",
     .damage = [](Plan& plan) { matrix(plan, "lm_head").offset -= 16; },
     .also = {Rule::kWeightsSize}},
    {.name = "MatrixBehindTheWeights",
     .rule = Rule::kWeightsOverlap,
     .message = "packed weights: lm_head[0] ends at byte 10485760, expected at most 10485759",
     .damage = [](Plan& plan) { --plan.weight_bytes; }},

    // What the card can hold.
    {.name = "RegistersOfAThread",
     .rule = Rule::kRegistersExceeded,
     .message = "registers: expected 1 to 255 a thread and up to 65536 an SM, got 256 a thread, allotted as "
                "256, of 224 threads",
     .damage = [](Plan& plan) { plan.registers_per_thread = 256; }},
    {.name = "RegistersOfAllThreads",
     .rule = Rule::kRegistersExceeded,
     .message = "registers: expected 1 to 255 a thread and up to 65536 an SM, got 192 a thread, allotted as "
                "192, of 352 threads",
     .damage = [](Plan& plan) { plan.registers_per_thread += 8; },
     .choices = {.consumer_warps = 8}},
    {.name = "RegistersThatAreRoundedUp",
     .rule = Rule::kRegistersExceeded,
     .message =
         "registers: expected 1 to 255 a thread and up to 65536 an SM, got 185 a thread, allotted as 192, of "
         "352 threads",
     .damage = [](Plan& plan) { plan.registers_per_thread += 1; },
     .choices = {.consumer_warps = 8}},
    {.name = "NoRegisters",
     .rule = Rule::kRegistersExceeded,
     .message =
         "registers: expected 1 to 255 a thread and up to 65536 an SM, got 0 a thread, allotted as 0, of 224 "
         "threads",
     .damage = [](Plan& plan) { plan.registers_per_thread = 0; }},
    {.name = "TooManyWarps",
     .rule = Rule::kThreadsExceeded,
     .message = "threads per CTA: expected at most 192, got 224",
     .damage = [](Plan& plan) { plan.limits.max_threads_per_block = plan.threads() - 32; }},
    {.name = "MoreCtasThanSms",
     .rule = Rule::kTooManyCtas,
     .message = "CTAs: expected 1 to 3, one per SM, got 4",
     .damage = [](Plan& plan) { plan.limits.num_sms = plan.num_ctas - 1; }},
    {.name = "NoCta",
     .rule = Rule::kTooManyCtas,
     .message = "CTAs: expected 1 to 4, one per SM, got 0",
     .damage = [](Plan& plan) { plan.num_ctas = 0; }},

    // Barriers.
    {.name = "InputReportedIntoOneBarrier",
     .rule = Rule::kParityTwoAhead,
     .message = "input_read: a thread may be 2 uses ahead, expected as many barriers, got 1",
     .damage = [](Plan& plan) { barrier(plan, "input_read").slots = 1; }},
    {.name = "ProducerAheadOfItsRing",
     .rule = Rule::kParityTwoAhead,
     .message = "page_full: expected threads up to 13 uses ahead, got 14",
     .damage = [](Plan& plan) { barrier(plan, "page_full").lead = plan.ring_slots + 1; }},
    {.name = "WindowLargerThanTheRing",
     .rule = Rule::kParityTwoAhead,
     .message = "window: expected 1 to 13 pages in flight, one per slot, got 14",
     .damage = [](Plan& plan) { plan.window = plan.ring_slots + 1; }},
    {.name = "NoPageInFlight",
     .rule = Rule::kParityTwoAhead,
     .message = "window: expected 1 to 13 pages in flight, one per slot, got 0",
     .damage = [](Plan& plan) { plan.window = 0; }},
    {.name = "ConsumersThatSkipPhasesOfASlot",
     .rule = Rule::kParityTwoAhead,
     .message = "ring: a consumer that goes on by 8 pages skips phases of a slot, expected a multiple of 8 "
                "slots, got 13",
     .damage = [](Plan& plan) { plan.page_stride = 8; }},
    {.name = "InputReportedIntoOneBarrierOnPurpose",
     .rule = Rule::kParityTwoAhead,
     .message = "input_read: expected threads up to 2 uses ahead, got 1",
     .damage = [](Plan& plan) { barrier(plan, "input_read").slots = barrier(plan, "input_read").lead = 1; }},
    {.name = "SlotsWithoutBarriers",
     .rule = Rule::kParityTwoAhead,
     .message = "tile_full: a thread may be 4 uses ahead, expected as many barriers, got 3",
     .damage = [](Plan& plan) { barrier(plan, "tile_full").slots = barrier(plan, "tile_full").lead = 3; }},
    {.name = "ArriverForgotten",
     .rule = Rule::kBarrierCount,
     .message = "page_empty: expected a count of 4, one of each thread that arrives, got 3 of 3",
     .damage =
         [](Plan& plan) {
           PlanBarrier& page_empty = barrier(plan, "page_empty");
           page_empty.arrivals = page_empty.arrivers = plan.consumer_warps - 1;
         }},
    {.name = "PageReleasedByAllButOne",
     .rule = Rule::kBarrierCount,
     .message = "page_empty: expected a count of 4, one of each thread that arrives, got 3 of 4",
     .damage = [](Plan& plan) { --barrier(plan, "page_empty").arrivals; }},
    {.name = "TileThatIsNeverFull",
     .rule = Rule::kBarrierCount,
     .message = "tile_full: expected a count of 4, one of each thread that arrives, got 5 of 4",
     .damage = [](Plan& plan) { ++barrier(plan, "tile_full").arrivals; }},
    {.name = "PartOfTheNewTokenNotAwaited",
     .rule = Rule::kBarrierCount,
     .message = "attention_full: expected a count of 5, one of each thread that arrives, got 4 of 4",
     .damage =
         [](Plan& plan) {
           PlanBarrier& full = barrier(plan, "attention_full");
           full.arrivals = full.arrivers = plan.consumer_warps;
         }},
    {.name = "UnitLeftToOneThatMerges",
     .rule = Rule::kBarrierCount,
     .message = "attention_empty: expected a count of 4, one of each thread that arrives, got 1 of 1",
     .damage =
         [](Plan& plan) {
           PlanBarrier& empty = barrier(plan, "attention_empty");
           empty.arrivals = empty.arrivers = 1;
         }},

    // The residual stream.
    {.name = "DownDealtFromAnotherCta",
     .rule = Rule::kResidualMoved,
     .message = "down: CTA 0: expected the tiles of o, 4 from 0 by 4, got 4 from 3 by 4",
     .damage =
         [](Plan& plan) {
           phase(plan, "down").first_cta = 1;
           deal_again(plan, "down");
         }},
    {.name = "DownDealtInBlocks",
     .rule = Rule::kResidualMoved,
     .message = "down: CTA 0: expected the tiles of o, 4 from 0 by 4, got 4 from 0 by 1",
     .damage =
         [](Plan& plan) {
           const int share = matrix(plan, "down").num_tiles / plan.num_ctas;
           for (int cta = 0; cta < plan.num_ctas; ++cta) {
             phase(plan, "down").runs[cta] = {.first = cta * share, .stride = 1, .count = share};
           }
         },
     .also = {Rule::kDealtUnlike}},
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

constexpr int kNumRules = static_cast<int>(Rule::kBarrierCount) + 1;

TEST(Verify, EveryRuleHasABadPlan) {
  std::set<Rule> rules;
  for (const BadPlan& bad : kBadPlans) rules.insert(bad.rule);
  EXPECT_EQ(rules.size(), static_cast<size_t>(kNumRules));
}

TEST(Verify, EveryRuleHasItsOwnName) {
  std::set<std::string> names;
  for (int rule = 0; rule < kNumRules; ++rule) names.insert(rule_name(static_cast<Rule>(rule)));
  EXPECT_EQ(names.size(), static_cast<size_t>(kNumRules));
  EXPECT_STREQ(rule_name(Rule::kNumberOutOfRange), "number out of range");
  EXPECT_STREQ(rule_name(Rule::kPageSkipped), "page skipped");
  EXPECT_STREQ(rule_name(Rule::kWeightsOverlap), "weights overlap");
  EXPECT_STREQ(rule_name(Rule::kBarrierCount), "barrier count");
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

// The tiny model's chunks are a page, wider than its normed inputs: here a chunk may be just too narrow.
TEST(Verify, OnlyNormedInputsMustComeInOneChunk) {
  Plan plan = shipped_plan("llama-3.1-8b", "h200");
  ASSERT_EQ(plan.chunk_columns, 4096);
  ASSERT_EQ(matrix(plan, "down").padded, 14336);
  EXPECT_EQ(refusals(plan), "");
  plan.chunk_columns -= kPageColumns;
  std::string expected;
  for (const char* name : {"qkv", "gate_up", "lm_head"}) {
    expected += fmt::format(
        "matrix shape: {}: expected its normed input of 4096 columns in one chunk, got chunks of 3584\n",
        name);
  }
  EXPECT_EQ(refusals(plan), expected);
}

// A chunk of down's input, which is wider than that; all of an input that is narrower.
TEST(Verify, SharedMemoryHoldsAChunkOfAnInput) {
  const auto refused_x = [](Plan plan) {
    shared(plan, "x").bytes -= 16;
    return refusals(plan);
  };
  Plan plan = shipped_plan("llama-3.1-8b", "h200");
  EXPECT_EQ(refused_x(plan), "piece too small: shared memory: x: expected 16384 bytes or more, got 16368\n");
  plan.chunk_columns += kPageColumns;
  EXPECT_EQ(refusals(plan), "piece too small: shared memory: x: expected 18432 bytes or more, got 16384\n");

  ModelConfig narrow = shipped_model("tiny-stories");
  narrow.facts.hidden = narrow.facts.ffn = 1152;  // two pages and a quarter
  plan = make_plan(narrow, shipped_gpu("h200"));
  ASSERT_EQ(plan.chunk_columns, 1536);
  EXPECT_EQ(refusals(plan), "");
  EXPECT_EQ(refused_x(plan), "piece too small: shared memory: x: expected 4608 bytes or more, got 4592\n");
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

/// What verify() says about when vectors are cleared, whichever phase the kernel can make do it.
std::string refused_distances(const Plan& plan) {
  std::string text;
  for (const Violation& violation : verify(plan)) {
    if (violation.rule == Rule::kClearedUnlike) continue;
    text += fmt::format("{}: {}\n", rule_name(violation.rule), violation.message);
  }
  return text;
}

// qkv is read in phase 1 and written in phase 6 again: phases 2 and 3 may clear it, 1 and 4 may not.
TEST(Verify, ClearsAreJudgedByDistance) {
  const auto cleared_in = [](const std::string& name) {
    Plan plan = one_layer();
    move_clear(plan, "qkv", "o", name);
    return refused_distances(plan);
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

// Candidates are written in phases 5, 11 and 17, and read in phases 6 and 12.
TEST(Verify, ClearsInLayerZeroAreJudgedByDistance) {
  const auto cleared_in = [](const std::string& name) {
    Plan plan = one_layer();
    phase(plan, name).first_layer_clears.swap(phase(plan, "attention").first_layer_clears);
    return refused_distances(plan);
  };
  EXPECT_EQ(cleared_in("qkv"),
            "cleared while read: candidates: cleared in phase 6, expected phase 7 or later: it is read in "
            "phase 6\n");
  EXPECT_EQ(cleared_in("gate_up"),
            "cleared too late: candidates: cleared in phase 9, expected phase 8 or earlier: it is written in "
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

// Six layers of five phases: each of these is wrong in all of them.
TEST(Verify, WhatIsWrongInEveryLayerIsReportedOnce) {
  const auto lines = [](const Plan& plan) {
    const std::string text = refusals(plan);
    return std::count(text.begin(), text.end(), '\n');
  };
  Plan plan = shipped_plan("tiny-stories", "cpu");
  phase(plan, "gate_up").waits_for = -1;
  EXPECT_EQ(lines(plan), 1) << refusals(plan);
  plan = shipped_plan("tiny-stories", "cpu");
  matrix(plan, "o").offset -= 16;
  EXPECT_EQ(lines(plan), 1) << refusals(plan);
  plan = shipped_plan("tiny-stories", "cpu", {.sync = SyncMode::kCounter});
  read_and_await(plan, "gate_up", "hidden");
  EXPECT_EQ(lines(plan), 1) << refusals(plan);
}

TEST(Verify, ListsAllThatIsWrong) {
  Plan plan = shipped_plan("tiny-stories", "cpu");
  --phase(plan, "qkv").runs.back().count;
  plan.window = 0;
  --plan.weight_bytes;
  EXPECT_EQ(refusals(plan),
            "page skipped: qkv: tile 31: expected one CTA that reads its pages, got none\n"
            "dealt unlike the kernel: qkv: CTA 3: expected the tiles that the kernel deals it, 8 from 3 by "
            "4, got 7 "
            "from 3 by 4\n"
            "weights overlap: packed weights: lm_head[0] ends at byte 10485760, expected at most 10485759\n"
            "parity two ahead: window: expected 1 to 13 pages in flight, one per slot, got 0\n");
}

}  // namespace
}  // namespace soliton
