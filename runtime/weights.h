// Weights on the device: a checkpoint's matrices packed into the pages that the kernel streams, in the order
// in which it streams them; the embedding, the norms and the rotary table as they are.
#pragma once

#include <cstdint>

#include "runtime/kernel_library.h"
#include "runtime/model_tensors.h"

namespace soliton {

class Progress;

/// All constant inputs of a kernel.
struct DeviceWeights {
  DeviceMemory pages;       // ModelDescriptor::weight_bytes
  DeviceMemory embedding;   // bf16 [vocabulary][hidden]
  DeviceMemory qkv_biases;  // see LaunchParams; empty where there are none
  DeviceMemory head_norms;  // the same
  DeviceMemory norms;       // bf16 [2 * num_layers + 1][hidden]
  DeviceMemory positions;   // see layout/order.h; empty where columns are in natural order
};

/// Bytes that load_weights() reports as progress.
uint64_t weight_load_bytes(const ModelDescriptor& model);

/// Packs a checkpoint's tensors, which were found by the facts of the library, with as many threads as there are cores.
/// What is f16 or float in the file is rounded to bf16. Throws Error: kBadFile if a file is cut short meanwhile;
/// kOutOfMemory, kDevice.
DeviceWeights load_weights(const KernelLibrary& library, const ModelTensors& tensors, Progress* progress);

/// Weights that are a function of the seed alone, of the scale of a freshly initialised model.
DeviceWeights make_random_weights(const KernelLibrary& library, uint64_t seed);

}  // namespace soliton
