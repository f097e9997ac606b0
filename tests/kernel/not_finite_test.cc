// Weights that are no numbers: no token of a step whose logits are not all finite is given out.
#include "error_of.h"
#include "kernel/kernel_cases.h"
#include "kernel/kernel_fixture.h"

namespace soliton {
namespace {

constexpr uint16_t kNan = 0x7fc0;
constexpr uint16_t kNegativeNan = 0xffc0;
constexpr uint16_t kInfinity = 0x7f80;
constexpr uint16_t kNegativeInfinity = 0xff80;

struct Damage {
  const char* name;
  void (*damage)(ReferenceWeights& weights);
};

const Damage kDamages[] = {
    {"a_norm_is_nan", [](ReferenceWeights& w) { w.layers[0].attention_norm[3] = kNan; }},
    {"a_value_is_nan", [](ReferenceWeights& w) { w.layers[0].v[5] = kNegativeNan; }},
    {"a_weight_of_down_is_infinite", [](ReferenceWeights& w) { w.layers[1].down[7] = kInfinity; }},
    {"one_logit_is_nan", [](ReferenceWeights& w) { w.lm_head[w.lm_head.size() - 1] = kNegativeNan; }},
    {"one_logit_is_infinite",
     [](ReferenceWeights& w) { w.lm_head[w.lm_head.size() / 2] = kNegativeInfinity; }},
};

/// Names the folder, which is TemporaryModel's.
std::string expected() {
  const std::string folder =
      (std::filesystem::temp_directory_path() / ("soliton-kernel-test-" + std::to_string(getpid()))).string();
  return "4 " + folder + ": expected finite logits, got NaN or infinity behind the token at position 2";
}

class NotFinite : public KernelCases {
 public:
  /// A kernel with weights that have been damaged.
  static KernelUnderTest damaged(const Damage& damage) {
    const KernelUnderTest sound(GetParam());
    auto weights = std::make_shared<ReferenceWeights>(random_weights(sound.facts(), kWeightSeed));
    damage.damage(*weights);
    const TemporaryModel folder(*weights, sound.facts());
    return KernelUnderTest(GetParam(), folder.path(), weights);
  }
};

INSTANTIATE_TEST_SUITE_P(Kernels, NotFinite,
                         testing::Values("micro-3", "micro-3-counter", "micro-3-rows8", "broad-2"),
                         [](const auto& info) {
                           std::string name = info.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

TEST_P(NotFinite, EndsAGreedyAnswer) {
  for (const Damage& damage : kDamages) {
    KernelUnderTest kernel = damaged(damage);
    const std::vector<int32_t> tokens = kernel.prompt(3);
    int given = 0;
    EXPECT_EQ(error_of([&] {
                kernel.engine().decode({.tokens = tokens, .max_tokens = 6},
                                       [&](int32_t) { return ++given > 0; });
              }),
              expected())
        << damage.name;
    EXPECT_EQ(given, 0) << damage.name;
  }
}

// An expert whose logit is no number is chosen, and its weight is none.
TEST(NotFiniteRouter, EndsAnAnswer) {
  for (const char* name : {"mixture-shared-5", "int4-sigmoid-5"}) {
    const KernelUnderTest sound(name);
    const auto last = static_cast<size_t>(sound.facts().num_layers - 1);
    for (const bool is_gate : {false, true}) {
      if (is_gate && sound.facts().shared_gate == 0) continue;
      auto weights = std::make_shared<ReferenceWeights>(random_weights(sound.facts(), kWeightSeed));
      ReferenceLayer& layer = weights->layers[last];
      (is_gate ? layer.shared_gate : layer.router).back() = kNan;
      const TemporaryModel folder(*weights, sound.facts());
      KernelUnderTest kernel(name, folder.path(), weights);
      EXPECT_EQ(error_of([&] { kernel.engine().decode({.tokens = kernel.prompt(3), .max_tokens = 6}); }),
                expected())
          << name << (is_gate ? ", gate" : ", router");
    }
  }
}

TEST_P(NotFinite, EndsADrawnAnswer) {
  for (const Damage& damage : kDamages) {
    for (const RowSampling& sampling :
         {RowSampling{.inverse_temperature = 2.0f, .seed = 5},
          RowSampling{.inverse_temperature = 1.0f, .seed = 7, .top_k = 3, .top_p = 0.5f}}) {
      KernelUnderTest kernel = damaged(damage);
      const std::vector<int32_t> tokens = kernel.prompt(3);
      EXPECT_EQ(error_of([&] {
                  kernel.engine().decode(
                      {.tokens = tokens, .max_tokens = 6, .sampling = sampling, .want_logprobs = true});
                }),
                expected())
          << damage.name;
    }
  }
}

}  // namespace
}  // namespace soliton
