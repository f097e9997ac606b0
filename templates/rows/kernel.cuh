// How the warps of a kernel of several rows become roles. A generated kernel gives the step as a template
// over the role, as for one row (kernel.cuh).
#pragma once

#include "rows/input_loader.cuh"
#include "rows/producer.cuh"
#include "rows/worker.cuh"

namespace soliton::rows {

/// Body of a generated kernel: `Step` is the generated walk over the phases.
template <class Plan, class Step>
SOLITON_DEVICE void run_roles(const LaunchParams& params) {
  unsigned char* shared = shared_memory();
  const int warp = thread_index() / kWarpLanes;
  Context<Plan> context{params, shared, cta_index(), thread_index() % kWarpLanes};
  WarpStatus* statuses = reinterpret_cast<WarpStatus*>(shared + SharedMap<Plan>::kStatus);
  if (warp < kWorkingWarps) set_status(context.bound(), 0, 0);
  if (thread_index() == 0) {
    init_barriers<Plan>(context.barriers());
    for (int32_t& stop : context.decision().stop) store_shared(&stop, 0);
  }
  context.hold_plan();
  cta_sync();

  if (warp < kWorkers) {
    Worker<Plan> worker(context, warp);
    Step::run(worker);
  } else if (warp == kWorkers) {
    if (context.lane != 0) return;
    Producer<Plan> producer(context);
    Step::run(producer);
    producer.drain();
  } else if (warp == kWorkers + 1) {
    if (context.lane != 0) return;
    InputLoader<Plan> loader(context);
    Step::run(loader);
  } else {
    if (context.lane == 0) {
      watch_waits(statuses, kWorkingWarps, &context.barriers().ended, params,
                  context.counter(kStallClaimWord));
    }
    return;
  }
  if (context.lane == 0) barrier_arrive(&context.barriers().ended);
}

}  // namespace soliton::rows
