// Where everything lies: nothing overlaps, everything is aligned, the ring takes the shared memory that is
// left.
#include <gtest/gtest.h>

#include "error_of.h"
#include "tests/generator/plan_fixture.h"

namespace soliton {
namespace {

constexpr int kVectorAlignment = 16;    // 16-byte loads
constexpr int kPageAlignment = 16;      // bulk copies
constexpr int kCounterLineBytes = 128;  // no two counters share a line

/// Pieces by name, begin and end.
std::string show(const std::vector<PlanRegion>& regions) {
  std::string text;
  for (const PlanRegion& region : regions) {
    text += fmt::format("{} {}..{}\n", region.name, region.offset, region.offset + region.bytes);
  }
  return text;
}

TEST(Place, PacksWeightsInTheOrderOfTheStep) {
  const Plan plan = shipped_plan("tiny-stories", "cpu");
  // 16 x 256 bf16 are 8 KiB a tile; down has 768 columns: 24 KiB.
  EXPECT_EQ(named(plan.matrices, "qkv").offset, 0);
  EXPECT_EQ(named(plan.matrices, "o").offset, 32 * 8192);
  EXPECT_EQ(named(plan.matrices, "gate_up").offset, (32 + 16) * 8192);
  EXPECT_EQ(named(plan.matrices, "down").offset, (32 + 16 + 96) * 8192);
  const int64_t layer = (32 + 16 + 96) * 8192 + 16 * 24576;
  ASSERT_EQ(plan.layers.size(), 7);  // and what stands once
  for (int i = 0; i < 7; ++i) EXPECT_EQ(plan.layers[i].weights, i * layer);
  EXPECT_EQ(named(plan.matrices, "lm_head").offset, 0);
  EXPECT_EQ(plan.weight_bytes, 6 * layer + 128 * 8192);
}

// A model of one layer has one copy of each matrix; only lm_head stands behind the layers.
TEST(Place, OneLayerIsStillALayer) {
  ModelConfig model = shipped_model("tiny-stories");
  model.facts.num_layers = 1;
  const Plan plan = make_plan(model, shipped_gpu("cpu"));
  EXPECT_EQ(plan.layers.back().weights, (32 + 16 + 96) * 8192 + 16 * 24576);
  EXPECT_EQ(refusals(plan), "");
}

// bf16 weights that one token must read: parameters without embedding and norms.
TEST(Place, NeededBytesAreThoseOfTheModel) {
  EXPECT_EQ(shipped_plan("llama-3.1-8b", "h200").needed_weight_bytes,
            2 * (8030261248ll - 128256ll * 4096 - (2 * 32 + 1) * 4096));
  EXPECT_EQ(shipped_plan("llama-3.1-70b", "h200").needed_weight_bytes,
            2 * (70553706496ll - 128256ll * 8192 - (2 * 80 + 1) * 8192));
}

TEST(Place, PaddingIsAllThatPackingAdds) {
  for (const char* model : kShippedModels) {
    const Plan plan = shipped_plan(model, "h200");
    EXPECT_EQ(plan.weight_bytes, plan.needed_weight_bytes) << model;  // multiples of 512 columns, 16 rows
  }
  ModelConfig odd = shipped_model("tiny-stories");
  odd.facts.vocabulary = 2049;
  const Plan plan = make_plan(odd, shipped_gpu("cpu"));
  EXPECT_EQ(plan.weight_bytes - plan.needed_weight_bytes, 15 * 256 * 2);
}

TEST(Place, SharedMemoryOfTheTinyModel) {
  const Plan plan = shipped_plan("tiny-stories", "cpu");
  EXPECT_EQ(show(plan.shared),
            "pages 0..212992\n"
            "x 212992..219264\n"
            "tiles 219264..220288\n"
            "residual 220288..220544\n"
            "token 220544..221568\n"
            "squares 221568..221600\n"
            "decision 221600..221632\n"
            "experts 221632..221632\n"
            "zeros 221632..221632\n"
            "waiting 221632..221636\n"
            "status 221648..221840\n"
            "barriers 221840..222200\n");
  EXPECT_EQ(plan.shared_bytes(), 222200);
}

TEST(Place, WorkspaceOfTheTinyModel) {
  const Plan plan = shipped_plan("tiny-stories", "cpu");
  EXPECT_EQ(show(plan.workspace),
            "qkv 0..2048\n"
            "heads 2048..3072\n"
            "post_attention 3072..4096\n"
            "ffn 4096..7168\n"
            "hidden 7168..8192\n"
            "candidates 8192..8240\n"
            "partials 8448..12672\n"
            "counters 12800..13312\n");
  EXPECT_EQ(plan.workspace_bytes(), 13312);
}

TEST(Place, RingTakesAllThatFits) {
  for (const char* model : kShippedModels) {
    for (const int warps : {2, 4, 8}) {
      const Plan plan = shipped_plan(model, "h200", {.consumer_warps = warps});
      EXPECT_LE(plan.shared_bytes(), plan.limits.max_shared_bytes_per_block);
      const int64_t one_more = plan.shared_bytes() + kPageBytes + 2 * 8;  // a slot and its two barriers
      EXPECT_TRUE(plan.ring_slots == 13 || one_more > plan.limits.max_shared_bytes_per_block)
          << model << ", " << warps << " warps: " << plan.ring_slots;
    }
  }
}

TEST(Place, RingHoldsThirteenPagesAtMost) {
  GpuSpec gpu = shipped_gpu("h200");
  gpu.max_shared_bytes_per_block = 1 << 20;
  EXPECT_EQ(make_plan(shipped_model("llama-3.1-8b"), gpu).ring_slots, 13);
}

// The limit that just holds two pages, one byte less, one byte more.
TEST(Place, RefusesWhenTwoPagesDoNotFit) {
  const int64_t two = shipped_plan("llama-3.1-70b", "h200", {.ring_slots = 2}).shared_bytes();
  const auto slots_with = [](int64_t limit) {
    GpuSpec gpu = shipped_gpu("h200");
    gpu.max_shared_bytes_per_block = static_cast<int>(limit);
    return make_plan(shipped_model("llama-3.1-70b"), gpu).ring_slots;
  };
  EXPECT_EQ(
      error_of([&] { slots_with(two - 1); }),
      fmt::format(
          "5 llama-3.1-70b: h200: 1 row a step: expected shared memory for at least 2 pages, got {} bytes of "
          "which {} are needed",
          two - 1, two));
  EXPECT_EQ(slots_with(two), 2);
  EXPECT_EQ(slots_with(two + kPageBytes + 2 * 8 - 1), 2);
  EXPECT_EQ(slots_with(two + kPageBytes + 2 * 8), 3);
}

// The verifier refuses what does not fit; place() does as it was told.
TEST(Place, ChosenRingIsNotShrunk) {
  const Plan plan = shipped_plan("llama-3.1-8b", "h200", {.ring_slots = 20});
  EXPECT_EQ(plan.ring_slots, 20);
  EXPECT_GT(plan.shared_bytes(), plan.limits.max_shared_bytes_per_block);
}

TEST(Place, WindowIsAtMostTheRing) {
  EXPECT_EQ(shipped_plan("tiny-stories", "h200", {.window = 64, .ring_slots = 5}).window, 5);
  EXPECT_EQ(shipped_plan("tiny-stories", "h200", {.window = 4, .ring_slots = 5}).window, 4);
  EXPECT_EQ(shipped_plan("tiny-stories", "h200", {.ring_slots = 2}).window, 2);
}

TEST(Place, BarriersCountThoseWhoArrive) {
  for (const int warps : {2, 4, 8}) {
    const Plan plan = shipped_plan("tiny-stories", "h200", {.consumer_warps = warps, .ring_slots = 7});
    std::string text;
    for (const PlanBarrier& barrier : plan.barriers) {
      EXPECT_EQ(barrier.arrivers, barrier.arrivals) << barrier.name;
      text += fmt::format("{} {}x{} ", barrier.name, barrier.slots, barrier.arrivals);
    }
    EXPECT_EQ(
        text,
        fmt::format(
            "page_full 7x1 page_empty 7x{0} tile_full 4x{0} tile_empty 4x1 input_read 2x{0} input_taken 2x1 "
            "query_full 1x{0} attention_full 1x{1} attention_empty 1x{0} token_ready 1x1 step_read 1x1 "
            "experts_chosen 0x1 experts_taken 0x1 "
            "stopped 1x1 ended 1x{2} ",
            warps, warps + 1, warps + 2));
    EXPECT_EQ(named(plan.shared, "barriers").bytes, 8 * (7 + 7 + 4 + 4 + 2 + 2 + 7));
  }
}

TEST(Place, RegionsHoldWhatTheKernelPutsThere) {
  for (int seed = 0; seed < kNumRandomModels; ++seed) {
    const RandomCase random = random_case(seed);
    const Plan plan = make_plan(random.model, shipped_gpu("h200"), random.choices);
    const std::string what = random.describe();
    for (const PlanVector& vector : plan.vectors) {
      const PlanRegion& region = plan.workspace_region(vector.name);
      EXPECT_EQ(region.offset, vector.offset) << what;
      // The last 16-byte group is cleared whole.
      EXPECT_GE(region.bytes,
                ceil_divide(vector.element_bytes * vector.elements + 4 * vector.signatures, 16) * 16)
          << what;
    }
    // Of each CTA: maximum, sum and output of four heads.
    EXPECT_EQ(plan.workspace_region("partials").bytes, 4ll * plan.num_ctas * 4 * (2 + plan.facts.head_dim))
        << what;
    const PlannedKernel kernel(plan);
    EXPECT_EQ(plan.workspace_region("counters").bytes, kCounterLineBytes * (2 + kernel->card_blocks()))
        << what;
    EXPECT_EQ(named(plan.shared, "pages").bytes, plan.ring_slots * kPageBytes) << what;
    // High and low parts: of all inputs but down's, which comes in chunks if it is wider than they are.
    for (const PlanMatrix& matrix : plan.matrices) {
      const int columns = matrix.name == "down" ? std::min(matrix.padded, plan.chunk_columns) : matrix.padded;
      EXPECT_GE(named(plan.shared, "x").bytes, columns * 2 * 2) << what << ": " << matrix.name;
    }
    // And during attention a part of each warp, and what it brought of q of four heads, k and v.
    const int staged = ceil_divide(6 * plan.facts.head_dim / 4, 32 * plan.consumer_warps) * 32 * 16;
    EXPECT_GE(named(plan.shared, "x").bytes, plan.consumer_warps * (kernel->partial_words() * 4 + staged))
        << what;
    EXPECT_GE(plan.workspace_bytes(), plan.workspace.back().offset + plan.workspace.back().bytes) << what;
  }
}

TEST(Place, InputTakesAChunkOrLessIfThereIsNoneAsWide) {
  const auto x_bytes = [](int hidden, int ffn) {
    ModelConfig model = shipped_model("tiny-stories");
    model.facts.hidden = hidden;
    model.facts.ffn = ffn;
    return named(make_plan(model, shipped_gpu("h200")).shared, "x").bytes;
  };
  EXPECT_EQ(x_bytes(2048, 8192), 2048 * 4);                     // a chunk of four
  EXPECT_EQ(x_bytes(1664, 1664), 1664 * 4);                     // all of it, though a chunk is four pages
  EXPECT_EQ(x_bytes(1664, 1792), 1792 * 4);                     // within such a chunk
  EXPECT_EQ(x_bytes(1664, 2176), 2048 * 4);                     // a chunk, and a rest
  EXPECT_EQ(x_bytes(256, 8192), 4 * (4 * (64 + 2) * 4 + 512));  // what four warps have there during attention
}

TEST(Place, EverythingIsAligned) {
  for (int seed = 0; seed < kNumRandomModels; ++seed) {
    const RandomCase random = random_case(seed);
    const Plan plan = make_plan(random.model, shipped_gpu("h200"), random.choices);
    const std::string what = random.describe();
    for (const PlanVector& vector : plan.vectors) EXPECT_EQ(vector.offset % kVectorAlignment, 0) << what;
    for (const PlanMatrix& matrix : plan.matrices) {
      EXPECT_EQ(matrix.offset % kPageAlignment, 0) << what;
      EXPECT_EQ(tile_bytes(matrix.format, matrix.padded) % kPageAlignment, 0) << what;
    }
    for (const Layer& layer : plan.layers) EXPECT_EQ(layer.weights % kPageAlignment, 0) << what;
    EXPECT_EQ(plan.workspace_region("partials").offset % kVectorAlignment, 0) << what;
    EXPECT_EQ(PlannedKernel(plan)->partial_words() * 4 % kVectorAlignment, 0) << what;
    EXPECT_EQ(plan.workspace_region("counters").offset % kCounterLineBytes, 0) << what;
    for (const char* name : {"pages", "x", "residual", "token", "status"}) {
      EXPECT_EQ(named(plan.shared, name).offset % kPageAlignment, 0) << what << ": " << name;
    }
    for (const char* name : {"decision", "barriers"}) {
      EXPECT_EQ(named(plan.shared, name).offset % 8, 0) << what << ": " << name;
    }
  }
}

TEST(Place, PlacingTwiceChangesNothing) {
  Plan plan = shipped_plan("llama-3.2-1b", "h200");
  const std::string before = describe(plan);
  place(plan, {});
  EXPECT_EQ(describe(plan), before);
}

}  // namespace
}  // namespace soliton
