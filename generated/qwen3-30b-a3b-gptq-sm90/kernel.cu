// Generated from models/qwen3-30b-a3b-gptq.yaml for h200 and h100. Do not edit; run: soliton-gen models/qwen3-30b-a3b-gptq.yaml --gpu h200,h100 --rows 1,8,16,32,256,512,1024
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
  {.name = "router", .kind = kMatrix, .matrix = Matrices::kRouter, .reads = Vectors::kPostAttention, .writes = Vectors::kRoutes, .input = InputKind::kNormed, .output = kRouter, .norm = 1, .first_cta = 128, .column_slices = 4},
  {.name = "gate_up", .kind = kMatrix, .matrix = Matrices::kGateUp, .reads = Vectors::kPostAttention, .writes = Vectors::kFfn, .routes = Vectors::kRoutes, .input = InputKind::kNormed, .output = kSwiglu, .norm = 1, .first_cta = 31},
  {.name = "down", .kind = kMatrix, .matrix = Matrices::kDown, .reads = Vectors::kFfn, .writes = Vectors::kHidden, .input = InputKind::kVector, .output = kResidual, .norm = 2},
  {.name = "lm_head", .kind = kMatrix, .matrix = Matrices::kLmHead, .reads = Vectors::kHidden, .writes = Vectors::kCandidates, .input = InputKind::kNormed, .output = kLogits, .norm = 0, .first_cta = 128, .layer_kind = 1},
};
constexpr KernelPlan kDecode = with_phases(kDecodeNumbers, kStep);

// 8, 16 and 32 rows a step.
constexpr Phase kStep8[] = {
  {.name = "qkv", .kind = kMatrix, .matrix = Matrices::kQkv, .reads = Vectors::kHidden, .writes = Vectors::kUnnormed, .input = InputKind::kNormed, .output = kRotary, .norm = 0},
  {.name = "norm_heads", .kind = kNormHeads, .reads = Vectors::kUnnormed, .writes = Vectors::kQkv},
  {.name = "attention", .kind = kAttention, .reads = Vectors::kQkv, .writes = Vectors::kHeads},
  {.name = "o", .kind = kMatrix, .matrix = Matrices::kO, .reads = Vectors::kHeads, .writes = Vectors::kPostAttention, .input = InputKind::kVector, .output = kResidual, .norm = 1, .appends = true},
  {.name = "router", .kind = kMatrix, .matrix = Matrices::kRouter, .reads = Vectors::kPostAttention, .writes = Vectors::kRoutes, .input = InputKind::kNormed, .output = kRouter, .norm = 1, .first_cta = 128, .column_slices = 4},
  {.name = "gate_up", .kind = kMatrix, .matrix = Matrices::kGateUp, .reads = Vectors::kPostAttention, .writes = Vectors::kFfn, .routes = Vectors::kRoutes, .input = InputKind::kNormed, .output = kSwiglu, .norm = 1, .first_cta = 31},
  {.name = "down", .kind = kMatrix, .matrix = Matrices::kDown, .reads = Vectors::kFfn, .writes = Vectors::kOutputs, .input = InputKind::kVector, .output = kResidual, .norm = 2},
  {.name = "ungroup", .kind = kUngroup, .reads = Vectors::kOutputs, .writes = Vectors::kHidden},
  {.name = "lm_head", .kind = kMatrix, .matrix = Matrices::kLmHead, .reads = Vectors::kHidden, .writes = Vectors::kCandidates, .input = InputKind::kNormed, .output = kLogits, .norm = 0, .first_cta = 128, .layer_kind = 1},
};
constexpr KernelPlan kDecodeRows8 = with_phases(kDecodeRows8Numbers, kStep8);
constexpr KernelPlan kDecodeRows16 = with_phases(kDecodeRows16Numbers, kStep8);
constexpr KernelPlan kDecodeRows32 = with_phases(kDecodeRows32Numbers, kStep8);

