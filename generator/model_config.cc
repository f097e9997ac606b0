// See model_config.h. The limits lie well above any model of today and well below what overflows.
#include "generator/model_config.h"

#include <fmt/format.h>

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

void read_llama3(const StrictYaml& rope, ModelFacts& facts) {
  facts.rope_kind = RopeKind::kLlama3;
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

void read_rope(const StrictYaml& rope, ModelFacts& facts) {
  rope.allow_keys({"kind", "theta", "factor", "low_freq_factor", "high_freq_factor", "original_context"});
  const std::string kind = rope.text_choice("kind", {"default", "llama3"});
  facts.rope_theta = rope.number("theta", kRopeTheta);
  if (kind == "llama3") return read_llama3(rope, facts);
  for (const char* key : {"factor", "low_freq_factor", "high_freq_factor", "original_context"}) {
    if (rope.has(key)) throw rope.error(key, "this key only with kind = llama3", "it with kind = default");
  }
}

}  // namespace

ModelConfig load_model_config(const std::filesystem::path& path) {
  return parse_model_config(StrictYaml::load(path), path.string());
}

ModelConfig parse_model_config(const StrictYaml& yaml, const std::string& path) {
  yaml.allow_keys({"name", "hidden", "ffn", "num_layers", "num_heads", "num_kv_heads", "head_dim",
                   "vocabulary", "tied_lm_head", "max_context", "norm_epsilon", "quantization", "rope"});
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
  if (yaml.has("quantization")) read_quantization(yaml.map("quantization"), config.facts);
  read_rope(yaml.map("rope"), config.facts);
  return config;
}

ModelConfig make_model_config(const std::string& name, const ModelFacts& facts, const std::string& source) {
  try {
    const std::string file = name + ".yaml";
    return parse_model_config(StrictYaml::parse(format_model_config(name, facts, ""), file), source);
  } catch (const UserError& error) {
    // "name.yaml:3: ffn: ...": there is no such file, and no such line.
    const std::string message = error.what();
    throw UserError(ExitCode::kPlanRefused,
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
  const bool is_llama3 = facts.rope_kind == RopeKind::kLlama3;
  std::string rope = fmt::format("rope:\n  kind: {}\n", is_llama3 ? "llama3" : "default");
  for_each_fact(facts, [&](const char* fact, const auto& value) {
    constexpr std::string_view kRope = "rope_";
    const std::string_view key = fact;
    if constexpr (std::is_enum_v<std::decay_t<decltype(value)>>) {
      return;  // `kind` comes first
    } else if (key == "tied_lm_head") {
      text += fmt::format("{}: {}\n", key, value != 0);
    } else if (key.starts_with("weight_") || key == "lm_head_bits") {
      return;  // format_quantization()
    } else if (!key.starts_with(kRope)) {
      text += fmt::format("{}: {}\n", key, value);
    } else if (is_llama3 || key == "rope_theta") {
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
