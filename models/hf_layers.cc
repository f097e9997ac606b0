#include "models/hf_layers.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "models/hf_members.h"
#include "models/limits.h"

namespace soliton {
namespace {

/// What stands in place of a number that kernels have as a constant.
void expect_constant(const JsonView& view, float constant) {
  if (view.is_null() || static_cast<float>(view.number()) == constant) return;
  throw view.error(ExitCode::kMismatch, "expected {}, got {}: not supported", constant, view.describe());
}

}  // namespace

void read_activation(const JsonView& config, const Family& family, StatedFacts& stated) {
  const JsonView view = config[family.activation_member];
  Place place = view.place();
  if (view.is_null()) place.got = kActivationNames[static_cast<size_t>(family.absent_activation)];
  int32_t activation = find_activation(view.is_null() ? place.got : view.string());
  const bool is_ungated = activation == static_cast<int32_t>(Activation::kReluSquared);
  if (activation < 0 || activation == static_cast<int32_t>(Activation::kClampedSwiglu) ||
      (is_ungated && !family.ungated)) {
    throw view.error(ExitCode::kMismatch, "expected \"{}\", \"{}\" or \"{}\", got {}", kActivationNames[0],
                     kActivationNames[1], kActivationNames[static_cast<size_t>(Activation::kGelu)],
                     view.describe());
  }
  if (family.activation) {
    if (activation != static_cast<int32_t>(Activation::kSilu))
      throw view.error(ExitCode::kMismatch, "expected \"silu\", got {}: not supported", view.describe());
    expect_constant(config["swiglu_limit"], kSwigluLimit);
    expect_constant(config["swiglu_alpha"], kSwigluAlpha);
    activation = static_cast<int32_t>(*family.activation);
    place.got = fmt::format("{} of {}", kActivationNames[activation], family.model_type);
  }
  stated.state(&ModelFacts::activation, activation, std::move(place));
}

namespace {

/// Which layers have a window, by layer_types; they take turns.
std::vector<bool> read_listed_windows(const JsonView& config, const Family& family, const ModelFacts& facts) {
  const JsonView types = config["layer_types"];
  std::vector<bool> slides;
  if (types.is_null()) {
    int64_t period = family.window_period;
    if (family.window_period_member != nullptr && !config[family.window_period_member].is_null())
      period = config[family.window_period_member].integer(1, kLayersLimit.max);
    if (period == 0) return {true};
    for (int64_t layer = 1; layer <= period; ++layer) slides.push_back(layer % period != 0);
    return slides;
  }
  for (size_t i = 0; i < types.array_size(); ++i) {
    const std::string type = types[i].string();
    slides.push_back(type == "sliding_attention");
    if (slides.back() || type == "full_attention") continue;
    throw types[i].error(ExitCode::kMismatch, "expected \"sliding_attention\" or \"full_attention\", got {}",
                         in_quotes(type));
  }
  if (std::ssize(slides) != facts.num_layers) {
    throw types.error("expected one for each of {} layers (num_hidden_layers), got {}", facts.num_layers,
                      slides.size());
  }
  return slides;
}

/// The same of those from max_window_layers on.
std::vector<bool> read_last_windows(const JsonView& config, const ModelFacts& facts) {
  constexpr int64_t kAbsentFirst = 28;
  const JsonView view = config["max_window_layers"];
  const int64_t first = view.is_null() ? kAbsentFirst : view.integer(0, kLayersLimit.max);
  std::vector<bool> slides;
  for (int layer = 0; layer < std::min<int>(facts.num_layers, kLayersLimit.max); ++layer)
    slides.push_back(layer >= first);
  return slides;
}

std::vector<bool> read_sliding_layers(const JsonView& config, const Family& family, const ModelFacts& facts) {
  switch (family.window) {
    case Window::kNone:
      return {};
    case Window::kStated:
      return {true};
    case Window::kSwitched:
      return boolean_or(config["use_sliding_window"], false) ? read_last_windows(config, facts)
                                                             : std::vector<bool>{};
    case Window::kLayers:
      return read_listed_windows(config, family, facts);
  }
  return {};
}

}  // namespace

void read_layer_windows(const JsonView& config, const Family& family, StatedFacts& stated) {
  const bool is_none = !is_absent(config, "sliding_window") && config["sliding_window"].is_null();
  if (is_none && (family.window != Window::kLayers || config["layer_types"].is_null())) return;
  const std::vector<bool> slides = read_sliding_layers(config, family, stated.facts);
  if (std::ranges::find(slides, true) == slides.end()) return;
  const JsonView width = config["sliding_window"];
  const bool is_implied = is_absent(config, "sliding_window");
  if (is_implied && !family.absent_window && family.window != Window::kLayers) return;
  const int64_t window = is_implied && family.absent_window
                             ? *family.absent_window
                             : width.integer(1, std::numeric_limits<int32_t>::max());
  // A window that never leaves a token out is none.
  if (family.window != Window::kLayers && window >= stated.facts.max_context) return;
  std::vector<int64_t> windows;
  for (const bool each : slides) windows.push_back(each ? window : 0);
  Place place = width.place();
  place.got = fmt::format("{}", window);
  stated.state_windows(windows, std::move(place));
}

namespace {

/// What rotates layers with a window: of the default kind, by a theta of its own.
void read_local_rope(const JsonView& config, const Family& family, StatedFacts& stated) {
  const JsonView nested = config["rope_parameters"];
  const bool is_nested = !nested.is_null() && nested["sliding_attention"].is_object();
  JsonView theta = is_nested                              ? nested["sliding_attention"]["rope_theta"]
                   : family.local_theta_member != nullptr ? config[family.local_theta_member]
                                                          : config["rope_local_base_freq"];
  if (is_nested) {
    const JsonView kind = nested["sliding_attention"]["rope_type"];
    if (!kind.is_null() && kind.string() != rope_name(RopeKind::kDefault))
      throw kind.error(ExitCode::kMismatch, "expected \"default\", got {}: not supported", kind.describe());
  }
  const double value = theta.is_null() ? family.absent_local_theta : theta.number();
  const bool is_alike = stated.facts.rope_kind == RopeKind::kDefault && stated.facts.rope_theta == value;
  if (is_alike) return;
  std::vector<int64_t> ropes;
  bool is_local = false;
  for (int layer = 0; layer < std::min(stated.facts.num_layers, kMostListedLayers); ++layer) {
    ropes.push_back(window_of_layer(stated.facts, layer) != 0 ? kLocalRope : kMainRope);
    is_local = is_local || ropes.back() == kLocalRope;
  }
  if (!is_local) return;
  stated.state_ropes(ropes, theta.place());
  Place place = theta.place();
  place.got = fmt::format("{}", value);
  stated.state(&ModelFacts::rope_local_theta, value, std::move(place));
}

/// Layers that rotate nothing, as a list says, or where windows are missing.
void read_unrotated(const JsonView& config, const Family& family, StatedFacts& stated) {
  const ModelFacts& facts = stated.facts;
  std::vector<int64_t> ropes;
  if (family.ropes == Ropes::kByWindows) {
    if (!has_windows(facts)) return;
    for (int layer = 0; layer < std::min(facts.num_layers, kMostListedLayers); ++layer)
      ropes.push_back(window_of_layer(facts, layer) != 0 ? kMainRope : kNoRope);
    return stated.state_ropes(ropes, config["layer_types"].place());
  }
  const JsonView listed = config["no_rope_layers"];
  if (listed.is_null()) {
    const JsonView view = config["no_rope_layer_interval"];
    const int64_t interval = view.is_null() ? 4 : view.integer(1, kLayersLimit.max);
    for (int64_t layer = 1; layer <= interval; ++layer)
      ropes.push_back(layer % interval != 0 ? kMainRope : kNoRope);
    return stated.state_ropes(ropes, view.place());
  }
  if (std::cmp_less(listed.array_size(), facts.num_layers)) {
    throw listed.error("expected one for each of {} layers (num_hidden_layers), got {}", facts.num_layers,
                       listed.array_size());
  }
  for (size_t i = 0; std::cmp_less(i, facts.num_layers); ++i)
    ropes.push_back(listed[i].integer(0, 1) != 0 ? kMainRope : kNoRope);
  stated.state_ropes(ropes, listed.place());
}

}  // namespace

void read_layer_ropes(const JsonView& config, const Family& family, StatedFacts& stated) {
  if (family.ropes == Ropes::kOfWindows) read_local_rope(config, family, stated);
  if (family.ropes == Ropes::kByWindows || family.ropes == Ropes::kListed)
    read_unrotated(config, family, stated);
}

void read_scale(const JsonView& config, const char* member, double ModelFacts::*fact, double absent,
                StatedFacts& stated) {
  read_fact_or(config[member], fact, absent, stated);
}

void read_soft_cap(const JsonView& config, const char* member, double ModelFacts::*fact, double absent,
                   StatedFacts& stated) {
  if (is_absent(config, member)) return read_fact_or(config[member], fact, absent, stated);
  if (!config[member].is_null()) read_fact(config[member], fact, stated);
}

void read_gemma_scales(const JsonView& config, StatedFacts& stated) {
  constexpr double kAbsentScalar = 256;
  constexpr double kMostScalar = 65536;
  const JsonView scalar = config["query_pre_attn_scalar"];
  const double value = scalar.is_null() ? kAbsentScalar : scalar.number(1, kMostScalar);
  Place place = scalar.place();
  place.got = fmt::format("{}", value);
  stated.state(&ModelFacts::attention_scale, 1 / std::sqrt(value), std::move(place));
  stated.state(&ModelFacts::embedding_scale, std::sqrt(static_cast<double>(stated.facts.hidden)),
               config["hidden_size"].place());
}

}  // namespace soliton