// 256 rows a step.
constexpr Phase kStep256[] = {
  {.name = "qkv", .kind = kMatrix, .matrix = Matrices::kQkv, .reads = Vectors::kHidden, .writes = Vectors::kUnnormed, .input = InputKind::kNormed, .output = kRotary, .norm = 0},
  {.name = "norm_heads", .kind = kNormHeads, .reads = Vectors::kUnnormed, .writes = Vectors::kQkv},
  {.name = "attention", .kind = kAttention, .reads = Vectors::kQkv, .writes = Vectors::kHeads},
  {.name = "o", .kind = kMatrix, .matrix = Matrices::kO, .reads = Vectors::kHeads, .writes = Vectors::kPostAttention, .input = InputKind::kVector, .output = kResidual, .norm = 1, .appends = true},
  {.name = "router", .kind = kMatrix, .matrix = Matrices::kRouter, .reads = Vectors::kPostAttention, .writes = Vectors::kRoutes, .input = InputKind::kNormed, .output = kRouter, .norm = 1, .first_cta = 128},
  {.name = "choose", .kind = kChoose, .reads = Vectors::kRoutes, .writes = Vectors::kChoices},
  {.name = "group", .kind = kGroup, .reads = Vectors::kChoices, .writes = Vectors::kGrouped},
  {.name = "gate_up", .kind = kMatrix, .matrix = Matrices::kGateUp, .reads = Vectors::kGrouped, .writes = Vectors::kFfn, .routes = Vectors::kRoutes, .input = InputKind::kNormed, .output = kSwiglu, .norm = 1, .first_cta = 7},
  {.name = "down", .kind = kMatrix, .matrix = Matrices::kDown, .reads = Vectors::kFfn, .writes = Vectors::kOutputs, .input = InputKind::kVector, .output = kResidual, .norm = 2},
  {.name = "ungroup", .kind = kUngroup, .reads = Vectors::kOutputs, .writes = Vectors::kHidden},
  {.name = "lm_head", .kind = kMatrix, .matrix = Matrices::kLmHead, .reads = Vectors::kHidden, .writes = Vectors::kCandidates, .input = InputKind::kNormed, .output = kLogits, .norm = 0, .first_cta = 128, .layer_kind = 1},
};
constexpr KernelPlan kDecodeRows256 = with_phases(kDecodeRows256Numbers, kStep256);

// 512 rows a step.
constexpr Phase kStep512[] = {
  {.name = "qkv", .kind = kMatrix, .matrix = Matrices::kQkv, .reads = Vectors::kHidden, .writes = Vectors::kUnnormed, .input = InputKind::kNormed, .output = kRotary, .norm = 0},
  {.name = "norm_heads", .kind = kNormHeads, .reads = Vectors::kUnnormed, .writes = Vectors::kQkv},
  {.name = "attention", .kind = kAttention, .reads = Vectors::kQkv, .writes = Vectors::kHeads},
  {.name = "o", .kind = kMatrix, .matrix = Matrices::kO, .reads = Vectors::kHeads, .writes = Vectors::kPostAttention, .input = InputKind::kVector, .output = kResidual, .norm = 1, .appends = true},
  {.name = "router", .kind = kMatrix, .matrix = Matrices::kRouter, .reads = Vectors::kPostAttention, .writes = Vectors::kRoutes, .input = InputKind::kNormed, .output = kRouter, .norm = 1, .first_cta = 63},
  {.name = "choose", .kind = kChoose, .reads = Vectors::kRoutes, .writes = Vectors::kChoices},
  {.name = "group", .kind = kGroup, .reads = Vectors::kChoices, .writes = Vectors::kGrouped},
  {.name = "gate_up", .kind = kMatrix, .matrix = Matrices::kGateUp, .reads = Vectors::kGrouped, .writes = Vectors::kFfn, .routes = Vectors::kRoutes, .input = InputKind::kNormed, .output = kSwiglu, .norm = 1, .first_cta = 6},
  {.name = "down", .kind = kMatrix, .matrix = Matrices::kDown, .reads = Vectors::kFfn, .writes = Vectors::kOutputs, .input = InputKind::kVector, .output = kResidual, .norm = 2},
  {.name = "ungroup", .kind = kUngroup, .reads = Vectors::kOutputs, .writes = Vectors::kHidden},
  {.name = "lm_head", .kind = kMatrix, .matrix = Matrices::kLmHead, .reads = Vectors::kHidden, .writes = Vectors::kCandidates, .input = InputKind::kNormed, .output = kLogits, .norm = 0, .first_cta = 63, .layer_kind = 1},
};
constexpr KernelPlan kDecodeRows512 = with_phases(kDecodeRows512Numbers, kStep512);

