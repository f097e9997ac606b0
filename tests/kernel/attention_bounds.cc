#include "tests/kernel/attention_bounds.h"

#include <algorithm>
#include <cmath>

#include "tests/reference_model.h"

namespace soliton {

namespace {

/// Does the query at `query` see the key at `key`, on its own path? Both are positions.
bool is_seen(const ModelFacts& facts, int layer, int query, int key) {
  const int window = window_of_layer(facts, layer);
  const int chunk = chunk_of_layer(facts, layer);
  return key <= query && (window == 0 || query - key < window) &&
         (chunk == 0 || query / chunk == key / chunk);
}

}  // namespace

BoundedVector attend(const ModelFacts& facts, int layer, const AttentionPrecision& precision,
                     const BoundedVector& query, int head, int position, double sink,
                     const SeenTokens& tokens, OwnScore own) {
  const auto head_dim = static_cast<size_t>(facts.head_dim);
  const double scale = attention_scale(facts);
  const double slope = alibi_slopes(facts)[static_cast<size_t>(head)];
  struct Seen {
    const double* values;
    const double* errors;
    Bounded score;
    double weight = 0;
    double error = 0;  // relative
  };
  std::vector<Seen> seen;
  double maximum = std::isnan(sink) ? -INFINITY : sink;
  for (int key = 0; key < std::ssize(tokens.keys); ++key) {
    const double added = own == nullptr ? 0 : own(position, key);
    if (!is_seen(facts, layer, position, key) || added == -INFINITY) continue;
    const HeadView& k = tokens.keys[static_cast<size_t>(key)];
    const HeadView& v = tokens.values[static_cast<size_t>(key)];
    double product = 0;
    double magnitude = 0;
    double error = 0;
    for (size_t d = 0; d < head_dim; ++d) {
      product += query[d].value * k.values[d];
      magnitude += std::abs(query[d].value * k.values[d]);
      error +=
          query[d].error * (std::abs(k.values[d]) + k.errors[d]) + std::abs(query[d].value) * k.errors[d];
    }
    double score = product * scale;
    error = (error + static_cast<double>(facts.head_dim + 8) * kUnit * magnitude) * scale;
    const double cap = facts.attention_soft_cap;
    if (cap != 0) {
      score = cap * std::tanh(score / cap);
      error += cap * 0x1p-20;
    }
    const double bias = std::abs(added) + slope * (position - key);
    score += added - slope * (position - key);
    error += 8 * kUnit * (std::abs(score) + 1) + 0x1p-20 * bias;
    seen.push_back({.values = v.values, .errors = v.errors, .score = {score, error}});
    maximum = std::max(maximum, score);
  }
  double sum = std::isnan(sink) ? 0 : std::exp(sink - maximum);
  double largest = 0;
  for (Seen& each : seen) {
    each.weight = std::exp(each.score.value - maximum);
    // The difference to the maximum is a float too, of base 2; near it exp(e) - 1 is e, and below 2 e for all that is small.
    each.error = 2 * each.score.error + 4 * kUnit * (maximum - each.score.value) + 0x1p-21;
    sum += each.weight;
    for (size_t d = 0; d < head_dim; ++d) largest = std::max(largest, std::abs(each.values[d]));
  }
  const auto count = static_cast<double>(seen.size());
  const double least = facts.kv_bits == 8 ? 0x1p-22 : 0x1p-25;
  double of_weights = std::isnan(sink) ? 0 : 0x1p-20 * std::exp(sink - maximum) / sum;  // the sink's
  for (const Seen& each : seen) of_weights += each.weight / sum * each.error;
  BoundedVector output(head_dim);
  for (size_t d = 0; d < head_dim; ++d) {
    double value = 0;
    double magnitude = 0;
    double error = 0;
    for (const Seen& each : seen) {
      const double p = each.weight / sum;
      value += p * each.values[d];
      magnitude += p * std::abs(each.values[d]);
      error += p * (each.error * std::abs(each.values[d]) + each.errors[d]);
    }
    error += std::abs(value) * of_weights;
    error += (precision.weights + precision.partials + 2 * (count + 32) * kUnit) * magnitude;
    error += least * count * largest + precision.outputs * std::abs(value);
    output[d] = {value, error};
  }
  return output;
}

}  // namespace soliton
