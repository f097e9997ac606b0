// Generated from models/tiny-stories.yaml for cpu. Do not edit; run: soliton-gen models/tiny-stories.yaml --gpu cpu
// One launch decodes tokens until it is told to stop: every CTA walks these phases for every token.
#include "plan.h"

#include "kernel.cuh"
#include "primitives/library.h"

namespace soliton::generated {

static_assert(SharedMap<Plan>::kBytes == Plan::kSharedBytes, "planner and kernel agree on shared memory");

/// The phases of each step, for each role of a CTA: producer, consumer, epilogue.
struct Step {
  template <class Role>
  static SOLITON_DEVICE void run(Role& role) {
    while (role.begin_step()) {
      for (int layer = 0; layer < Plan::kNumLayers; ++layer) {
        // Phase 1 of 5: qkv. Waits for hidden (offers in layer 0); completes qkv; clears ffn.
        role.template matrix<kQkv>(layer);
        // Phase 2 of 5: attention. Waits for qkv; completes heads; clears hidden.
        role.template attention<kAttention>(layer);
        // Phase 3 of 5: o. Waits for heads; completes middle; clears qkv.
        role.template matrix<kO>(layer);
        // Phase 4 of 5: gate_up. Waits for middle; completes ffn; clears heads.
        role.template matrix<kGateUp>(layer);
        // Phase 5 of 5: down. Waits for ffn; completes hidden; clears middle.
        role.template matrix<kDown>(layer);
      }
      // Last phase: lm_head. Waits for hidden; completes offers.
      role.template matrix<kLmHead>(0);
      role.end_step();
    }
  }
};

SOLITON_KERNEL(Plan::kThreads) decode(const LaunchParams params) { run_roles<Plan, Step>(params); }

}  // namespace soliton::generated

SOLITON_LIBRARY(soliton::generated::decode, soliton::generated::kDescriptor)
