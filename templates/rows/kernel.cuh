// The kernels for several rows: their roles.
#pragma once

#include "machine/roles.cuh"
#include "rows/expert_input.cuh"
#include "rows/input_loader.cuh"
#include "rows/producer.cuh"
#include "rows/worker.cuh"

namespace soliton::rows {

template <const KernelPlan& kPlan>
struct Roles : Kernel<kPlan> {
  using Consumer = Worker<kPlan>;
  using Producer = rows::Producer<kPlan>;
  using Partner = InputLoader<kPlan>;
  static constexpr int kPartnerLanes = kPlan.copy_lanes();
};

template <const KernelPlan& kPlan>
SOLITON_DEVICE void run(const LaunchParams& params) {
  run_roles<kPlan, Roles<kPlan>>(params);
}

}  // namespace soliton::rows
