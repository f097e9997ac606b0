// Overrides of the planner for one model and card, as `soliton-bench --tune` measures them. They stand in
// tuned/<model>-<gpu>.yaml in the folder of the model's YAML: values of knobs (knobs.h), all of them optional.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "generator/plan/plan.h"

namespace soliton {

class StrictYaml;

/// Where the overrides for a model's YAML and a card would stand.
std::filesystem::path overrides_path(const std::filesystem::path& model, const std::string& gpu);

/// The knobs of a file of overrides, or nothing if there is no such file. Throws Error: kNotFound if it cannot
/// be read, kBadFile with file and line for an unknown key, another type or a value out of range.
std::optional<PlanChoices> load_overrides(const std::filesystem::path& path);

/// The same from YAML at hand.
PlanChoices parse_overrides(const StrictYaml& yaml);

/// `choices` with what they leave open taken from the overrides that stand at `path`; `tuned` says what that
/// was: "window 4, ring_slots 8 from tuned/tiny-cpu.yaml".
PlanChoices with_overrides(PlanChoices choices, const PlanChoices& overrides,
                           const std::filesystem::path& path);

/// The knobs that are chosen: "window 4, ring_slots 8".
std::string describe_knobs(const PlanChoices& choices);

/// A file of overrides with a comment of one or several lines.
std::string format_overrides(const PlanChoices& choices, const std::string& comment);

}  // namespace soliton
