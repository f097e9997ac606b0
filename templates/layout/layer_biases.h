// What a layer adds beside its matrices, in LaunchParams::layer_biases: biases of linear layers but those of q, k and v, and
// scores of sinks. Shared by who loads them and kernels.
#pragma once

#include "layout/page.h"

namespace soliton {

/// How many floats there are of each, one behind the other in this order; 0: the model has none. Whole loads of 4.
struct LayerBiases {
  int num_sinks = 0;    // [heads]: scores in base 2
  int num_o = 0;        // [hidden]
  int num_gate_up = 0;  // [experts][packed rows of one]
  int num_down = 0;     // [experts][hidden]

  SOLITON_HOST_DEVICE constexpr int sinks() const { return 0; }
  SOLITON_HOST_DEVICE constexpr int o() const { return round_up(num_sinks, 4); }
  SOLITON_HOST_DEVICE constexpr int gate_up() const { return o() + num_o; }
  SOLITON_HOST_DEVICE constexpr int down() const { return gate_up() + num_gate_up; }
  /// Of a layer.
  SOLITON_HOST_DEVICE constexpr int words() const { return down() + num_down; }
};

}  // namespace soliton
