// Scaling of RoPE. What Llama 3.1 does has no keys of its own: its file has a tensor of what each pair's wavelength is
// multiplied with, from which the formula's parameters are found again.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <numbers>

#include "models/gguf_config.h"
#include "models/limits.h"

namespace soliton {
namespace {

using nlohmann::json;

constexpr const char* kAttentionFactor = "yarn_attn_factor";
constexpr const char* kLogMultiplier = "yarn_log_multiplier";
constexpr const char* kFactorsTensor = "rope_freqs.weight";
constexpr double kLowFactor = 1;   // of all models that were published
constexpr double kHighFactor = 4;  // likewise
constexpr double kUsualContext = 8192;
constexpr double kTolerance = 1e-4;  // factors are float

double wavelength(double theta, size_t pair, int64_t head_dim) {
  return 2 * std::numbers::pi *
         std::pow(theta, 2.0 * static_cast<double>(pair) / static_cast<double>(head_dim));
}

/// What Llama 3.1 multiplies a wavelength with.
double llama3_factor(double length, double factor, double original_context) {
  if (length < original_context / kHighFactor) return 1;
  if (length > original_context / kLowFactor) return factor;
  const double smooth = (original_context / length - kLowFactor) / (kHighFactor - kLowFactor);
  return 1 / ((1 - smooth) / factor + smooth);
}

/// The context that the model had before: what the pair between the two ends that is most in the middle tells.
double find_original_context(const std::vector<float>& factors, double theta, int64_t head_dim) {
  const double factor = factors.back();
  double best = kUsualContext;
  double distance = 0.5;
  for (size_t pair = 0; pair < factors.size(); ++pair) {
    const double smooth = (1 / double{factors[pair]} - 1 / factor) / (1 - 1 / factor);
    if (std::abs(smooth - 0.5) >= distance) continue;
    distance = std::abs(smooth - 0.5);
    best = wavelength(theta, pair, head_dim) * (smooth * (kHighFactor - kLowFactor) + kLowFactor);
  }
  return std::round(best);
}

std::vector<float> read_factors(const GgufTensor& tensor, int64_t head_dim) {
  const auto refuse = [&](std::string_view got) {
    return file_error(ExitCode::kMismatch, tensor.file->path(),
                      "{}: expected F32 [{}], as Llama 3.1 has, got {}", tensor.name, head_dim / 2, got);
  };
  if (tensor.type != GgufType::kF32) throw refuse(gguf_type(tensor.type).name);
  std::vector<float> factors(tensor.data.size() / sizeof(float));
  if (std::ssize(factors) != head_dim / 2) throw refuse(fmt::format("[{}]", factors.size()));
  std::memcpy(factors.data(), tensor.data.data(), tensor.data.size());
  return factors;
}

json llama3_scaling(const GgufTensor& tensor, double theta, int64_t head_dim) {
  const std::vector<float> factors = read_factors(tensor, head_dim);
  if (std::ranges::all_of(factors, [](float factor) { return factor == 1; })) return nullptr;
  const double factor = factors.back();
  const double context = kRopeFactorLimit.contains(factor) && factor > 1 && theta > 1
                             ? find_original_context(factors, theta, head_dim)
                             : 0;
  bool is_same = context >= 1 && context <= static_cast<double>(kContextLimit.max);
  for (size_t pair = 0; pair < factors.size() && is_same; ++pair) {
    const double expected = llama3_factor(wavelength(theta, pair, head_dim), factor, context);
    is_same = std::abs(factors[pair] / expected - 1) < kTolerance;
  }
  if (!is_same) {
    throw file_error(ExitCode::kMismatch, tensor.file->path(),
                     "{}: expected the factors of Llama 3.1's formula, got others: not supported",
                     tensor.name);
  }
  return {{"rope_type", "llama3"},
          {"factor", factor},
          {"low_freq_factor", kLowFactor},
          {"high_freq_factor", kHighFactor},
          {"original_max_position_embeddings", static_cast<int64_t>(context)}};
}

/// Is it what config.json implies that says nothing?
bool is_usual_attention_factor(const JsonView& stated, const JsonView& factor) {
  const double usual = yarn_attention_factor(factor.number(kRopeFactorLimit.min, kRopeFactorLimit.max));
  return std::abs(stated.number() / usual - 1) < kTolerance;
}

}  // namespace

json gguf_rope_scaling(const GgufFile& file, const GgufArchitecture& architecture, double theta,
                       int64_t head_dim) {
  for (const char* name : {"rope_factors_long.weight", "rope_factors_short.weight"}) {
    if (file.find(name) != nullptr)
      throw file_error(ExitCode::kMismatch, file.path(), "{}: longrope is not supported", name);
  }
  const JsonView view = file.view();
  const std::string prefix = architecture.prefix();
  const auto key = [&](const char* name) { return view[prefix + "rope.scaling." + name]; };
  const JsonView old_factor = view[prefix + "rope.scale_linear"];
  const JsonView factor = key("factor").is_null() ? old_factor : key("factor");
  const GgufTensor* const factors = file.find(kFactorsTensor);
  const std::string type =
      key("type").is_null() ? (factor.is_null() ? "none" : "linear") : key("type").string();
  if (type == "none" || (type == "linear" && factor.is_null()))
    return factors == nullptr ? json(nullptr) : llama3_scaling(*factors, theta, head_dim);
  if (factors != nullptr) {
    throw key("type").error(ExitCode::kMismatch, "expected none beside {}, got {}: not supported",
                            kFactorsTensor, in_quotes(type));
  }
  if (type == "linear") return {{"rope_type", "linear"}, {"factor", factor.number()}};
  if (type != "yarn") {
    throw key("type").error(ExitCode::kMismatch, "expected none, linear or yarn, got {}: not supported",
                            in_quotes(type));
  }
  const JsonView multiplier = key(kLogMultiplier);
  for (const char* name : {"attn_factor", kAttentionFactor, "yarn_ext_factor", kLogMultiplier}) {
    const bool is_multiplier = name == kLogMultiplier;
    const bool is_default = key(name).is_null() || (!is_multiplier && key(name).number() == 1) ||
                            (is_multiplier && architecture.states_mscale) ||
                            (name == kAttentionFactor && is_usual_attention_factor(key(name), factor));
    if (!is_default)
      throw key(name).error(ExitCode::kMismatch, "expected nothing, got {}: not supported",
                            key(name).describe());
  }
  json scaling = {{"rope_type", "yarn"},
                  {"factor", factor.number()},
                  {"original_max_position_embeddings", key("original_context_length").integer()}};
  if (!multiplier.is_null()) scaling.update({{"mscale", 1.0}, {"mscale_all_dim", multiplier.number()}});
  for (const char* name : {"beta_fast", "beta_slow"}) {
    const JsonView beta = key(fmt::format("yarn_{}", name).c_str());
    if (!beta.is_null()) scaling[name] = beta.number();
  }
  return scaling;
}

}  // namespace soliton
