#include "runtime/weights/model_tensors.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <set>
#include <string_view>

#include "layout/weight_format.h"
#include "models/error.h"
#include "models/gguf.h"
#include "models/gguf_formats.h"
#include "models/limits.h"
#include "runtime/weights/gguf/exact.h"
#include "runtime/weights/tensor_values.h"

namespace soliton {
namespace {

constexpr const char* kWeight = ".weight";

class TensorFinder {
 public:
  TensorFinder(const TensorSource& source, const QuantizationConfig* quantization, const ModelFacts& facts,
               const Checkpoint& checkpoint)
      : source_(source),
        quantization_(quantization),
        facts_(facts),
        checkpoint_(checkpoint),
        graph_(build_graph(facts)) {}

  ModelTensors find() const {
    ModelTensors tensors;
    tensors.source = &source_;
    tensors.facts = facts_;
    const int64_t embedding_shape[] = {facts_.vocabulary, facts_.hidden};
    tensors.embedding = &require_embedding(source_, checkpoint_.embedding + kWeight, embedding_shape);
    std::set<std::string> remarks;
    if (block_type(tensors.embedding->dtype)) {
      remarks.insert(fmt::format("{}: {}: rounded from {} to bf16", source_.path(), tensors.embedding->name,
                                 dtype_name(tensors.embedding->dtype)));
    }
    for (const int layer : further_layers())
      remarks.insert(fmt::format("{}: not read: a layer that predicts tokens beyond the next",
                                 checkpoint_.in_layer(layer, "*")));
    tensors.matrices.resize(graph_.matrices.size());
    for (int layer = 0; layer <= facts_.num_layers; ++layer) {
      find_norms(layer, tensors);
      find_router_bias(layer, tensors);
      if (facts_.sinks != 0 && layer < facts_.num_layers)
        tensors.sinks.push_back(
            &require_finite(checkpoint_.in_layer(layer, checkpoint_.sinks), facts_.num_heads));
      find_matrices(layer, tensors);
    }
    for (const auto& layers : tensors.matrices) {
      for (const auto& [layer, parts] : layers) {
        for (const LinearTensors& part : parts) {
          if (part.integers && !part.integers->remark().empty()) remarks.insert(part.integers->remark());
          if (part.integers && part.integers->blocks() != nullptr)
            add_remark(*part.integers->blocks(), remarks);
          if (part.floats.is_nf4() && !rounds())
            remarks.insert(
                fmt::format("{}: layers in nf4 are unpacked to bf16, which takes four times the memory (or "
                            "--weights q8, q4)",
                            source_.path()));
        }
      }
    }
    if (rounds()) {
      remarks.insert(fmt::format("{}: layers rounded to {} bits, to nearest, in groups of {} (--weights)",
                                 source_.path(), quantization_->bits, quantization_->group_size));
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
    return require_floats(source_, name + kWeight, std::span(shape));
  }

  /// Those behind the last that the checkpoint may have. A model without its last layers answers, but is not this one.
  std::set<int> further_layers() const {
    std::set<int> further;
    const std::string_view prefix = checkpoint_.layers_prefix;
    for (const std::string_view name : source_.names()) {
      if (!name.starts_with(prefix)) continue;
      int layer = 0;
      const char* const begin = name.data() + prefix.size();
      const auto [rest, failure] = std::from_chars(begin, name.data() + name.size(), layer);
      if (failure != std::errc{} || layer < facts_.num_layers) continue;
      if (layer - facts_.num_layers < checkpoint_.further_layers) {
        further.insert(layer);
        continue;
      }
      throw mismatch(checkpoint_.in_layer(layer, "*"),
                     "expected {} layers (num_hidden_layers), got tensors of number {}", facts_.num_layers,
                     layer + 1);
    }
    return further;
  }

  /// Names of a layer's tensors, or of those that stand once.
  std::string name_of(const std::string& name, int layer) const {
    return layer < facts_.num_layers ? checkpoint_.in_layer(layer, name) : name;
  }

  void find_norms(int layer, ModelTensors& tensors) const {
    for (const std::string& norm : checkpoint_.norms[graph_.layers[layer]]) {
      const std::string name = name_of(norm, layer);
      tensors.norms.push_back(&require(name, {facts_.hidden}));
      if (facts_.norm_bias != 0)
        tensors.norm_biases.push_back(&require_finite(name + ".bias", facts_.hidden));
    }
    if (layer == facts_.num_layers) return;
    for (const bool is_key : {false, true}) {
      const std::string name = checkpoint_.in_layer(layer, checkpoint_.head_norms[is_key ? 1 : 0]);
      const int64_t heads = facts_.joint_norm == 0 ? 1 : is_key ? facts_.num_kv_heads : facts_.num_heads;
      if (facts_.head_norm != 0) {
        tensors.head_norms.push_back(&require(name, {heads * facts_.head_dim}));
      } else if (source_.find(name + kWeight) != nullptr) {
        throw mismatch(name + kWeight, "expected no norm of heads, as the config says, got one");
      }
    }
  }

  void find_router_bias(int layer, ModelTensors& tensors) const {
    if (facts_.router_bias == 0 || layer == facts_.num_layers || ffn_of_layer(facts_, layer) != kMixture)
      return;
    tensors.router_biases[layer] =
        &require_finite(checkpoint_.in_layer(layer, checkpoint_.router_bias), facts_.num_experts);
  }

  /// A vector of what decides without being multiplied: NaN in it need not show in any logit.
  const Tensor& require_finite(const std::string& name, int64_t count) const {
    const int64_t shape[] = {count};
    const Tensor& tensor = require_floats(source_, name, shape);
    std::vector<float> values(static_cast<size_t>(count));
    read_floats(tensor, 0, count, values.data());
    if (!std::ranges::all_of(values, [](float value) { return std::isfinite(value); }))
      throw mismatch(name, "expected finite numbers, got NaN or infinity");
    return tensor;
  }

  void find_matrices(int layer, ModelTensors& tensors) const {
    for (size_t i = 0; i < graph_.matrices.size(); ++i) {
      if (graph_.matrices[i].layer_kind == graph_.layers[layer])
        tensors.matrices[i][layer] =
            find_matrix(graph_.matrices[i], stack_of(checkpoint_, i, layer, source_), layer);
    }
  }

  std::vector<LinearTensors> find_matrix(const GraphMatrix& matrix, const LinearStack& stack,
                                         int layer) const {
    std::vector<LinearTensors> parts;
    const LinearRows* before = nullptr;
    for (const LinearRows& rows : stack.parts) {
      const std::string name = name_of(rows.name, layer);
      if (before != nullptr && before->name == rows.name) {
        parts.push_back(parts.back());
      } else {
        parts.push_back(find_linear(matrix, rows, name));
      }
      parts.back().first = rows.first;
      parts.back().rows = rows.rows;
      parts.back().step = rows.step;
      parts.back().first_column = rows.first_column;
      parts.back().paired_rows = rows.paired_rows;
      parts.back().paired_dims = rows.paired_dims;
      before = &rows;
      const auto& first = parts.front().integers;
      if (first && parts.back().integers->order() != first->order()) {
        throw mismatch(name, "expected g_idx as of the layers that read the same, got another order");
      }
    }
    return parts;
  }

  /// Codes of 4 bits that take 8 on the card.
  void add_remark(const Tensor& blocks, std::set<std::string>& remarks) const {
    const GgufType type = *block_type(blocks.dtype);
    if (type == GgufType::kIQ4_NL || type == GgufType::kIQ4_XS)
      remarks.insert(fmt::format("{}: {} is kept in 8 bits, exactly", source_.path(), gguf_type(type).name));
  }

  bool rounds() const {
    return quantization_ != nullptr && quantization_->method == QuantizationMethod::kRounded;
  }

  /// All rows of one.
  LinearTensors find_linear(const GraphMatrix& matrix, const LinearRows& rows,
                            const std::string& name) const {
    LinearTensors linear{.rows = rows.tensor_rows,
                         .columns = rows.tensor_columns,
                         .floats = {},
                         .integers = std::nullopt,
                         .bias = nullptr};
    const bool has_scales = matrix.format.has_scales();
    if (quantization_ != nullptr && !rounds())
      linear.integers = find_quantized(source_, *quantization_, name, linear.rows, linear.columns);
    if (linear.integers.has_value() != has_scales && !rounds()) {
      if (quantization_ != nullptr && quantization_->method == QuantizationMethod::kGguf)
        refuse_mixed(name, rows, has_scales);
      throw mismatch(name, "expected {}-bit weights, as the config says, got others", matrix.format.bits());
    }
    const bool has_integers = linear.integers.has_value();
    if (has_integers && linear.integers->blocks() != nullptr) {
      check_blocks(*linear.integers->blocks(), matrix.format);
    } else if (has_integers) {
      check_integers(*linear.integers, matrix.format, name);
    } else {
      linear.floats = FloatRows(source_, name, rows);
      const E2m1Kind expected = matrix.format.has_factors()               ? E2m1Kind::kNvfp4
                                : matrix.format.type == WeightType::kE2m1 ? E2m1Kind::kMxfp4
                                                                          : E2m1Kind::kNone;
      constexpr const char* kNames[] = {"bf16", "MXFP4", "NVFP4"};
      if (linear.floats.e2m1() != expected) {
        throw mismatch(name, "expected weights in {}, as the config says, got {}",
                       kNames[static_cast<int>(expected)], kNames[static_cast<int>(linear.floats.e2m1())]);
      }
    }
    linear.bias = find_bias(matrix, linear, rows, name);
    return linear;
  }

  /// Kernels have what GgufFile's types were joined to.
  void check_blocks(const Tensor& tensor, const WeightFormat& format) const {
    const GgufType type = *block_type(tensor.dtype);
    if (holds(format, type)) return;
    throw mismatch(tensor.name,
                   "expected integers of {} bits in groups of {}, as the kernel has them, got {}",
                   format.bits(), format.group, gguf_type(type).name);
  }

  /// Of a GGUF file, some of whose layers are quantised.
  [[noreturn]] void refuse_mixed(const std::string& name, const LinearRows& rows, bool wants_integers) const {
    const Tensor* const found = source_.find(name + rows.suffix());
    if (found == nullptr) throw mismatch(name + rows.suffix(), "there is no such tensor");
    throw mismatch(name + rows.suffix(), "expected {}, got {}: no kernel computes with both",
                   wants_integers ? "blocks of integers, as other layers have" : "BF16, F16 or F32",
                   describe_tensor(found->dtype, found->shape));
  }

  void check_integers(const QuantizedLinear& linear, const WeightFormat& format,
                      const std::string& name) const {
    const auto refuse = [&](const std::string& expected, const std::string& got) {
      throw mismatch(name, "expected {}, as the config says, got {}", expected, got);
    };
    if (linear.is_fp8()) return;  // of which kernels take any
    const int group = format.bits() == facts_.weight_bits ? facts_.weight_group : format.group;
    const bool has_group = linear.group_size() == group || (linear.num_groups() == 1 && group < 0);
    if (!has_group) refuse(fmt::format("groups of {} inputs", group), fmt::format("{}", linear.group_size()));
    if (linear.bits() != format.bits())
      refuse(fmt::format("{} bits", format.bits()), fmt::format("{}", linear.bits()));
    if (!format.has_zeros && !linear.symmetric()) refuse("zeros of 8", "others");
    if (facts_.weight_order == 0 && !linear.order().empty())
      refuse("inputs in natural order", "another order");
  }

  /// The layer's bias; refuses one that there should not be. Of integers one that is zero throughout is none.
  const Tensor* find_bias(const GraphMatrix& matrix, const LinearTensors& linear, const LinearRows& rows,
                          const std::string& prefix) const {
    const std::string name = prefix + rows.bias_suffix();
    if (matrix.has_bias) return &require_floats(source_, name, rows.bias_shape());
    if (facts_.router_bias != 0 && name.ends_with("." + checkpoint_.router_bias)) return nullptr;
    const bool has_bias =
        linear.integers ? linear.integers->bias() != nullptr : source_.find(name) != nullptr;
    if (has_bias) throw mismatch(prefix, "expected no bias, as the config says, got one");
    return nullptr;
  }

  const TensorSource& source_;
  const QuantizationConfig* const quantization_;
  const ModelFacts& facts_;
  const Checkpoint& checkpoint_;
  const Graph graph_;
};

}  // namespace

ModelTensors find_tensors(const TensorSource& source, const QuantizationConfig* quantization,
                          const ModelFacts& facts, const Checkpoint& checkpoint) {
  return read_whole(source, [&] {
    ModelTensors tensors = TensorFinder(source, quantization, facts, checkpoint).find();
    if (is_gguf(source.path())) check_exact(tensors);
    return tensors;
  });
}

const LinearStack& stack_of(const Checkpoint& checkpoint, size_t matrix, int layer,
                            const TensorSource& source) {
  const LinearStack& other = checkpoint.other_stacks[matrix];
  if (other.parts.empty()) return checkpoint.stacks[matrix];
  const LinearRows& first = other.parts[0];
  const bool is_there = source.find(checkpoint.in_layer(layer, first.name + first.suffix())) != nullptr;
  return is_there ? other : checkpoint.stacks[matrix];
}

const Tensor& require_floats(const TensorSource& source, const std::string& name,
                             std::span<const int64_t> shape) {
  const Tensor* tensor = source.find(name);
  if (tensor != nullptr && block_type(tensor->dtype)) {
    throw file_error(ExitCode::kMismatch, *tensor->file,
                     "{}: expected BF16, F16 or F32, got {}: no kernel computes with it", name,
                     describe_tensor(tensor->dtype, tensor->shape));
  }
  const bool rounds = tensor != nullptr && (tensor->dtype == DType::kF16 || tensor->dtype == DType::kF32);
  return source.require(name, rounds ? tensor->dtype : DType::kBF16, shape);
}

const Tensor& require_embedding(const TensorSource& source, const std::string& name,
                                std::span<const int64_t> shape) {
  const Tensor* tensor = source.find(name);
  if (tensor == nullptr || !block_type(tensor->dtype)) return require_floats(source, name, shape);
  return source.require(name, tensor->dtype, shape);
}

}  // namespace soliton
