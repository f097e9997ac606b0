// The matrices of a layer, by what they are for: which of them have further_bits is told by these (ModelFacts::layer_further).
#pragma once

#include <cstdint>

namespace soliton {

/// A bit each.
enum MatrixRole : int32_t { kQkvMatrix = 1, kOMatrix = 2, kGateUpMatrix = 4, kDownMatrix = 8 };
/// As models' files call them, in the order of their bits.
constexpr const char* kMatrixRoleNames[] = {"qkv", "o", "gate_up", "down"};

}  // namespace soliton
