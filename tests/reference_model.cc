// Written to be read beside transformers' modeling_llama.py; speed comes last.
#include "tests/reference_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <numbers>
#include <numeric>
#include <stdexcept>

#include "layout/f16.h"
#include "layout/wide_vectors.h"

namespace soliton {
namespace {

[[gnu::always_inline]] inline float widen(uint16_t bf16_bits) {
  return std::bit_cast<float>(static_cast<uint32_t>(bf16_bits) << 16);
}
[[gnu::always_inline]] inline float widen(float value) {
  return value;
}

/// Exact products, summed in double by eight interleaved accumulators: a fixed order that the CPU can
/// overlap, with the same bits whatever the width of its vectors.
template <class Weight>
[[gnu::always_inline]] inline double sum_products(const Weight* weights, const double* x, size_t size) {
  constexpr size_t kAccumulators = 8;
  double sums[kAccumulators] = {};
  size_t i = 0;
  for (; i + kAccumulators <= size; i += kAccumulators) {
    for (size_t j = 0; j < kAccumulators; ++j) sums[j] += widen(weights[i + j]) * x[i + j];
  }
  for (; i < size; ++i) sums[0] += widen(weights[i]) * x[i];
  double sum = 0.0;
  for (const double part : sums) sum += part;
  return sum;
}

SOLITON_WIDE_VECTORS double dot(const uint16_t* weights, const double* x, size_t size) {
  return sum_products(weights, x, size);
}
SOLITON_WIDE_VECTORS double dot(const float* weights, const double* x, size_t size) {
  return sum_products(weights, x, size);
}

double capped(double value, double cap) {
  return cap == 0 ? value : cap * std::tanh(value / cap);
}

}  // namespace

uint16_t to_bf16_bits(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  if (std::isnan(value)) return static_cast<uint16_t>(bits >> 16 | 0x40);  // quiet, whatever the payload
  return static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

float round_f16(float value) {
  constexpr float kLargest = 65504.0f;
  return static_cast<float>(static_cast<F16>(std::clamp(value, -kLargest, kLargest)));
}

void round_to_bytes(std::span<double> heads, int head_dim) {
  constexpr int kLeast = -15;
  constexpr int kMost = 7;
  for (size_t begin = 0; begin < heads.size(); begin += static_cast<size_t>(head_dim)) {
    const std::span<double> head = heads.subspan(begin, static_cast<size_t>(head_dim));
    double largest = 0;
    for (const double value : head) largest = std::max(largest, std::abs(value));
    int power = kLeast;
    while (power < kMost && largest > std::ldexp(448.0, power)) ++power;
    for (double& value : head) {
      const double scaled = std::ldexp(std::abs(value), -power);
      const double unit = std::ldexp(1.0, std::max(scaled == 0 ? -6 : std::ilogb(scaled), -6) - 3);
      const double rounded = std::min(std::nearbyint(scaled / unit) * unit, 448.0);
      value = std::copysign(std::ldexp(rounded, power), value);
    }
  }
}

float from_bf16_bits(uint16_t bits) {
  return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
}

int argmax(std::span<const float> logits) {
  return static_cast<int>(std::max_element(logits.begin(), logits.end()) - logits.begin());
}

std::vector<double> rms_norm(std::span<const double> x, std::span<const uint16_t> weight, double epsilon,
                             double offset) {
  double squares = 0.0;
  for (const double value : x) squares += value * value;
  const double scale = 1.0 / std::sqrt(squares / static_cast<double>(x.size()) + epsilon);
  std::vector<double> result(x.size());
  for (size_t i = 0; i < x.size(); ++i) result[i] = x[i] * scale * (offset + from_bf16_bits(weight[i]));
  return result;
}

namespace {

/// Extrapolation for the first pairs, interpolation for the last, a ramp between the two. `power`: theta to the
/// pair's exponent.
float yarn_frequency(const ModelFacts& facts, size_t pair, float power) {
  const double pi = std::numbers::pi;
  const double dim = rotated_dims(facts);
  const auto correction_dim = [&](double rotations) {
    return dim * std::log(facts.rope_original_context / (rotations * 2 * pi)) /
           (2 * std::log(facts.rope_theta));
  };
  double low = correction_dim(facts.rope_beta_fast);
  double high = correction_dim(facts.rope_beta_slow);
  if (facts.rope_truncate != 0) {
    low = std::floor(low);
    high = std::ceil(high);
  }
  low = std::max(low, 0.0);
  high = std::min(high, dim - 1);
  if (low == high) high += 0.001;
  const float ramp = (static_cast<float>(pair) - static_cast<float>(low)) / static_cast<float>(high - low);
  const float extrapolated = 1.0f - std::clamp(ramp, 0.0f, 1.0f);
  return 1.0f / (static_cast<float>(facts.rope_factor) * power) * (1.0f - extrapolated) +
         1.0f / power * extrapolated;
}

}  // namespace

std::vector<float> rotary_frequencies(const ModelFacts& facts) {
  const auto theta = static_cast<float>(facts.rope_theta);
  const auto factor = static_cast<float>(facts.rope_factor);
  const auto low = static_cast<float>(facts.rope_low_freq_factor);
  const auto original = static_cast<float>(facts.rope_original_context);
  const auto band = static_cast<float>(facts.rope_high_freq_factor - facts.rope_low_freq_factor);
  const auto longest_kept = static_cast<float>(facts.rope_original_context / facts.rope_high_freq_factor);
  const auto longest_blended = static_cast<float>(facts.rope_original_context / facts.rope_low_freq_factor);
  constexpr auto kTurn = static_cast<float>(2.0 * std::numbers::pi);

  const int dims = rotated_dims(facts);
  std::vector<float> frequencies(static_cast<size_t>(dims / 2));
  for (size_t i = 0; i < frequencies.size(); ++i) {
    const float exponent = static_cast<float>(2 * i) / static_cast<float>(dims);
    const auto power = static_cast<float>(std::pow(double{theta}, double{exponent}));
    float frequency = 1.0f / power;
    if (facts.rope_kind == RopeKind::kLlama3) {
      // Python's `scalar / tensor` is scalar * reciprocal: two roundings.
      const float wavelength = 1.0f / frequency * kTurn;
      if (wavelength > longest_blended) {
        frequency = frequency / factor;
      } else if (wavelength >= longest_kept) {
        const float smooth = (1.0f / wavelength * original - low) / band;
        frequency = (1.0f - smooth) * frequency / factor + smooth * frequency;
      }
    }
    if (facts.rope_kind == RopeKind::kLinear) frequency = frequency / factor;
    if (facts.rope_kind == RopeKind::kYarn) frequency = yarn_frequency(facts, i, power);
    if (facts.rope_kind == RopeKind::kLongrope) {
      const bool is_long = facts.max_context > facts.rope_original_context;
      frequency = 1.0f / ((is_long ? facts.rope_long_factors[i] : facts.rope_short_factors[i]) * power);
    }
    frequencies[i] = frequency;
  }
  return frequencies;
}

void rotate(std::span<double> head, int position, std::span<const float> frequencies, float scale) {
  const size_t half = frequencies.size();
  for (size_t i = 0; i < half; ++i) {
    const float angle = static_cast<float>(position) * frequencies[i];
    const float cosine = static_cast<float>(std::cos(double{angle})) * scale;
    const float sine = static_cast<float>(std::sin(double{angle})) * scale;
    const double first = head[i];
    const double second = head[i + half];
    head[i] = first * cosine - second * sine;
    head[i + half] = second * cosine + first * sine;
  }
}

std::vector<double> alibi_slopes(const ModelFacts& facts) {
  std::vector<double> slopes(static_cast<size_t>(facts.num_heads));
  if (facts.alibi == 0) return slopes;
  // As transformers' MptModel has them: of the power of two above, every second one, then the others.
  const size_t power = std::bit_ceil(slopes.size());
  std::vector<double> all;
  for (size_t i = 1; i <= power; ++i)
    all.push_back(std::exp2(-facts.alibi * static_cast<double>(i) / static_cast<double>(power)));
  if (power == slopes.size()) return all;
  std::vector<double> chosen;
  for (const size_t first : {size_t{1}, size_t{0}}) {
    for (size_t i = first; i < power; i += 2) chosen.push_back(all[i]);
  }
  chosen.resize(slopes.size());
  return chosen;
}

std::vector<double> softmax(std::span<const double> scores) {
  const double maximum = *std::max_element(scores.begin(), scores.end());
  std::vector<double> result;
  double sum = 0.0;
  for (const double score : scores) sum += result.emplace_back(std::exp(score - maximum));
  for (double& value : result) value /= sum;
  return result;
}

ReferenceModel::ReferenceModel(const ModelFacts& facts, std::shared_ptr<const ReferenceWeights> weights,
                               ReferenceOptions options)
    : facts_(facts),
      options_(options),
      weights_(std::move(weights)),
      frequencies_(rotary_frequencies(facts)),
      caches_(static_cast<size_t>(facts.num_layers)),
      routes_(caches_.size()) {
  if (facts.rope_local_theta != 0) {
    ModelFacts local = facts;
    local.rope_kind = RopeKind::kDefault;
    local.rope_theta = facts.rope_local_theta;
    local_frequencies_ = rotary_frequencies(local);
  }
  for_each_tensor(*weights_, facts_, [&](const std::string& name, const auto& shape, const Bf16Bits& bits) {
    if (bits.size() != static_cast<size_t>(num_elements(shape))) {
      throw std::invalid_argument(name + ": size differs from the facts");
    }
    const auto floats = weights_->floats.find(name);
    if (floats != weights_->floats.end()) floats_.emplace(&bits, &floats->second);
  });
}

ReferenceModel::ReferenceModel(const ModelFacts& facts, ReferenceWeights weights, ReferenceOptions options)
    : ReferenceModel(facts, std::make_shared<const ReferenceWeights>(std::move(weights)), options) {}

std::vector<float> ReferenceModel::step(int token, int position) {
  if (token < 0 || token >= facts_.vocabulary) throw std::invalid_argument(fmt::format("token {}", token));
  if (position < 0 || position > length_ || position >= facts_.max_context) {
    throw std::invalid_argument(fmt::format("position {} with {} cached", position, length_));
  }
  Vector residual = embed(token);
  for (size_t i = 0; i < weights_->layers.size(); ++i) {
    const ReferenceLayer& layer = weights_->layers[i];
    const Vector read = norm_stream(residual, layer.attention_norm, layer.attention_norm_bias);
    const Vector attended = attention(i, caches_[i], read, position);
    Vector put_out = multiply(layer.o, attended);
    add_bias(put_out, layer.o_bias);
    add(residual, put_out, layer.block_norm);
    const Vector ffn = is_parallel(norm_placement(facts_))
                           ? read
                           : norm_stream(residual, layer.ffn_norm, layer.ffn_norm_bias);
    add(residual, feed_forward(i, ffn), layer.ffn_block_norm);
  }
  length_ = position + 1;
  const Bf16Bits& lm_head = facts_.tied_lm_head ? weights_->embedding : weights_->lm_head;
  Vector logits = multiply(lm_head, norm_stream(residual, weights_->final_norm, weights_->final_norm_bias));
  for (double& logit : logits) logit = capped(logit * facts_.logit_scale, facts_.logit_soft_cap);
  return {logits.begin(), logits.end()};
}

ReferenceModel::Vector ReferenceModel::round(Vector values) const {
  if (options_.round_activations) {
    for (double& value : values) value = static_cast<float>(value);
  }
  return values;
}

ReferenceModel::Vector ReferenceModel::norm(const Vector& x, const Bf16Bits& weight) const {
  if (weight.empty()) return x;
  return round(rms_norm(x, weight, facts_.norm_epsilon, facts_.norm_offset));
}

ReferenceModel::Vector ReferenceModel::norm_stream(Vector x, const Bf16Bits& weight,
                                                   const Bf16Bits& bias) const {
  if (subtracts_means(norm_placement(facts_))) {
    const double mean = std::accumulate(x.begin(), x.end(), 0.0) / static_cast<double>(x.size());
    for (double& value : x) value -= mean;
  }
  x = norm(x, weight);
  add_bias(x, bias);
  return x;
}

ReferenceModel::Vector ReferenceModel::multiply(const Bf16Bits& matrix, const Vector& x) const {
  Vector result(matrix.size() / x.size());
  const auto floats = floats_.find(&matrix);
  for (size_t row = 0; row < result.size(); ++row) {
    const size_t first = row * x.size();
    result[row] = floats == floats_.end() ? dot(matrix.data() + first, x.data(), x.size())
                                          : dot(floats->second->data() + first, x.data(), x.size());
  }
  return round(std::move(result));
}

ReferenceModel::Vector ReferenceModel::embed(int token) const {
  Vector result(static_cast<size_t>(facts_.hidden));
  const uint16_t* row = weights_->embedding.data() + static_cast<size_t>(token) * result.size();
  const auto scale = static_cast<float>(facts_.embedding_scale);
  std::transform(row, row + result.size(), result.begin(),
                 [&](uint16_t bits) { return scale * from_bf16_bits(bits); });
  return result;
}

ReferenceModel::Vector ReferenceModel::project(size_t layer, const Bf16Bits& matrix, const Bf16Bits& bias,
                                               const Bf16Bits& norm, const Vector& x, int position) const {
  Vector heads = multiply(matrix, x);
  add_bias(heads, bias);
  if (facts_.head_norm_last == 0) {
    norm_heads(heads, norm);
    rotate_heads(layer, heads, position);
    return heads;
  }
  constexpr uint16_t kOne = 0x3f80;
  norm_heads(heads, Bf16Bits(norm.size(), kOne));
  rotate_heads(layer, heads, position);
  for (size_t i = 0; i < heads.size(); ++i) heads[i] *= from_bf16_bits(norm[i % norm.size()]);
  return round(std::move(heads));
}

void ReferenceModel::add_bias(Vector& values, const Bf16Bits& bias) const {
  for (size_t i = 0; i < bias.size(); ++i) values[i] += from_bf16_bits(bias[i]);
  values = round(std::move(values));
}

void ReferenceModel::norm_heads(Vector& heads, const Bf16Bits& weight) const {
  if (weight.empty()) return;
  for (size_t begin = 0; begin < heads.size(); begin += weight.size()) {
    const Vector normed = norm({heads.begin() + static_cast<ptrdiff_t>(begin),
                                heads.begin() + static_cast<ptrdiff_t>(begin + weight.size())},
                               weight);
    std::copy(normed.begin(), normed.end(), heads.begin() + static_cast<ptrdiff_t>(begin));
  }
}

void ReferenceModel::rotate_heads(size_t layer, Vector& heads, int position) const {
  const int32_t rope = rope_of_layer(facts_, static_cast<int>(layer));
  if (rope == kNoRope) return;
  const auto head_dim = static_cast<size_t>(facts_.head_dim);
  for (size_t begin = 0; begin < heads.size(); begin += head_dim) {
    const std::span<double> head = std::span(heads).subspan(begin, head_dim);
    if (rope == kLocalRope) {
      rotate(head, position, local_frequencies_);
    } else {
      rotate(head, position, frequencies_, static_cast<float>(facts_.rope_attention_factor));
    }
  }
  heads = round(std::move(heads));
}

/// Puts one position's rows [kv_head][head_dim] at the end of a cache that holds `position` of them.
void ReferenceModel::append(Vector& cache, const Vector& rows, int position) const {
  cache.resize(static_cast<size_t>(position) * rows.size());
  for (const double value : rows) {
    double kept = 0;
    for (int part = 0; part < kv_shape(facts_).parts; ++part)
      kept += round_f16(static_cast<float>(value - kept));
    cache.push_back(options_.round_cache ? kept : value);
  }
  if (options_.round_cache && facts_.kv_bits == 8)
    round_to_bytes(std::span(cache).last(rows.size()), facts_.head_dim);
}

ReferenceModel::Vector ReferenceModel::attention(size_t index, LayerCache& cache, const Vector& x,
                                                 int position) const {
  const ReferenceLayer& layer = weights_->layers[index];
  const int window = window_of_layer(facts_, static_cast<int>(index));
  const int chunk = chunk_of_layer(facts_, static_cast<int>(index));
  Vector queries = project(index, layer.q, layer.q_bias, layer.q_norm, x, position);
  if (facts_.query_scale_beta != 0) {
    const double lengths = std::floor(static_cast<double>(position) / facts_.query_scale_context);
    for (double& value : queries) value *= 1.0 + facts_.query_scale_beta * std::log(1.0 + lengths);
  }
  const Vector keys = project(index, layer.k, layer.k_bias, layer.k_norm, x, position);
  append(cache.keys, keys, position);
  Vector values = multiply(layer.v, x);
  add_bias(values, layer.v_bias);
  append(cache.values, values, position);

  const auto head_dim = static_cast<size_t>(facts_.head_dim);
  const size_t heads_per_kv_head = static_cast<size_t>(facts_.num_heads / facts_.num_kv_heads);
  const double scale =
      facts_.attention_scale != 0 ? facts_.attention_scale : 1.0 / std::sqrt(static_cast<double>(head_dim));
  const Vector slopes = alibi_slopes(facts_);
  Vector output(queries.size());  // [head][head_dim]
  const auto num_heads = static_cast<size_t>(facts_.num_heads);
  const size_t end = static_cast<size_t>(position) + 1;
  size_t first = window == 0 || window > position ? 0 : end - static_cast<size_t>(window);
  if (chunk != 0) first = std::max(first, static_cast<size_t>(position - position % chunk));
  for (size_t head = 0; head < num_heads; ++head) {
    const size_t offset = head / heads_per_kv_head * head_dim;  // of its KV head in a position's rows
    Vector scores;
    for (size_t token = first; token < end; ++token) {
      double score = 0.0;
      for (size_t d = 0; d < head_dim; ++d) {
        score += queries[head * head_dim + d] * cache.keys[token * keys.size() + offset + d];
      }
      const double distance = static_cast<double>(end - 1 - token);
      scores.push_back(capped(score * scale, facts_.attention_soft_cap) - distance * slopes[head]);
    }
    if (!layer.sinks.empty()) scores.push_back(from_bf16_bits(layer.sinks[head]));
    const Vector probabilities = softmax(scores);
    for (size_t token = first; token < end; ++token) {
      for (size_t d = 0; d < head_dim; ++d) {
        output[head * head_dim + d] +=
            probabilities[token - first] * cache.values[token * keys.size() + offset + d];
      }
    }
  }
  return round(std::move(output));
}

std::vector<RoutedExpert> route(std::span<const double> logits, std::span<const float> biases,
                                const ModelFacts& facts) {
  const bool is_sigmoid = facts.router_scores != 0;
  std::vector<double> biased(logits.begin(), logits.end());
  for (size_t i = 0; !is_sigmoid && i < biases.size(); ++i) biased[i] += biases[i];
  std::vector<double> scores = softmax(biased);
  if (facts.router_scores != 0)
    std::ranges::transform(logits, scores.begin(),
                           [](double logit) { return 1.0 / (1.0 + std::exp(-logit)); });
  std::vector<double> compared = scores;
  for (size_t i = 0; i < biases.size(); ++i) compared[i] += biases[i];
  std::vector<int> order(logits.size());
  std::iota(order.begin(), order.end(), 0);
  // A softmax may round what differs to the same.
  const std::vector<double>& keys = is_sigmoid ? compared : biased;
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return keys[a] > keys[b]; });
  double sum = 0;
  for (int i = 0; i < facts.experts_per_token; ++i) sum += scores[order[i]];
  if (facts.renormalised == 0) sum = 1;
  std::vector<RoutedExpert> routed;
  for (int i = 0; i < facts.experts_per_token; ++i)
    routed.push_back({order[i], scores[order[i]] / sum * facts.router_scale});
  return routed;
}

