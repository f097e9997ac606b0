// The kernel for one row: its roles.
#pragma once

#include "machine/roles.cuh"
#include "one_row/attention.cuh"
#include "one_row/byte_tokens.cuh"
#include "one_row/consumer.cuh"
#include "one_row/epilogue_outputs.cuh"
#include "one_row/load_input.cuh"
#include "one_row/multiply.cuh"
#include "one_row/producer.cuh"

namespace soliton::one_row {

template <const KernelPlan& kPlan>
struct Roles : Kernel<kPlan> {
  using Consumer = one_row::Consumer<kPlan>;
  using Producer = one_row::Producer<kPlan>;
  using Partner = Epilogue<kPlan>;
  static constexpr int kPartnerLanes = kWarpLanes;
};

template <const KernelPlan& kPlan>
SOLITON_DEVICE void run(const LaunchParams& params) {
  run_roles<kPlan, Roles<kPlan>>(params);
}

}  // namespace soliton::one_row
