#include "runtime/chat/settings.h"

#include <algorithm>
#include <array>

#include "runtime/program/program.h"

namespace soliton {
namespace {

constexpr const char* kAsManyAsFit = "-1";

/// Settings that are numbers of a Sampling.
struct Number {
  const char* name;
  double Sampling::*member;
  double min;
  double max;
};
constexpr std::array kNumbers = {
    Number{"temp", &Sampling::temperature, 0, kMaxTemperature},
    Number{"top-p", &Sampling::top_p, 0, 1},
    Number{"min-p", &Sampling::min_p, 0, 1},
    Number{"repeat-penalty", &Sampling::repeat_penalty, kMinPenalty, kMaxPenalty},
};

/// Throws what is wrong with the setting's value, if anything is.
void check(const std::string& name, const std::string& complaint) {
  if (!complaint.empty()) throw Error(ExitCode::kUsage, fmt::format("{}: {}", name, complaint));
}

}  // namespace

void Settings::set(const std::string& name, const std::string& value) {
  const auto number =
      std::find_if(kNumbers.begin(), kNumbers.end(), [&](const Number& each) { return each.name == name; });
  if (number != kNumbers.end()) {
    check(name, complaint_of_number(value, number->min, number->max));
    sampling.*number->member = std::stod(value);
  } else if (name == "top-k") {
    check(name, complaint_of_integer(value, 0));
    sampling.top_k = std::stoi(value);
  } else if (name == "seed") {
    check(name, complaint_of_integer<uint32_t>(value, 0));
    sampling.seed = static_cast<uint32_t>(std::stoul(value));
  } else if (name == "drafts") {
    check(name, complaint_of_integer(value, 0));
    sampling.num_drafts = std::stoi(value);
  } else if (name == "predict") {
    if (value != kAsManyAsFit) check(name, complaint_of_integer(value, 1));
    num_tokens = value == kAsManyAsFit ? std::nullopt : std::optional(std::stoi(value));
  } else if (name == "logprobs") {
    if (value != "on" && value != "off") {
      throw Error(ExitCode::kUsage, fmt::format("logprobs: expected on or off, got {}", in_quotes(value)));
    }
    sampling.logprobs = value == "on";
  } else {
    throw Error(ExitCode::kUsage,
                fmt::format("/set: expected temp, top-k, top-p, min-p, repeat-penalty, seed, predict, drafts "
                            "or logprobs, got {}",
                            in_quotes(name)));
  }
}

std::vector<std::string> Settings::lines() const {
  return {fmt::format("temp {}", sampling.temperature),
          fmt::format("top-k {}", sampling.top_k),
          fmt::format("top-p {}", sampling.top_p),
          fmt::format("min-p {}", sampling.min_p),
          fmt::format("repeat-penalty {}", sampling.repeat_penalty),
          fmt::format("seed {}", sampling.seed),
          fmt::format("predict {}", num_tokens ? std::to_string(*num_tokens) : kAsManyAsFit),
          fmt::format("drafts {}", sampling.num_drafts),
          fmt::format("logprobs {}", sampling.logprobs ? "on" : "off")};
}

}  // namespace soliton
