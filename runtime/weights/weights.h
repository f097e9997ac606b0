// Weights on the device: a checkpoint's matrices packed into the pages that the kernel streams, in the order
// in which it streams them; the embedding, the norms and the rotary table as they are.
#pragma once

#include <cstdint>

#include "runtime/device/kernel_library.h"
#include "runtime/weights/model_tensors.h"

namespace soliton {

class Progress;

/// All constant inputs of a kernel.
struct DeviceWeights {
  DeviceMemory pages;          // ModelDescriptor::weight_bytes
  DeviceMemory embedding;      // bf16 [vocabulary][hidden]
  DeviceMemory qkv_biases;     // see LaunchParams; empty where there are none
  DeviceMemory head_norms;     // the same
  DeviceMemory router_biases;  // the same
  DeviceMemory layer_biases;   // the same
  DeviceMemory norms;          // the same
  DeviceMemory positions;      // see layout/order.h; empty where columns are in natural order
};

/// Bytes that load_weights() reports as progress.
/// Of all cards that the library spans.
uint64_t weight_load_bytes(const KernelLibrary& library);

/// Packs a checkpoint's tensors, which were found by the facts of the library, with as many threads as there are cores.
/// What is f16 or float in the file is rounded to bf16. Throws Error: kBadFile if a file is cut short meanwhile;
/// kOutOfMemory, kDevice. Of several cards, this thread must have entered `card`.
DeviceWeights load_weights(const KernelLibrary& library, const ModelTensors& tensors, Progress* progress,
                           int card = 0);

/// Weights that are a function of the seed alone, of the scale of a freshly initialised model.
/// The same on one card as on several.
DeviceWeights make_random_weights(const KernelLibrary& library, uint64_t seed, int card = 0);

}  // namespace soliton
