// Plans of matrices that are 4-bit integers: what the model's facts make of formats, pages, chunks and bytes.
#include <gtest/gtest.h>

#include "error_of.h"
#include "layout/weight_format.h"
#include "tests/generator/plan_fixture.h"

namespace soliton {
namespace {

constexpr const char* kGptqModels[] = {"llama-3.1-8b-gptq", "llama-3.1-70b-gptq"};
constexpr const char* kTestModels[] = {"int4", "int4-zeros", "int4-wide"};

ModelConfig test_model(const std::string& name) {
  return load_model_config(std::filesystem::path(SOLITON_SOURCE_DIR) / "tests" / "models" / (name + ".yaml"));
}

Plan test_plan(const std::string& name, const PlanChoices& choices = {}) {
  return make_plan(test_model(name), shipped_gpu("h200"), choices);
}

WeightFormat int4(int group, bool has_zeros = false) {
  return {WeightType::kInt4, group, has_zeros};
}

/// A model of integers with other facts; the same for the same seed everywhere.
RandomCase random_integers(int seed) {
  RandomCase random = random_case(seed);
  std::mt19937 generator(seed + 1000);
  const auto one_of = [&](std::initializer_list<int> values) {
    return values.begin()[generator() % values.size()];
  };
  ModelFacts& facts = random.model.facts;
  facts.weight_bits = 4;
  facts.weight_group = one_of({-1, 32, 64, 128});
  facts.weight_zeros = one_of({0, 1});
  facts.lm_head_bits = one_of({4, 16});
  return random;
}

TEST(Integers, FactsDecideTheFormatOfEveryMatrix) {
  const auto expect_formats = [](const ModelFacts& facts, WeightFormat layers, WeightFormat lm_head) {
    const Graph graph = build_graph(facts);
    for (const GraphMatrix& matrix : graph.matrices) {
      EXPECT_EQ(matrix.format, std::string(matrix.name) == "lm_head" ? lm_head : layers) << matrix.name;
    }
  };
  expect_formats(shipped_model("llama-3.1-8b").facts, {}, {});
  expect_formats(shipped_model("llama-3.1-8b-gptq").facts, int4(128), {});
  expect_formats(test_model("int4").facts, int4(64), {});
  expect_formats(test_model("int4-zeros").facts, int4(32, true), int4(32, true));
  // One scale for all columns stands as often as if there were groups of 128.
  expect_formats(test_model("int4-wide").facts, int4(128), {});
}

TEST(Integers, PlansTakeTheFormatsOver) {
  for (int seed = 0; seed < kNumRandomModels; ++seed) {
    const RandomCase random = random_integers(seed);
    const Graph graph = build_graph(random.model.facts);
    const Plan plan = make_plan(random.model, shipped_gpu("h200"), random.choices);
    for (const GraphMatrix& matrix : graph.matrices) {
      const PlanMatrix& planned = named(plan.matrices, matrix.name);
      EXPECT_EQ(planned.format, matrix.format) << random.describe() << ": " << matrix.name;
      EXPECT_EQ(planned.padded, padded_columns(matrix.format, matrix.columns, plan.consumer_warps));
    }
  }
}

TEST(Integers, PlansAreSound) {
  for (const char* model : kGptqModels) {
    for (const char* gpu : kShippedGpus) EXPECT_EQ(refusals(shipped_plan(model, gpu)), "") << model;
  }
  for (const char* model : kTestModels) {
    for (const int ctas : {1, 3, 5, 132}) {
      for (const SyncMode sync : {SyncMode::kSelfValidating, SyncMode::kCounter}) {
        EXPECT_EQ(refusals(test_plan(model, {.num_ctas = ctas, .sync = sync})), "") << model;
      }
    }
  }
  for (int seed = 0; seed < kNumRandomModels; ++seed) {
    const RandomCase random = random_integers(seed);
    EXPECT_EQ(refusals(make_plan(random.model, shipped_gpu("h200"), random.choices)), "")
        << random.describe();
  }
}

TEST(Integers, PlansOfOtherFormatsAreSound) {
  for (const char* model : {"int8", "k-quants", "few-bits", "five-bits", "int4-int8", "iq4-xs"}) {
    for (const int rows : {1, 8, 16, 64, 256, 1024}) {
      for (const int ctas : {4, 132}) {
        const Plan plan = test_plan(model, {.rows = rows, .num_ctas = ctas});
        EXPECT_EQ(refusals(plan), "") << model << ", " << rows << " rows, " << ctas << " CTAs";
        EXPECT_EQ(plan.warpgroups, rows >= 8) << model;
      }
    }
  }
}

// Of a layer in another format than the others, whose places for sums nobody else writes, columns are not shared.
TEST(Integers, PlansShareColumnsAsFarAsTagsTell) {
  const Plan plan = test_plan("k-quants", {.rows = 64, .num_ctas = 132});
  EXPECT_EQ(untold_phase(plan), nullptr);
  EXPECT_EQ(named(plan.phases, "qkv_1").column_slices, 1);
  EXPECT_GT(named(plan.phases, "down").column_slices, 1);
  const auto is_untold = [&](int slices) {
    Plan shared = plan;
    for (PlanPhase& phase : shared.phases) {
      if (phase.name == "qkv_1") phase.column_slices = slices;
    }
    return untold_phase(shared) != nullptr;
  };
  EXPECT_TRUE(is_untold(2) || is_untold(4));
}

TEST(Integers, PlansOfSeveralRowsAreSound) {
  for (const int rows : {8, 16, 32, 64, 128, 256}) {
    for (const char* model : kGptqModels) {
      const Plan plan = shipped_plan(model, "h200", {.rows = rows});
      EXPECT_EQ(plan.rows, rows);
      EXPECT_EQ(refusals(plan), "") << model << ", " << rows << " rows";
    }
    for (const char* model : kTestModels) {
      EXPECT_EQ(refusals(test_plan(model, {.rows = rows})), "") << model << ", " << rows << " rows";
    }
  }
  EXPECT_EQ(error_of([] { test_plan("int4", {.rows = 64, .copies = CopyKind::kLanes}); }),
            "5 --rows: expected at most 32 for a model of integers but on a card whose warpgroups multiply, "
            "got 64");
}

// 16 rows of 2048 integers are 16 KiB; for each row and group 2 bytes, or 4 with a zero.
TEST(Integers, SlotsHoldTheLargestPage) {
  const auto slot_bytes_of = [](int bits, int group, int zeros) {
    ModelConfig model = shipped_model("llama-3.1-8b");
    model.facts.weight_bits = bits;
    model.facts.weight_group = group;
    model.facts.weight_zeros = zeros;
    return PlannedKernel(make_plan(model, shipped_gpu("h200")))->slot_bytes;
  };
  EXPECT_EQ(slot_bytes_of(16, 0, 0), 16384);
  EXPECT_EQ(slot_bytes_of(4, 128, 0), 16384 + 16 * 16 * 2);
  EXPECT_EQ(slot_bytes_of(4, 64, 0), 16384 + 16 * 32 * 2);
  EXPECT_EQ(slot_bytes_of(4, 32, 0), 16384 + 16 * 64 * 2);
  EXPECT_EQ(slot_bytes_of(4, 32, 1), 16384 + 16 * 64 * 4);
  EXPECT_EQ(slot_bytes_of(4, -1, 1), 16384 + 16 * 16 * 4);
  for (int seed = 0; seed < kNumRandomModels; ++seed) {
    const RandomCase random = random_integers(seed);
    const Plan plan = make_plan(random.model, shipped_gpu("h200"), random.choices);
    const int slot_bytes = PlannedKernel(plan)->slot_bytes;
    EXPECT_EQ(named(plan.shared, "pages").bytes, int64_t{plan.ring_slots} * slot_bytes);
    for (const PlanMatrix& matrix : plan.matrices) {
      for (int begin = 0; begin < matrix.padded;) {
        const int columns = page_columns(matrix.format, matrix.padded - begin);
        ASSERT_LE(weight_bytes(matrix.format, columns), slot_bytes) << random.describe();
        begin += columns;
      }
    }
  }
}

// Inputs of integers come in chunks of up to 4096 columns, also where those that are normed are narrower; wider ones if these are,
// and out of attention above 8192.
TEST(Integers, ChunksAreWholePages) {
  EXPECT_EQ(shipped_plan("llama-3.1-8b-gptq", "h200").chunk_columns, 4096);  // hidden 4096, ffn 14336
  EXPECT_EQ(shipped_plan("llama-3.1-70b-gptq", "h200").chunk_columns, 8192);
  EXPECT_EQ(test_plan("int4").chunk_columns, 2048);       // of 512 columns
  EXPECT_EQ(test_plan("int4-wide").chunk_columns, 4096);  // of 2560
  for (int seed = 0; seed < kNumRandomModels; ++seed) {
    const RandomCase random = random_integers(seed);
    const Plan plan = make_plan(random.model, shipped_gpu("h200"), random.choices);
    EXPECT_GT(plan.chunk_columns, 0);
    EXPECT_EQ(plan.chunk_columns % WeightFormat{WeightType::kInt4}.page_columns(), 0) << random.describe();
    for (const PlanMatrix& matrix : plan.matrices) {
      if (matrix.name == "down" || (matrix.name == "o" && matrix.padded > 8192)) continue;
      EXPECT_GE(plan.chunk_columns, matrix.padded) << random.describe() << ": " << matrix.name;
    }
  }
}

// Four digits of every column, and four floats of every 64.
TEST(Integers, SharedMemoryHoldsTheDigitsOfAChunk) {
  EXPECT_EQ(PlannedKernel(shipped_plan("llama-3.1-70b-gptq", "h200"))->x_bytes(), 8192 * 4 + 8192 / 64 * 16);
  EXPECT_EQ(PlannedKernel(test_plan("int4-wide"))->x_bytes(), 4096 * 4 + 4096 / 64 * 16);
}

TEST(Integers, NeededBytesCountScalesAndZeros) {
  // Weights of a layer: q, k, v, o; gate, up, down.
  constexpr int64_t kLayer = 4096ll * (4096 + 2 * 1024 + 4096) + 3ll * 4096 * 14336;
  constexpr int64_t kLmHead = 2ll * 128256 * 4096;
  const auto needed = [](int group, int zeros, int lm_head_bits) {
    ModelConfig model = shipped_model("llama-3.1-8b-gptq");
    model.facts.weight_group = group;
    model.facts.weight_zeros = zeros;
    model.facts.lm_head_bits = lm_head_bits;
    return make_plan(model, shipped_gpu("h200")).needed_weight_bytes;
  };
  EXPECT_EQ(shipped_plan("llama-3.1-8b-gptq", "h200").needed_weight_bytes, needed(128, 0, 16));
  EXPECT_EQ(needed(128, 0, 16), 32 * (kLayer / 2 + kLayer / 128 * 2) + kLmHead);
  EXPECT_EQ(needed(32, 0, 16), 32 * (kLayer / 2 + kLayer / 32 * 2) + kLmHead);
  // A zero has 4 bits.
  EXPECT_EQ(needed(64, 1, 16), 32 * (kLayer / 2 + kLayer / 64 * 2 + kLayer / 64 / 2) + kLmHead);
  EXPECT_EQ(needed(128, 0, 4), 32 * (kLayer / 2 + kLayer / 128 * 2) + kLmHead / 4 + kLmHead / 2 / 128 * 2);
  // One scale a row: of qkv, o, gate_up, down.
  constexpr int64_t kRows = 4096 + 2 * 1024 + 4096 + 2 * 14336 + 4096;
  EXPECT_EQ(needed(-1, 0, 16), 32 * (kLayer / 2 + kRows * 2) + kLmHead);
}

TEST(Integers, PackedBytesAreTheTilesOfEveryMatrix) {
  for (const char* name : kTestModels) {
    const Plan plan = test_plan(name);
    int64_t bytes = 0;
    for (const PlanMatrix& matrix : plan.matrices) {
      const int copies = matrix.name == "lm_head" ? 1 : plan.facts.num_layers;
      bytes += int64_t{copies} * matrix.num_tiles * tile_bytes(matrix.format, matrix.padded);
    }
    EXPECT_EQ(plan.weight_bytes, bytes) << name;
    EXPECT_GE(plan.weight_bytes, plan.needed_weight_bytes) << name;
  }
  // Nothing of the large models is padded.
  for (const char* model : kGptqModels) {
    const Plan plan = shipped_plan(model, "h200");
    EXPECT_EQ(plan.weight_bytes, plan.needed_weight_bytes) << model;
  }
}

TEST(Integers, AWarpOwnsWholeUnitsOfAPage) {
  EXPECT_EQ(test_plan("int4").consumer_warps, 8);
  for (const int warps : {1, 2, 4, 8}) {
    EXPECT_EQ(test_plan("int4", {.consumer_warps = warps}).consumer_warps, warps);
  }
  EXPECT_EQ(error_of([] { test_plan("int4", {.consumer_warps = 16}); }),
            "5 --consumer-warps: expected 1, 2, 4 or 8, so that each owns whole units of a page of integers, "
            "got 16");
  EXPECT_EQ(error_of([] { test_plan("int4", {.consumer_warps = 3}); }),
            "5 --consumer-warps: expected 1, 2, 4, 8 or 16, so that each owns whole blocks of 32 columns, "
            "got 3");
  EXPECT_EQ(error_of([] { shipped_plan("tiny-stories", "h200", {.consumer_warps = 16}); }), "no error");
}

}  // namespace
}  // namespace soliton