namespace {

/// silu(gate) * up, or gelu's approximation by tanh; or gpt-oss's.
double activated(int activation, double gate, double up) {
  if (activation == 0) return gate / (1.0 + std::exp(-gate)) * up;
  if (activation == 4) return std::max(gate, 0.0) * std::max(gate, 0.0) * up;
  if (activation == 3) return 0.5 * gate * (1.0 + std::erf(gate * std::numbers::sqrt2 / 2)) * up;
  if (activation == 2) {
    gate = std::min(gate, 7.0);
    return (std::clamp(up, -7.0, 7.0) + 1.0) * gate / (1.0 + std::exp(-1.702 * gate));
  }
  const double cube = gate * gate * gate;
  return 0.5 * gate * (1.0 + std::tanh(std::sqrt(2.0 / std::numbers::pi) * (gate + 0.044715 * cube))) * up;
}

}  // namespace

/// down(activation(gate x) * (up x)), or without a gate down(activation(up x)).
template <class Gated>
ReferenceModel::Vector ReferenceModel::gated(const Gated& weights, const Vector& x) const {
  const bool has_gate = facts_.ungated == 0;
  constexpr bool kMayHaveBiases = requires {
    weights.up_bias;
  };
  Vector up = multiply(weights.up, x);
  if constexpr (kMayHaveBiases) add_bias(up, weights.up_bias);
  Vector result = has_gate ? multiply(weights.gate, x) : up;
  if constexpr (kMayHaveBiases) add_bias(result, weights.gate_bias);
  for (size_t i = 0; i < result.size(); ++i)
    result[i] = activated(facts_.activation, result[i], has_gate ? up[i] : 1.0);
  Vector put_out = multiply(weights.down, round(std::move(result)));
  if constexpr (kMayHaveBiases) add_bias(put_out, weights.down_bias);
  return put_out;
}

