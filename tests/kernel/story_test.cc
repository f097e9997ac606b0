// The shipped tiny model in emulation against the reference, token for token: several CTA counts, schedules
// and both ways of synchronising.
#include "kernel/kernel_cases.h"
#include "kernel/kernel_fixture.h"

namespace soliton {
namespace {

constexpr float kTie = 1e-3f;

/// Kernels of the tiny model.
class Story : public KernelCases {
 protected:
  static std::string path() {
    const std::string name = GetParam();
    return (name == "tiny-stories-cpu" ? SOLITON_KERNELS "/" : SOLITON_TEST_KERNELS "/") + name + ".so";
  }
};

INSTANTIATE_TEST_SUITE_P(Kernels, Story,
                         testing::Values("tiny-stories-cpu", "tiny-3", "tiny-3-lanes", "tiny-7-counter"),
                         [](const testing::TestParamInfo<const char*>& info) {
                           std::string name = info.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

TEST_P(Story, IsTheReferences) {
  const int num_tokens = long_tests() ? 12 : 6;
  KernelLibrary library = KernelLibrary::open(path());
  const ModelFacts facts = library.model().facts;
  EmulationOptions& emulation =
      reinterpret_cast<EmulationControl* (*)()>(library.symbol("soliton_emulation"))()->options;
  Engine engine(std::move(library), {.context = 64});
  const TensorSource source = TensorSource::open(std::string(SOLITON_SOURCE_DIR) + "/models/tiny-stories");
  engine.load(source, nullptr);
  const std::vector<int32_t> prompt = {0, 17, 300, 42};

  ReferenceModel reference(facts, load_weights(source, facts));
  std::vector<std::vector<float>> expected;
  std::vector<int32_t> story = prompt;
  for (int i = 0; i < static_cast<int>(prompt.size()) - 1 + num_tokens; ++i) {
    const std::vector<float> logits = reference.step(story[i], i);
    if (i + 1 < static_cast<int>(prompt.size())) continue;
    expected.push_back(logits);
    story.push_back(static_cast<int32_t>(std::max_element(logits.begin(), logits.end()) - logits.begin()));
  }
  for (uint64_t seed = 1; seed <= (long_tests() ? 3 : 2); ++seed) {
    emulation.seed = seed;
    emulation.copies = seed % 2 == 0 ? CopyPolicy::kLate : CopyPolicy::kRandom;
    engine.set_position(0);
    const DecodeResult result = engine.decode({.tokens = prompt, .max_tokens = num_tokens});
    for (int i = 0; i < num_tokens; ++i) {
      const float best = expected[i][story[prompt.size() + i]];
      ASSERT_GE(expected[i][result.tokens[i]], best - kTie) << "seed " << seed << ", token " << i;
      if (result.tokens[i] != story[prompt.size() + i]) break;  // after a tie the stories differ
    }
  }
}

}  // namespace
}  // namespace soliton