// 1024 rows a step.
constexpr Phase kStep1024[] = {
  {.name = "qkv", .kind = kMatrix, .matrix = Matrices::kQkv, .reads = Vectors::kHidden, .writes = Vectors::kUnnormed, .input = InputKind::kNormed, .output = kRotary, .norm = 0},
  {.name = "norm_heads", .kind = kNormHeads, .reads = Vectors::kUnnormed, .writes = Vectors::kQkv},
  {.name = "attention", .kind = kAttention, .reads = Vectors::kQkv, .writes = Vectors::kHeads},
  {.name = "o", .kind = kMatrix, .matrix = Matrices::kO, .reads = Vectors::kHeads, .writes = Vectors::kPostAttention, .input = InputKind::kVector, .output = kResidual, .norm = 1, .appends = true},
  {.name = "router", .kind = kMatrix, .matrix = Matrices::kRouter, .reads = Vectors::kPostAttention, .writes = Vectors::kRoutes, .input = InputKind::kNormed, .output = kRouter, .norm = 1, .first_cta = 29},
  {.name = "choose", .kind = kChoose, .reads = Vectors::kRoutes, .writes = Vectors::kChoices},
  {.name = "group", .kind = kGroup, .reads = Vectors::kChoices, .writes = Vectors::kGrouped},
  {.name = "gate_up", .kind = kMatrix, .matrix = Matrices::kGateUp, .reads = Vectors::kGrouped, .writes = Vectors::kFfn, .routes = Vectors::kRoutes, .input = InputKind::kNormed, .output = kSwiglu, .norm = 1, .first_cta = 4},
  {.name = "down", .kind = kMatrix, .matrix = Matrices::kDown, .reads = Vectors::kFfn, .writes = Vectors::kOutputs, .input = InputKind::kVector, .output = kResidual, .norm = 2},
  {.name = "ungroup", .kind = kUngroup, .reads = Vectors::kOutputs, .writes = Vectors::kHidden},
  {.name = "lm_head", .kind = kMatrix, .matrix = Matrices::kLmHead, .reads = Vectors::kHidden, .writes = Vectors::kCandidates, .input = InputKind::kNormed, .output = kLogits, .norm = 0, .first_cta = 29, .layer_kind = 1},
};
constexpr KernelPlan kDecodeRows1024 = with_phases(kDecodeRows1024Numbers, kStep1024);

SOLITON_KERNEL(kDecode.threads()) decode(const LaunchParams params) { one_row::run<kDecode>(params); }
SOLITON_KERNEL(kDecodeRows8.threads()) decode_rows8(const LaunchParams params) { rows::run<kDecodeRows8>(params); }
SOLITON_KERNEL(kDecodeRows16.threads()) decode_rows16(const LaunchParams params) { rows::run<kDecodeRows16>(params); }
SOLITON_KERNEL(kDecodeRows32.threads()) decode_rows32(const LaunchParams params) { rows::run<kDecodeRows32>(params); }
SOLITON_KERNEL(kDecodeRows256.threads()) decode_rows256(const LaunchParams params) { rows::run<kDecodeRows256>(params); }
SOLITON_KERNEL(kDecodeRows512.threads()) decode_rows512(const LaunchParams params) { rows::run<kDecodeRows512>(params); }
SOLITON_KERNEL(kDecodeRows1024.threads()) decode_rows1024(const LaunchParams params) { rows::run<kDecodeRows1024>(params); }

constexpr DecodeKernel kKernels[] = {decode, decode_rows8, decode_rows16, decode_rows32, decode_rows256, decode_rows512, decode_rows1024};
constexpr Descriptor kDescriptors[] = {describe(kModel, kDecode), describe(kModel, kDecodeRows8), describe(kModel, kDecodeRows16), describe(kModel, kDecodeRows32), describe(kModel, kDecodeRows256), describe(kModel, kDecodeRows512), describe(kModel, kDecodeRows1024)};

}  // namespace soliton::generated

SOLITON_LIBRARY(soliton::generated::kKernels, soliton::generated::kDescriptors)