/// gpt-oss's, of which one tensor has the weights of all experts, column by column, and gate and up in turn.
ReferenceModel::Vector ReferenceModel::interleaved_expert(const ReferenceLayer& layer, int expert,
                                                          const Vector& x) const {
  const auto multiply_columns = [&](const Bf16Bits& tensor, const Bf16Bits& bias, const Vector& input) {
    const size_t rows = bias.size() / static_cast<size_t>(facts_.num_experts);
    const uint16_t* const own = tensor.data() + static_cast<size_t>(expert) * input.size() * rows;
    Vector result(rows);
    for (size_t column = 0; column < input.size(); ++column) {
      for (size_t row = 0; row < rows; ++row)
        result[row] += from_bf16_bits(own[column * rows + row]) * input[column];
    }
    for (size_t row = 0; row < rows; ++row)
      result[row] += from_bf16_bits(bias[static_cast<size_t>(expert) * rows + row]);
    return round(std::move(result));
  };
  const Vector gate_up = multiply_columns(layer.gate_up_proj, layer.gate_up_proj_bias, x);
  Vector gated(gate_up.size() / 2);
  for (size_t i = 0; i < gated.size(); ++i)
    gated[i] = activated(facts_.activation, gate_up[2 * i], gate_up[2 * i + 1]);
  return multiply_columns(layer.down_proj, layer.down_proj_bias, round(std::move(gated)));
}

