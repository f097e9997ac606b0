// A device that drives a display: what it decodes is cut into launches, and is what one launch would have decoded.
#include <numeric>

#include "kernel/kernel_cases.h"
#include "kernel/kernel_fixture.h"
#include "models/error.h"
#include "refusals.h"

namespace soliton {
namespace {

/// An engine with random weights on an emulated device of the test's choice.
class Machine {
 public:
  Machine(const std::string& name, const EmulatedDevice& device) {
    KernelLibrary library = KernelLibrary::open(std::string(SOLITON_TEST_KERNELS) + "/" + name + ".so");
    control_ = reinterpret_cast<EmulationControl* (*)()>(library.symbol("soliton_emulation"))();
    control_->options = EmulationOptions{};
    control_->device = device;
    engine_ = std::make_unique<Engine>(
        std::move(library), EngineOptions{.context = kTestContext, .pool_tokens = 4 * kTestContext});
    engine_->load_random(kWeightSeed);
    control_->launched_steps.clear();
  }
  ~Machine() { control_->device = {}; }

  Engine& engine() { return *engine_; }
  /// Steps of each launch so far.
  const std::vector<int32_t>& launches() const { return control_->launched_steps; }
  int num_steps() const { return std::accumulate(launches().begin(), launches().end(), 0); }

  std::vector<int32_t> prompt(int length) const {
    const auto vocabulary = static_cast<uint32_t>(engine_->library().model().facts.vocabulary);
    std::vector<int32_t> tokens;
    for (int i = 0; i < length; ++i)
      tokens.push_back(static_cast<int32_t>(random_bits(static_cast<uint64_t>(i), kWeightSeed) % vocabulary));
    return tokens;
  }

