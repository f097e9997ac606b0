// What of an answer can be changed during a conversation.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "runtime/answer/generator.h"

namespace soliton {

struct Settings {
  Sampling sampling;
  std::optional<int> num_tokens;  // of an answer at most; else as many as the context takes

  /// Changes one by its name. Throws Error (kUsage), having changed nothing, if there is none of the name or
  /// the value cannot be.
  void set(const std::string& name, const std::string& value);
  /// "temp 0" and so on, one for each name.
  std::vector<std::string> lines() const;
};

}  // namespace soliton
