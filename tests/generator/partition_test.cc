// Who does what: every tile has one owner, shares are even, signatures stand where they must, vectors are
// cleared.
#include <gtest/gtest.h>

#include <set>

#include "error_of.h"
#include "tests/generator/plan_fixture.h"

namespace soliton {
namespace {

/// How often each tile of a phase is read, and nothing outside.
std::vector<int> readers(const Plan& plan, const PlanPhase& phase) {
  std::vector<int> count(plan.matrices[phase.matrix].num_tiles, 0);
  for (const TileRun& run : phase.runs) {
    for (int i = 0; i < run.count; ++i) ++count.at(run.first + i * run.stride);
  }
  return count;
}

void expect_every_tile_once(const Plan& plan, const std::string& what) {
  for (const PlanPhase& phase : plan.phases) {
    if (phase.matrix < 0) continue;
    const std::vector<int> count = readers(plan, phase);
    EXPECT_EQ(std::count(count.begin(), count.end(), 1), static_cast<std::ptrdiff_t>(count.size()))
        << what << ": " << phase.name;
    EXPECT_EQ(phase.runs.size(), static_cast<size_t>(plan.all_ctas())) << what << ": " << phase.name;
  }
}

TEST(Partition, DealsEveryTileExactlyOnce) {
  for (const char* model : kShippedModels) {
    for (const int ctas : {0, 1, 2, 3, 7, 128, 132}) {
      const Plan plan = shipped_plan(model, "h200", {.num_ctas = ctas});
      expect_every_tile_once(plan, fmt::format("{}, {} CTAs", model, plan.num_ctas));
    }
  }
}

TEST(Partition, DealsEveryTileOfRandomModelsExactlyOnce) {
  for (int seed = 0; seed < kNumRandomModels; ++seed) {
    const RandomCase random = random_case(seed);
    expect_every_tile_once(make_plan(random.model, shipped_gpu("h200"), random.choices), random.describe());
  }
}

// As the kernel walks them: all pages of all tiles of a step are the packed weights, each byte once. Of several cards the
// first has as many tiles as any.
TEST(Partition, PagesOfAStepCoverThePackedWeightsExactlyOnce) {
  for (int seed = 0; seed < kNumRandomModels; ++seed) {
    const RandomCase random = random_case(seed);
    const Plan plan = make_plan(random.model, shipped_gpu("h200"), random.choices);
    std::vector<std::pair<int64_t, int64_t>> pages;  // begin, end
    for (const PhaseInstance& instance : step_sequence(plan)) {
      const PlanPhase& phase = plan.phases[instance.phase];
      if (phase.matrix < 0) continue;
      const PlanMatrix& matrix = plan.matrices[phase.matrix];
      for (int cta = 0; cta < plan.num_ctas; ++cta) {
        const TileRun run =
            deal_tiles(matrix.num_tiles, phase.first_cta, plan.all_ctas(), cta * plan.num_cards);
        for (int i = 0; i < run.count; ++i) {
          const int64_t tile = plan.layers[instance.layer].weights + matrix.offset +
                               static_cast<int64_t>((run.first + i * run.stride) / plan.num_cards) *
                                   tile_bytes(matrix.format, matrix.padded);
          for (int column = 0; column < matrix.padded;) {
            const int columns = page_columns(matrix.format, matrix.padded - column);
            const int64_t begin = tile + weight_bytes(matrix.format, column);
            pages.emplace_back(begin, begin + weight_bytes(matrix.format, columns));
            column += columns;
          }
        }
      }
    }
    std::sort(pages.begin(), pages.end());
    int64_t end = 0;
    for (const auto& page : pages) {
      ASSERT_EQ(page.first, end) << random.describe();
      end = page.second;
    }
    EXPECT_EQ(end, plan.weight_bytes) << random.describe();
  }
}

TEST(Partition, SharesDifferByAtMostOneTile) {
  for (const int ctas : {1, 3, 7, 100, 132}) {
    const Plan plan = shipped_plan("llama-3.2-3b", "h200", {.num_ctas = ctas});
    for (const PlanPhase& phase : plan.phases) {
      if (phase.matrix < 0) continue;
      const auto less = [](const TileRun& a, const TileRun& b) { return a.count < b.count; };
      const auto [least, most] = std::minmax_element(phase.runs.begin(), phase.runs.end(), less);
      EXPECT_LE(most->count - least->count, 1) << phase.name << ", " << ctas << " CTAs";
    }
  }
}

// Of 132 CTAs, 12 have one tile more of each phase than the others: not always the same ones.
TEST(Partition, LeftoversGoWhereThePhaseBeforeStopped) {
  const Plan plan = shipped_plan("llama-3.1-8b", "h200", {.num_ctas = 132});
  EXPECT_EQ(named(plan.phases, "qkv").first_cta, 0);
  EXPECT_EQ(named(plan.phases, "o").first_cta, 0);
  EXPECT_EQ(named(plan.phases, "gate_up").first_cta, 256 % 132);
  EXPECT_EQ(named(plan.phases, "down").first_cta, 0);
  EXPECT_EQ(named(plan.phases, "lm_head").first_cta, 256 % 132);
}

TEST(Partition, ResidualRowsStayWithTheirCta) {
  for (int seed = 0; seed < kNumRandomModels; ++seed) {
    const RandomCase random = random_case(seed);
    const Plan plan = make_plan(random.model, shipped_gpu("h200"), random.choices);
    const PlanPhase& o = named(plan.phases, "o");
    const PlanPhase& down = named(plan.phases, "down");
    int most = 0;
    for (int cta = 0; cta < plan.num_ctas; ++cta) {
      EXPECT_EQ(o.runs[cta].first, down.runs[cta].first) << random.describe();
      EXPECT_EQ(o.runs[cta].count, down.runs[cta].count) << random.describe();
      most = std::max(most, o.runs[cta].count);
    }
    EXPECT_EQ(PlannedKernel(plan)->residual_tiles, most) << random.describe();
  }
}

/// Tiles that the busiest CTA reads in a step, weighted with their bytes: what choose_ctas() minimises.
int64_t busiest_bytes(const Plan& plan) {
  int64_t bytes = 0;
  for (const PhaseInstance& instance : step_sequence(plan)) {
    const PlanPhase& phase = plan.phases[instance.phase];
    if (phase.matrix < 0) continue;
    int64_t most = 0;
    for (const TileRun& run : phase.runs) most = std::max<int64_t>(most, run.count);
    bytes += most * tile_bytes(plan.matrices[phase.matrix].format, plan.matrices[phase.matrix].padded);
  }
  return bytes;
}

/// What choose_ctas() should find, by trying all.
int fewest_good_ctas(const ModelConfig& model, const GpuSpec& gpu) {
  const Graph graph = build_graph(model.facts);
  std::vector<int64_t> bytes;
  for (int ctas = 1; ctas <= gpu.num_sms; ++ctas) {
    bytes.push_back(busiest_bytes(partition(graph, model, gpu, {.num_ctas = ctas})));
  }
  const int64_t best = *std::min_element(bytes.begin(), bytes.end());
  const auto good = [&](int64_t b) { return 100 * b <= 101 * best; };
  return static_cast<int>(std::find_if(bytes.begin(), bytes.end(), good) - bytes.begin()) + 1;
}

TEST(Partition, ChoosesTheFewestCtasWithinAPercentOfTheBest) {
  const GpuSpec gpu = shipped_gpu("h200");
  for (const char* model : kShippedModels) {
    EXPECT_EQ(shipped_plan(model, "h200").num_ctas, fewest_good_ctas(shipped_model(model), gpu)) << model;
  }
  for (int seed = 0; seed < kNumRandomModels; ++seed) {
    const RandomCase random = random_case(seed);
    EXPECT_EQ(make_plan(random.model, gpu).num_ctas, fewest_good_ctas(random.model, gpu))
        << random.describe();
  }
  EXPECT_EQ(shipped_plan("llama-3.1-8b", "h200").num_ctas, 128);
}

TEST(Partition, UserChoicesWin) {
  const Plan plan = shipped_plan("llama-3.1-8b", "h200",
                                 {.num_ctas = 5,
                                  .window = 2,
                                  .consumer_warps = 8,
                                  .ring_slots = 3,
                                  .min_pages_per_split = 9,
                                  .sync = SyncMode::kCounter});
  EXPECT_EQ(plan.num_ctas, 5);
  EXPECT_EQ(plan.window, 2);
  EXPECT_EQ(plan.consumer_warps, 8);
  EXPECT_EQ(plan.threads(), 11 * 32);
  EXPECT_EQ(plan.ring_slots, 3);
  EXPECT_EQ(plan.min_pages_per_split, 9);
  EXPECT_EQ(plan.sync, SyncMode::kCounter);
}

// Workers are two warpgroups, the other warps one.
TEST(Partition, WorkersTakeRegistersWhereThereAreWarpgroups) {
  const auto plan_for = [](const char* gpu, PlanChoices choices) {
    return shipped_plan("llama-3.1-8b", gpu, choices);
  };
  const Plan plan = plan_for("h200", {.rows = 8});
  EXPECT_TRUE(plan.shares_registers);
  EXPECT_EQ(plan.threads(), 12 * 32);
  EXPECT_EQ(plan.registers_per_thread, kLaunchRegisters);
  EXPECT_EQ(plan_for("b200", {.rows = 8}).threads(), 11 * 32);
  for (const Plan& other :
       {plan_for("h200", {.rows = 1}), plan_for("b200", {.rows = 8}), plan_for("a100-80", {.rows = 8}),
        plan_for("h200", {.rows = 8, .copies = CopyKind::kLanes})}) {
    EXPECT_FALSE(other.shares_registers);
  }
}

// hidden = 256 are 16 tiles of o and down, ffn = 768 are 96 of gate_up, 32 of qkv: a tile less one, exact,
// plus one.
// What is normed must be there at once, and so is what comes out of attention; down's input need not be.
TEST(Partition, ChunksAreAsWideAsTheWidestInputThatIsNormedOrOutOfAttention) {
  EXPECT_EQ(shipped_plan("llama-3.2-1b", "h200").chunk_columns, 2048);
  EXPECT_EQ(shipped_plan("llama-3.2-3b", "h200").chunk_columns, 3072);
  EXPECT_EQ(shipped_plan("llama-3.1-8b", "h200").chunk_columns, 4096);
  EXPECT_EQ(shipped_plan("llama-3.1-70b", "h200").chunk_columns, 8192);

  const auto chunk = [](int hidden, int num_heads, int ffn) {
    ModelConfig model = shipped_model("tiny-stories");
    model.facts.hidden = hidden;
    model.facts.num_heads = num_heads;  // of 64 dims
    model.facts.ffn = ffn;
    return make_plan(model, shipped_gpu("cpu")).chunk_columns;
  };
  EXPECT_EQ(chunk(1024, 8, 4096), 1024);
  EXPECT_EQ(chunk(1024, 32, 4096), 2048);  // heads are wider than what is normed
  EXPECT_EQ(chunk(1024, 8, 512), 1024);    // ffn is narrower
}

TEST(Partition, ChunksAreWholePages) {
  EXPECT_EQ(shipped_plan("tiny-stories", "cpu").chunk_columns, kPageColumns);  // of 256 columns
  for (int seed = 0; seed < kNumRandomModels; ++seed) {
    const RandomCase random = random_case(seed);
    const Plan plan = make_plan(random.model, shipped_gpu("h200"), random.choices);
    int widest = 0;
    for (const PlanMatrix& matrix : plan.matrices) {
      if (matrix.name != "down") widest = std::max(widest, matrix.padded);
    }
    EXPECT_EQ(plan.chunk_columns % kPageColumns, 0) << random.describe();
    EXPECT_GE(plan.chunk_columns, widest) << random.describe();
    EXPECT_LT(plan.chunk_columns, widest + kPageColumns) << random.describe();
  }
}

TEST(Partition, DownOfAWideFfnRunsInChunks) {
  for (const auto& [model, chunks] :
       {std::pair{"llama-3.2-1b", 4}, {"llama-3.2-3b", 3}, {"llama-3.1-8b", 4}, {"llama-3.1-70b", 4}}) {
    const Plan plan = shipped_plan(model, "h200");
    EXPECT_EQ(ceil_divide(named(plan.matrices, "down").padded, plan.chunk_columns), chunks) << model;
    for (const char* whole : {"qkv", "o", "gate_up", "lm_head"}) {
      EXPECT_LE(named(plan.matrices, whole).padded, plan.chunk_columns) << model << ": " << whole;
    }
    // High and low parts, of bf16; or what attention has there.
    const PlannedKernel kernel(plan);
    EXPECT_EQ(kernel->x_bytes(),
              std::max(plan.chunk_columns * 2 * 2, plan.consumer_warps * kernel->attention_slice_bytes()))
        << model;
  }
}

TEST(Partition, NoMoreWarpsCopyThanPagesAreInFlight) {
  const auto producers = [](const char* model, const char* gpu, const PlanChoices& choices) {
    return shipped_plan(model, gpu, choices).producer_warps;
  };
  EXPECT_EQ(producers("llama-3.1-8b", "h200", {}), 1) << "bulk copies are one lane's";
  EXPECT_EQ(producers("llama-3.1-8b", "h200", {.copies = CopyKind::kLanes}), 4);
  EXPECT_EQ(producers("llama-3.1-8b", "a100-80", {}), 4);
  EXPECT_EQ(producers("llama-3.1-8b", "a100-80", {.window = 2}), 2);
  EXPECT_EQ(producers("llama-3.1-8b", "rtx-3090", {}), 2);
  EXPECT_EQ(producers("llama-3.1-8b", "rtx-3090", {.window = 3}), 4);
  EXPECT_EQ(producers("llama-3.1-8b", "rtx-3090", {.producer_warps = 3}), 3);
  EXPECT_EQ(producers("llama-3.1-8b-gptq", "a100-80", {}), 2) << "beside eight consumers";
}

TEST(Partition, EveryCtaMakesACandidateAndCtaZeroPassesOnTheStop) {
  for (const int ctas : {1, 2, 132}) {
    const Plan plan = shipped_plan("tiny-stories", "h200", {.num_ctas = ctas});
    const PlanVector& candidates = named(plan.vectors, "candidates");
    EXPECT_EQ(candidates.elements, ctas + 1);
    EXPECT_EQ(candidates.element_bytes, 8);
    EXPECT_EQ(candidates.bytes(), 8 * (ctas + 1));
  }
}

TEST(Partition, PadsColumnsSoThatEveryWarpHasWholeBlocks) {
  for (int seed = 0; seed < kNumRandomModels; ++seed) {
    const RandomCase random = random_case(seed);
    const Plan plan = make_plan(random.model, shipped_gpu("h200"), random.choices);
    const int unit = kColumnBlock * plan.consumer_warps;
    for (const PlanMatrix& matrix : plan.matrices) {
      EXPECT_EQ(matrix.padded % unit, 0) << random.describe() << ": " << matrix.name;
      EXPECT_GE(matrix.padded, matrix.columns);
      EXPECT_LT(matrix.padded - matrix.columns, std::max(unit, kColumnBlock * kLeastPaddingWarps));
      EXPECT_GE(matrix.num_tiles * kTileRows, matrix.rows);
      EXPECT_LT(matrix.num_tiles * kTileRows - matrix.rows, kTileRows);
      EXPECT_EQ(matrix.layer_kind, matrix.name == "lm_head" ? 1 : 0);
    }
  }
}

TEST(Partition, RefusesWarpsThatDoNotShareAPageEvenly) {
  const auto refusal = [](int warps) {
    return error_of([&] { shipped_plan("tiny-stories", "h200", {.consumer_warps = warps}); });
  };
  for (const int warps : {1, 2, 4, 8, 16}) EXPECT_EQ(refusal(warps), "no error") << warps;
  for (const int warps : {3, 5, 6, 7, 9, 15, 17, 30}) {
    EXPECT_EQ(refusal(warps),
              fmt::format("5 --consumer-warps: expected 1, 2, 4, 8 or 16, so that each owns whole blocks "
                          "of 32 columns, got {}",
                          warps));
  }
}

// Blocks that do not go around evenly: two of seven CTAs have one more.
TEST(Partition, AttentionUnitsAreThoseOfTheBusiestCta) {
  KernelPlan plan;
  plan.model.num_heads = plan.model.num_kv_heads = 16;
  for (const auto& [ctas, units] : {std::pair{1, 16}, {7, 3}, {8, 2}, {15, 2}, {16, 1}, {132, 1}}) {
    plan.num_ctas = ctas;
    int most = 0;
    for (int cta = 0; cta < ctas; ++cta) most = std::max(most, share_attention(16, 1000, 4, ctas, cta).count);
    EXPECT_EQ(plan.attention_units(), units) << ctas;
    EXPECT_EQ(most, units) << ctas;
  }
}

// An SM hands out registers to a warp in units of 256: 8 a thread.
TEST(Partition, RegistersOfAllThreadsFitTheSm) {
  const GpuSpec gpu = shipped_gpu("h200");
  for (const int warps : {1, 2, 4, 8, 16}) {
    const Plan plan = partition(build_graph(shipped_model("tiny-stories").facts),
                                shipped_model("tiny-stories"), gpu, {.consumer_warps = warps});
    const int rounded = round_up(plan.registers_per_thread, 8);
    EXPECT_LE(rounded * plan.threads(), gpu.registers_per_sm) << warps;
    if (plan.registers_per_thread < 255) {
      EXPECT_GT((rounded + 8) * plan.threads(), gpu.registers_per_sm) << warps;
    }
  }
}

TEST(Partition, StepSequenceRepeatsLayersAndEndsWithTheRest) {
  ModelConfig model = shipped_model("tiny-stories");
  model.facts.num_layers = 2;
  const Plan plan = make_plan(model, shipped_gpu("cpu"));
  std::string text;
  for (const PhaseInstance& instance : step_sequence(plan)) {
    text += fmt::format("{}:{} ", plan.phases[instance.phase].name, instance.layer);
  }
  EXPECT_EQ(text, "qkv:0 attention:0 o:0 gate_up:0 down:0 qkv:1 attention:1 o:1 gate_up:1 down:1 lm_head:2 ");
}

// Groups of 1, 4, 5 and 8 query heads: 1, 1, 2 and 2 blocks for each KV head.
TEST(Partition, HeadBlocksHoldUpToFourHeadsOfOneKvHead) {
  ModelShape model;
  model.num_kv_heads = 3;
  for (const auto& [group, blocks] : {std::pair{1, 3}, {4, 3}, {5, 6}, {8, 6}, {9, 9}}) {
    model.num_heads = 3 * group;
    EXPECT_EQ(model.num_blocks(), blocks) << group;
  }
}

// Activations of 8 rows in two parts of bf16, of more in one; and the verifier has nothing against it.
TEST(Partition, VectorsHoldEveryRow) {
  for (const int rows : {8, 16, 32, 64}) {
    const Plan plan = shipped_plan("llama-3.1-8b", "h200", {.rows = rows});
    const int parts = rows == 8 ? 2 : 1;
    EXPECT_EQ(named(plan.vectors, "hidden").bytes(), 2ll * parts * rows * 4096);
    EXPECT_EQ(named(plan.vectors, "ffn").bytes(), 2ll * parts * rows * 14336);
    // Queries, then keys and values of 16 tokens or more.
    EXPECT_EQ(named(plan.vectors, "qkv").bytes(),
              2ll * (parts * rows * 4096 + 2 * std::max(rows, 16) * 1024));
    EXPECT_EQ(named(plan.vectors, "candidates").bytes(), 8ll * (rows * plan.num_ctas + 1));
    EXPECT_EQ(plan.sync, SyncMode::kCounter);
    EXPECT_EQ(refusals(plan), "") << rows;
  }
}

TEST(Partition, TakesRowsThatFillAnMma) {
  for (const int rows : {2, 7, 9, 24, 768}) {
    EXPECT_EQ(error_of([&] { shipped_plan("tiny-stories", "cpu", {.rows = rows}); }),
              fmt::format("5 --rows: expected 1, 8, 16, 32, 64, 128, 256, 512, 1024, got {}", rows));
  }
}

// One row may be read by fewer warps than columns are padded for, as all kernels of a library read the same weights.
TEST(Partition, PadsForSeveralRowsWhateverWarpsReadOne) {
  for (const int warps : {1, 2, 4}) {
    for (const int rows : {1, 8}) {
      const Plan plan = test_plan("micro", {.rows = rows, .consumer_warps = warps});
      for (const PlanMatrix& matrix : plan.matrices) EXPECT_EQ(matrix.padded, round_up(matrix.columns, 128));
      EXPECT_EQ(refusals(plan), "") << warps << " warps, " << rows << " rows";
    }
  }
}

// Of more than 256 rows CTAs are divided among blocks, each of which has all tiles.
TEST(Partition, DividesCtasAmongBlocksOfRows) {
  const Plan plan = shipped_plan("llama-3.1-8b", "h200", {.rows = 1024});
  EXPECT_EQ(plan.num_ctas % 4, 0);
  for (const PlanPhase& phase : plan.phases) {
    if (phase.kind != PhaseKind::kMatrix) continue;
    EXPECT_EQ(std::ssize(phase.runs), plan.num_ctas / 4) << phase.name;
    int tiles = 0;
    for (const TileRun& run : phase.runs) tiles += run.count;
    EXPECT_EQ(tiles, plan.matrices[phase.matrix].num_tiles) << phase.name;
  }
  EXPECT_EQ(error_of([] { shipped_plan("llama-3.1-8b", "h200", {.rows = 512, .num_cards = 2}); }),
            "5 --rows: expected at most 256 over 2 cards, got 512");
}

TEST(Partition, RefusesBlocksOfRowsWithoutAsManyCtasEach) {
  Plan plan = shipped_plan("llama-3.1-8b", "h200", {.rows = 1024});
  plan.num_ctas -= 1;
  EXPECT_NE(refusals(plan).find("CTAs: expected as many for each of 4 blocks of rows"), std::string::npos);
}

// Kernels of one library read the same packed weights.
TEST(Partition, RowsChangeNothingAboutTheWeights) {
  const Plan one = shipped_plan("llama-3.2-1b", "h200");
  const Plan eight = shipped_plan("llama-3.2-1b", "h200", {.rows = 8});
  EXPECT_EQ(eight.weight_bytes, one.weight_bytes);
  for (size_t i = 0; i < one.layers.size(); ++i) EXPECT_EQ(eight.layers[i].weights, one.layers[i].weights);
  for (size_t i = 0; i < one.matrices.size(); ++i) {
    EXPECT_EQ(eight.matrices[i].offset, one.matrices[i].offset);
    EXPECT_EQ(eight.matrices[i].padded, one.matrices[i].padded);
  }
}

// The wait of every phase, and all bytes at the bandwidth of the spec: 1e9 a second, 1000 in a microsecond.
TEST(Partition, PredictsTimeFromBytesAndWaits) {
  Plan plan = shipped_plan("tiny-stories", "cpu");
  EXPECT_DOUBLE_EQ(named(plan.phases, "attention").predicted_us, 100.0);
  EXPECT_DOUBLE_EQ(named(plan.phases, "qkv").predicted_us, 100.0 + 512 * 256 * 2 / 1e3);
  const double token_us = (6 * 5 + 1) * 100.0 + static_cast<double>(plan.weight_bytes) / 1e3;
  EXPECT_DOUBLE_EQ(predicted_token_us(plan, 0), token_us);
  const double kv_bytes = 6 * 2 * (2 * 64) * 2;  // of a token: layers, K and V, heads of 64, f16
  EXPECT_DOUBLE_EQ(predicted_token_us(plan, 1000), token_us + 1000 * kv_bytes / 1e3);
}

// A model with next to nothing to read takes as long as its phases wait for one another.
TEST(Partition, PredictsNoTokenFasterThanItsChainOfPhases) {
  Plan plan = shipped_plan("tiny-stories", "cpu");
  plan.limits.read_bandwidth_bytes_per_s = 1e15;
  plan.limits.phase_latency_us = 250;
  predict(plan);
  EXPECT_DOUBLE_EQ(predicted_token_us(plan, 0), (6 * 5 + 1) * 250.0);
}

}  // namespace
}  // namespace soliton
