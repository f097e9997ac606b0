#include "models/hf_modules.h"

#include <fmt/format.h>

#include <optional>

#include "models/matrix_roles.h"

namespace soliton {
namespace {

/// The matrices of a layer that linear layers make up, by MatrixRole; 0 of a router.
int32_t role_of(const GraphOp& op) {
  switch (op.output) {
    case OutputKind::kRotary:
      return kQkvMatrix;
    case OutputKind::kSwiglu:
      return kGateUpMatrix;
    case OutputKind::kResidual:
      return op.appends ? kOMatrix : kDownMatrix;
    case OutputKind::kLogits:
    case OutputKind::kRouter:
      break;
  }
  return 0;
}

/// What the weights of a linear layer have.
struct ModuleFormat {
  int bits;
  int group_size;

  bool operator==(const ModuleFormat&) const = default;
  bool is_float() const { return bits == kFloats.bits; }
  static const ModuleFormat kFloats;
};
constexpr ModuleFormat ModuleFormat::kFloats = {16, -1};

std::string describe(const ModuleFormat& format) {
  if (format.is_float()) return "floats";
  return fmt::format("{} bits in groups of {}", format.bits, format.group_size);
}

/// Reads the formats of linear layers out of the configuration.
class ModuleFormats {
 public:
  explicit ModuleFormats(const QuantizationConfig& quantization) : quantization_(quantization) {}

  /// Of the matrices that are in no list of further ones.
  ModuleFormat most() const { return is_e2m1() ? ModuleFormat::kFloats : quantised(); }

  ModuleFormat of(const std::string& name) const {
    const ModuleRules& modules = quantization_.modules;
    if (modules.is_left_out(name, quantization_.file)) return ModuleFormat::kFloats;
    const ModuleRule* const rule = modules.find(name, quantization_.file);
    return rule == nullptr ? quantised() : ModuleFormat{rule->bits, rule->group_size};
  }

  template <class... Args>
  Error refusal(const std::string& name, fmt::format_string<Args...> format, Args&&... args) const {
    return file_error(ExitCode::kMismatch, quantization_.file, "{}: {}", name,
                      fmt::format(format, std::forward<Args>(args)...));
  }

 private:
  bool is_e2m1() const { return quantization_.method == QuantizationMethod::kE2m1; }
  ModuleFormat quantised() const { return {quantization_.bits, quantization_.group_size}; }

  const QuantizationConfig& quantization_;
};

}  // namespace

bool names_modules(const QuantizationConfig& quantization) {
  return quantization.method == QuantizationMethod::kE2m1 || !quantization.modules.rules.empty();
}

void state_modules(const QuantizationConfig& quantization, const Checkpoint& checkpoint,
                   StatedFacts& stated) {
  const ModelFacts& facts = stated.facts;
  const ModuleFormats formats(quantization);
  const Graph graph = build_graph(facts);
  std::optional<ModuleFormat> further;
  const auto add_further = [&](const std::string& name, const ModuleFormat& format) {
    if (!further) further = format;
    if (*further != format) {
      throw formats.refusal(name, "expected {} or {}, as others have, got {}: no kernel computes with all",
                            describe(formats.most()), describe(*further), describe(format));
    }
    if (format.bits == formats.most().bits) {
      throw formats.refusal(name, "expected {}, as others of so many bits have, got {}: not supported",
                            describe(formats.most()), describe(format));
    }
  };
  graph.for_each_op([&](const GraphOp& op, int layer) {
    if (op.matrix == kNone || op.output == OutputKind::kRouter) return;
    const bool is_once = layer == facts.num_layers;
    if (is_once && (facts.tied_lm_head != 0 || (facts.lm_head_bits == 16 && facts.weight_bits != 16))) return;
    const std::vector<LinearRows>& parts = checkpoint.stacks[static_cast<size_t>(op.matrix)].parts;
    const auto name_of = [&](const LinearRows& part) {
      return is_once ? part.name : checkpoint.in_layer(layer, part.name);
    };
    const std::string first = name_of(parts.front());
    const ModuleFormat format = formats.of(first);
    for (const LinearRows& part : parts) {
      const ModuleFormat own = formats.of(name_of(part));
      if (own == format) continue;
      throw formats.refusal(name_of(part),
                            "expected {}, as {} has, which is multiplied together with it, got {}",
                            describe(format), first, describe(own));
    }
    if (format == formats.most()) return;
    if (layer >= kMostListedLayers && !is_once) {
      throw formats.refusal(first, "expected the format of most layers in layer {} and behind it, got {}",
                            kMostListedLayers, describe(format));
    }
    add_further(first, format);
    if (is_once && quantization.method == QuantizationMethod::kE2m1)
      throw formats.refusal(first, "expected floats, got {}: not supported", describe(format));
    if (is_once) {
      stated.facts.lm_head_bits = format.bits;
    } else {
      stated.facts.layer_further[layer] |= role_of(op);
    }
  });
  if (!further) return;
  const auto state = [&](int32_t ModelFacts::*fact, int64_t value) {
    stated.state(fact, value,
                 {.file = quantization.file, .key = "formats of layers", .got = fmt::format("{}", value)});
  };
  state(&ModelFacts::further_bits, further->bits);
  if (quantization.method == QuantizationMethod::kE2m1) {
    state(&ModelFacts::further_e2m1, 1);
    if (further->group_size == kNvfp4Group) state(&ModelFacts::further_group, kNvfp4Group);
  } else if (!further->is_float()) {
    state(&ModelFacts::further_group, further->group_size);
  }
}

}  // namespace soliton
