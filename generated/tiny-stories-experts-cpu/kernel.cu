// Generated from models/tiny-stories-experts.yaml for cpu. Do not edit; run: soliton-gen models/tiny-stories-experts.yaml --gpu cpu --rows 1,8
// One launch decodes tokens until it is told to stop: every CTA walks the phases of a step for every token.
// All but the last happen in every layer. A phase waits for what it reads.
#include "plan.h"

#include "one_row/kernel.cuh"
#include "primitives/library.h"
#include "rows/kernel.cuh"

namespace soliton::generated {

using enum PhaseKind;
using enum OutputKind;

// 1 row a step.
constexpr Phase kStep[] = {
  {.name = "qkv", .kind = kMatrix, .matrix = Matrices::kQkv, .reads = Vectors::kHidden, .writes = Vectors::kQkv, .input = InputKind::kHidden, .output = kRotary, .norm = 0},
  {.name = "attention", .kind = kAttention, .reads = Vectors::kQkv, .writes = Vectors::kHeads},
  {.name = "o", .kind = kMatrix, .matrix = Matrices::kO, .reads = Vectors::kHeads, .writes = Vectors::kPostAttention, .input = InputKind::kVector, .output = kResidual, .norm = 1, .appends = true},
  {.name = "router", .kind = kMatrix, .matrix = Matrices::kRouter, .reads = Vectors::kPostAttention, .writes = Vectors::kRoutes, .input = InputKind::kNormed, .output = kRouter, .norm = 1},
  {.name = "gate_up", .kind = kMatrix, .matrix = Matrices::kGateUp, .reads = Vectors::kPostAttention, .writes = Vectors::kFfn, .routes = Vectors::kRoutes, .input = InputKind::kNormed, .output = kSwiglu, .norm = 1, .first_cta = 1},
  {.name = "down", .kind = kMatrix, .matrix = Matrices::kDown, .reads = Vectors::kFfn, .writes = Vectors::kHidden, .input = InputKind::kVector, .output = kResidual, .norm = 2},
  {.name = "lm_head", .kind = kMatrix, .matrix = Matrices::kLmHead, .reads = Vectors::kHidden, .writes = Vectors::kCandidates, .input = InputKind::kNormed, .output = kLogits, .norm = 0, .layer_kind = 1},
};
constexpr KernelPlan kDecode = with_phases(kDecodeNumbers, kStep);

// 8 rows a step.
constexpr Phase kStep8[] = {
  {.name = "qkv", .kind = kMatrix, .matrix = Matrices::kQkv, .reads = Vectors::kHidden, .writes = Vectors::kUnnormed, .input = InputKind::kNormed, .output = kRotary, .norm = 0},
  {.name = "norm_heads", .kind = kNormHeads, .reads = Vectors::kUnnormed, .writes = Vectors::kQkv},
  {.name = "attention", .kind = kAttention, .reads = Vectors::kQkv, .writes = Vectors::kHeads},
  {.name = "o", .kind = kMatrix, .matrix = Matrices::kO, .reads = Vectors::kHeads, .writes = Vectors::kPostAttention, .input = InputKind::kVector, .output = kResidual, .norm = 1, .appends = true},
  {.name = "router", .kind = kMatrix, .matrix = Matrices::kRouter, .reads = Vectors::kPostAttention, .writes = Vectors::kRoutes, .input = InputKind::kNormed, .output = kRouter, .norm = 1},
  {.name = "gate_up", .kind = kMatrix, .matrix = Matrices::kGateUp, .reads = Vectors::kPostAttention, .writes = Vectors::kFfn, .routes = Vectors::kRoutes, .input = InputKind::kNormed, .output = kSwiglu, .norm = 1, .first_cta = 1},
  {.name = "down", .kind = kMatrix, .matrix = Matrices::kDown, .reads = Vectors::kFfn, .writes = Vectors::kHidden, .input = InputKind::kVector, .output = kResidual, .norm = 2},
  {.name = "lm_head", .kind = kMatrix, .matrix = Matrices::kLmHead, .reads = Vectors::kHidden, .writes = Vectors::kCandidates, .input = InputKind::kNormed, .output = kLogits, .norm = 0, .layer_kind = 1},
};
constexpr KernelPlan kDecodeRows8 = with_phases(kDecodeRows8Numbers, kStep8);

SOLITON_KERNEL(kDecode.threads()) decode(const LaunchParams params) { one_row::run<kDecode>(params); }
SOLITON_KERNEL(kDecodeRows8.threads()) decode_rows8(const LaunchParams params) { rows::run<kDecodeRows8>(params); }

constexpr DecodeKernel kKernels[] = {decode, decode_rows8};
constexpr Descriptor kDescriptors[] = {describe(kModel, kDecode), describe(kModel, kDecodeRows8)};

}  // namespace soliton::generated

SOLITON_LIBRARY(soliton::generated::kKernels, soliton::generated::kDescriptors)
