#include "models/model_config.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <sstream>
#include <string_view>
#include <vector>

#include "layout/fact_list.h"
#include "models/check.h"
#include "models/limits.h"
#include "models/matrix_roles.h"
#include "models/model_config_rope.h"
#include "models/strict_yaml.h"
#include "models/yaml_members.h"

namespace soliton {
namespace {

/// One for all layers, or a list.
void read_ffn(const StrictYaml& yaml, StatedFacts& stated) {
  if (!yaml.has_list("ffn")) return read_fact(yaml, "ffn", &ModelFacts::ffn, stated);
  const std::vector<int64_t> ffns = yaml.any_integers("ffn", describe_limit(&ModelFacts::ffn));
  Place place = yaml.place("ffn");
  place.got = fmt::format("[{}]", fmt::join(ffns, ", "));
  stated.state_layers(ffns, std::move(place));
}

/// Windows of the layers, or chunks, which take turns.
void read_widths(const StrictYaml& yaml, const char* key,
                 void (StatedFacts::*state)(const std::vector<int64_t>&, Place), StatedFacts& stated) {
  if (!yaml.has(key)) return;
  const std::string expected = "a number of tokens for all layers, or a list of them";
  std::vector<int64_t> widths;
  if (yaml.has_list(key)) {
    widths = yaml.any_integers(key, expected);
  } else {
    widths = {yaml.any_integer(key, expected)};
  }
  Place place = yaml.place(key);
  place.got = fmt::format("[{}]", fmt::join(widths, ", "));
  (stated.*state)(widths, std::move(place));
}

/// Which matrices have other integers than most.
void read_further(const StrictYaml& further, StatedFacts& stated) {
  further.allow_keys({"bits", "group", "minima", "block", "e2m1", "lm_head", "qkv", "o", "gate_up", "down"});
  ModelFacts& facts = stated.facts;
  read_fact(further, "bits", &ModelFacts::further_bits, stated);
  read_flag_if_there(further, "e2m1", &ModelFacts::further_e2m1, stated);
  if ((facts.further_e2m1 == 0 && facts.further_bits != 16) || further.has("group"))
    read_fact(further, "group", &ModelFacts::further_group, stated);
  read_flag_if_there(further, "minima", &ModelFacts::further_minima, stated);
  read_fact_if_there(further, "block", &ModelFacts::further_block, stated);
  if (further.boolean("lm_head")) facts.lm_head_bits = facts.further_bits;
  for (size_t role = 0; role < std::size(kMatrixRoleNames); ++role) {
    const char* const key = kMatrixRoleNames[role];
    if (!further.has(key)) continue;
    const std::string expected =
        fmt::format("numbers of layers below {}", std::min(facts.num_layers, kMostListedLayers));
    for (const int64_t layer : further.any_integers(key, expected)) {
      if (layer < 0 || layer >= std::min(facts.num_layers, kMostListedLayers))
        throw further.error(key, expected, fmt::format("{}", layer));
      facts.layer_further[layer] |= 1 << role;
    }
  }
}

/// How the matrices stand; without the key in bf16.
void read_quantization(const StrictYaml& quantization, StatedFacts& stated) {
  quantization.allow_keys(
      {"bits", "e4m3", "group", "symmetric", "act_order", "minima", "block", "lm_head", "further"});
  ModelFacts& facts = stated.facts;
  facts.weight_bits = quantization.integer_choice("bits", {4, 5, 6, 8, 16});
  if (facts.weight_bits == 16) {  // but for the further ones
    quantization.allow_keys({"bits", "further"});
    return read_further(quantization.map("further"), stated);
  }
  read_flag_if_there(quantization, "e4m3", &ModelFacts::weight_e4m3, stated);
  if (facts.weight_e4m3 != 0) {
    quantization.allow_keys({"bits", "e4m3", "lm_head"});
    facts.weight_group = kE4m3Group;
    if (quantization.boolean("lm_head")) facts.lm_head_bits = facts.weight_bits;
    return;
  }
  read_fact(quantization, "group", &ModelFacts::weight_group, stated);
  facts.weight_zeros = quantization.boolean("symmetric") ? 0 : 1;
  // A single group takes the columns as they come.
  facts.weight_order = quantization.boolean("act_order") && facts.weight_group > 0 ? 1 : 0;
  read_flag_if_there(quantization, "minima", &ModelFacts::weight_minima, stated);
  read_fact_if_there(quantization, "block", &ModelFacts::weight_block, stated);
  if (quantization.boolean("lm_head")) facts.lm_head_bits = facts.weight_bits;
  if (quantization.has("further")) read_further(quantization.map("further"), stated);
}

/// A bias of sigmoids counts for the choice alone, one of logits for weights too.
const char* router_bias_key(bool has_sigmoids) {
  return has_sigmoids ? "choice_bias" : "router_bias";
}

/// What layers have in place of one feed-forward network; without the key none has.
void read_experts(const StrictYaml& experts, StatedFacts& stated) {
  experts.allow_keys({"count", "per_token", "ffn", "renormalised", "shared", "shared_gate", "scores",
                      "choice_bias", "router_bias", "bias", "scale", "dense_layers"});
  read_fact(experts, "count", &ModelFacts::num_experts, stated);
  read_fact(experts, "per_token", &ModelFacts::experts_per_token, stated);
  read_fact(experts, "ffn", &ModelFacts::expert_ffn, stated);
  read_flag(experts, "renormalised", &ModelFacts::renormalised, stated);
  read_fact_if_there(experts, "shared", &ModelFacts::shared_experts, stated);
  read_flag_if_there(experts, "shared_gate", &ModelFacts::shared_gate, stated);
  if (experts.has("scores")) {
    stated.state(&ModelFacts::router_scores, find_router_scores(experts.text("scores")),
                 experts.place("scores"));
  }
  const bool has_sigmoids = stated.facts.router_scores == static_cast<int32_t>(RouterScores::kSigmoid);
  if (const char* const other = router_bias_key(!has_sigmoids); experts.has(other)) {
    throw experts.error(other,
                        fmt::format("{} where scores are {}", router_bias_key(has_sigmoids),
                                    has_sigmoids ? "sigmoids" : "a softmax"),
                        "it");
  }
  read_flag_if_there(experts, router_bias_key(has_sigmoids), &ModelFacts::router_bias, stated);
  read_flag_if_there(experts, "bias", &ModelFacts::expert_bias, stated);
  read_fact_if_there(experts, "scale", &ModelFacts::router_scale, stated);
  if (!experts.has("dense_layers")) return;
  const std::vector<int64_t> layers = experts.any_integers("dense_layers", "numbers of layers");
  Place place = experts.place("dense_layers");
  place.got = fmt::format("[{}]", fmt::join(layers, ", "));
  stated.state_dense_layers(layers, std::move(place));
}

}  // namespace

ModelConfig load_model_config(const std::filesystem::path& path) {
  return parse_model_config(StrictYaml::load(path), path.string());
}

ModelConfig parse_model_config(const StrictYaml& yaml, const std::string& path) {
  yaml.allow_keys({"name",
                   "hidden",
                   "ffn",
                   "num_layers",
                   "num_heads",
                   "num_kv_heads",
                   "head_dim",
                   "vocabulary",
                   "tied_lm_head",
                   "qkv_bias",
                   "o_bias",
                   "head_norm",
                   "joint_norm",
                   "head_norm_last",
                   "sinks",
                   "norms",
                   "norm_offset",
                   "windows",
                   "chunks",
                   "alibi",
                   "norm_bias",
                   "ffn_bias",
                   "ungated",
                   "activation",
                   "kv_bits",
                   "max_context",
                   "norm_epsilon",
                   "embedding_scale",
                   "residual_scale",
                   "attention_scale",
                   "attention_soft_cap",
                   "logit_scale",
                   "logit_soft_cap",
                   "query_scale_beta",
                   "query_scale_context",
                   "experts",
                   "quantization",
                   "rope"});
  const std::string name = yaml.name();
  StatedFacts stated = {.file = path};
  read_fact(yaml, "hidden", &ModelFacts::hidden, stated);
  read_ffn(yaml, stated);
  read_fact(yaml, "num_layers", &ModelFacts::num_layers, stated);
  read_fact(yaml, "num_heads", &ModelFacts::num_heads, stated);
  read_fact(yaml, "num_kv_heads", &ModelFacts::num_kv_heads, stated);
  read_fact(yaml, "head_dim", &ModelFacts::head_dim, stated);
  read_fact(yaml, "vocabulary", &ModelFacts::vocabulary, stated);
  read_flag(yaml, "tied_lm_head", &ModelFacts::tied_lm_head, stated);
  read_fact(yaml, "max_context", &ModelFacts::max_context, stated);
  read_fact(yaml, "norm_epsilon", &ModelFacts::norm_epsilon, stated);
  // Some families alone have these.
  read_flag_if_there(yaml, "qkv_bias", &ModelFacts::qkv_bias, stated);
  read_flag_if_there(yaml, "o_bias", &ModelFacts::o_bias, stated);
  read_flag_if_there(yaml, "head_norm", &ModelFacts::head_norm, stated);
  read_flag_if_there(yaml, "joint_norm", &ModelFacts::joint_norm, stated);
  read_flag_if_there(yaml, "head_norm_last", &ModelFacts::head_norm_last, stated);
  read_flag_if_there(yaml, "sinks", &ModelFacts::sinks, stated);
  if (yaml.has("norms"))
    stated.state(&ModelFacts::norms, find_norm_placement(yaml.text("norms")), yaml.place("norms"));
  read_flag_if_there(yaml, "norm_offset", &ModelFacts::norm_offset, stated);
  read_flag_if_there(yaml, "norm_bias", &ModelFacts::norm_bias, stated);
  read_flag_if_there(yaml, "ffn_bias", &ModelFacts::ffn_bias, stated);
  read_flag_if_there(yaml, "ungated", &ModelFacts::ungated, stated);
  read_fact_if_there(yaml, "embedding_scale", &ModelFacts::embedding_scale, stated);
  read_fact_if_there(yaml, "residual_scale", &ModelFacts::residual_scale, stated);
  read_fact_if_there(yaml, "attention_scale", &ModelFacts::attention_scale, stated);
  read_fact_if_there(yaml, "attention_soft_cap", &ModelFacts::attention_soft_cap, stated);
  read_fact_if_there(yaml, "alibi", &ModelFacts::alibi, stated);
  read_fact_if_there(yaml, "logit_scale", &ModelFacts::logit_scale, stated);
  read_fact_if_there(yaml, "logit_soft_cap", &ModelFacts::logit_soft_cap, stated);
  if (yaml.has("query_scale_beta") || yaml.has("query_scale_context")) {
    read_fact(yaml, "query_scale_beta", &ModelFacts::query_scale_beta, stated);
    read_fact(yaml, "query_scale_context", &ModelFacts::query_scale_context, stated);
  }
  read_widths(yaml, "windows", &StatedFacts::state_windows, stated);
  read_widths(yaml, "chunks", &StatedFacts::state_chunks, stated);
  if (yaml.has("activation")) {
    stated.state(&ModelFacts::activation, find_activation(yaml.text("activation")), yaml.place("activation"));
  }
  read_fact_if_there(yaml, "kv_bits", &ModelFacts::kv_bits, stated);
  if (yaml.has("experts")) read_experts(yaml.map("experts"), stated);
  if (yaml.has("quantization")) read_quantization(yaml.map("quantization"), stated);
  read_rope(yaml.map("rope"), stated);
  check(stated);
  return {.name = name, .path = path, .facts = stated.facts};
}

namespace {

/// The inverse of read_experts(); nothing where there are none.
std::string format_experts(const ModelFacts& facts) {
  if (facts.num_experts == 0) return "";
  std::string text =
      fmt::format("experts:\n  count: {}\n  per_token: {}\n  ffn: {}\n  renormalised: {}\n",
                  facts.num_experts, facts.experts_per_token, facts.expert_ffn, facts.renormalised != 0);
  if (facts.shared_experts != 0) text += fmt::format("  shared: {}\n", facts.shared_experts);
  if (facts.shared_gate != 0) text += "  shared_gate: true\n";
  if (facts.router_scores != 0)
    text += fmt::format("  scores: {}\n", kRouterScoresNames[facts.router_scores]);
  if (facts.router_bias != 0) text += fmt::format("  {}: true\n", router_bias_key(facts.router_scores != 0));
  if (facts.expert_bias != 0) text += "  bias: true\n";
  if (facts.router_scale != 1.0) text += fmt::format("  scale: {}\n", facts.router_scale);
  const std::vector<int> dense = dense_layers(facts);
  if (!dense.empty()) text += fmt::format("  dense_layers: [{}]\n", fmt::join(dense, ", "));
  return text;
}

/// The inverse of read_further().
std::string format_further(const ModelFacts& facts) {
  if (facts.further_bits == 0) return "";
  std::string text = fmt::format("  further:\n    bits: {}\n", facts.further_bits);
  if (facts.further_e2m1 != 0) text += "    e2m1: true\n";
  if (facts.further_group != 0) text += fmt::format("    group: {}\n", facts.further_group);
  if (facts.further_minima != 0) text += "    minima: true\n";
  if (facts.further_block != 0) text += fmt::format("    block: {}\n", facts.further_block);
  text += fmt::format("    lm_head: {}\n", facts.lm_head_bits == facts.further_bits);
  for (size_t role = 0; role < std::size(kMatrixRoleNames); ++role) {
    std::vector<int> layers;
    for (int layer = 0; layer < std::min(facts.num_layers, kMostListedLayers); ++layer) {
      if ((facts.layer_further[layer] >> role & 1) != 0) layers.push_back(layer);
    }
    if (!layers.empty())
      text += fmt::format("    {}: [{}]\n", kMatrixRoleNames[role], fmt::join(layers, ", "));
  }
  return text;
}

/// The inverse of read_quantization(); nothing for matrices in bf16.
std::string format_quantization(const ModelFacts& facts) {
  if (facts.weight_bits == 16)
    return facts.further_bits == 0 ? "" : "quantization:\n  bits: 16\n" + format_further(facts);
  if (facts.weight_e4m3 != 0) {
    return fmt::format("quantization:\n  bits: {}\n  e4m3: true\n  lm_head: {}\n", facts.weight_bits,
                       facts.lm_head_bits == facts.weight_bits);
  }
  std::string text =
      fmt::format("quantization:\n  bits: {}\n  group: {}\n  symmetric: {}\n  act_order: {}\n",
                  facts.weight_bits, facts.weight_group, facts.weight_zeros == 0, facts.weight_order != 0);
  if (facts.weight_minima != 0) text += "  minima: true\n";
  if (facts.weight_block != 0) text += fmt::format("  block: {}\n", facts.weight_block);
  return text + fmt::format("  lm_head: {}\n", facts.lm_head_bits == facts.weight_bits) +
         format_further(facts);
}

}  // namespace

std::string format_model_config(const std::string& name, const ModelFacts& facts,
                                const std::string& comment) {
  std::string text;
  std::istringstream lines(comment);
  for (std::string line; std::getline(lines, line);) text += fmt::format("# {}\n", line);
  text += fmt::format("name: {}\n", name);
  for_each_fact(facts, [&](const char* fact, const auto& value) {
    const std::string_view key = fact;
    if constexpr (std::is_enum_v<std::decay_t<decltype(value)>>) {
      return;  // format_rope()
    } else if (key == "tied_lm_head") {
      text += fmt::format("{}: {}\n", key, value != 0);
    } else if (key == "ffn") {
      text += fmt::format("{}: {}\n", key, show_ffn(facts));
    } else if (key == "qkv_bias" || key == "o_bias" || key.starts_with("head_norm") || key == "joint_norm" ||
               key == "sinks" || key == "norm_offset" || key == "norm_bias" || key == "ffn_bias" ||
               key == "ungated") {
      if (value != 0) text += fmt::format("{}: true\n", key);
    } else if (key == "max_context") {
      if (has_windows(facts)) text += fmt::format("windows: {}\n", show_windows(facts));
      if (has_chunks(facts)) text += fmt::format("chunks: {}\n", show_chunks(facts));
      text += fmt::format("{}: {}\n", key, value);
    } else if (key == "norms") {
      text += fmt::format("{}: {}\n", key, kNormPlacementNames[facts.norms]);
    } else if (key == "activation") {
      if (value != 0) text += fmt::format("{}: {}\n", key, kActivationNames[facts.activation]);
    } else if (key == "kv_bits") {
      if (facts.kv_bits != ModelFacts{}.kv_bits) text += fmt::format("{}: {}\n", key, value);
    } else if (key.starts_with("weight_") || key.starts_with("further_") || key == "lm_head_bits") {
      return;  // format_quantization()
    } else if (key == "num_experts" || key == "renormalised" || key.starts_with("expert") ||
               key.starts_with("shared_") || key.starts_with("router_")) {
      return;  // format_experts()
    } else if (!key.starts_with("rope_")) {
      text += fmt::format("{}: {}\n", key, value);
    }
  });
  return text + format_experts(facts) + format_quantization(facts) + format_rope(facts);
}

std::string model_name_of(const std::filesystem::path& folder) {
  std::filesystem::path path = std::filesystem::absolute(folder).lexically_normal();
  if (!path.has_filename()) path = path.parent_path();
  std::string name = (path.extension() == ".gguf" ? path.stem() : path.filename()).string();
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
