// How a checkpoint's linear layers were quantised, as config.json or quantize_config.json states it. What no
// kernel can be generated for is refused here by name.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "layout/weight_format.h"
#include "models/module_rules.h"
#include "models/strict_json.h"

namespace soliton {

/// Who wrote the checkpoint, which decides the tensors' names, shapes and nibble order. kFp8: weights in E4M3, whoever wrote them.
/// kE2m1: weights in MXFP4 or NVFP4, likewise. kRounded: nobody, its floats are rounded as they are loaded, see
/// weight_rounding.h.
enum class QuantizationMethod { kGptq, kAwq, kCompressedTensors, kGguf, kFp8, kE2m1, kRounded };

/// What GPTQ stores for a zero point: the zero less one, or the zero itself.
enum class ZeroFormat { kV1, kV2 };

/// What matrices are in where they are not all alike. Formats are told apart by their bits.
struct MatrixFormats {
  WeightFormat most;     // of the layers' matrices
  WeightFormat further;  // of the others; bf16: there are none
  std::vector<int32_t>
      layer_further;     // of each layer which are these, several of MatrixRole; none behind the last
  WeightFormat lm_head;  // one of both, or bf16
};

/// The name in the file, such as "gptq_v2".
std::string_view zero_format_name(ZeroFormat zeros);

/// What a folder says of its quantisation. Which layers are quantised, and in which order their inputs stand,
/// only their tensors say.
struct QuantizationConfig {
  using Method = QuantizationMethod;

  Method method{};
  int bits = 4;
  int group_size = -1;     // inputs that share a scale: 32, 64, 128, or -1 for all of a row; kE2m1: 16 or 32
  bool symmetric = true;   // every zero point is 8
  bool act_order = false;  // GPTQ's desc_act: groups take inputs in an order that tensors give
  bool lm_head = false;    // whether lm_head is among the layers meant to be quantised
  ZeroFormat zeros = ZeroFormat::kV2;         // kV1 in GPTQ alone
  std::string file;                           // where it was read, for messages
  std::optional<MatrixFormats> formats = {};  // kGguf alone
  ModuleRules modules =
      {};  // of kE2m1 which linear layers are quantised; of kGptq which have other bits, or none

  /// Reads `quantization_config` of config.json (`config` is its root) and quantize_config.json of `folder`, or where neither is
  /// there hf_quant_config.json, as modelopt writes it.
  /// Where both exist they may not contradict one another, and what config.json leaves out is taken from the
  /// other one. Nothing if neither exists, or for nf4 of bitsandbytes, which tensors alone know of. Throws kBadFile if a member is missing, of a wrong type or
  /// contradicted, and kMismatch for a sound checkpoint that is not supported.
  static std::optional<QuantizationConfig> read(const JsonView& config, const std::filesystem::path& folder);
};

}  // namespace soliton