 private:
  EmulationControl* control_ = nullptr;
  std::unique_ptr<Engine> engine_;
};

std::string test_name_of(const testing::TestParamInfo<const char*>& info) {
  std::string name = info.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

/// The first launch is short, and the others only as long as those before have shown them to be.
void expect_limited(const std::vector<int32_t>& launches) {
  ASSERT_GE(launches.size(), 3u);
  EXPECT_EQ(launches[0], 1);
  int longest = 1;
  for (const int32_t steps : launches) {
    EXPECT_LE(steps, 8 * longest);
    longest = std::max(longest, steps);
  }
}

class LaunchLimit : public KernelCases {};

INSTANTIATE_TEST_SUITE_P(Kernels, LaunchLimit,
                         testing::Values("micro-3", "plain-4-split-counter", "plain-4-split-lanes",
                                         "plain-4-rows8"),
                         test_name_of);

TEST_P(LaunchLimit, GivesTheBitsOfOneLaunch) {
  constexpr int kPrompt = 12;
  constexpr int kTokens = 16;
  const RowSampling drawn{.inverse_temperature = 1.25f, .seed = 3, .penalty = 1.3f};
  for (const auto& sampling : {std::optional<RowSampling>(), std::optional(drawn)}) {
    DecodeResult results[2];
    for (const bool limited : {false, true}) {
      Machine machine(GetParam(), {.has_time_limit = limited});
      const bool is_one_row = machine.engine().max_rows() == 1;
      const std::vector<int32_t> prompt = machine.prompt(kPrompt);
      results[limited] = machine.engine().decode({.tokens = prompt,
                                                  .max_tokens = kTokens,
                                                  .sampling = sampling,
                                                  .want_logits = true,
                                                  .want_logprobs = sampling.has_value()});
      if (limited) {
        expect_limited(machine.launches());
      } else if (is_one_row) {
        EXPECT_EQ(machine.launches(), std::vector<int32_t>{kPrompt + kTokens - 1});
      }
      if (is_one_row) {
        EXPECT_EQ(machine.num_steps(), kPrompt + kTokens - 1);
      }
      EXPECT_EQ(machine.engine().position(), kPrompt + kTokens - 1);
      EXPECT_EQ(results[limited].tokens.size(), static_cast<size_t>(kTokens));
      EXPECT_EQ(results[limited].times_ns.size(), static_cast<size_t>(kTokens));
    }
    EXPECT_EQ(results[1].tokens, results[0].tokens);
    EXPECT_EQ(results[1].logits, results[0].logits);
    EXPECT_EQ(results[1].logprobs, results[0].logprobs);
  }
}

TEST_P(LaunchLimit, FeedsAsOneLaunchDoes) {
  constexpr int kPrompt = 21;
  std::vector<float> logits[2];
  for (const bool limited : {false, true}) {
    Machine machine(GetParam(), {.has_time_limit = limited});
    const std::vector<int32_t> prompt = machine.prompt(kPrompt + 1);
    machine.engine().feed_one_by_one();
    machine.engine().feed(machine.engine().main_branch(), std::span(prompt).first(kPrompt));
    if (limited) expect_limited(machine.launches());
    EXPECT_EQ(machine.num_steps(), kPrompt);
    EXPECT_EQ(machine.engine().position(), kPrompt);
    logits[limited] = machine.engine()
                          .decode({.tokens = std::span(prompt).last(1), .max_tokens = 1, .want_logits = true})
                          .logits;
  }
  EXPECT_EQ(logits[1], logits[0]);
}

TEST_P(LaunchLimit, StopsAsOneLaunchDoes) {
  Machine machine(GetParam(), {.has_time_limit = true});
  Engine& engine = machine.engine();
  const std::vector<int32_t> prompt = machine.prompt(5);
  const DecodeResult all = engine.decode({.tokens = prompt, .max_tokens = 30});
  const int32_t stop[] = {all.tokens[11]};
  const auto first = std::find(all.tokens.begin(), all.tokens.end(), stop[0]) - all.tokens.begin();
  engine.set_position(0);
  const DecodeResult stopped = engine.decode({.tokens = prompt, .max_tokens = 30, .stop_tokens = stop});
  EXPECT_TRUE(stopped.hit_stop_token);
  EXPECT_EQ(stopped.tokens, std::vector(all.tokens.begin(), all.tokens.begin() + first + 1));
  EXPECT_EQ(engine.position(), 5 + first);
  engine.set_position(0);
  size_t seen = 0;
  const DecodeResult ended =
      engine.decode({.tokens = prompt, .max_tokens = 30}, [&](int32_t) { return ++seen < 10; });
  EXPECT_EQ(ended.tokens, std::vector(all.tokens.begin(), all.tokens.begin() + 10));
  EXPECT_EQ(engine.position(), 5 + 9);
}

TEST(LaunchLimitTree, GivesTheBitsOfOneLaunch) {
  constexpr int kSteps = 24;
  TreeResult results[2];
  for (const bool limited : {false, true}) {
    Machine machine("plain-4-rows8", {.has_time_limit = limited});
    Engine& engine = machine.engine();
    engine.feed(engine.main_branch(), machine.prompt(50));
    engine.tree().fork(engine.main_branch(), 5);
    const std::vector<int32_t> tokens = machine.prompt(static_cast<int>(engine.rows().size()));
    const size_t before = machine.launches().size();
    results[limited] = engine.decode_tree({.tokens = tokens, .num_steps = kSteps, .want_logits = true});
    EXPECT_EQ(results[limited].num_steps, kSteps);
    EXPECT_EQ(machine.launches().size() - before > 1, limited);
  }
  EXPECT_EQ(results[1].chosen, results[0].chosen);
  EXPECT_EQ(results[1].logits, results[0].logits);
  EXPECT_EQ(results[1].page_reads, results[0].page_reads);
}

// Whichever launch it falls into.
TEST(LaunchLimitTimeline, IsOfTheStepThatIsWanted) {
  for (const int step : {0, 1, 14}) {
    Machine machine("plain-4-timeline", {.has_time_limit = true});
    const DecodeResult result =
        machine.engine().decode({.tokens = machine.prompt(3), .max_tokens = 20, .timeline_step = step});
    expect_limited(machine.launches());
    EXPECT_TRUE(std::any_of(result.timeline.begin(), result.timeline.end(),
                            [](const PhaseRecord& record) { return record.end != 0; }))
        << "step " << step;
  }
}

TEST(DeviceMemory, ThatIsTooSmallIsRefusedBeforeAnythingIsAllocated) {
  expect_error([] { Machine("micro-3", {.free_bytes = 1000}); }, ExitCode::kOutOfMemory,
               "device memory: expected 0.00 GB for micro with a context of 320, got 0.00 GB free");
}

}  // namespace
}  // namespace soliton
