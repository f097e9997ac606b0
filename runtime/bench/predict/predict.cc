#include "runtime/bench/predict/predict.h"

#include "generator/generate.h"
#include "runtime/compile/places.h"
#include "runtime/make/gpu_for_device.h"

namespace soliton {

TokenPrediction predict_tokens(const ModelFacts& facts, const DeviceInfo& device,
                               std::span<const int> contexts) {
  const GpuSpec gpu = gpu_for_device(device, sources_folder() / "generator" / "gpus", kernel_cache_folder());
  const Generated generated = generate({.name = "model", .path = "config.json", .facts = facts}, gpu, {});
  TokenPrediction prediction{.gpu = gpu.name};
  for (const int context : contexts)
    prediction.token_us.push_back(predicted_token_us(generated.plan, context));
  return prediction;
}

}  // namespace soliton
