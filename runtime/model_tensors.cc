#include "runtime/model_tensors.h"

#include <charconv>
#include <set>
#include <string_view>

#include "models/error.h"
#include "models/limits.h"

namespace soliton {
namespace {

/// A linear layer as the facts have it.
struct LinearShape {
  const char* name;
  int64_t rows;
  int64_t columns;
};

/// The linear layers of one layer that a packed matrix stacks.
std::vector<LinearShape> linears_of(MatrixId matrix, const ModelFacts& facts) {
  const int64_t heads = static_cast<int64_t>(facts.num_heads) * facts.head_dim;
  const int64_t kv = static_cast<int64_t>(facts.num_kv_heads) * facts.head_dim;
  switch (matrix) {
    case MatrixId::kQkv:
      return {{"self_attn.q_proj", heads, facts.hidden},
              {"self_attn.k_proj", kv, facts.hidden},
              {"self_attn.v_proj", kv, facts.hidden}};
    case MatrixId::kO:
      return {{"self_attn.o_proj", facts.hidden, heads}};
    case MatrixId::kGateUp:
      return {{"mlp.gate_proj", facts.ffn, facts.hidden}, {"mlp.up_proj", facts.ffn, facts.hidden}};
    case MatrixId::kDown:
      return {{"mlp.down_proj", facts.hidden, facts.ffn}};
    case MatrixId::kLmHead:
      break;
  }
  return {{facts.tied_lm_head ? "model.embed_tokens" : "lm_head", facts.vocabulary, facts.hidden}};
}

std::string layer_prefix(int layer) {
  return fmt::format("model.layers.{}.", layer);
}

class TensorFinder {
 public:
  TensorFinder(const TensorSource& source, const QuantizationConfig* quantization, const ModelFacts& facts)
      : source_(source), quantization_(quantization), facts_(facts) {}

  ModelTensors find() const {
    ModelTensors tensors;
    tensors.source = &source_;
    tensors.facts = facts_;
    tensors.embedding = &require("model.embed_tokens.weight", {facts_.vocabulary, facts_.hidden});
    refuse_further_layers();
    for (int layer = 0; layer < facts_.num_layers; ++layer) find_layer(layer, tensors);
    find_matrix(MatrixId::kLmHead, "", tensors);
    tensors.norms.push_back(&require("model.norm.weight", {facts_.hidden}));
    std::set<std::string> remarks;
    for (const auto& layers : tensors.matrices) {
      for (const auto& parts : layers) {
        for (const LinearTensors& part : parts) {
          if (part.integers && !part.integers->remark().empty()) remarks.insert(part.integers->remark());
        }
      }
    }
    tensors.remarks.assign(remarks.begin(), remarks.end());
    return tensors;
  }

 private:
  template <class... Args>
  Error mismatch(std::string_view name, fmt::format_string<Args...> format, Args&&... args) const {
    return file_error(ExitCode::kMismatch, source_.path(), "{}: {}", name,
                      fmt::format(format, std::forward<Args>(args)...));
  }

  const Tensor& require(const std::string& name, std::initializer_list<int64_t> shape) const {
    return require_floats(source_, name, std::span(shape));
  }

  /// A model without its last layers answers, but is not this one.
  void refuse_further_layers() const {
    constexpr std::string_view kLayers = "model.layers.";
    for (const std::string_view name : source_.names()) {
      if (!name.starts_with(kLayers)) continue;
      int layer = 0;
      const char* const begin = name.data() + kLayers.size();
      const auto [rest, failure] = std::from_chars(begin, name.data() + name.size(), layer);
      if (failure != std::errc{} || layer < facts_.num_layers) continue;
      throw mismatch(layer_prefix(layer) + "*",
                     "expected {} layers (num_hidden_layers), got tensors of number {}", facts_.num_layers,
                     layer + 1);
    }
  }

