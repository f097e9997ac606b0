// A kernel with random weights, and with weights of which one tensor has become zero, verified against the folder.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "fused_folder.h"
#include "reference_model.h"
#include "runtime/verify/verify.h"
#include "temporary_folder.h"

namespace soliton {

/// A folder of random weights for a kernel, and an engine with the kernel.
class Verified {
 public:
  static constexpr uint64_t kSeed = 7;
  static constexpr int kContext = 64;

  /// `rewrite`: of the folder.
  explicit Verified(const std::string& kernel, void (*rewrite)(const std::filesystem::path& folder) = nullptr)
      : engine_(KernelLibrary::open(kernel), {.context = kContext}) {
    const ModelFacts& facts = engine_.library().model().facts;
    write_hf_folder(random_weights(facts, kSeed), facts, folder_.path());
    if (rewrite != nullptr) rewrite(folder_.path());
    config_ = HfConfig::open(folder_.path());
    source_ = std::make_unique<TensorSource>(TensorSource::open(folder_.path()));
  }

  const TensorSource& source() const { return *source_; }
  const HfConfig& config() const { return config_; }

  Verdict verify_intact() { return verify_with(*source_); }
  /// The kernel with weights of which one tensor has become zero, by the first `num_tokens` of the prompt.
  Verdict verify_without(const std::string& name, size_t num_tokens = SIZE_MAX) {
    TensorSource damaged = TensorSource::open(folder_.path());
    damaged.zero(name);
    return verify_with(damaged, num_tokens);
  }

 private:
  /// The kernel with these weights against the intact folder.
  Verdict verify_with(const TensorSource& weights, size_t num_tokens = SIZE_MAX) {
    engine_.load(find_tensors(weights, config_.quantization_or_null(), config_.facts, config_.checkpoint),
                 nullptr);
    std::vector<int32_t> prompt = verification_prompt(config_);
    prompt.resize(std::min(num_tokens, prompt.size()));
    return verify(engine_, *source_, config_, prompt);
  }

  const TemporaryFolder folder_;
  Engine engine_;
  HfConfig config_;
  std::unique_ptr<TensorSource> source_;
};

}  // namespace soliton
