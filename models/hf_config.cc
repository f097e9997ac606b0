#include "models/hf_config.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>

#include "models/check.h"
#include "models/families/family.h"
#include "models/gguf_config.h"
#include "models/hf_experts.h"
#include "models/hf_generation.h"
#include "models/hf_layers.h"
#include "models/hf_members.h"
#include "models/hf_modules.h"
#include "models/hf_rope.h"
#include "models/limits.h"
#include "models/mapped_file.h"
#include "models/strict_json.h"

namespace soliton {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

/// One for all layers, or a list.
void read_ffn(const JsonView& view, StatedFacts& stated) {
  if (!view.is_array() || view.array_size() == 0) return read_fact(view, &ModelFacts::ffn, stated);
  std::vector<int64_t> ffns;
  for (size_t i = 0; i < view.array_size(); ++i) ffns.push_back(view[i].integer());
  Place place = view.place();
  place.got = fmt::format("[{}]", fmt::join(ffns, ", "));
  stated.state_layers(ffns, std::move(place));
}

const Family& read_family(const JsonView& config) {
  const JsonView architectures = config["architectures"];
  if (architectures.array_size() != 1) {
    throw architectures.error("expected one architecture, got {}", architectures.array_size());
  }
  const std::string name = architectures[0].string();
  const auto family =
      std::ranges::find_if(families(), [&](const Family* each) { return name == each->architecture; });
  if (family == families().end()) {
    if (const auto missing = what_is_missing_for(name))
      throw architectures.error(ExitCode::kMismatch, "expected a model without {}, got {}", *missing,
                                in_quotes(name));
    constexpr std::string_view kUsualEnd = "ForCausalLM";
    std::vector<std::string> known;   // without this end, so that the line can be read
    std::vector<std::string> others;  // that have another
    for (const Family* each : families()) {
      std::string architecture = each->architecture;
      const bool is_usual = architecture.ends_with(kUsualEnd);
      if (is_usual) architecture.resize(architecture.size() - kUsualEnd.size());
      (is_usual ? known : others).push_back(std::move(architecture));
    }
    throw architectures.error(ExitCode::kMismatch, "expected {} of {}, or {}, got {}", kUsualEnd,
                              fmt::join(known, ", "), fmt::join(others, ", "), in_quotes(name));
  }
  const JsonView model_type = config["model_type"];
  if (!model_type.is_null() && model_type.string() != (*family)->model_type) {
    throw model_type.error(ExitCode::kMismatch, "expected \"{}\", got {}", (*family)->model_type,
                           model_type.describe());
  }
  return **family;
}

void refuse_unsupported(const JsonView& config, const Family& family) {
  for (const std::string_view bias : {"attention_bias", "mlp_bias"}) {
    const auto says = [&](const char* member) { return member != nullptr && bias == member; };
    if (bias == "attention_bias" && (family.qkv_bias || says(family.qkv_bias_member))) continue;
    if (bias == "mlp_bias" && (family.ffn_bias || says(family.ffn_bias_member))) continue;
    const JsonView view = config[bias];
    if (boolean_or(view, false))
      throw view.error(ExitCode::kMismatch, "expected false, got true: not supported");
  }
  if (family.unsupported != nullptr && !config[family.unsupported].is_null()) {
    const JsonView view = config[family.unsupported];
    throw view.error(ExitCode::kMismatch, "expected null, got {}: not supported", view.describe());
  }
}

/// What an absent head_dim means. Zero where what it is worked out from cannot be, which check() says first.
int32_t implied_head_dim(const JsonView& config, const Family& family, const ModelFacts& facts) {
  if (is_absent(config, "head_dim") && family.absent_head_dim) return *family.absent_head_dim;
  if (!kHeadsLimit.contains(facts.num_heads) || !kHiddenLimit.contains(facts.hidden)) return 0;
  if (facts.hidden % facts.num_heads != 0) {
    throw config["num_attention_heads"].error(
        "expected a divisor of hidden_size = {} where head_dim is absent, got {}", facts.hidden,
        facts.num_heads);
  }
  return facts.hidden / facts.num_heads;
}

void read_sizes(const JsonView& config, const Family& family, StatedFacts& stated) {
  ModelFacts& facts = stated.facts;
  read_fact(config["hidden_size"], &ModelFacts::hidden, stated);
  read_ffn(config[family.ffn_member], stated);
  read_fact(config["num_hidden_layers"], &ModelFacts::num_layers, stated);
  const auto read_size = [&](const char* member, int32_t ModelFacts::*fact, std::optional<int32_t> absent) {
    if (absent && is_absent(config, member)) return read_fact_or(config[member], fact, *absent, stated);
    read_fact(config[member], fact, stated);
  };
  read_size("num_attention_heads", &ModelFacts::num_heads, family.absent_heads);
  read_size("vocab_size", &ModelFacts::vocabulary, family.absent_vocabulary);
  read_size("max_position_embeddings", &ModelFacts::max_context, family.absent_context);
  const int32_t implied_kv_heads = is_absent(config, "num_key_value_heads")
                                       ? family.absent_kv_heads.value_or(facts.num_heads)
                                       : facts.num_heads;
  read_fact_or(config["num_key_value_heads"], &ModelFacts::num_kv_heads, implied_kv_heads, stated);
  const JsonView head_dim = config["head_dim"];
  read_fact_or(head_dim, &ModelFacts::head_dim,
               head_dim.is_null() ? implied_head_dim(config, family, facts) : 0, stated);
  const Place family_place = config["architectures"].place();
  const auto state_either = [&](int32_t ModelFacts::*fact, const char* member, bool fallback,
                                std::string_view what) {
    if (member == nullptr) return state_flag(fact, fallback, part_of(family_place, what), stated);
    state_flag(fact, boolean_or(config[member], fallback), config[member].place(), stated);
  };
  state_either(&ModelFacts::qkv_bias, family.qkv_bias_member, family.qkv_bias, "biases of q, k and v");
  const char* const o_bias_member = family.o_bias ? family.qkv_bias_member : family.o_bias_member;
  state_either(&ModelFacts::o_bias, o_bias_member, family.o_bias, "biases of o");
  state_either(&ModelFacts::ffn_bias, family.ffn_bias_member, family.ffn_bias,
               "biases of feed-forward networks");
  state_either(&ModelFacts::sinks, nullptr, family.sinks, "sinks");
  state_either(&ModelFacts::head_norm, family.head_norm_member, family.head_norm, "norms of heads");
  state_either(&ModelFacts::joint_norm, nullptr, family.joint_norm, "norms of all heads together");
  state_either(&ModelFacts::head_norm_last, nullptr, family.head_norm_last, "weights of heads' norms last");
  state_either(&ModelFacts::norm_bias, nullptr, family.norm_bias, "biases of norms");
  state_either(&ModelFacts::ungated, nullptr, family.ungated, "networks without a gate");
  state_either(&ModelFacts::norm_offset, nullptr, family.norm_offset, "norms by 1 + weight");
  Place placement = part_of(family_place, "norms");
  placement.got = kNormPlacementNames[static_cast<int32_t>(family.norms)];
  stated.state(&ModelFacts::norms, static_cast<int32_t>(family.norms), std::move(placement));
  const JsonView tied = config["tie_word_embeddings"];
  state_flag(&ModelFacts::tied_lm_head, boolean_or(tied, family.absent_tied), tied.place(), stated);
  read_activation(config, family, stated);
  read_fact_or(config[family.norm_epsilon_member], &ModelFacts::norm_epsilon, family.absent_norm_epsilon,
               stated);
  if (family.read_further != nullptr) family.read_further(config, stated);
}

void state_quantization(const JsonView& config, const std::optional<QuantizationConfig>& quantization,
                        StatedFacts& stated) {
  const Place config_place = config["quantization_config"].place();
  const bool is_elsewhere = quantization && quantization->file != config_place.file;
  const auto state = [&](int32_t ModelFacts::*fact, auto value, std::string_view what) {
    Place place = is_elsewhere ? Place{.file = quantization->file, .key = std::string(what), .got = {}}
                               : part_of(config_place, what);
    place.got = fmt::format("{}", value);
    stated.state(fact, value, std::move(place));
  };
  const ModelFacts none;
  const bool is_there =
      quantization && quantization->method != QuantizationMethod::kE2m1;  // see state_modules()
  state(&ModelFacts::weight_bits, is_there ? quantization->bits : none.weight_bits, "bits");
  state(&ModelFacts::weight_group, is_there ? quantization->group_size : none.weight_group, "group size");
  state(&ModelFacts::weight_e4m3, is_there && quantization->method == QuantizationMethod::kFp8, "E4M3");
  state(&ModelFacts::weight_zeros, is_there && !quantization->symmetric, "zeros");
  // A single group takes the columns as they come.
  state(&ModelFacts::weight_order, is_there && quantization->act_order && quantization->group_size > 0,
        "act-order");
  state(&ModelFacts::lm_head_bits, is_there && quantization->lm_head ? quantization->bits : none.lm_head_bits,
        "bits of lm_head");
}

/// The same of a GGUF file, whose matrices may differ.
void state_formats(const QuantizationConfig& quantization, StatedFacts& stated) {
  const MatrixFormats& formats = *quantization.formats;
  const auto state = [&](int32_t ModelFacts::*fact, int64_t value) {
    stated.state(fact, value,
                 {.file = quantization.file, .key = "types of tensors", .got = fmt::format("{}", value)});
  };
  state(&ModelFacts::weight_minima, formats.most.has_minima);
  state(&ModelFacts::weight_block, formats.most.block);
  state(&ModelFacts::lm_head_bits, formats.lm_head.bits());
  if (!formats.further.has_scales()) return;
  state(&ModelFacts::further_bits, formats.further.bits());
  state(&ModelFacts::further_group, formats.further.group);
  state(&ModelFacts::further_minima, formats.further.has_minima);
  state(&ModelFacts::further_block, formats.further.block);
  const size_t layers = std::min<size_t>(formats.layer_further.size(), kMostListedLayers);
  std::copy_n(formats.layer_further.begin(), layers, stated.facts.layer_further);
}

bool has_mxfp4(const JsonView& config, const Family& family) {
  const JsonView quantization = config["quantization_config"];
  if (quantization.is_null()) return false;
  const JsonView method = quantization["quant_method"];
  return !method.is_null() && method.string() == "mxfp4" && family.mixture &&
         family.mixture->names.is_interleaved;
}

Checkpoint checkpoint_of(const Family& family, const ModelFacts& facts) {
  LayerNames names;
  for (const char* norm : family.norm_names) {
    if (norm != nullptr) names.norms.emplace_back(norm);
  }
  for (size_t i = 0; i < family.head_norm_names.size(); ++i) {
    if (family.head_norm_names[i] != nullptr) names.head_norms[i] = family.head_norm_names[i];
  }
  if (family.tensors_prefix != nullptr) names.prefix = family.tensors_prefix;
  names.tensors = family.tensors;
  names.pairs = family.pairs;
  return make_checkpoint(facts, family.projections, family.mixture ? family.mixture->names : MixtureNames{},
                         names);
}

std::string read_dtype(const JsonView& config) {
  const JsonView current = config["dtype"];
  const JsonView legacy = config["torch_dtype"];
  if (!current.is_null() && !legacy.is_null() && current.string() != legacy.string()) {
    throw legacy.error("expected what dtype says, {}, got {}", current.describe(), legacy.describe());
  }
  const JsonView view = current.is_null() ? legacy : current;
  return view.is_null() ? "" : view.string();
}

}  // namespace

