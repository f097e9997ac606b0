// Whether kernels, whose weights are bf16 where they are no integers, have what a GGUF file has.
#pragma once

#include "runtime/weights/model_tensors.h"

namespace soliton {

/// Throws Error (kMismatch), which names a tensor of matrices or norms that has values that bf16 has not. Of an embedding that
/// has there is a remark added. Reads all tensors of F16 and F32 once, with as many threads as there are cores.
void check_exact(ModelTensors& tensors);

}  // namespace soliton
