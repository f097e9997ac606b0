// The ops of the model's graph one after another, each to be read beside its like in transformers' modeling files.
#include "runtime/verify/host_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "layout/activation.h"
#include "layout/f16.h"
#include "runtime/engine/rotary.h"
#include "runtime/weights/matrix_source.h"

namespace soliton {
namespace {

float round_f16(float value) {
  constexpr float kLargest = 65504.0f;
  return static_cast<float>(static_cast<F16>(std::clamp(value, -kLargest, kLargest)));
}

/// A key or value as the cache holds it: a sum of so many f16.
float as_cached(float value, int parts) {
  float sum = 0;
  for (int part = 0; part < parts; ++part) sum += round_f16(value - sum);
  return sum;
}

void add(TokenRows& residual, const TokenRows& update) {
  for (size_t i = 0; i < residual.values.size(); ++i) residual.values[i] += update.values[i];
}

/// gate becomes activation(gate) * up.
void gate_by(Activation activation, TokenRows& gate, const TokenRows& up) {
  for (size_t i = 0; i < gate.values.size(); ++i)
    gate.values[i] = activate(activation, gate.values[i]) * up.values[i];
}

/// Turns the pairs (i, i + head_dim / 2) of every head by the angles of its token's position.
void rotate(TokenRows& heads, std::span<const float> table, int head_dim) {
  const int half = head_dim / 2;
  for (size_t token = 0; token < heads.num_tokens(); ++token) {
    const float* rotations = table.data() + token * static_cast<size_t>(head_dim);  // [half]{cos, sin}
    for (float* head = heads.of(token); head < heads.of(token) + heads.width; head += head_dim) {
      for (int i = 0; i < half; ++i) {
        const float a = head[i];
        const float b = head[i + half];
        head[i] = a * rotations[2 * i] - b * rotations[2 * i + 1];
        head[i + half] = b * rotations[2 * i] + a * rotations[2 * i + 1];
      }
    }
  }
}

/// One head of one token over the keys and values of tokens 0 to `token`; `offset` is its KV head's.
void attend(const float* query, const TokenRows& keys, const TokenRows& values, size_t token, int64_t offset,
            int head_dim, float* result) {
  std::vector<double> weights(token + 1);
  for (size_t past = 0; past <= token; ++past) {
    double score = 0;
    for (int i = 0; i < head_dim; ++i) score += double{query[i]} * keys.of(past)[offset + i];
    weights[past] = score / std::sqrt(head_dim);
  }
  const double largest = *std::max_element(weights.begin(), weights.end());
  double sum = 0;
  for (double& weight : weights) sum += weight = std::exp(weight - largest);
  for (int i = 0; i < head_dim; ++i) {
    double value = 0;
    for (size_t past = 0; past <= token; ++past) value += weights[past] * values.of(past)[offset + i];
    result[i] = static_cast<float>(value / sum);
  }
}

}  // namespace

TokenRows HostModel::embed(std::span<const int32_t> text) const {
  // Never quantised.
  const int64_t vocabulary = config_.facts.vocabulary;
  const LinearRows rows{.rows = vocabulary, .tensor_rows = vocabulary};
  const HostMatrix embedding(source_, nullptr, config_.checkpoint.embedding, rows, config_.facts.hidden);
  TokenRows x(text.size(), config_.facts.hidden);
  for (size_t token = 0; token < text.size(); ++token) embedding.read(text[token], 1, x.of(token));
  return x;
}

TokenRows HostModel::norm(const TokenRows& x, const std::string& name) const {
  const int64_t shape[] = {x.width};
  std::vector<uint16_t> weight(static_cast<size_t>(x.width));
  read_bf16(require_floats(source_, name + ".weight", shape), 0, x.width, weight.data());
  TokenRows y(x.num_tokens(), x.width);
  for (size_t token = 0; token < x.num_tokens(); ++token) {
    double squares = 0;
    for (int64_t i = 0; i < x.width; ++i) squares += double{x.of(token)[i]} * x.of(token)[i];
    const double mean = squares / static_cast<double>(x.width);
    const auto scale = static_cast<float>(1 / std::sqrt(mean + config_.facts.norm_epsilon));
    for (int64_t i = 0; i < x.width; ++i) {
      y.of(token)[i] = x.of(token)[i] * scale * std::bit_cast<float>(static_cast<uint32_t>(weight[i]) << 16);
    }
  }
  return y;
}

/// Of a layer's tensor, or of one that stands once.
std::string HostModel::name_of(const std::string& name, int layer) const {
  return layer < graph_.num_layers() ? in_layer(layer, name) : name;
}

/// By each linear layer of a matrix, with its bias if there is one.
HostModel::Parts HostModel::multiply(const GraphOp& op, int layer, const TokenRows& x) const {
  const LinearStack& stack = config_.checkpoint.stacks[op.matrix];
  Parts parts;
  for (const LinearRows& rows : stack.parts) {
    const std::string name = name_of(rows.name, layer);
    const HostMatrix matrix(source_, config_.quantization_or_null(), name, rows, stack.columns);
    TokenRows& y = parts.emplace_back(matrix.multiply(x));
    if (!graph_.matrices[op.matrix].has_bias) continue;
    const int64_t shape[] = {rows.tensor_rows};
    std::vector<float> bias(static_cast<size_t>(rows.rows));
    read_floats(require_floats(source_, name + ".bias", shape), rows.first, rows.rows, bias.data());
    for (size_t token = 0; token < y.num_tokens(); ++token) {
      for (int64_t i = 0; i < rows.rows; ++i) y.of(token)[i] += bias[static_cast<size_t>(i)];
    }
  }
  return parts;
}

/// Every head by itself, with the same weights.
void HostModel::norm_heads(TokenRows& heads, const std::string& name) const {
  const int64_t head_dim = config_.facts.head_dim;
  TokenRows each(heads.values.size() / static_cast<size_t>(head_dim), head_dim);
  each.values = std::move(heads.values);
  heads.values = norm(each, name).values;
}

/// Of queries, keys and values.
HostModel::Parts HostModel::attention(Parts heads, int layer) const {
  const ModelFacts& facts = config_.facts;
  TokenRows& queries = heads[0];
  TokenRows& keys = heads[1];
  TokenRows& values = heads[2];
  if (facts.head_norm != 0) {
    norm_heads(queries, in_layer(layer, config_.checkpoint.head_norms[0]));
    norm_heads(keys, in_layer(layer, config_.checkpoint.head_norms[1]));
  }
  const std::vector<float> table = make_rotary_table(facts, static_cast<int>(queries.num_tokens()));
  rotate(queries, table, facts.head_dim);
  rotate(keys, table, facts.head_dim);
  for (TokenRows* cached : {&keys, &values}) {
    for (float& value : cached->values) value = as_cached(value, kv_shape(facts).parts);
  }
  TokenRows result(queries.num_tokens(), queries.width);
  for (size_t token = 0; token < result.num_tokens(); ++token) {
    for (int head = 0; head < facts.num_heads; ++head) {
      const int kv_head = head / (facts.num_heads / facts.num_kv_heads);
      const int64_t offset = int64_t{head} * facts.head_dim;
      attend(queries.of(token) + offset, keys, values, token, int64_t{kv_head} * facts.head_dim,
             facts.head_dim, result.of(token) + offset);
    }
  }
  return {std::move(result)};
}

/// `stream`: the residual stream; `parts`: what the op before has put out.
void HostModel::run(const GraphOp& op, int layer, TokenRows& stream, Parts& parts) const {
  if (op.kind == PhaseKind::kAttention) {
    parts = attention(std::move(parts), layer);
    return;
  }
  if (op.input == InputKind::kVector) {
    parts = multiply(op, layer, parts[0]);
  } else {
    const std::string& name = config_.checkpoint.norms[graph_.layers[layer]][op.norm];
    parts = multiply(op, layer, norm(stream, name_of(name, layer)));
  }
  if (op.output == OutputKind::kResidual) add(stream, parts[0]);
  if (op.output == OutputKind::kSwiglu)
    gate_by(static_cast<Activation>(config_.facts.activation), parts[0], parts[1]);
}

std::vector<float> HostModel::logits(std::span<const int32_t> text, int first) const {
  TokenRows stream = embed(text);
  Parts parts;
  const int num_layers = graph_.num_layers();
  for (int layer = 0; layer < num_layers; ++layer) {
    for (const GraphOp& op : graph_.kind_of(layer).ops) run(op, layer, stream, parts);
  }
  TokenRows last(text.size() - static_cast<size_t>(first), stream.width);
  std::copy(stream.of(static_cast<size_t>(first)), stream.of(text.size()), last.values.begin());
  for (const GraphOp& op : graph_.kind_of(num_layers).ops) run(op, num_layers, last, parts);
  return std::move(parts[0].values);
}

}  // namespace soliton
