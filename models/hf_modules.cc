#include "models/hf_modules.h"

#include <fmt/format.h>

#include <algorithm>

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

}  // namespace

void state_modules(const QuantizationConfig& quantization, const Checkpoint& checkpoint,
                   StatedFacts& stated) {
  const ModelFacts& facts = stated.facts;
  const ModuleRules& modules = quantization.modules;
  const Graph graph = build_graph(facts);
  bool has_some = false;
  graph.for_each_op([&](const GraphOp& op, int layer) {
    if (op.matrix == kNone || op.output == OutputKind::kRouter) return;
    const std::vector<LinearRows>& parts = checkpoint.stacks[static_cast<size_t>(op.matrix)].parts;
    const bool is_once = layer == facts.num_layers;
    const auto name_of = [&](const LinearRows& part) {
      return is_once ? part.name : checkpoint.in_layer(layer, part.name);
    };
    const bool left_out = modules.is_left_out(name_of(parts.front()), quantization.file);
    const auto other = std::ranges::find_if(parts, [&](const LinearRows& part) {
      return modules.is_left_out(name_of(part), quantization.file) != left_out;
    });
    if (other != parts.end()) {
      throw file_error(ExitCode::kMismatch, quantization.file,
                       "{}: expected it to be {}quantised, as {} is, which is multiplied together with it",
                       name_of(*other), left_out ? "not " : "", name_of(parts.front()));
    }
    if (left_out || (is_once && facts.tied_lm_head != 0)) return;
    if (is_once || layer >= kMostListedLayers) {
      throw file_error(ExitCode::kMismatch, quantization.file,
                       "{}: expected it to be left out, got it quantised: not supported",
                       name_of(parts.front()));
    }
    stated.facts.layer_further[layer] |= role_of(op);
    has_some = true;
  });
  if (!has_some) return;
  const auto state = [&](int32_t ModelFacts::*fact, int64_t value) {
    stated.state(fact, value, {.file = quantization.file, .key = "E2M1", .got = fmt::format("{}", value)});
  };
  state(&ModelFacts::further_bits, quantization.bits);
  state(&ModelFacts::further_e2m1, 1);
  if (quantization.group_size == kNvfp4Group) state(&ModelFacts::further_group, kNvfp4Group);
}

}  // namespace soliton
