#include "runtime/chat/settings.h"

#include "runtime/command_line.h"

namespace soliton {
namespace {

constexpr const char* kAsManyAsFit = "-1";

/// Throws, naming the setting, unless the validator accepts the value.
void check(const CLI::Validator& validator, const std::string& name, const std::string& value) {
  std::string checked = value;
  const std::string complaint = validator(checked);
  if (!complaint.empty()) throw Error(ExitCode::kUsage, fmt::format("{}: {}", name, complaint));
}

}  // namespace

void Settings::set(const std::string& name, const std::string& value) {
  if (name == "temp") {
    check(number_from(0, kMaxTemperature), name, value);
    sampling.temperature = std::stod(value);
  } else if (name == "seed") {
    check(at_least<uint32_t>(0), name, value);
    sampling.seed = static_cast<uint32_t>(std::stoul(value));
  } else if (name == "lookup") {
    check(at_least(0), name, value);
    sampling.num_drafts = std::stoi(value);
  } else if (name == "predict") {
    if (value != kAsManyAsFit) check(at_least(1), name, value);
    num_tokens = value == kAsManyAsFit ? std::nullopt : std::optional(std::stoi(value));
  } else {
    throw Error(ExitCode::kUsage,
                fmt::format("/set: expected temp, seed, predict or lookup, got {}", in_quotes(name)));
  }
}

std::vector<std::string> Settings::lines() const {
  return {fmt::format("temp {}", sampling.temperature), fmt::format("seed {}", sampling.seed),
          fmt::format("predict {}", num_tokens ? std::to_string(*num_tokens) : kAsManyAsFit),
          fmt::format("lookup {}", sampling.num_drafts)};
}

}  // namespace soliton
