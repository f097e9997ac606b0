// Generated from models/qwen2.5-1.5b.yaml for h200. Do not edit; run: soliton-gen models/qwen2.5-1.5b.yaml --gpu h200 --rows 1,8,64
// One launch decodes tokens until it is told to stop: every CTA walks these phases for every token.
#include "plan.h"
#include "plan-rows8.h"
#include "plan-rows64.h"

#include "kernel.cuh"
#include "primitives/library.h"
#include "rows/kernel.cuh"

namespace soliton::generated {

static_assert(SharedMap<Plan>::kBytes == Plan::kSharedBytes, "planner and kernel agree on shared memory");

SOLITON_CONSTANT MatrixPhase kMatrices[] = {
  kQkv,
  kO,
  kGateUp,
  kDown,
  kLmHead,
};

/// The phases of each step, for each role of a CTA.
struct Step {
  static constexpr int kPerLayer = 4;  // of the matrices
  static constexpr int kLast = Plan::kNumLayers * kPerLayer;

  static SOLITON_DEVICE MatrixInstance matrix(int i) {
    const int layer = i == kLast ? 0 : i / kPerLayer;
    return {kMatrices[i == kLast ? kPerLayer : i % kPerLayer], layer};
  }

  template <class Role>
  static SOLITON_DEVICE void run(Role& role) {
    while (role.begin_step()) {
      for (int i = 0; i <= kLast; ++i) {
        if (i % kPerLayer == 1 && i < kLast) role.template attention<kAttention>(i / kPerLayer);
        role.matrix(matrix(i), matrix(i == kLast ? 0 : i + 1));
      }
      role.end_step();
    }
  }
};

SOLITON_KERNEL(Plan::kThreads) decode(const LaunchParams params) {
  run_roles<Plan, Step>(params);
}

}  // namespace soliton::generated

namespace soliton::generated::rows8 {

static_assert(rows::SharedMap<Plan>::kBytes == Plan::kSharedBytes, "planner and kernel agree on shared memory");

SOLITON_CONSTANT MatrixPhase kMatrices[] = {
  kQkv,
  kO,
  kGateUp,
  kDown,
  kLmHead,
};

/// The phases of each step, for each role of a CTA.
struct Step {
  static constexpr int kPerLayer = 4;  // of the matrices
  static constexpr int kLast = Plan::kNumLayers * kPerLayer;

  static SOLITON_DEVICE rows::MatrixInstance matrix(int i) {
    const int layer = i == kLast ? 0 : i / kPerLayer;
    return {kMatrices[i == kLast ? kPerLayer : i % kPerLayer], layer};
  }

  template <class Role>
  static SOLITON_DEVICE void run(Role& role) {
    while (role.begin_step()) {
      for (int i = 0; i <= kLast; ++i) {
        if (i % kPerLayer == 1 && i < kLast) {
          role.attend(i / kPerLayer);
          role.merge(i / kPerLayer);
        }
        role.matrix(matrix(i), matrix(i == kLast ? 0 : i + 1));
      }
      role.end_step();
    }
  }
};

SOLITON_KERNEL(Plan::kThreads) decode(const LaunchParams params) {
  rows::run_roles<Plan, Step>(params);
}

}  // namespace soliton::generated::rows8

namespace soliton::generated::rows64 {

static_assert(rows::SharedMap<Plan>::kBytes == Plan::kSharedBytes, "planner and kernel agree on shared memory");

SOLITON_CONSTANT MatrixPhase kMatrices[] = {
  kQkv,
  kO,
  kGateUp,
  kDown,
  kLmHead,
};

/// The phases of each step, for each role of a CTA.
struct Step {
  static constexpr int kPerLayer = 4;  // of the matrices
  static constexpr int kLast = Plan::kNumLayers * kPerLayer;

  static SOLITON_DEVICE rows::MatrixInstance matrix(int i) {
    const int layer = i == kLast ? 0 : i / kPerLayer;
    return {kMatrices[i == kLast ? kPerLayer : i % kPerLayer], layer};
  }

  template <class Role>
  static SOLITON_DEVICE void run(Role& role) {
    while (role.begin_step()) {
      for (int i = 0; i <= kLast; ++i) {
        if (i % kPerLayer == 1 && i < kLast) {
          role.attend(i / kPerLayer);
          role.merge(i / kPerLayer);
        }
        role.matrix(matrix(i), matrix(i == kLast ? 0 : i + 1));
      }
      role.end_step();
    }
  }
};

SOLITON_KERNEL(Plan::kThreads) decode(const LaunchParams params) {
  rows::run_roles<Plan, Step>(params);
}

}  // namespace soliton::generated::rows64

namespace soliton::generated {

constexpr DecodeKernel kKernels[] = {decode, rows8::decode, rows64::decode};
constexpr Descriptor kDescriptors[] = {kDescriptor, rows8::kDescriptor, rows64::kDescriptor};

}  // namespace soliton::generated

SOLITON_LIBRARY(soliton::generated::kKernels, soliton::generated::kDescriptors)
