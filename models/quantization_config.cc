// Dialects of several writers. Each is read into the members it states, so that two files can be compared member by member
// before defaults blur what was said.
#include "models/quantization_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "models/limits.h"

namespace soliton {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using Method = QuantizationMethod;

constexpr const char* kSecondFile = "quantize_config.json";
constexpr int64_t kMaxBits = 64;
constexpr std::array kStoredBits = {4, 8};
constexpr int kFp8Bits = 8;
constexpr int kNibbleBits = 4;  // of all that AWQ writes, and of E2M1
constexpr int kMxfp4Group = 32;
constexpr std::array kStoredGroups = {-1, 32, 64, 128};
constexpr int64_t kMaxGroupSize = 1 << 20;
constexpr int64_t kOneGroup = -1;

struct MethodName {
  Method method;
  const char* name;
};
constexpr std::array kMethods = {MethodName{Method::kGptq, "gptq"},
                                 MethodName{Method::kAwq, "awq"},
                                 MethodName{Method::kCompressedTensors, "compressed-tensors"},
                                 MethodName{Method::kFp8, "fp8"},
                                 MethodName{Method::kFp8, "modelopt"},
                                 MethodName{Method::kE2m1, "quark"}};

/// A member that may be absent, and where it is or would be.
template <class T>
struct Member {
  JsonView view;
  std::optional<T> value;
};

/// What one file states. Until a member is read, its place is the root.
struct Stated {
  explicit Stated(const JsonView& root)
      : method{root, {}},
        bits{root, {}},
        group_size{root, {}},
        symmetric{root, {}},
        act_order{root, {}},
        lm_head{root, {}},
        zeros{root, {}},
        dynamic{root, {}} {}

