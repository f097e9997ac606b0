// config.json has two schemas: rope_theta and rope_scaling at the top, or both inside rope_parameters, which
// may be nested by layer type. A file that states both has to state the same.
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
#include "models/limits.h"
#include "models/mapped_file.h"
#include "models/strict_json.h"

namespace soliton {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr double kMaxScale = 1e15;  // of yarn's mscale, which is no fact

/// One for all layers, or a list.
void read_ffn(const JsonView& view, StatedFacts& stated) {
  if (!view.is_array() || view.array_size() == 0) return read_fact(view, &ModelFacts::ffn, stated);
  std::vector<int64_t> ffns;
  for (size_t i = 0; i < view.array_size(); ++i) ffns.push_back(view[i].integer());
  Place place = view.place();
  place.got = fmt::format("[{}]", fmt::join(ffns, ", "));
  stated.state_layers(ffns, std::move(place));
}

double number_or(const JsonView& view, double fallback, double min, double max) {
  return view.is_null() ? fallback : view.number(min, max);
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

/// Tokens that each one attends to, itself among them, if the model says so; whether in all layers or some is the same
/// here.
std::optional<int32_t> read_sliding_window(const JsonView& config, const Family& family) {
  if (family.window == Window::kNone || family.window == Window::kLayers) return std::nullopt;
  if (family.window == Window::kSwitched && !boolean_or(config["use_sliding_window"], false))
    return std::nullopt;
  if (is_absent(config, "sliding_window")) return family.absent_window;
  const JsonView view = config["sliding_window"];
  if (view.is_null()) return std::nullopt;
  return static_cast<int32_t>(view.integer(1, std::numeric_limits<int32_t>::max()));
}

/// A window that never leaves a token out is none: up to its width the model attends to everything.
bool end_context_with_window(const JsonView& config, const Family& family, StatedFacts& stated) {
  const std::optional<int32_t> window = read_sliding_window(config, family);
  if (!window || *window >= stated.facts.max_context) return false;
  Place place = config["sliding_window"].place();
  place.got = fmt::format("{}", *window);
  stated.state(&ModelFacts::max_context, *window, std::move(place));
  return true;
}

void refuse_unsupported(const JsonView& config, const Family& family) {
  for (const std::string_view bias : {"attention_bias", "mlp_bias"}) {
    const char* const member = family.qkv_bias_member;
    if (bias == "attention_bias" && (family.qkv_bias || (member != nullptr && bias == member))) continue;
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
  read_ffn(config["intermediate_size"], stated);
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
  state_either(&ModelFacts::sinks, nullptr, family.sinks, "sinks");
  state_either(&ModelFacts::head_norm, family.head_norm_member, family.head_norm, "norms of heads");
  state_either(&ModelFacts::joint_norm, nullptr, family.joint_norm, "norms of all heads together");
  state_either(&ModelFacts::norm_offset, nullptr, family.norm_offset, "norms by 1 + weight");
  Place placement = part_of(family_place, "norms");
  placement.got = kNormPlacementNames[static_cast<int32_t>(family.norms)];
  stated.state(&ModelFacts::norms, static_cast<int32_t>(family.norms), std::move(placement));
  const JsonView tied = config["tie_word_embeddings"];
  state_flag(&ModelFacts::tied_lm_head, boolean_or(tied, family.absent_tied), tied.place(), stated);
  read_activation(config, family, stated);
  read_fact_or(config["rms_norm_eps"], &ModelFacts::norm_epsilon, family.absent_norm_epsilon, stated);
  if (family.read_further != nullptr) family.read_further(config, stated);
}

/// The object that describes RoPE, whichever schema it comes from; may be null.
JsonView find_rope(const JsonView& config, const Family& family) {
  const JsonView scaling = config["rope_scaling"];
  const JsonView parameters = config["rope_parameters"];
  if (parameters.is_null()) return scaling;
  if (!scaling.is_null() && scaling.object() != parameters.object()) {
    throw scaling.error("expected what rope_parameters says, or nothing; got something else");
  }
  const json& members = parameters.object();
  const bool nested = !members.empty() && std::all_of(members.begin(), members.end(),
                                                      [](const json& member) { return member.is_object(); });
  if (!nested) return parameters;
  if (family.ropes == Ropes::kOfWindows && members.contains("full_attention"))
    return parameters["full_attention"];
  for (const json& member : members) {
    if (member != members.front()) {
      throw parameters.error(ExitCode::kMismatch, "expected the same for every layer type, got differences");
    }
  }
  return parameters[members.begin().key()];
}

/// From rope_type or its older name `type`.
RopeKind read_rope_kind(const JsonView& rope) {
  const JsonView current = rope["rope_type"];
  const JsonView legacy = rope["type"];
  if (!current.is_null() && !legacy.is_null() && current.string() != legacy.string()) {
    throw legacy.error("expected what rope_type says, {}, got {}", current.describe(), legacy.describe());
  }
  const JsonView view = current.is_null() ? legacy : current;
  if (view.is_null()) {
    if (!rope["factor"].is_null()) throw current.error("expected a string beside factor, got nothing");
    return RopeKind::kDefault;
  }
  std::vector<std::string> known;
  for (const RopeKind kind : {RopeKind::kDefault, RopeKind::kLlama3, RopeKind::kLinear, RopeKind::kYarn}) {
    if (view.string() == rope_name(kind)) return kind;
    known.push_back(in_quotes(rope_name(kind)));
  }
  throw view.error(ExitCode::kMismatch, "expected one of {}, got {}", fmt::join(known, ", "),
                   view.describe());
}

void read_llama3_rope(const JsonView& rope, StatedFacts& stated) {
  read_fact(rope["factor"], &ModelFacts::rope_factor, stated);
  read_fact(rope["low_freq_factor"], &ModelFacts::rope_low_freq_factor, stated);
  read_fact(rope["high_freq_factor"], &ModelFacts::rope_high_freq_factor, stated);
  read_fact(rope["original_max_position_embeddings"], &ModelFacts::rope_original_context, stated);
}

/// The context may be stated as it was before it was stretched: what is stretched to counts if it is longer.
void stretch_context(const JsonView& rope, StatedFacts& stated) {
  const ModelFacts& facts = stated.facts;
  if (!kRopeFactorLimit.contains(facts.rope_factor)) return;  // check() says so
  const auto stretched = static_cast<int64_t>(facts.rope_factor * facts.rope_original_context);
  if (stretched <= facts.max_context) return;
  Place place = stated.place(&ModelFacts::max_context);
  place.got += fmt::format(", stretched to {} by {}", stretched, rope["factor"].place().key);
  stated.state(&ModelFacts::max_context, stretched, place);
}

/// As transformers reads it.
void read_yarn_rope(const JsonView& rope, StatedFacts& stated) {
  ModelFacts& facts = stated.facts;
  read_fact_or(rope["original_max_position_embeddings"], &ModelFacts::rope_original_context,
               facts.max_context, stated);
  const double implied_factor = std::max(1.0, double(facts.max_context) / facts.rope_original_context);
  read_fact_or(rope["factor"], &ModelFacts::rope_factor, implied_factor, stated);
  read_fact_or(rope["beta_fast"], &ModelFacts::rope_beta_fast, facts.rope_beta_fast, stated);
  read_fact_or(rope["beta_slow"], &ModelFacts::rope_beta_slow, facts.rope_beta_slow, stated);
  const JsonView truncate = rope["truncate"];
  state_flag(&ModelFacts::rope_truncate, boolean_or(truncate, true), truncate.place(), stated);
  const double mscale = number_or(rope["mscale"], 0.0, 0.0, kMaxScale);
  const double mscale_all_dim = number_or(rope["mscale_all_dim"], 0.0, 0.0, kMaxScale);
  const bool is_scaled = mscale != 0.0 && mscale_all_dim != 0.0;
  const double implied = is_scaled ? yarn_attention_factor(facts.rope_factor, mscale) /
                                         yarn_attention_factor(facts.rope_factor, mscale_all_dim)
                                   : yarn_attention_factor(facts.rope_factor);
  read_fact_or(rope["attention_factor"], &ModelFacts::rope_attention_factor, implied, stated);
  stretch_context(rope, stated);
}

/// Which share of a head's dims is rotated. Families that have no such share take 1.
void read_rotary_factor(const JsonView& view, const Family& family, StatedFacts& stated) {
  if (view.is_null()) return;
  const double factor = view.number(0.0, 1.0);
  if (!family.absent_rotary_factor && factor != 1.0)
    throw view.error(ExitCode::kMismatch, "expected 1, got {}: not supported", view.describe());
  const auto dims = static_cast<int32_t>(stated.facts.head_dim * factor);
  Place place = view.place();
  place.got += fmt::format(", which is {} dims", dims);
  stated.state(&ModelFacts::rope_dims, factor == 1.0 ? 0 : dims, std::move(place));
}

void read_rope(const JsonView& config, const Family& family, StatedFacts& stated) {
  const JsonView top_theta = config["rope_theta"];
  read_fact_or(top_theta, &ModelFacts::rope_theta, family.absent_rope_theta, stated);
  stated.facts.rope_dims =
      static_cast<int32_t>(stated.facts.head_dim * family.absent_rotary_factor.value_or(0));
  read_rotary_factor(config["partial_rotary_factor"], family, stated);
  const JsonView rope = find_rope(config, family);
  if (rope.is_null() && family.states_rope)
    throw config["rope_scaling"].error("expected an object, got nothing");
  if (rope.is_null()) {
    Place place = config["rope_scaling"].place();
    place.got = rope_name(RopeKind::kDefault);
    return stated.state(&ModelFacts::rope_kind, RopeKind::kDefault, std::move(place));
  }
  if (const JsonView theta = rope["rope_theta"]; !theta.is_null()) {
    if (!top_theta.is_null() && theta.number() != top_theta.number()) {
      throw theta.error("expected what rope_theta at the top says, {}, got {}", top_theta.number(),
                        theta.number());
    }
    read_fact(theta, &ModelFacts::rope_theta, stated);
  }
  read_rotary_factor(rope["partial_rotary_factor"], family, stated);
  const RopeKind kind = read_rope_kind(rope);
  Place kind_place = rope["rope_type"].is_null() ? rope["type"].place() : rope["rope_type"].place();
  kind_place.got = rope_name(kind);
  stated.state(&ModelFacts::rope_kind, kind, std::move(kind_place));
  if (kind == RopeKind::kLlama3) read_llama3_rope(rope, stated);
  if (kind == RopeKind::kLinear) read_fact(rope["factor"], &ModelFacts::rope_factor, stated);
  if (kind == RopeKind::kYarn) read_yarn_rope(rope, stated);
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
  const bool is_there = quantization.has_value();
  state(&ModelFacts::weight_bits, is_there ? quantization->bits : none.weight_bits, "bits");
  state(&ModelFacts::weight_group, is_there ? quantization->group_size : none.weight_group, "group size");
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
  const JsonView text = family.text_member == nullptr ? root : root[family.text_member];
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
  config.ends_with_window = end_context_with_window(text, family, stated);
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
