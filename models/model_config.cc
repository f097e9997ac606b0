// See model_config.h. The limits lie well above any model of today and well below what overflows.
#include "models/model_config.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <sstream>

namespace soliton {
namespace {

constexpr IntegerRange kHidden = {.min = 64, .max = 65536, .multiple_of = 64};
constexpr IntegerRange kFfn = {.min = 64, .max = 262144, .multiple_of = 64};
constexpr IntegerRange kLayers = {.min = 1, .max = 1024};
constexpr IntegerRange kHeads = {.min = 1, .max = 1024};
constexpr IntegerRange kVocabulary = {.min = 1, .max = 1 << 24};
constexpr IntegerRange kContext = {.min = 1, .max = 1 << 22};
constexpr NumberRange kNormEpsilon = {.min = 0, .max = 0.1, .open = true};
constexpr NumberRange kRopeTheta = {.min = 1, .max = 1e12, .open = true};  // 1 would rotate all pairs alike
constexpr NumberRange kRopeFactor = {.min = 1, .max = 1024};
constexpr NumberRange kRopeFreqFactor = {.min = 0, .max = 1024, .open = true};
constexpr NumberRange kRopeBeta = {.min = 0, .max = 65536, .open = true};
constexpr NumberRange kRopeAttentionFactor = {.min = 0, .max = 64, .open = true};

constexpr int kIntegerBits = 4;

/// How the matrices stand; without the key in bf16.
void read_quantization(const StrictYaml& quantization, ModelFacts& facts) {
  quantization.allow_keys({"bits", "group", "symmetric", "act_order", "lm_head"});
  facts.weight_bits = quantization.integer_choice("bits", {kIntegerBits});
  facts.weight_group = quantization.integer_choice("group", {-1, 32, 64, 128});
  facts.weight_zeros = quantization.boolean("symmetric") ? 0 : 1;
  // A single group takes the columns as they come.
  facts.weight_order = quantization.boolean("act_order") && facts.weight_group > 0 ? 1 : 0;
  if (quantization.boolean("lm_head")) facts.lm_head_bits = kIntegerBits;
}

const std::initializer_list<std::string_view> kRopeKeys = {
    "kind",      "theta",     "factor",           "low_freq_factor", "high_freq_factor", "original_context",
    "beta_fast", "beta_slow", "attention_factor", "truncate"};

/// What a kind of RoPE says beside its theta.
struct RopeKeys {
  RopeKind kind;
  std::vector<std::string_view> keys;
};
const std::vector<RopeKeys>& rope_keys() {
  static const std::vector<RopeKeys> kKeys = {
      {RopeKind::kDefault, {}},
      {RopeKind::kLlama3, {"original_context", "factor", "low_freq_factor", "high_freq_factor"}},
      {RopeKind::kLinear, {"factor"}},
      {RopeKind::kYarn,
       {"original_context", "truncate", "factor", "beta_fast", "beta_slow", "attention_factor"}}};
  return kKeys;
}
bool rope_has(RopeKind kind, std::string_view key) {
  const std::vector<std::string_view>& keys = rope_keys()[static_cast<size_t>(kind)].keys;
  return std::find(keys.begin(), keys.end(), key) != keys.end();
}

void read_llama3(const StrictYaml& rope, ModelFacts& facts) {
  facts.rope_factor = rope.number("factor", kRopeFactor);
  facts.rope_low_freq_factor = rope.number("low_freq_factor", kRopeFreqFactor);
  facts.rope_high_freq_factor = rope.number("high_freq_factor", kRopeFreqFactor);
  facts.rope_original_context = rope.integer("original_context", kContext);
  // Frequencies between the two are interpolated with their difference as the divisor.
  if (facts.rope_high_freq_factor <= facts.rope_low_freq_factor) {
    throw rope.error("high_freq_factor",
                     fmt::format("a number above low_freq_factor = {}", facts.rope_low_freq_factor),
                     fmt::format("{}", facts.rope_high_freq_factor));
  }
}

void read_yarn(const StrictYaml& rope, ModelFacts& facts) {
  facts.rope_factor = rope.number("factor", kRopeFactor);
  facts.rope_original_context = rope.integer("original_context", kContext);
  if (rope.has("beta_fast")) facts.rope_beta_fast = rope.number("beta_fast", kRopeBeta);
  if (rope.has("beta_slow")) facts.rope_beta_slow = rope.number("beta_slow", kRopeBeta);
  if (facts.rope_beta_fast <= facts.rope_beta_slow) {
    throw rope.error("beta_fast", fmt::format("a number above beta_slow = {}", facts.rope_beta_slow),
                     fmt::format("{}", facts.rope_beta_fast));
  }
  facts.rope_attention_factor = rope.has("attention_factor")
                                    ? rope.number("attention_factor", kRopeAttentionFactor)
                                    : yarn_attention_factor(facts.rope_factor);
  if (rope.has("truncate")) facts.rope_truncate = rope.boolean("truncate") ? 1 : 0;
}

void read_rope(const StrictYaml& rope, ModelFacts& facts) {
  rope.allow_keys(kRopeKeys);
  const std::string name = rope.text_choice("kind", {"default", "llama3", "linear", "yarn"});
  for (const RopeKeys& each : rope_keys()) {
    if (name == rope_name(each.kind)) facts.rope_kind = each.kind;
  }
  facts.rope_theta = rope.number("theta", kRopeTheta);
  for (const std::string_view key : kRopeKeys) {
    if (key == "kind" || key == "theta" || !rope.has(key) || rope_has(facts.rope_kind, key)) continue;
    std::vector<std::string> kinds;
    for (const RopeKeys& each : rope_keys()) {
      if (rope_has(each.kind, key)) kinds.emplace_back(rope_name(each.kind));
    }
    throw rope.error(key, fmt::format("this key only with kind = {}", fmt::join(kinds, " or ")),
                     fmt::format("it with kind = {}", name));
  }
  if (facts.rope_kind == RopeKind::kLlama3) read_llama3(rope, facts);
  if (facts.rope_kind == RopeKind::kLinear) facts.rope_factor = rope.number("factor", kRopeFactor);
  if (facts.rope_kind == RopeKind::kYarn) read_yarn(rope, facts);
}

/// Keys that may be absent: biases and normed heads, which only some families have, and the bits of the cache.
void read_attention(const StrictYaml& yaml, ModelFacts& facts) {
  if (yaml.has("qkv_bias")) facts.qkv_bias = yaml.boolean("qkv_bias") ? 1 : 0;
  if (yaml.has("kv_bits")) facts.kv_bits = yaml.integer_choice("kv_bits", {16, 32});
  if (yaml.has("head_norm")) facts.head_norm = yaml.boolean("head_norm") ? 1 : 0;
  if (facts.head_norm != 0 && !can_norm_heads(facts.head_dim)) {
    throw yaml.error("head_norm", "false where head_dim is neither 64 nor 128",
                     fmt::format("true with head_dim = {}", facts.head_dim));
  }
}

}  // namespace

ModelConfig load_model_config(const std::filesystem::path& path) {
  return parse_model_config(StrictYaml::load(path), path.string());
}

ModelConfig parse_model_config(const StrictYaml& yaml, const std::string& path) {
  yaml.allow_keys({"name", "hidden", "ffn", "num_layers", "num_heads", "num_kv_heads", "head_dim",
                   "vocabulary", "tied_lm_head", "qkv_bias", "head_norm", "kv_bits", "max_context",
                   "norm_epsilon", "quantization", "rope"});
  ModelConfig config = {
      .name = yaml.name_of_file(),
      .path = path,
      .facts = {.hidden = yaml.integer("hidden", kHidden),
                .ffn = yaml.integer("ffn", kFfn),
                .num_layers = yaml.integer("num_layers", kLayers),
                .num_heads = yaml.integer("num_heads", kHeads),
                .num_kv_heads = yaml.integer("num_kv_heads", kHeads),
                .head_dim = yaml.integer_choice("head_dim", {64, 96, 128, 256}),
                .vocabulary = yaml.integer("vocabulary", kVocabulary),
                .tied_lm_head = yaml.boolean("tied_lm_head"),
                .max_context = yaml.integer("max_context", kContext),
                .norm_epsilon = yaml.number("norm_epsilon", kNormEpsilon)},
  };
  const ModelFacts& facts = config.facts;
  if (facts.num_heads % facts.num_kv_heads != 0) {
    throw yaml.error("num_kv_heads", fmt::format("a divisor of num_heads = {}", facts.num_heads),
                     fmt::format("{}", facts.num_kv_heads));
  }
  read_attention(yaml, config.facts);
  if (yaml.has("quantization")) read_quantization(yaml.map("quantization"), config.facts);
  read_rope(yaml.map("rope"), config.facts);
  return config;
}

ModelConfig make_model_config(const std::string& name, const ModelFacts& facts, const std::string& source) {
  try {
    const std::string file = name + ".yaml";
    return parse_model_config(StrictYaml::parse(format_model_config(name, facts, ""), file), source);
  } catch (const Error& error) {
    // "name.yaml:3: ffn: ...": there is no such file, and no such line.
    const std::string message = error.what();
    throw Error(ExitCode::kPlanRefused,
                fmt::format("{}: {}", source, message.substr(message.find(": ") + 2)));
  }
}

namespace {

/// The inverse of read_quantization(); nothing for matrices in bf16.
std::string format_quantization(const ModelFacts& facts) {
  if (facts.weight_bits != kIntegerBits) return "";
  return fmt::format(
      "quantization:\n  bits: {}\n  group: {}\n  symmetric: {}\n  act_order: {}\n  lm_head: {}\n",
      facts.weight_bits, facts.weight_group, facts.weight_zeros == 0, facts.weight_order != 0,
      facts.lm_head_bits == kIntegerBits);
}

}  // namespace

std::string format_model_config(const std::string& name, const ModelFacts& facts,
                                const std::string& comment) {
  std::string text;
  std::istringstream lines(comment);
  for (std::string line; std::getline(lines, line);) text += fmt::format("# {}\n", line);
  text += fmt::format("name: {}\n", name);
  std::string rope = fmt::format("rope:\n  kind: {}\n", rope_name(facts.rope_kind));
  for_each_fact(facts, [&](const char* fact, const auto& value) {
    constexpr std::string_view kRope = "rope_";
    const std::string_view key = fact;
    if constexpr (std::is_enum_v<std::decay_t<decltype(value)>>) {
      return;  // `kind` comes first
    } else if (key == "tied_lm_head") {
      text += fmt::format("{}: {}\n", key, value != 0);
    } else if (key == "qkv_bias" || key == "head_norm") {
      if (value != 0) text += fmt::format("{}: true\n", key);
    } else if (key == "kv_bits") {
      if (facts.kv_bits != ModelFacts{}.kv_bits) text += fmt::format("{}: {}\n", key, value);
    } else if (key.starts_with("weight_") || key == "lm_head_bits") {
      return;  // format_quantization()
    } else if (!key.starts_with(kRope)) {
      text += fmt::format("{}: {}\n", key, value);
    } else if (key == "rope_truncate") {
      if (facts.rope_kind == RopeKind::kYarn) rope += fmt::format("  truncate: {}\n", value != 0);
    } else if (key == "rope_theta" || rope_has(facts.rope_kind, key.substr(kRope.size()))) {
      rope += fmt::format("  {}: {}\n", key.substr(kRope.size()), value);
    }
  });
  return text + format_quantization(facts) + rope;
}

std::string model_name_of(const std::filesystem::path& folder) {
  std::filesystem::path path = std::filesystem::absolute(folder).lexically_normal();
  if (!path.has_filename()) path = path.parent_path();
  std::string name = path.filename().string();
  const std::string repository = path.parent_path().parent_path().filename().string();
  if (path.parent_path().filename() == "snapshots" && repository.starts_with("models--")) {
    name = repository.substr(repository.rfind("--") + 2);
  }
  for (char& c : name) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    const bool is_name_character =
        (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '.' || c == '-' || c == '_';
    if (!is_name_character) c = '-';
  }
  const size_t first = name.find_first_not_of(".-");  // neither a hidden file nor a flag
  return first == std::string::npos ? "model" : name.substr(first);
}

}  // namespace soliton