  void find_layer(int layer, ModelTensors& tensors) const {
    const std::string prefix = layer_prefix(layer);
    tensors.norms.push_back(&require(prefix + "input_layernorm.weight", {facts_.hidden}));
    tensors.norms.push_back(&require(prefix + "post_attention_layernorm.weight", {facts_.hidden}));
    for (const char* head : {"q_norm", "k_norm"}) {
      const std::string name = fmt::format("{}self_attn.{}.weight", prefix, head);
      if (facts_.head_norm != 0) {
        tensors.head_norms.push_back(&require(name, {facts_.head_dim}));
      } else if (source_.find(name) != nullptr) {
        throw mismatch(name, "expected no norm of heads, as the config says, got one");
      }
    }
    for (const MatrixId matrix : {MatrixId::kQkv, MatrixId::kO, MatrixId::kGateUp, MatrixId::kDown}) {
      find_matrix(matrix, prefix, tensors);
    }
  }

  void find_matrix(MatrixId matrix, const std::string& prefix, ModelTensors& tensors) const {
    std::vector<LinearTensors>& parts = tensors.matrices[static_cast<int>(matrix)].emplace_back();
    for (const LinearShape& shape : linears_of(matrix, facts_)) {
      const std::string name = prefix + shape.name;
      parts.push_back(find_linear(matrix, name, shape));
      const auto& first = parts.front().integers;
      if (first && parts.back().integers->order() != first->order()) {
        throw mismatch(name, "expected g_idx as of the layers that read the same, got another order");
      }
    }
  }

  LinearTensors find_linear(MatrixId matrix, const std::string& name, const LinearShape& shape) const {
    LinearTensors linear{.rows = shape.rows, .floats = nullptr, .integers = std::nullopt, .bias = nullptr};
    const int bits = matrix == MatrixId::kLmHead ? facts_.lm_head_bits : facts_.weight_bits;
    const bool is_quantized = bits == kIntegerBits;
    if (quantization_ != nullptr)
      linear.integers = find_quantized(source_, *quantization_, name, shape.rows, shape.columns);
    if (linear.integers.has_value() != is_quantized) {
      throw mismatch(name, "expected {} weights, as the config says, got {}",
                     is_quantized ? "4-bit" : "16-bit", is_quantized ? "others" : "4-bit ones");
    }
    if (is_quantized) {
      check_integers(*linear.integers, name);
    } else {
      linear.floats = &require(name + ".weight", {shape.rows, shape.columns});
    }
    linear.bias = find_bias(matrix, linear, name);
    return linear;
  }

  void check_integers(const QuantizedLinear& linear, const std::string& name) const {
    const auto refuse = [&](const std::string& expected, const std::string& got) {
      throw mismatch(name, "expected {}, as the config says, got {}", expected, got);
    };
    const bool has_group =
        linear.group_size() == facts_.weight_group || (linear.num_groups() == 1 && facts_.weight_group < 0);
    if (!has_group) {
      refuse(fmt::format("groups of {} inputs", facts_.weight_group), fmt::format("{}", linear.group_size()));
    }
    if (facts_.weight_zeros == 0 && !linear.symmetric()) refuse("zeros of 8", "others");
    if (facts_.weight_order == 0 && !linear.order().empty())
      refuse("inputs in natural order", "another order");
  }

  /// The layer's bias; refuses one that there should not be. Of integers one that is zero throughout is none.
  const Tensor* find_bias(MatrixId matrix, const LinearTensors& linear, const std::string& prefix) const {
    const std::string name = prefix + ".bias";
    if (facts_.qkv_bias != 0 && matrix == MatrixId::kQkv) return &require(name, {linear.rows});
    const bool has_bias =
        linear.integers ? linear.integers->bias() != nullptr : source_.find(name) != nullptr;
    if (has_bias) throw mismatch(prefix, "expected no bias, as the config says, got one");
    return nullptr;
  }

  const TensorSource& source_;
  const QuantizationConfig* const quantization_;
  const ModelFacts& facts_;
};

}  // namespace

ModelTensors find_tensors(const TensorSource& source, const QuantizationConfig* quantization,
                          const ModelFacts& facts) {
  return read_whole(source, [&] { return TensorFinder(source, quantization, facts).find(); });
}

const Tensor& require_floats(const TensorSource& source, const std::string& name,
                             std::span<const int64_t> shape) {
  const Tensor* tensor = source.find(name);
  const bool rounds = tensor != nullptr && (tensor->dtype == DType::kF16 || tensor->dtype == DType::kF32);
  return source.require(name, rounds ? tensor->dtype : DType::kBF16, shape);
}

}  // namespace soliton
