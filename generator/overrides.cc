#include "generator/overrides.h"

#include <fmt/format.h>

#include <sstream>
#include <tuple>

#include "generator/knobs.h"
#include "models/strict_yaml.h"

namespace soliton {

std::filesystem::path overrides_path(const std::filesystem::path& model, const std::string& gpu) {
  return model.parent_path() / "tuned" / fmt::format("{}-{}.yaml", model.stem().string(), gpu);
}

std::optional<PlanChoices> load_overrides(const std::filesystem::path& path) {
  std::error_code unknown;  // then loading says why
  if (std::filesystem::status(path, unknown).type() == std::filesystem::file_type::not_found) {
    return std::nullopt;
  }
  return parse_overrides(StrictYaml::load(path));
}

PlanChoices parse_overrides(const StrictYaml& yaml) {
  std::apply([&](const auto&... knob) { yaml.allow_keys({knob.name...}); }, kKnobs);
  PlanChoices choices;
  for (const Knob& knob : kKnobs) {
    if (yaml.has(knob.name)) knob.choose(choices, yaml.integer(knob.name, knob.range));
  }
  return choices;
}

PlanChoices with_overrides(PlanChoices choices, const PlanChoices& overrides,
                           const std::filesystem::path& path) {
  PlanChoices taken;
  for (const Knob& knob : kKnobs) {
    if (knob.chosen(choices)) continue;
    knob.choose(taken, knob.chosen(overrides));
    knob.choose(choices, knob.chosen(overrides));
  }
  // Without what comes before: the text goes into generated files, which are the same wherever the models
  // lie.
  const std::filesystem::path shown = path.parent_path().filename() / path.filename();
  const std::string knobs = describe_knobs(taken);
  if (!knobs.empty()) choices.tuned = fmt::format("{} from {}", knobs, shown.string());
  return choices;
}

std::string describe_knobs(const PlanChoices& choices) {
  std::string text;
  for (const Knob& knob : kKnobs) {
    const std::optional<int> value = knob.chosen(choices);
    if (value) text += fmt::format("{}{} {}", text.empty() ? "" : ", ", knob.name, *value);
  }
  return text;
}

std::string format_overrides(const PlanChoices& choices, const std::string& comment) {
  std::string text;
  std::istringstream lines(comment);
  for (std::string line; std::getline(lines, line);) text += fmt::format("# {}\n", line);
  for (const Knob& knob : kKnobs) {
    const std::optional<int> value = knob.chosen(choices);
    if (value) text += fmt::format("{}: {}\n", knob.name, *value);
  }
  return text;
}

}  // namespace soliton
