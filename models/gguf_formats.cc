#include "models/gguf_formats.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <string_view>

#include "layout/model_facts.h"
#include "models/matrix_roles.h"

namespace soliton {
namespace {

constexpr int kBlock = 256;  // columns of the types whose groups have integers for scales

constexpr std::string_view kLayers = "blk.";

struct RoleName {
  MatrixRole role;
  std::string_view name;  // of a tensor, behind the layer's
};
constexpr std::array kRoles = {
    RoleName{kQkvMatrix, "attn_q.weight"},           RoleName{kQkvMatrix, "attn_k.weight"},
    RoleName{kQkvMatrix, "attn_v.weight"},           RoleName{kQkvMatrix, "attn_qkv.weight"},
    RoleName{kOMatrix, "attn_output.weight"},        RoleName{kGateUpMatrix, "ffn_gate.weight"},
    RoleName{kGateUpMatrix, "ffn_up.weight"},        RoleName{kDownMatrix, "ffn_down.weight"},
    RoleName{kGateUpMatrix, "ffn_gate_exps.weight"}, RoleName{kGateUpMatrix, "ffn_up_exps.weight"},
    RoleName{kDownMatrix, "ffn_down_exps.weight"}};

bool is_float(GgufType type) {
  return gguf_type(type).block_columns == 1;
}

/// A matrix, and the tensor that it is known by in messages.
struct Matrix {
  int layer;
  MatrixRole role;
  const GgufTensor* tensor;
  WeightFormat format;
};

[[noreturn]] void refuse(const std::string& path, const GgufTensor& tensor, std::string_view expected) {
  throw file_error(ExitCode::kMismatch, path, "{}: expected {}, got {}: no kernel computes with it",
                   tensor.name, expected, gguf_type(tensor.type).name);
}

WeightFormat require_format(const std::string& path, const GgufTensor& tensor) {
  if (const auto format = format_of(tensor.type)) return *format;
  refuse(path, tensor, "floats, Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, Q2_K to Q6_K, IQ4_NL or IQ4_XS");
}

WeightFormat require_join(const std::string& path, const WeightFormat& so_far, const GgufTensor& tensor,
                          const WeightFormat& format) {
  if (const auto joined = join_formats(so_far, format)) return *joined;
  refuse(path, tensor, "a type that one format holds with those of other tensors");
}

/// "blk.12.attn_q.weight"
std::optional<std::pair<int, MatrixRole>> find_role(std::string_view name) {
  if (!name.starts_with(kLayers)) return std::nullopt;
  int layer = -1;
  const char* const end = name.data() + name.size();
  const auto [rest, failure] = std::from_chars(name.data() + kLayers.size(), end, layer);
  if (failure != std::errc{} || rest == end || *rest != '.' || layer < 0) return std::nullopt;
  const std::string_view own(rest + 1, static_cast<size_t>(end - rest - 1));
  const auto found = std::ranges::find(kRoles, own, &RoleName::name);
  if (found == kRoles.end()) return std::nullopt;
  return std::pair(layer, found->role);
}

bool is_of_experts(const GgufTensor& tensor) {
  return tensor.name.starts_with(kLayers) && tensor.name.ends_with("_exps.weight");
}

/// Those of the layers that have blocks; of a matrix of several tensors a format that holds all.
std::vector<Matrix> find_matrices(const GgufFile& file, bool mxfp4_experts) {
  std::map<std::pair<int, MatrixRole>, Matrix> matrices;
  for (const GgufTensor& tensor : file.tensors()) {
    if (is_float(tensor.type)) continue;
    if (mxfp4_experts && tensor.type == GgufType::kMXFP4 && is_of_experts(tensor)) continue;
    const auto place = find_role(tensor.name);
    if (!place) {
      if (tensor.name.starts_with(kLayers) && tensor.shape.size() > 1)
        refuse(file.path(), tensor, "BF16, F16 or F32");
      continue;
    }
    const WeightFormat format = require_format(file.path(), tensor);
    const auto [at, is_new] = matrices.emplace(*place, Matrix{place->first, place->second, &tensor, format});
    if (!is_new) at->second.format = require_join(file.path(), at->second.format, tensor, format);
  }
  std::vector<Matrix> all;
  for (const auto& [place, matrix] : matrices) all.push_back(matrix);
  return all;
}

}  // namespace

std::optional<WeightFormat> format_of(GgufType type) {
  switch (type) {
    case GgufType::kQ4_0:
      return WeightFormat{.type = WeightType::kInt4, .group = 32};
    case GgufType::kQ4_1:
      return WeightFormat{.type = WeightType::kInt4, .group = 32, .has_minima = true};
    case GgufType::kQ5_0:
      return WeightFormat{.type = WeightType::kInt5, .group = 32};
    case GgufType::kQ5_1:
      return WeightFormat{.type = WeightType::kInt5, .group = 32, .has_minima = true};
    case GgufType::kQ8_0:
      return WeightFormat{.type = WeightType::kInt8, .group = 32};
    case GgufType::kIQ4_NL:  // its codes stand for integers of 8 bits
      return WeightFormat{.type = WeightType::kInt8, .group = 32};
    case GgufType::kIQ4_XS:
      return WeightFormat{.type = WeightType::kInt8, .group = 32, .block = kBlock};
    case GgufType::kQ2_K:
      return WeightFormat{.type = WeightType::kInt4, .group = 16, .has_minima = true, .block = kBlock};
    case GgufType::kQ3_K:
      return WeightFormat{.type = WeightType::kInt4, .group = 16, .block = kBlock};
    case GgufType::kQ4_K:
      return WeightFormat{.type = WeightType::kInt4, .group = 32, .has_minima = true, .block = kBlock};
    case GgufType::kQ5_K:
      return WeightFormat{.type = WeightType::kInt5, .group = 32, .has_minima = true, .block = kBlock};
    case GgufType::kQ6_K:
      return WeightFormat{.type = WeightType::kInt6, .group = 16, .block = kBlock};
    default:
      return std::nullopt;
  }
}

std::optional<WeightFormat> join_formats(const WeightFormat& a, const WeightFormat& b) {
  if (a == b) return a;
  if (a.block != b.block) return std::nullopt;
  return WeightFormat{.type = type_of_bits(std::max(a.bits(), b.bits())),
                      .group = std::min(a.group, b.group),
                      .has_minima = a.has_minima || b.has_minima,
                      .block = a.block};
}

bool holds(const WeightFormat& format, GgufType type) {
  const auto own = format_of(type);
  return own && join_formats(format, *own) == format;
}

bool has_mxfp4_experts(const GgufFile& file) {
  const GgufTensor* other = nullptr;
  bool has_some = false;
  for (const GgufTensor& tensor : file.tensors()) {
    if (!is_of_experts(tensor)) continue;
    if (tensor.type == GgufType::kMXFP4) {
      has_some = true;
    } else {
      other = &tensor;
    }
  }
  if (has_some && other != nullptr) refuse(file.path(), *other, "MXFP4, as other experts have");
  return has_some;
}

std::optional<QuantizationConfig> find_gguf_quantization(const GgufFile& file, bool mxfp4_experts) {
  const std::vector<Matrix> matrices = find_matrices(file, mxfp4_experts);
  const GgufTensor* const output = file.find("output.weight");
  const GgufTensor* const lm_head = output != nullptr ? output : file.find("token_embd.weight");
  if (matrices.empty()) {
    if (lm_head != nullptr && !is_float(lm_head->type))
      refuse(file.path(), *lm_head, "BF16, F16 or F32, as layers have");
    return std::nullopt;
  }
  const auto bits_of = [](const Matrix& matrix) { return matrix.format.bits(); };
  const int bits = std::ranges::min(matrices, {}, bits_of).format.bits();
  MatrixFormats formats;
  std::optional<WeightFormat> most;
  std::optional<WeightFormat> further;
  const auto add = [&](const GgufTensor& tensor, const WeightFormat& format) {
    std::optional<WeightFormat>& all = format.bits() == bits ? most : further;
    all = all ? require_join(file.path(), *all, tensor, format) : format;
  };
  for (const Matrix& matrix : matrices) {
    add(*matrix.tensor, matrix.format);
    if (matrix.format.bits() == bits) continue;
    if (formats.layer_further.size() <= static_cast<size_t>(matrix.layer))
      formats.layer_further.resize(static_cast<size_t>(matrix.layer) + 1);
    formats.layer_further[static_cast<size_t>(matrix.layer)] |= matrix.role;
  }
  if (lm_head != nullptr && !is_float(lm_head->type)) {
    const WeightFormat own = require_format(file.path(), *lm_head);
    add(*lm_head, own);
    formats.lm_head = own.bits() == bits ? *most : *further;
  }
  if (mxfp4_experts && further)
    refuse(file.path(), *matrices.front().tensor, "one type beside the experts' MXFP4");
  formats.most = *most;
  formats.further = further.value_or(WeightFormat{});
  // What joins several may have more bits than each that it was told apart by, and lm_head's is the whole of it.
  if (formats.lm_head.has_scales()) formats.lm_head = formats.lm_head.bits() == bits ? *most : *further;
  return QuantizationConfig{.method = QuantizationMethod::kGguf,
                            .bits = bits,
                            .group_size = formats.most.group,
                            .symmetric = true,
                            .lm_head = formats.lm_head.bits() == bits,
                            .file = file.path(),
                            .formats = formats};
}

}  // namespace soliton
