#include "models/hf_layers.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "models/hf_members.h"

namespace soliton {
namespace {

/// What stands in place of a number that kernels have as a constant.
void expect_constant(const JsonView& view, float constant) {
  if (view.is_null() || static_cast<float>(view.number()) == constant) return;
  throw view.error(ExitCode::kMismatch, "expected {}, got {}: not supported", constant, view.describe());
}

}  // namespace

void read_activation(const JsonView& config, const Family& family, StatedFacts& stated) {
  const JsonView view = config["hidden_act"];
  Place place = view.place();
  if (view.is_null()) place.got = kActivationNames[0];
  int32_t activation = find_activation(view.is_null() ? place.got : view.string());
  if (activation < 0 || activation == static_cast<int32_t>(Activation::kClampedSwiglu)) {
    throw view.error(ExitCode::kMismatch, "expected \"{}\" or \"{}\", got {}", kActivationNames[0],
                     kActivationNames[1], view.describe());
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

void read_layer_windows(const JsonView& config, const Family& family, StatedFacts& stated) {
  if (family.window != Window::kLayers) return;
  const JsonView types = config["layer_types"];
  std::vector<bool> slides = {true, false};
  if (!types.is_null()) {
    slides.clear();
    for (size_t i = 0; i < types.array_size(); ++i) {
      const std::string type = types[i].string();
      slides.push_back(type == "sliding_attention");
      if (slides.back() || type == "full_attention") continue;
      throw types[i].error(ExitCode::kMismatch,
                           "expected \"sliding_attention\" or \"full_attention\", got {}", in_quotes(type));
    }
    if (std::ssize(slides) != stated.facts.num_layers) {
      throw types.error("expected one for each of {} layers (num_hidden_layers), got {}",
                        stated.facts.num_layers, slides.size());
    }
  }
  if (std::ranges::find(slides, true) == slides.end()) return;
  const JsonView width = config["sliding_window"];
  const bool is_implied = is_absent(config, "sliding_window") && family.absent_window;
  const int64_t window =
      is_implied ? *family.absent_window : width.integer(1, std::numeric_limits<int32_t>::max());
  std::vector<int64_t> windows;
  for (const bool each : slides) windows.push_back(each ? window : 0);
  Place place = width.place();
  place.got = fmt::format("{}", window);
  stated.state_windows(windows, std::move(place));
}

}  // namespace soliton