HfConfig HfConfig::open(const fs::path& folder) {
  if (is_gguf(folder)) return open_gguf_config(folder);
  const fs::path path = folder / "config.json";
  const std::string name = path.string();
  const json document = read_json(path);
  const JsonView root(document, name);
  std::optional<QuantizationConfig> quantization;
  if (!has_mxfp4(root, read_family(root))) quantization = QuantizationConfig::read(root, folder);
  HfConfig config = read(document, name, std::move(quantization));

  const fs::path generation_path = folder / "generation_config.json";
  if (is_present(generation_path)) {
    const std::string generation_name = generation_path.string();
    const json generation = read_json(generation_path);
    const JsonView view(generation, generation_name);
    read_token_ids(view, config);
    config.generation = read_generation(view);
  }
  sort_eos_ids(config);
  return config;
}

HfConfig HfConfig::read(const json& document, const std::string& file,
                        std::optional<QuantizationConfig> quantization,
                        const std::function<std::string(const std::string&)>& rename) {
  const JsonView root(document, file);
  HfConfig config;
  const Family& family = read_family(root);
  config.architecture = family.architecture;
  const json translated = family.translate == nullptr ? json() : family.translate(root);
  const JsonView text = family.translate != nullptr     ? JsonView(translated, file)
                        : family.text_member == nullptr ? root
                                                        : root[family.text_member];
  refuse_unsupported(text, family);
  StatedFacts stated = {.file = file, .unsupported = ExitCode::kMismatch};
  read_sizes(text, family, stated);
  read_layer_windows(text, family, stated);
  if (family.mixture.has_value()) read_experts(text, *family.mixture, stated);
  read_rope(text, family, stated);
  read_layer_ropes(text, family, stated);
  if (has_mxfp4(root, family)) stated.state_mxfp4_experts(root["quantization_config"].place());
  config.quantization = std::move(quantization);
  state_quantization(root, config.quantization, stated);
  if (config.quantization && config.quantization->formats) state_formats(*config.quantization, stated);
  if (rename) {
    for (auto& [fact, place] : stated.places) place.key = rename(place.key);
  }
  check(stated);
  if (config.quantization && names_modules(*config.quantization)) {
    state_modules(*config.quantization, checkpoint_of(family, stated.facts), stated);
    check(stated);
  }
  config.facts = stated.facts;
  config.stated = stated;
  config.checkpoint = checkpoint_of(family, config.facts);
  if (family.further_layers != nullptr && !root[family.further_layers].is_null()) {
    config.checkpoint.further_layers =
        static_cast<int>(root[family.further_layers].integer(0, kLayersLimit.max));
  }
  config.dtype = read_dtype(root);
  read_token_ids(root, config);
  sort_eos_ids(config);
  return config;
}

}  // namespace soliton