/// The outputs of the experts that the token goes through, each times its weight, shared ones among them.
ReferenceModel::Vector ReferenceModel::mixture(const ReferenceLayer& layer,
                                               std::span<const RoutedExpert> route, const Vector& x) const {
  Vector sum(x.size());
  for (const RoutedExpert& routed : route) {
    const Vector output = facts_.expert_bias != 0
                              ? interleaved_expert(layer, routed.expert, x)
                              : gated(layer.experts[static_cast<size_t>(routed.expert)], x);
    for (size_t i = 0; i < sum.size(); ++i) sum[i] += routed.weight * output[i];
  }
  if (facts_.shared_experts != 0) {
    const double weight =
        layer.shared_gate.empty() ? 1.0 : 1.0 / (1.0 + std::exp(-multiply(layer.shared_gate, x)[0]));
    const Vector output = gated(layer.shared, x);
    for (size_t i = 0; i < sum.size(); ++i) sum[i] += weight * output[i];
  }
  return round(std::move(sum));
}

ReferenceModel::Vector ReferenceModel::feed_forward(size_t index, const Vector& x) {
  const ReferenceLayer& layer = weights_->layers[index];
  if (layer.router.empty()) return gated(layer, x);
  std::vector<float> biases;
  for (const uint16_t bits : layer.router_bias) biases.push_back(from_bf16_bits(bits));
  routes_[index] = route(multiply(layer.router, x), biases, facts_);
  return mixture(layer, routes_[index], x);
}

void ReferenceModel::add(Vector& residual, Vector block, const Bf16Bits& weight) const {
  block = norm(block, weight);
  for (size_t i = 0; i < residual.size(); ++i) residual[i] += facts_.residual_scale * block[i];
  residual = round(std::move(residual));
}

}  // namespace soliton
