// The in-kernel timeline: complete, in order, and without influence on what is computed.
#include "kernel/kernel_fixture.h"

namespace soliton {
namespace {

constexpr int kStep = 2;

TEST(TimelineRecords, AreCompleteAndInOrder) {
  KernelUnderTest kernel("plain-4-timeline");
  const Descriptor& descriptor = kernel.engine().library().descriptor();
  const std::vector<int32_t> prompt = kernel.fill_all_but(kernel.prompt(130), 2);
  const DecodeResult result =
      kernel.engine().decode({.tokens = prompt, .max_tokens = 2, .timeline_step = kStep});
  const int phases = descriptor.plan->step_phases();
  const int warps = descriptor.plan->working_warps();
  ASSERT_EQ(result.timeline.size(), static_cast<size_t>(phases) * descriptor.num_ctas * warps);
  uint64_t pages = 0;
  for (int cta = 0; cta < descriptor.num_ctas; ++cta) {
    for (int warp = 0; warp < warps; ++warp) {
      uint32_t before = result.timeline[timeline_index(0, cta, warp, descriptor.num_ctas, warps)].begin;
      for (int phase = 0; phase < phases; ++phase) {
        const PhaseRecord& at = result.timeline[timeline_index(phase, cta, warp, descriptor.num_ctas, warps)];
        const bool produces = warp == warps - 2;
        EXPECT_GE(static_cast<int32_t>(at.begin - before), 0) << "CTA " << cta << " warp " << warp;
        if (!produces) {
          EXPECT_GE(static_cast<int32_t>(at.input - at.begin), 0) << "CTA " << cta << " warp " << warp;
          EXPECT_GE(static_cast<int32_t>(at.last - at.input), 0) << "CTA " << cta << " warp " << warp;
        }
        EXPECT_GE(static_cast<int32_t>(at.end - (produces ? at.begin : at.last)), 0);
        if (produces) pages += at.pages;
        before = at.end;
      }
    }
  }
  // Whole pages of the matrices, the last ones of a tile perhaps short, and two for each cached page of a
  // block.
  EXPECT_GE(pages * kPageBytes, static_cast<uint64_t>(descriptor.model->weight_bytes));
}

// Workers record every phase of a step of several rows, of which the tokens' embedding is the first.
TEST(TimelineRecords, OfSeveralRowsAreCompleteAndInOrder) {
  KernelUnderTest kernel("plain-4-timeline");
  const Engine& engine = kernel.engine();
  kernel.engine().feed(engine.main_branch(), kernel.prompt(70));
  const std::vector<int32_t> chunk = kernel.prompt(5);
  const std::vector<PhaseRecord> records = kernel.engine().record_step(chunk);
  EXPECT_EQ(engine.position(), 75);
  const KernelPlan& plan = *engine.library().descriptor(engine.kernel_for_rows(5)).plan;
  ASSERT_EQ(plan.rows, 8);
  const int warps = plan.working_warps();
  ASSERT_EQ(records.size(), static_cast<size_t>(plan.step_phases() + 1) * plan.num_ctas * warps);
  for (int cta = 0; cta < plan.num_ctas; ++cta) {
    for (int worker = 0; worker < plan.consumer_warps; ++worker) {
      uint32_t before = records[timeline_index(0, cta, worker, plan.num_ctas, warps)].begin;
      EXPECT_NE(before, 0u);
      for (int phase = 0; phase < plan.recorded_phases(); ++phase) {
        const PhaseRecord& at = records[timeline_index(phase, cta, worker, plan.num_ctas, warps)];
        const uint32_t last = phase == 0 ? at.input : at.last;  // the embedding has no products
        for (const uint32_t time : {at.begin, at.input, last, at.end}) {
          EXPECT_GE(static_cast<int32_t>(time - before), 0)
              << "CTA " << cta << " worker " << worker << " phase " << phase;
          before = time;
        }
      }
    }
  }
}

TEST(TimelineRecords, ChangeNothing) {
  KernelUnderTest with("plain-4-timeline");
  const std::vector<int32_t> prompt = with.fill_all_but(with.prompt(70), 1);  // by one row in both
  const int position = with.engine().position();
  const DecodeResult plain = with.engine().decode({.tokens = prompt, .max_tokens = 3, .want_logits = true});
  with.engine().set_position(position);
  const DecodeResult noted =
      with.engine().decode({.tokens = prompt, .max_tokens = 3, .want_logits = true, .timeline_step = kStep});
  EXPECT_EQ(plain.logits, noted.logits);
  EXPECT_TRUE(plain.timeline.empty());
}

TEST(TimelineRecords, AreRefusedByAKernelWithoutThem) {
  KernelUnderTest kernel("micro-3");
  const std::vector<int32_t> prompt = kernel.prompt(2);
  EXPECT_THROW(kernel.engine().decode({.tokens = prompt, .max_tokens = 1, .timeline_step = 0}),
               std::exception);
  EXPECT_EQ(kernel.decode(prompt, 1).tokens.size(), 1u);  // nothing is lost
}

}  // namespace
}  // namespace soliton
