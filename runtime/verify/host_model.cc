// The ops of the model's graph one after another, each to be read beside its like in transformers' modeling files.
#include "runtime/verify/host_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>

#include "layout/activation.h"
#include "layout/attention_variant.h"
#include "layout/e4m3.h"
#include "layout/f16.h"
#include "layout/router_scores.h"
#include "runtime/engine/rotary.h"
#include "runtime/weights/matrix_source.h"

namespace soliton {
namespace {

float round_f16(float value) {
  constexpr float kLargest = 65504.0f;
  return static_cast<float>(static_cast<F16>(std::clamp(value, -kLargest, kLargest)));
}

/// Keys or values of a token as the cache holds them: sums of so many f16, or E4M3, of each head with a power of two.
void round_to_cache(std::span<float> heads, const KvShape& kv) {
  for (float& value : heads) {
    float sum = 0;
    for (int part = 0; part < kv.parts; ++part) sum += round_f16(value - sum);
    value = sum;
  }
  if (!kv.e4m3) return;
  for (; !heads.empty(); heads = heads.subspan(static_cast<size_t>(kv.head_dim))) {
    const std::span<float> head = heads.first(static_cast<size_t>(kv.head_dim));
    float largest = 0;
    for (const float value : head) largest = std::fmax(largest, std::abs(value));
    const int exponent = e4m3_exponent(largest);
    for (float& value : head) value = round_to_e4m3(value, exponent);
  }
}

void add(TokenRows& residual, const TokenRows& update) {
  for (size_t i = 0; i < residual.values.size(); ++i) residual.values[i] += update.values[i];
}

/// gate becomes activation(gate) * up, or what there is in its place; without a gate it is up, and becomes activation(up).
void gate_by(Activation activation, TokenRows& gate, const TokenRows& up) {
  for (size_t i = 0; i < gate.values.size(); ++i)
    gate.values[i] = gated(activation, gate.values[i], up.values.empty() ? 1.0f : up.values[i]);
}

/// Turns the pairs (i, i + rotated / 2) of every head's first dims by the angles of its token's position: those of the
/// layer's table, if it has any.
void rotate(TokenRows& heads, std::span<const float> tables, const ModelFacts& facts, int layer,
            int table = 0) {
  const int32_t rope = rope_of_layer(facts, layer);
  if (rope == kNoRope) return;
  if (rope == kLocalRope) table = 1;
  const int head_dim = facts.head_dim;
  const int half = rotated_pairs(facts);
  for (size_t token = 0; token < heads.num_tokens(); ++token) {
    const float* rotations = tables.data() + (static_cast<int64_t>(token) * rope_tables(facts) + table) *
                                                 head_dim;  // [head_dim / 2]{cos, sin}
    for (float* head = heads.of(token); head < heads.of(token) + heads.width; head += head_dim) {
      // What does not rotate may be scaled.
      for (int i = 2 * half; i < head_dim; ++i) head[i] *= rotations[2 * half];
      for (int i = 0; i < half; ++i) {
        const float a = head[i];
        const float b = head[i + half];
        head[i] = a * rotations[2 * i] - b * rotations[2 * i + 1];
        head[i + half] = b * rotations[2 * i] + a * rotations[2 * i + 1];
      }
    }
  }
}

double capped(double value, double cap) {
  return cap == 0 ? value : cap * std::tanh(value / cap);
}

/// A head's score of a key without a value: none.
constexpr double kNoSink = -std::numeric_limits<double>::infinity();

/// One head of one token over the keys and values of tokens `first` to `token`; `offset` is its KV head's.
void attend(const float* query, const TokenRows& keys, const TokenRows& values, size_t first, size_t token,
            int64_t offset, const ModelFacts& facts, int head, double sink, float* result) {
  const int head_dim = facts.head_dim;
  const double slope =
      facts.alibi == 0
          ? 0
          : std::exp2(-double{alibi_exponent(head, facts.num_heads, static_cast<float>(facts.alibi))});
  std::vector<double> weights(token + 1, kNoSink);
  for (size_t past = first; past <= token; ++past) {
    double score = 0;
    for (int i = 0; i < head_dim; ++i) score += double{query[i]} * keys.of(past)[offset + i];
    weights[past] = capped(score * attention_scale(facts), facts.attention_soft_cap) -
                    slope * static_cast<double>(token - past);
  }
  const double largest = std::max(sink, *std::max_element(weights.begin(), weights.end()));
  double sum = std::exp(sink - largest);
  for (double& weight : weights) sum += weight = std::exp(weight - largest);
  for (int i = 0; i < head_dim; ++i) {
    double value = 0;
    for (size_t past = first; past <= token; ++past) value += weights[past] * values.of(past)[offset + i];
    result[i] = static_cast<float>(value / sum);
  }
}

}  // namespace

TokenRows HostModel::embed(std::span<const int32_t> text) const {
  const int64_t hidden = config_.facts.hidden;
  const int64_t shape[] = {config_.facts.vocabulary, hidden};
  const Tensor& embedding = require_embedding(source_, config_.checkpoint.embedding + ".weight", shape);
  std::vector<uint16_t> row(static_cast<size_t>(hidden));
  TokenRows x(text.size(), hidden);
  for (size_t token = 0; token < text.size(); ++token) {
    read_bf16(embedding, text[token] * hidden, hidden, row.data());
    for (size_t i = 0; i < row.size(); ++i)
      x.of(token)[i] = static_cast<float>(config_.facts.embedding_scale) *
                       std::bit_cast<float>(static_cast<uint32_t>(row[i]) << 16);
  }
  return x;
}

TokenRows HostModel::norm(TokenRows x, const std::string& name) const {
  scale_to_unit(x);
  weigh(x, name);
  return x;
}

/// As an op reads it: by the op's norm, RMS norm or LayerNorm.
TokenRows HostModel::norm_stream(const GraphOp& op, int layer, const TokenRows& stream) const {
  TokenRows x = stream;
  if (subtracts_means(norm_placement(config_.facts))) {
    for (size_t token = 0; token < x.num_tokens(); ++token) {
      const double sum = std::accumulate(x.of(token), x.of(token) + x.width, 0.0);
      const auto mean = static_cast<float>(sum / static_cast<double>(x.width));
      for (int64_t i = 0; i < x.width; ++i) x.of(token)[i] -= mean;
    }
  }
  const std::string name = name_of(config_.checkpoint.norms[graph_.layers[layer]][op.norm], layer);
  x = norm(std::move(x), name);
  if (config_.facts.norm_bias == 0) return x;
  const int64_t shape[] = {x.width};
  std::vector<float> bias(static_cast<size_t>(x.width));
  read_floats(require_floats(source_, name + ".bias", shape), 0, x.width, bias.data());
  for (size_t i = 0; i < x.values.size(); ++i) x.values[i] += bias[i % bias.size()];
  return x;
}

/// Every row by the root of its mean square.
void HostModel::scale_to_unit(TokenRows& x) const {
  for (size_t token = 0; token < x.num_tokens(); ++token) {
    double squares = 0;
    for (int64_t i = 0; i < x.width; ++i) squares += double{x.of(token)[i]} * x.of(token)[i];
    const double mean = squares / static_cast<double>(x.width);
    const auto scale = static_cast<float>(1 / std::sqrt(mean + config_.facts.norm_epsilon));
    for (int64_t i = 0; i < x.width; ++i) x.of(token)[i] *= scale;
  }
}

/// By a norm's weights.
void HostModel::weigh(TokenRows& x, const std::string& name) const {
  const int64_t shape[] = {x.width};
  std::vector<uint16_t> weight(static_cast<size_t>(x.width));
  read_bf16(require_floats(source_, name + ".weight", shape), 0, x.width, weight.data());
  const float offset = config_.facts.norm_offset != 0 ? 1.0f : 0.0f;
  for (size_t token = 0; token < x.num_tokens(); ++token) {
    for (int64_t i = 0; i < x.width; ++i)
      x.of(token)[i] *= offset + std::bit_cast<float>(static_cast<uint32_t>(weight[i]) << 16);
  }
}

/// Of a layer's tensor, or of one that stands once.
std::string HostModel::name_of(const std::string& name, int layer) const {
  return layer < graph_.num_layers() ? config_.checkpoint.in_layer(layer, name) : name;
}

/// By each linear layer of a matrix, with its bias if there is one.
HostModel::Parts HostModel::multiply(const GraphOp& op, int layer, const TokenRows& x) const {
  const LinearStack& stack = stack_of(config_.checkpoint, op.matrix, layer, source_);
  Parts parts;
  for (const LinearRows& rows : stack.parts) {
    parts.push_back(multiply_rows(op.matrix, rows, stack.columns, layer, x));
  }
  return parts;
}

/// Every head by itself, with the same weights; or all together. Rotates them before the weights, or behind.
void HostModel::finish_heads(TokenRows& heads, const std::string& name, const Rotation& rotation) const {
  const ModelFacts& facts = config_.facts;
  const auto by_heads = [&](const auto& change) {
    if (facts.joint_norm != 0) return change(heads);
    TokenRows each(heads.values.size() / static_cast<size_t>(facts.head_dim), facts.head_dim);
    each.values = std::move(heads.values);
    change(each);
    heads.values = std::move(each.values);
  };
  const auto weigh_each = [&] { by_heads([&](TokenRows& x) { weigh(x, name); }); };
  if (facts.head_norm != 0) {
    by_heads([&](TokenRows& x) { scale_to_unit(x); });
    if (facts.head_norm_last == 0) weigh_each();
  }
  rotate(heads, rotation.tables, facts, rotation.layer, rotation.table);
  if (facts.head_norm_last != 0) weigh_each();
}

/// Of queries, keys and values.
HostModel::Parts HostModel::attention(Parts heads, int layer) const {
  const ModelFacts& facts = config_.facts;
  TokenRows& queries = heads[0];
  TokenRows& keys = heads[1];
  TokenRows& values = heads[2];
  const auto name_of_norm = [&](size_t i) {
    return config_.checkpoint.in_layer(layer, config_.checkpoint.head_norms[i]);
  };
  const std::vector<float> tables =
      make_rotary_table(facts, static_cast<int>(queries.num_tokens()), facts.max_context);
  finish_heads(queries, name_of_norm(0), {tables, layer, scales_queries(facts) ? 1 : 0});
  finish_heads(keys, name_of_norm(1), {tables, layer, 0});
  for (TokenRows* cached : {&keys, &values}) {
    for (size_t token = 0; token < cached->num_tokens(); ++token)
      round_to_cache({cached->of(token), static_cast<size_t>(cached->width)}, kv_shape(facts));
  }
  const std::vector<float> of_heads = sinks(layer);
  TokenRows result(queries.num_tokens(), queries.width);
  for (size_t token = 0; token < result.num_tokens(); ++token) {
    for (int head = 0; head < facts.num_heads; ++head) {
      const int kv_head = head / (facts.num_heads / facts.num_kv_heads);
      const int64_t offset = int64_t{head} * facts.head_dim;
      const int first = first_seen_in_layer(facts, layer, static_cast<int>(token));
      attend(queries.of(token) + offset, keys, values, static_cast<size_t>(first), token,
             int64_t{kv_head} * facts.head_dim, facts, head, of_heads.empty() ? kNoSink : of_heads[head],
             result.of(token) + offset);
    }
  }
  return {std::move(result)};
}

/// Of each head; empty where there are none.
std::vector<float> HostModel::sinks(int layer) const {
  if (config_.facts.sinks == 0) return {};
  const int64_t shape[] = {config_.facts.num_heads};
  std::vector<float> scores(static_cast<size_t>(config_.facts.num_heads));
  const Tensor& tensor =
      require_floats(source_, config_.checkpoint.in_layer(layer, config_.checkpoint.sinks), shape);
  read_floats(tensor, 0, config_.facts.num_heads, scores.data());
  return scores;
}

/// What each expert's output is multiplied with if it is chosen, but for what makes the sum of all of them 1.
std::vector<double> HostModel::scores(const float* logits) const {
  const ModelFacts& facts = config_.facts;
  std::vector<double> scores(logits, logits + facts.num_experts);
  if (facts.router_scores == static_cast<int32_t>(RouterScores::kSigmoid)) {
    for (double& score : scores) score = 1 / (1 + std::exp(-score));
    return scores;
  }
  const double highest = *std::ranges::max_element(scores);
  double sum = 0;
  for (double& score : scores) sum += score = std::exp(score - highest);
  for (double& score : scores) score /= sum;
  return scores;
}

/// Of the logits of experts, and of the gate of shared ones if there is one.
HostModel::Routes HostModel::route(Parts& logits, int layer) const {
  const ModelFacts& facts = config_.facts;
  std::vector<float> biases(static_cast<size_t>(facts.num_experts));
  if (facts.router_bias != 0) {
    const int64_t shape[] = {facts.num_experts};
    const std::string name = config_.checkpoint.in_layer(layer, config_.checkpoint.router_bias);
    read_floats(require_floats(source_, name, shape), 0, facts.num_experts, biases.data());
  }
  Routes routes;
  for (size_t token = 0; token < logits[0].num_tokens(); ++token) {
    for (int i = 0; i < facts.shared_experts; ++i) {
      routes.experts.push_back(facts.num_experts + i);
      routes.weights.push_back(facts.shared_gate != 0 ? 1 / (1 + std::exp(-*logits[1].of(token))) : 1.0f);
    }
    float* const of_token = logits[0].of(token);
    const bool biases_logits = facts.router_scores != static_cast<int32_t>(RouterScores::kSigmoid);
    for (size_t i = 0; biases_logits && i < biases.size(); ++i) of_token[i] += biases[i];
    const std::vector<double> own = scores(of_token);
    std::vector<int32_t> order(own.size());
    std::iota(order.begin(), order.end(), 0);
    std::ranges::stable_sort(order, std::greater(), [&](int32_t expert) {
      return own[expert] + (biases_logits ? 0 : biases[expert]);
    });
    order.resize(static_cast<size_t>(facts.experts_per_token));
    double sum = 0;
    for (const int32_t expert : order) sum += own[expert];
    for (const int32_t expert : order) {
      const double share = facts.renormalised != 0 ? own[expert] / sum : own[expert];
      routes.experts.push_back(expert);
      routes.weights.push_back(static_cast<float>(share * facts.router_scale));
    }
  }
  return routes;
}

/// By one linear layer of a layer, with its bias if there is one.
TokenRows HostModel::multiply_rows(int matrix, const LinearRows& rows, int64_t columns, int layer,
                                   const TokenRows& x) const {
  const std::string name = name_of(rows.name, layer);
  TokenRows y = HostMatrix(source_, config_.quantization_or_null(), name, rows, columns,
                           graph_.matrices[matrix].format.bits())
                    .multiply(x);
  if (!graph_.matrices[matrix].has_bias) return y;
  const Tensor& biases = require_floats(source_, name + rows.bias_suffix(), rows.bias_shape());
  for (int64_t i = 0; i < rows.rows; ++i) {
    float bias = 0;
    const int64_t row = stored_row(rows.first + i * rows.step, rows.paired_rows, rows.paired_dims);
    read_floats(biases, row, 1, &bias);
    for (size_t token = 0; token < y.num_tokens(); ++token) y.of(token)[i] += bias;
  }
  return y;
}

/// Calls body(expert, places in Routes) for all experts that some token goes through.
template <class Body>
void HostModel::for_each_expert(const Routes& routes, const Body& body) const {
  for (int32_t expert = 0; expert < stored_experts(config_.facts); ++expert) {
    std::vector<size_t> places;
    for (size_t i = 0; i < routes.experts.size(); ++i) {
      if (routes.experts[i] == expert) places.push_back(i);
    }
    if (!places.empty()) body(static_cast<size_t>(expert), places);
  }
}

/// What gate and up of its experts make of every token, one expert beside the other, times their weights.
TokenRows HostModel::gate_experts(const GraphOp& op, int layer, const TokenRows& x,
                                  const Routes& routes) const {
  const ModelFacts& facts = config_.facts;
  const LinearStack& stack = stack_of(config_.checkpoint, op.matrix, layer, source_);
  const auto used = static_cast<size_t>(used_experts(facts));
  TokenRows gated(x.num_tokens(), int64_t{used_experts(facts)} * facts.expert_ffn);
  for_each_expert(routes, [&](size_t expert, const std::vector<size_t>& places) {
    TokenRows own(places.size(), x.width);
    for (size_t i = 0; i < places.size(); ++i) std::copy_n(x.of(places[i] / used), x.width, own.of(i));
    TokenRows gate = multiply_rows(op.matrix, stack.parts[2 * expert], stack.columns, layer, own);
    gate_by(static_cast<Activation>(facts.activation), gate,
            multiply_rows(op.matrix, stack.parts[2 * expert + 1], stack.columns, layer, own));
    for (size_t i = 0; i < places.size(); ++i) {
      float* to = gated.of(places[i] / used) + static_cast<int64_t>(places[i] % used) * gate.width;
      // With a bias, weights are those of what down makes of it.
      const float weight = facts.expert_bias != 0 ? 1.0f : routes.weights[places[i]];
      for (int64_t j = 0; j < gate.width; ++j) to[j] = gate.of(i)[j] * weight;
    }
  });
  return gated;
}

/// What down of its experts makes of that, added up.
TokenRows HostModel::join_experts(const GraphOp& op, int layer, const TokenRows& gated,
                                  const Routes& routes) const {
  const ModelFacts& facts = config_.facts;
  const LinearStack& stack = stack_of(config_.checkpoint, op.matrix, layer, source_);
  const auto used = static_cast<size_t>(used_experts(facts));
  TokenRows sum(gated.num_tokens(), facts.hidden);
  for_each_expert(routes, [&](size_t expert, const std::vector<size_t>& places) {
    TokenRows own(places.size(), facts.expert_ffn);
    for (size_t i = 0; i < places.size(); ++i) {
      const float* from = gated.of(places[i] / used) + static_cast<int64_t>(places[i] % used) * own.width;
      std::copy_n(from, own.width, own.of(i));
    }
    const TokenRows down = multiply_rows(op.matrix, stack.parts[expert], stack.columns, layer, own);
    for (size_t i = 0; i < places.size(); ++i) {
      float* to = sum.of(places[i] / used);
      const float weight = facts.expert_bias != 0 ? routes.weights[places[i]] : 1.0f;
      for (int64_t j = 0; j < down.width; ++j) to[j] += weight * down.of(i)[j];
    }
  });
  return sum;
}

/// Adds what a block gives to the residual stream.
void HostModel::end_block(const GraphOp& op, int layer, Stream& stream, TokenRows& block) const {
  const NormPlacement norms = norm_placement(config_.facts);
  if (norms_after(norms))
    block = norm(block, name_of(config_.checkpoint.norms[graph_.layers[layer]][op.norm - 1], layer));
  if (is_parallel(norms) && op.appends) stream.before = stream.now;
  const auto scale = static_cast<float>(config_.facts.residual_scale);
  for (float& value : block.values) value *= scale;
  add(stream.now, block);
}

/// `stream`: the residual stream; `parts`: what the op before has put out; `routes`: where tokens go in the layer.
void HostModel::run(const GraphOp& op, int layer, Stream& stream, Parts& parts, Routes& routes) const {
  if (op.kind == PhaseKind::kAttention) {
    parts = attention(std::move(parts), layer);
    return;
  }
  const NormPlacement norms = norm_placement(config_.facts);
  const auto input = [&] {
    if (op.input == InputKind::kVector) return std::move(parts[0]);
    if (!norms_before(norms) && op.output != OutputKind::kLogits) return stream.now;
    const bool reads_again = is_parallel(norms) && op.output == OutputKind::kSwiglu;
    return norm_stream(op, layer, reads_again ? stream.before : stream.now);
  };
  switch (graph_.matrices[op.matrix].experts.axis) {
    case ExpertAxis::kNone:
      parts = multiply(op, layer, input());
      break;
    case ExpertAxis::kRows:
      parts = {gate_experts(op, layer, input(), routes)};
      return;
    case ExpertAxis::kColumns:
      parts = {join_experts(op, layer, input(), routes)};
      break;
  }
  if (op.output == OutputKind::kRouter) routes = route(parts, layer);
  if (op.output == OutputKind::kResidual) end_block(op, layer, stream, parts[0]);
  if (op.output == OutputKind::kSwiglu) {
    const TokenRows none(0, 0);
    gate_by(static_cast<Activation>(config_.facts.activation), parts[0], parts.size() > 1 ? parts[1] : none);
  }
}

std::vector<float> HostModel::logits(std::span<const int32_t> text, int first) const {
  Stream stream{embed(text), TokenRows(0, config_.facts.hidden)};
  Parts parts;
  Routes routes;
  const int num_layers = graph_.num_layers();
  for (int layer = 0; layer < num_layers; ++layer) {
    for (const GraphOp& op : graph_.kind_of(layer).ops) run(op, layer, stream, parts, routes);
  }
  const TokenRows& all = stream.now;
  Stream last{TokenRows(text.size() - static_cast<size_t>(first), all.width), stream.before};
  std::copy(all.of(static_cast<size_t>(first)), all.of(text.size()), last.now.values.begin());
  for (const GraphOp& op : graph_.kind_of(num_layers).ops) run(op, num_layers, last, parts, routes);
  for (float& logit : parts[0].values) {
    logit *= static_cast<float>(config_.facts.logit_scale);
    logit = static_cast<float>(capped(logit, config_.facts.logit_soft_cap));
  }
  return std::move(parts[0].values);
}

}  // namespace soliton
