// Written to be read beside transformers' modeling_llama.py; speed comes last.
#include "tests/reference_model.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <numbers>
#include <stdexcept>

#include "layout/random.h"
#include "models/error.h"

namespace soliton {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

int64_t num_elements(std::span<const int64_t> shape) {
  int64_t product = 1;
  for (const int64_t extent : shape) product *= extent;
  return product;
}

float widen(uint16_t bf16_bits) {
  return from_bf16_bits(bf16_bits);
}
float widen(float value) {
  return value;
}

/// Exact products, summed in double by eight interleaved accumulators: a fixed order that the CPU can
/// overlap.
template <class Weight>
double dot(const Weight* weights, const double* x, size_t size) {
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

uint64_t fnv1a(const std::string& text) {
  uint64_t hash = 14695981039346656037ull;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211ull;
  return hash;
}

// Half the width of a uniform distribution; a power of two, so that 1 + kNormBound * random_unit() is exact.
constexpr float kNormBound = 0.25f;
constexpr float kBiasBound = 0.5f;

float matrix_bound(const std::string& name, int64_t columns) {
  const bool makes_scores = name.ends_with("q_proj.weight") || name.ends_with("k_proj.weight");
  const double variance = (makes_scores ? 2.0 : 1.0) / static_cast<double>(columns);
  return static_cast<float>(std::sqrt(3.0 * variance));
}

ordered_json classic_config(const ModelFacts& facts) {
  const bool is_qwen3 = facts.head_norm != 0;
  const bool is_qwen2 = !is_qwen3 && facts.qkv_bias != 0;
  ordered_json config = {
      {"architectures",
       {is_qwen3   ? "Qwen3ForCausalLM"
        : is_qwen2 ? "Qwen2ForCausalLM"
                   : "LlamaForCausalLM"}},
      {"model_type", is_qwen3   ? "qwen3"
                     : is_qwen2 ? "qwen2"
                                : "llama"},
      {"hidden_size", facts.hidden},
      {"intermediate_size", facts.ffn},
      {"num_hidden_layers", facts.num_layers},
      {"num_attention_heads", facts.num_heads},
      {"num_key_value_heads", facts.num_kv_heads},
      {"head_dim", facts.head_dim},
      {"vocab_size", facts.vocabulary},
      {"max_position_embeddings", facts.max_context},
      {"rms_norm_eps", facts.norm_epsilon},
      {"rope_theta", facts.rope_theta},
      {"rope_scaling", nullptr},
      {"tie_word_embeddings", facts.tied_lm_head != 0},
      {"hidden_act", "silu"},
      {"attention_bias", false},
      {"mlp_bias", false},
      {"bos_token_id", kReferenceBosId},
      {"eos_token_id", kReferenceEosId},
      {"torch_dtype", "bfloat16"},
  };
  if (facts.weight_bits < 16) {
    config["quantization_config"] = {{"quant_method", "gptq"},
                                     {"bits", facts.weight_bits},
                                     {"group_size", facts.weight_group},
                                     {"sym", facts.weight_zeros == 0},
                                     {"desc_act", facts.weight_order != 0},
                                     {"lm_head", facts.lm_head_bits < 16},
                                     {"checkpoint_format", "gptq_v2"}};
  }
  if (facts.rope_kind == RopeKind::kLlama3) {
    config["rope_scaling"] = {
        {"rope_type", "llama3"},
        {"factor", facts.rope_factor},
        {"low_freq_factor", facts.rope_low_freq_factor},
        {"high_freq_factor", facts.rope_high_freq_factor},
        {"original_max_position_embeddings", facts.rope_original_context},
    };
  }
  if (facts.rope_kind == RopeKind::kLinear) {
    config["rope_scaling"] = {{"rope_type", "linear"}, {"factor", facts.rope_factor}};
  }
  if (facts.rope_kind == RopeKind::kYarn) {
    config["rope_scaling"] = {
        {"rope_type", "yarn"},
        {"factor", facts.rope_factor},
        {"beta_fast", facts.rope_beta_fast},
        {"beta_slow", facts.rope_beta_slow},
        {"truncate", facts.rope_truncate != 0},
        {"attention_factor", facts.rope_attention_factor},
        {"original_max_position_embeddings", facts.rope_original_context},
    };
  }
  return config;
}

class OutputFile {
 public:
  explicit OutputFile(const fs::path& path) : path_(path), stream_(path, std::ios::binary) {}
  void write(const void* data, size_t bytes) {
    stream_.write(static_cast<const char*>(data), static_cast<std::streamsize>(bytes));
  }
  void close() {
    stream_.close();
    if (!stream_) throw std::runtime_error(path_.string() + ": cannot write");
  }

 private:
  fs::path path_;
  std::ofstream stream_;
};

void write_json(const fs::path& path, const ordered_json& document) {
  const std::string text = document.dump(2) + "\n";
  OutputFile file(path);
  file.write(text.data(), text.size());
  file.close();
}

void write_safetensors(const fs::path& path, std::span<const StoredTensor> tensors) {
  static_assert(std::endian::native == std::endian::little, "the file is little-endian");
  ordered_json header = {{"__metadata__", {{"format", "pt"}}}};
  size_t end = 0;
  for (const StoredTensor& tensor : tensors) {
    const size_t begin = end;
    end += tensor.bytes.size();
    header[tensor.name] = {{"dtype", tensor.dtype}, {"shape", tensor.shape}, {"data_offsets", {begin, end}}};
  }
  std::string text = header.dump();
  constexpr size_t kAlignment = 8;
  text.resize((text.size() + kAlignment - 1) / kAlignment * kAlignment, ' ');
  const uint64_t length = text.size();
  OutputFile file(path);
  file.write(&length, sizeof(length));
  file.write(text.data(), text.size());
  for (const StoredTensor& tensor : tensors) file.write(tensor.bytes.data(), tensor.bytes.size());
  file.close();
}

/// The i-th of `parts` neighbouring runs of the tensors.
std::span<const StoredTensor> shard_of(std::span<const StoredTensor> tensors, size_t i, size_t parts) {
  const size_t begin = tensors.size() * i / parts;
  return tensors.subspan(begin, tensors.size() * (i + 1) / parts - begin);
}

void write_shards(const fs::path& folder, std::span<const StoredTensor> tensors, size_t num_shards) {
  ordered_json weight_map = ordered_json::object();
  size_t bytes = 0;
  for (size_t i = 0; i < num_shards; ++i) {
    const std::string name = fmt::format("model-{:05}-of-{:05}.safetensors", i + 1, num_shards);
    const auto shard = shard_of(tensors, i, num_shards);
    write_safetensors(folder / name, shard);
    for (const StoredTensor& tensor : shard) {
      weight_map[tensor.name] = name;
      bytes += tensor.bytes.size();
    }
  }
  write_json(folder / "model.safetensors.index.json",
             {{"metadata", {{"total_size", bytes}}}, {"weight_map", weight_map}});
}

}  // namespace

uint16_t to_bf16_bits(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  if (std::isnan(value)) return static_cast<uint16_t>(bits >> 16 | 0x40);  // quiet, whatever the payload
  return static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

float round_f16(float value) {
  constexpr float kLargest = 65504.0f;
  return static_cast<float>(static_cast<_Float16>(std::clamp(value, -kLargest, kLargest)));
}

float from_bf16_bits(uint16_t bits) {
  return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
}

int argmax(std::span<const float> logits) {
  return static_cast<int>(std::max_element(logits.begin(), logits.end()) - logits.begin());
}

std::vector<double> rms_norm(std::span<const double> x, std::span<const uint16_t> weight, double epsilon) {
  double squares = 0.0;
  for (const double value : x) squares += value * value;
  const double scale = 1.0 / std::sqrt(squares / static_cast<double>(x.size()) + epsilon);
  std::vector<double> result(x.size());
  for (size_t i = 0; i < x.size(); ++i) result[i] = x[i] * scale * from_bf16_bits(weight[i]);
  return result;
}

namespace {

/// Extrapolation for the first pairs, interpolation for the last, a ramp between the two. `power`: theta to the
/// pair's exponent.
float yarn_frequency(const ModelFacts& facts, size_t pair, float power) {
  const double pi = std::numbers::pi;
  const double dim = facts.head_dim;
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

  std::vector<float> frequencies(static_cast<size_t>(facts.head_dim / 2));
  for (size_t i = 0; i < frequencies.size(); ++i) {
    const float exponent = static_cast<float>(2 * i) / static_cast<float>(facts.head_dim);
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

std::vector<double> softmax(std::span<const double> scores) {
  const double maximum = *std::max_element(scores.begin(), scores.end());
  std::vector<double> result;
  double sum = 0.0;
  for (const double score : scores) sum += result.emplace_back(std::exp(score - maximum));
  for (double& value : result) value /= sum;
  return result;
}

ReferenceWeights random_weights(const ModelFacts& facts, uint64_t seed) {
  ReferenceWeights weights;
  weights.layers.resize(static_cast<size_t>(facts.num_layers));
  for_each_tensor(weights, facts, [&](const std::string& name, const auto& shape, Bf16Bits& bits) {
    if (is_quantized(name, facts)) {
      const auto [at, is_new] = weights.integers.emplace(
          name, random_quantized(name, shape[0], shape[1], matrix_bound(name, shape[1]), facts,
                                 seed ^ fnv1a(name)));
      for (int64_t row = 0; row < shape[0]; ++row) {
        for (int64_t column = 0; column < shape[1]; ++column)
          bits.push_back(to_bf16_bits(at->second.weight(row, column)));
      }
      return;
    }
    const bool is_bias = name.ends_with(".bias");
    const bool is_norm = shape.size() == 1 && !is_bias;
    // In double neither product nor sum is rounded, so that every compiler gets the same bits.
    const double centre = is_norm ? 1.0 : 0.0;
    const double bound = is_norm ? kNormBound : is_bias ? kBiasBound : matrix_bound(name, shape[1]);
    const uint64_t tensor_seed = seed ^ fnv1a(name);
    bits.resize(static_cast<size_t>(num_elements(shape)));
    for (size_t i = 0; i < bits.size(); ++i) {
      bits[i] = to_bf16_bits(static_cast<float>(centre + bound * random_unit(i, tensor_seed)));
    }
  });
  return weights;
}

ReferenceWeights load_weights(const TensorSource& source, const ModelFacts& facts) {
  ReferenceWeights weights;
  weights.layers.resize(static_cast<size_t>(facts.num_layers));
  for_each_tensor(weights, facts, [&](const std::string& name, const auto& shape, Bf16Bits& bits) {
    const Tensor* found = source.find(name);
    std::vector<float> floats;
    if (found == nullptr && shape.size() == 2) floats = gptq_weights(source, name, shape[0], shape[1]);
    if (found != nullptr && found->dtype == DType::kF32) {
      const Tensor& tensor = source.require(name, DType::kF32, shape);
      floats.resize(tensor.data.size() / sizeof(float));
      std::memcpy(floats.data(), tensor.data.data(), tensor.data.size());
    }
    if (!floats.empty()) {
      std::transform(floats.begin(), floats.end(), std::back_inserter(bits), to_bf16_bits);
      weights.floats.emplace(name, std::move(floats));
      return;
    }
    const Tensor& tensor = source.require(name, DType::kBF16, shape);
    bits.resize(tensor.data.size() / sizeof(uint16_t));
    std::memcpy(bits.data(), tensor.data.data(), tensor.data.size());
  });
  return weights;
}

void write_hf_folder(const ReferenceWeights& weights, const ModelFacts& facts, const fs::path& folder,
                     int num_shards) {
  std::vector<StoredTensor> tensors;
  for_each_tensor(weights, facts, [&](const std::string& name, auto shape, const Bf16Bits& bits) {
    if (bits.size() != static_cast<size_t>(num_elements(shape))) {
      throw std::invalid_argument(name + ": size differs from the facts");
    }
    if (const auto found = weights.integers.find(name); found != weights.integers.end()) {
      for (StoredTensor& tensor : gptq_tensors(name, found->second)) tensors.push_back(std::move(tensor));
      return;
    }
    const auto* bytes = reinterpret_cast<const uint8_t*>(bits.data());
    tensors.push_back({name, "BF16", shape, {bytes, bytes + bits.size() * sizeof(uint16_t)}});
  });
  if (num_shards < 1 || static_cast<size_t>(num_shards) > tensors.size()) {
    throw std::invalid_argument(
        fmt::format("num_shards: expected 1 to {}, got {}", tensors.size(), num_shards));
  }
  fs::create_directories(folder);
  write_json(folder / "config.json", classic_config(facts));
  write_json(folder / "generation_config.json",
             {{"bos_token_id", kReferenceBosId}, {"eos_token_id", kReferenceEosId}});
  if (num_shards == 1) {
    write_safetensors(folder / "model.safetensors", tensors);
  } else {
    write_shards(folder, tensors, static_cast<size_t>(num_shards));
  }
}

ReferenceModel::ReferenceModel(const ModelFacts& facts, std::shared_ptr<const ReferenceWeights> weights,
                               ReferenceOptions options)
    : facts_(facts),
      options_(options),
      weights_(std::move(weights)),
      frequencies_(rotary_frequencies(facts)),
      caches_(static_cast<size_t>(facts.num_layers)) {
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
    const Vector attended = attention(layer, caches_[i], norm(residual, layer.attention_norm), position);
    add(residual, multiply(layer.o, attended));
    const Vector activated = feed_forward(layer, norm(residual, layer.ffn_norm));
    add(residual, multiply(layer.down, activated));
  }
  length_ = position + 1;
  const Bf16Bits& lm_head = facts_.tied_lm_head ? weights_->embedding : weights_->lm_head;
  const Vector logits = multiply(lm_head, norm(residual, weights_->final_norm));
  return {logits.begin(), logits.end()};
}

ReferenceModel::Vector ReferenceModel::round(Vector values) const {
  if (options_.round_activations) {
    for (double& value : values) value = static_cast<float>(value);
  }
  return values;
}

ReferenceModel::Vector ReferenceModel::norm(const Vector& x, const Bf16Bits& weight) const {
  return round(rms_norm(x, weight, facts_.norm_epsilon));
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
  std::transform(row, row + result.size(), result.begin(), from_bf16_bits);
  return result;
}

ReferenceModel::Vector ReferenceModel::project(const Bf16Bits& matrix, const Bf16Bits& bias,
                                               const Bf16Bits& norm, const Vector& x, int position) const {
  Vector heads = multiply(matrix, x);
  add_bias(heads, bias);
  norm_heads(heads, norm);
  rotate_heads(heads, position);
  return heads;
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

void ReferenceModel::rotate_heads(Vector& heads, int position) const {
  const auto head_dim = static_cast<size_t>(facts_.head_dim);
  for (size_t begin = 0; begin < heads.size(); begin += head_dim) {
    rotate(std::span(heads).subspan(begin, head_dim), position, frequencies_,
           static_cast<float>(facts_.rope_attention_factor));
  }
  heads = round(std::move(heads));
}

/// Puts one position's rows [kv_head][head_dim] at the end of a cache that holds `position` of them.
void ReferenceModel::append(Vector& cache, const Vector& rows, int position) const {
  cache.resize(static_cast<size_t>(position) * rows.size());
  for (const double value : rows) {
    double kept = 0;
    for (int part = 0; part < facts_.kv_bits / 16; ++part)
      kept += round_f16(static_cast<float>(value - kept));
    cache.push_back(options_.round_cache ? kept : value);
  }
}

ReferenceModel::Vector ReferenceModel::attention(const ReferenceLayer& layer, LayerCache& cache,
                                                 const Vector& x, int position) const {
  const Vector queries = project(layer.q, layer.q_bias, layer.q_norm, x, position);
  const Vector keys = project(layer.k, layer.k_bias, layer.k_norm, x, position);
  append(cache.keys, keys, position);
  Vector values = multiply(layer.v, x);
  add_bias(values, layer.v_bias);
  append(cache.values, values, position);

  const auto head_dim = static_cast<size_t>(facts_.head_dim);
  const size_t heads_per_kv_head = static_cast<size_t>(facts_.num_heads / facts_.num_kv_heads);
  const double scale = 1.0 / std::sqrt(static_cast<double>(head_dim));
  Vector output(queries.size());  // [head][head_dim]
  Vector scores(static_cast<size_t>(position) + 1);
  for (size_t head = 0; head < static_cast<size_t>(facts_.num_heads); ++head) {
    const size_t offset = head / heads_per_kv_head * head_dim;  // of its KV head in a position's rows
    for (size_t token = 0; token < scores.size(); ++token) {
      double score = 0.0;
      for (size_t d = 0; d < head_dim; ++d) {
        score += queries[head * head_dim + d] * cache.keys[token * keys.size() + offset + d];
      }
      scores[token] = score * scale;
    }
    const Vector probabilities = softmax(scores);
    for (size_t token = 0; token < scores.size(); ++token) {
      for (size_t d = 0; d < head_dim; ++d) {
        output[head * head_dim + d] += probabilities[token] * cache.values[token * keys.size() + offset + d];
      }
    }
  }
  return round(std::move(output));
}

/// silu(gate x) * (up x).
ReferenceModel::Vector ReferenceModel::feed_forward(const ReferenceLayer& layer, const Vector& x) const {
  Vector result = multiply(layer.gate, x);
  const Vector up = multiply(layer.up, x);
  for (size_t i = 0; i < result.size(); ++i) result[i] = result[i] / (1.0 + std::exp(-result[i])) * up[i];
  return round(std::move(result));
}

void ReferenceModel::add(Vector& residual, const Vector& update) const {
  for (size_t i = 0; i < residual.size(); ++i) residual[i] += update[i];
  residual = round(std::move(residual));
}

}  // namespace soliton