  Member<Method> method;
  Member<int> bits;
  Member<int> group_size;
  Member<bool> symmetric;
  Member<bool> act_order;
  Member<bool> lm_head;
  Member<ZeroFormat> zeros;
  Member<json> dynamic;
  ModuleRules modules = {};
};

std::optional<bool> optional_boolean(const JsonView& view) {
  return view.is_null() ? std::nullopt : std::optional(view.boolean());
}

Member<bool> boolean_member(const JsonView& view) {
  return {view, optional_boolean(view)};
}

bool same_letters(std::string_view text, std::string_view lower) {
  return std::equal(text.begin(), text.end(), lower.begin(), lower.end(), [](char a, char b) {
    return (a >= 'A' && a <= 'Z' ? static_cast<char>(a - 'A' + 'a') : a) == b;
  });
}

Error unsupported(const JsonView& view, std::string_view expected) {
  return view.error(ExitCode::kMismatch, "expected {}, got {}: not supported", expected, view.describe());
}

/// Refuses a member that is present with anything but `only`, in any case of letters.
void expect_only(const JsonView& view, std::string_view only) {
  if (!view.is_null() && !same_letters(view.string(), only)) throw unsupported(view, in_quotes(only));
}

/// Refuses a member that is more than null, or an object or array without elements.
void expect_empty(const JsonView& view, const char* expected) {
  if (view.is_null()) return;
  if (view.is_array() ? view.array_size() > 0 : !view.object().empty()) throw unsupported(view, expected);
}

void expect_null(const JsonView& view) {
  if (!view.is_null()) throw unsupported(view, "nothing or null");
}

int read_bits(const JsonView& view) {
  const int64_t bits = view.integer(1, kMaxBits);
  constexpr IntegerChoice kChoice = {kStoredBits};
  if (!kChoice.contains(bits)) throw unsupported(view, kChoice.describe());
  return static_cast<int>(bits);
}

Member<int> bits_member(const JsonView& view) {
  return {view, view.is_null() ? std::nullopt : std::optional(read_bits(view))};
}

int read_group_size(const JsonView& view) {
  const int64_t size = view.integer(kOneGroup, kMaxGroupSize);
  constexpr IntegerChoice kSizes = {kStoredGroups};
  if (!kSizes.contains(size)) throw unsupported(view, kSizes.describe());
  return static_cast<int>(size);
}

Member<int> group_size_member(const JsonView& view) {
  return {view, view.is_null() ? std::nullopt : std::optional(read_group_size(view))};
}

Method read_method(const JsonView& view) {
  const std::string& name = view.string();
  for (const MethodName& known : kMethods) {
    if (name == known.name) return known.method;
  }
  throw unsupported(
      view,
      "\"gptq\", \"awq\", \"compressed-tensors\", \"fp8\", \"modelopt\", \"quark\" or \"bitsandbytes\"");
}

/// Is it bitsandbytes' nf4, whose layers are floats when they are read? Refuses what else bitsandbytes writes.
bool is_nf4(const JsonView& root) {
  const JsonView method = root["quant_method"];
  if (method.is_null() || method.string() != "bitsandbytes") return false;
  const JsonView type = root["bnb_4bit_quant_type"];
  if (!optional_boolean(root["load_in_4bit"]).value_or(false))
    throw unsupported(root["load_in_4bit"], "true");
  if (type.string() != "nf4") throw unsupported(type, "\"nf4\"");
  expect_only(root["bnb_4bit_quant_storage"], "uint8");
  return true;
}

/// gptq or gptq_v2, from checkpoint_format or its newer name `format`.
Member<ZeroFormat> read_zero_format(const JsonView& root) {
  const JsonView older = root["checkpoint_format"];
  const JsonView newer = root["format"];
  if (!older.is_null() && !newer.is_null() && older.string() != newer.string()) {
    throw newer.error("expected what checkpoint_format says, {}, got {}", older.describe(), newer.describe());
  }
  const JsonView view = older.is_null() ? newer : older;
  if (view.is_null()) return {view, std::nullopt};
  for (const ZeroFormat zeros : {ZeroFormat::kV1, ZeroFormat::kV2}) {
    if (view.string() == zero_format_name(zeros)) return {view, zeros};
  }
  throw unsupported(view, "\"gptq\" or \"gptq_v2\"");
}

/// What matters to GPTQModel alone while it quantises.
constexpr std::array kWriterMembers = {"damp_percent", "damp_auto_increment", "static_groups",
                                       "true_sequential", "mse"};

/// GPTQModel's overrides of single layers, each by an expression: other bits or groups, or behind a minus none. All else has to be
/// as of the others.
void read_dynamic(const JsonView& root, Stated& stated) {
  constexpr std::string_view kSkips = "-:";
  constexpr std::string_view kOverrides = "+:";
  const JsonView dynamic = root["dynamic"];
  if (dynamic.is_null()) return;
  stated.dynamic = {dynamic, dynamic.object()};
  for (const auto& [key, ignored] : stated.dynamic.value->items()) {
    const JsonView own = dynamic[key];
    const bool skips = key.starts_with(kSkips);
    const size_t mark = skips || key.starts_with(kOverrides) ? kSkips.size() : 0;
    ModuleRule rule{.pattern = {PatternKind::kRegex, key.substr(mark), own}};
    if (!skips) {
      rule.bits = own["bits"].is_null() ? stated.bits.value.value_or(kNibbleBits) : read_bits(own["bits"]);
      rule.group_size = own["group_size"].is_null() ? stated.group_size.value.value_or(-1)
                                                    : read_group_size(own["group_size"]);
      for (const auto& [member, value] : own.object().items()) {
        if (member == "bits" || member == "group_size" || std::ranges::count(kWriterMembers, member) > 0)
          continue;
        if (root[member].is_null() || root[member].describe() != own[member].describe())
          throw unsupported(own[member], "what other layers have");
      }
    }
    stated.modules.rules.push_back(std::move(rule));
  }
}

void read_gptq(const JsonView& root, Stated& stated) {
  expect_only(root["pack_dtype"], "int32");
  const JsonView marlin = root["is_marlin_format"];
  if (optional_boolean(marlin).value_or(false)) throw unsupported(marlin, "false");
  stated.bits = bits_member(root["bits"]);
  stated.group_size = group_size_member(root["group_size"]);
  stated.symmetric = boolean_member(root["sym"]);
  stated.act_order = boolean_member(root["desc_act"]);
  stated.lm_head = boolean_member(root["lm_head"]);
  stated.zeros = read_zero_format(root);
  read_dynamic(root, stated);
}

void read_awq(const JsonView& root, Stated& stated) {
  expect_only(root["version"], "gemm");
  expect_only(root["backend"], "autoawq");
  stated.bits = bits_member(root["bits"]);
  if (stated.bits.value && *stated.bits.value != kNibbleBits) throw unsupported(root["bits"], "4");
  stated.group_size = group_size_member(root["group_size"]);
  stated.symmetric = boolean_member(root["zero_point"]);
  if (stated.symmetric.value) stated.symmetric.value = !*stated.symmetric.value;
}

/// Blocks of rows and columns that share a scale; nothing is one scale for each row or tensor, which tensors decide.
void read_block_size(const JsonView& size) {
  if (size.is_null()) return;
  for (size_t i = 0; i < 2; ++i) {
    if (size.array_size() != 2 || size[i].integer(1, kMaxGroupSize) != kE4m3Group)
      throw unsupported(size, fmt::format("[{0}, {0}]", kE4m3Group));
  }
}

/// In E4M3. Scales of inputs are for those who round inputs.
void state_fp8(Stated& stated, bool lm_head) {
  stated.method.value = Method::kFp8;
  stated.bits.value = kFp8Bits;
  stated.group_size.value = kE4m3Group;
  stated.symmetric.value = true;
  stated.lm_head.value = lm_head;
}

constexpr std::string_view kRegexMark = "re:";

/// Of a list of names of layers; those with the mark are expressions, others as `kind` has it.
std::vector<ModulePattern> read_patterns(const JsonView& list, PatternKind kind) {
  std::vector<ModulePattern> patterns;
  if (list.is_null()) return patterns;
  for (size_t i = 0; i < list.array_size(); ++i) {
    const JsonView view = list[i];
    std::string_view text = view.string();
    const bool is_regex = text.starts_with(kRegexMark);
    if (is_regex) text.remove_prefix(kRegexMark.size());
    patterns.emplace_back(is_regex ? PatternKind::kRegex : kind, std::string(text), view);
  }
  return patterns;
}

/// In E2M1, in groups of 16 (NVFP4) or 32 (MXFP4), but for what `left_out` names.
void state_e2m1(Stated& stated, int group_size, std::vector<ModulePattern> left_out) {
  stated.method.value = Method::kE2m1;
  stated.bits.value = kNibbleBits;
  stated.group_size.value = group_size;
  stated.symmetric.value = true;
  for (ModulePattern& pattern : left_out) stated.modules.rules.push_back({.pattern = std::move(pattern)});
}

/// Which layers are not, tensors say; lm_head never is.
void read_fp8(const JsonView& root, Stated& stated) {
  expect_only(root["fmt"], "e4m3");
  read_block_size(root["weight_block_size"]);
  state_fp8(stated, false);
}

/// group_size of compressed-tensors, which strategy decides where it is stated.
int read_strategy(const JsonView& weights) {
  const JsonView strategy = weights["strategy"];
  const JsonView size = weights["group_size"];
  if (strategy.is_null() || strategy.string() == "group") {
    const int group_size = read_group_size(size);
    if (group_size == kOneGroup && !strategy.is_null()) {
      throw size.error("expected inputs of a group, because strategy is \"group\"; got -1");
    }
    return group_size;
  }
  if (strategy.string() != "channel") throw unsupported(strategy, "\"group\" or \"channel\"");
  if (!size.is_null() && size.integer(kOneGroup, kMaxGroupSize) != kOneGroup) {
    throw size.error("expected -1 or null, because strategy is \"channel\"; got {}", size.describe());
  }
  return kOneGroup;
}

/// Whether groups take inputs by weight_g_idx. With "static" only the writer sorted, not the file.
bool read_actorder(const JsonView& view) {
  if (view.is_null()) return false;
  for (const char* sorted : {"group", "dynamic"}) {
    if (view.string() == sorted) return true;
  }
  for (const char* natural : {"static", "weight"}) {
    if (view.string() == natural) return false;
  }
  throw unsupported(view, "\"group\", \"static\", \"weight\" or null");
}

/// The only group of compressed-tensors; `name` stays alive as long as the document.
JsonView only_group(const JsonView& root) {
  const JsonView groups = root["config_groups"];
  const json& members = groups.object();
  if (members.size() != 1) {
    throw groups.error(members.empty() ? ExitCode::kBadFile : ExitCode::kMismatch,
                       "expected one group, got {}", members.size());
  }
  return groups[members.begin().key()];
}

bool names_lm_head(const JsonView& ignore) {
  if (ignore.is_null()) return false;
  bool found = false;
  for (size_t i = 0; i < ignore.array_size(); ++i) {
    found |= ignore[i].string().find("lm_head") != std::string::npos;
  }
  return found;
}

/// Floats of 8 bits with a scale for each row, tensor or block.
void read_float_group(const JsonView& group) {
  expect_null(group["output_activations"]);
  const JsonView weights = group["weights"];
  if (weights["num_bits"].integer(1, kMaxBits) != kFp8Bits) throw unsupported(weights["num_bits"], "8");
  if (!weights["type"].is_null()) expect_only(weights["type"], "float");
  const JsonView strategy = weights["strategy"];
  const bool in_blocks = strategy.string() == "block";
  if (!in_blocks && strategy.string() != "channel" && strategy.string() != "tensor")
    throw unsupported(strategy, "\"channel\", \"tensor\" or \"block\"");
  if (in_blocks) read_block_size(weights["block_structure"]);
  const JsonView symmetric = weights["symmetric"];
  if (!optional_boolean(symmetric).value_or(true)) throw unsupported(symmetric, "true");
}

/// Floats of 4 bits. How inputs were to be rounded does not matter.
void read_e2m1_group(const JsonView& root, const JsonView& group, int group_size, Stated& stated) {
  expect_null(group["output_activations"]);
  const JsonView weights = group["weights"];
  if (weights["num_bits"].integer(1, kMaxBits) != kNibbleBits) throw unsupported(weights["num_bits"], "4");
  expect_only(weights["type"], "float");
  expect_only(weights["strategy"], group_size == kNvfp4Group ? "tensor_group" : "group");
  if (weights["group_size"].integer(kOneGroup, kMaxGroupSize) != group_size)
    throw unsupported(weights["group_size"], fmt::format("{}", group_size));
  if (!optional_boolean(weights["symmetric"]).value_or(true)) throw unsupported(weights["symmetric"], "true");
  if (optional_boolean(weights["dynamic"]).value_or(false)) throw unsupported(weights["dynamic"], "false");
  state_e2m1(stated, group_size, read_patterns(root["ignore"], PatternKind::kName));
  const JsonView targets = group["targets"];
  const auto is_all = [](const ModulePattern& target) { return target.matches("Linear"); };
  stated.modules.targets = read_patterns(targets, PatternKind::kName);
  if (std::ranges::any_of(stated.modules.targets, is_all)) stated.modules.targets.clear();
}

void read_compressed_tensors(const JsonView& root, Stated& stated) {
  const std::string& format = root["format"].string();
  const bool is_fp8 = format == "float-quantized" || format == "naive-quantized";
  const bool is_nvfp4 = format == "nvfp4-pack-quantized";
  const bool is_e2m1 = is_nvfp4 || format == "mxfp4-pack-quantized";
  if (!is_fp8 && !is_e2m1 && format != "pack-quantized") {
    throw unsupported(root["format"],
                      "\"pack-quantized\", \"float-quantized\", \"naive-quantized\", "
                      "\"nvfp4-pack-quantized\" or \"mxfp4-pack-quantized\"");
  }
  expect_only(root["quantization_status"], "compressed");
  if (!is_fp8 && !is_e2m1) expect_null(root["kv_cache_scheme"]);
  expect_empty(root["transform_config"], "no transforms");
  const JsonView sparsity = root["sparsity_config"];
  if (!sparsity.is_null() && !sparsity.object().empty()) expect_only(sparsity["format"], "dense");

  const JsonView group = only_group(root);
  expect_only(group["format"], format);
  if (is_fp8) {
    read_float_group(group);
    return state_fp8(stated, !names_lm_head(root["ignore"]));
  }
  if (is_e2m1) return read_e2m1_group(root, group, is_nvfp4 ? kNvfp4Group : kMxfp4Group, stated);
  expect_null(group["input_activations"]);
  expect_null(group["output_activations"]);
  const JsonView weights = group["weights"];
  stated.bits = {weights["num_bits"], read_bits(weights["num_bits"])};
  expect_only(weights["type"], "int");
  const JsonView dynamic = weights["dynamic"];
  if (optional_boolean(dynamic).value_or(false)) throw unsupported(dynamic, "false");
  stated.group_size = {weights["group_size"], read_strategy(weights)};
  stated.symmetric = boolean_member(weights["symmetric"]);
  stated.act_order = {weights["actorder"], read_actorder(weights["actorder"])};
  stated.lm_head = {root["ignore"], !names_lm_head(root["ignore"])};
}

/// What modelopt writes, into config.json or, with other names, into a file of its own.
void read_modelopt(const JsonView& root, Stated& stated) {
  const JsonView algorithm = root["quant_algo"];
  const JsonView ignore = root["ignore"].is_null() ? root["exclude_modules"] : root["ignore"];
  if (algorithm.string() == "NVFP4") {
    const JsonView size = root["group_size"];
    if (!size.is_null() && size.integer(1, kMaxGroupSize) != kNvfp4Group)
      throw unsupported(size, fmt::format("{}", kNvfp4Group));
    return state_e2m1(stated, kNvfp4Group, read_patterns(ignore, PatternKind::kWildcards));
  }
  if (algorithm.string() != "FP8") throw unsupported(algorithm, "\"FP8\" or \"NVFP4\"");
  state_fp8(stated, !names_lm_head(ignore));
}

/// What quark writes. Single layers may have the same weights as all others, and something of their own for what they put out,
/// which goes into the cache.
void read_quark(const JsonView& root, Stated& stated) {
  const JsonView global = root["global_quant_config"];
  const JsonView weight = global["weight"];
  const auto require_only = [&](const char* member, const char* only) {
    if (weight[member].string() != only) throw unsupported(weight[member], in_quotes(only));
  };
  require_only("dtype", "fp4");
  require_only("qscheme", "per_group");
  require_only("scale_format", "e8m0");
  if (weight["group_size"].integer(kOneGroup, kMaxGroupSize) != kMxfp4Group)
    throw unsupported(weight["group_size"], fmt::format("{}", kMxfp4Group));
  if (optional_boolean(weight["is_dynamic"]).value_or(false))
    throw unsupported(weight["is_dynamic"], "false");
  expect_null(global["output_tensors"]);
  expect_null(global["bias"]);
  expect_empty(root["layer_type_quant_config"], "no types of layers of their own");
  const JsonView layers = root["layer_quant_config"];
  if (!layers.is_null()) {
    for (const auto& [name, own] : layers.object().items()) {
      if (layers[name]["weight"].object() != weight.object())
        throw unsupported(layers[name]["weight"], "weights as global_quant_config has them");
    }
  }
  if (!root["export"].is_null()) expect_only(root["export"]["weight_format"], "real_quantized");
  state_e2m1(stated, kMxfp4Group, read_patterns(root["exclude"], PatternKind::kWildcards));
}

/// Reads what `root` states; where it names no method, that is `fallback`, if there is one.
Stated read_stated(const JsonView& root, std::optional<Method> fallback) {
  const JsonView name = root["quant_method"];
  Stated stated(root);
  const Method method = name.is_null() && fallback ? *fallback : read_method(name);
  stated.method = {name, method};
  if (method == Method::kGptq) read_gptq(root, stated);
  if (method == Method::kAwq) read_awq(root, stated);
  if (method == Method::kCompressedTensors) read_compressed_tensors(root, stated);
  if (method == Method::kFp8) name.string() == "fp8" ? read_fp8(root, stated) : read_modelopt(root, stated);
  if (method == Method::kE2m1) read_quark(root, stated);
  return stated;
}

/// Fills `member` in from the second file, which may not contradict it.
template <class T>
void merge(Member<T>& member, const Member<T>& other) {
  if (!other.value) return;
  if (!member.value) {
    member = other;
  } else if (*member.value != *other.value) {
    throw other.view.error("expected what quantization_config in config.json says, {}, got {}",
                           member.view.describe(), other.view.describe());
  }
}

void merge(Stated& stated, const Stated& other) {
  merge(stated.method, other.method);
  merge(stated.bits, other.bits);
  merge(stated.group_size, other.group_size);
  merge(stated.symmetric, other.symmetric);
  merge(stated.act_order, other.act_order);
  merge(stated.lm_head, other.lm_head);
  merge(stated.zeros, other.zeros);
  merge(stated.dynamic, other.dynamic);
  if (stated.modules.rules.empty()) stated.modules = other.modules;
}

int require(const Member<int>& member) {
  if (!member.value) throw member.view.error("expected an integer, got {}", member.view.describe());
  return *member.value;
}

QuantizationConfig finish(const Stated& stated, std::string file) {
  const Method method = *stated.method.value;
  return {.method = method,
          .bits = require(stated.bits),
          .group_size = require(stated.group_size),
          .symmetric = stated.symmetric.value.value_or(method != Method::kAwq),
          .act_order = stated.act_order.value.value_or(false),
          .lm_head = stated.lm_head.value.value_or(false),
          .zeros = stated.zeros.value.value_or(method == Method::kGptq ? ZeroFormat::kV1 : ZeroFormat::kV2),
          .file = std::move(file),
          .modules = stated.modules};
}

/// modelopt's, if it is there.
std::optional<QuantizationConfig> read_own_file(const fs::path& folder) {
  const fs::path path = folder / "hf_quant_config.json";
  std::error_code ignored;
  if (!fs::exists(fs::symlink_status(path, ignored))) return std::nullopt;
  const json document = read_json(path);
  const JsonView root(document, path.string());
  const JsonView quantization = root["quantization"];
  Stated stated(quantization);
  read_modelopt(quantization, stated);
  return finish(stated, path.string());
}

}  // namespace

std::string_view zero_format_name(ZeroFormat zeros) {
  return zeros == ZeroFormat::kV1 ? "gptq" : "gptq_v2";
}

std::optional<QuantizationConfig> QuantizationConfig::read(const JsonView& config, const fs::path& folder) {
  const JsonView first = config["quantization_config"];
  if (!first.is_null() && is_nf4(first)) return std::nullopt;
  const std::string first_name = (folder / "config.json").string();
  const fs::path second_path = folder / kSecondFile;
  std::error_code ignored;
  if (!fs::exists(fs::symlink_status(second_path, ignored))) {
    if (first.is_null()) return read_own_file(folder);
    return finish(read_stated(first, std::nullopt), first_name);
  }

  const std::string second_name = second_path.string();
  const json document = read_json(second_path);
  const JsonView second(document, second_name);
  // The file's first writer was GPTQ, and did not name itself.
  if (first.is_null()) return finish(read_stated(second, Method::kGptq), second_name);
  Stated stated = read_stated(first, std::nullopt);
  const bool may_be_the_same = *stated.method.value != Method::kCompressedTensors;
  merge(stated, read_stated(second, may_be_the_same ? *stated.method.value : Method::kGptq));
  return finish(stated, first_name);
}

}  // namespace soliton
