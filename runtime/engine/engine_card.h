// What an engine has on one card; all that a launch reads and writes there.
#pragma once

#include <optional>

#include "runtime/device/kernel_library.h"
#include "runtime/engine/engine_input.h"
#include "runtime/engine/kv_pool.h"
#include "runtime/engine/sampling_memory.h"
#include "runtime/weights/weights.h"

namespace soliton {

struct EngineCard {
  int index = 0;  // among the engine's cards
  KvPool pool;
  DeviceMemory rotary;
  DeviceMemory workspace;
  std::optional<DeviceWeights> weights = {};
  EngineInput input = {};  // tokens, stop tokens, and the branch's pages or the plan of the tree
  DeviceMemory partials = {};
  DeviceMemory logits = {};
  SamplingMemory sampling = {};
  DeviceMemory timeline = {};
};

}  // namespace soliton
