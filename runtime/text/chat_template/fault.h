// How the parts of the template engine report: a Fault without a place, to which the evaluator adds the
// template's name and line. And the limits that make every template end.
#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <stdexcept>
#include <string>
#include <utility>

#include "models/error.h"

namespace soliton::jinja {

inline constexpr size_t kMaxTemplateBytes = size_t{1} << 20;
inline constexpr int kMaxNesting = 200;               // of the syntax tree
inline constexpr int kMaxEvaluationDepth = 600;       // of evaluations inside one another, macros included
inline constexpr int kMaxValueDepth = 100;            // of lists in lists
inline constexpr size_t kMaxWeight = 10'000'000;      // of a value: all it contains, as often as it does
inline constexpr size_t kMaxSteps = 10'000'000;       // nodes evaluated and items touched
inline constexpr size_t kMaxBytes = size_t{1} << 29;  // of all values made during one rendering
inline constexpr size_t kMaxOutputBytes = size_t{1} << 26;  // of the text rendered

/// A failure whose place in the template the thrower does not know. Never leaves the engine.
class Fault : public std::runtime_error {
 public:
  Fault(ExitCode code, const std::string& message) : std::runtime_error(message), code_(code) {}
  ExitCode code() const noexcept { return code_; }

 private:
  ExitCode code_;
};

/// The template does with a value what Python would refuse too.
template <class... Args>
Fault wrong(fmt::format_string<Args...> format, Args&&... args) {
  return Fault(ExitCode::kBadFile, fmt::format(format, std::forward<Args>(args)...));
}

/// jinja2 could do it, this engine does not.
template <class... Args>
Fault unsupported(fmt::format_string<Args...> format, Args&&... args) {
  return Fault(ExitCode::kMismatch, fmt::format(format, std::forward<Args>(args)...));
}

template <class... Args>
Fault too_much(fmt::format_string<Args...> format, Args&&... args) {
  return Fault(ExitCode::kOutOfMemory, fmt::format(format, std::forward<Args>(args)...));
}

/// What one rendering may still spend. Charged before the work is done.
class Budget {
 public:
  void spend_steps(size_t count) {
    if (count > steps_) throw too_much("expected at most {} steps, got more", kMaxSteps);
    steps_ -= count;
  }
  void spend_bytes(size_t count) {
    if (count > bytes_) throw too_much("expected values of at most {} bytes in all, got more", kMaxBytes);
    bytes_ -= count;
  }

 private:
  size_t steps_ = kMaxSteps;
  size_t bytes_ = kMaxBytes;
};

}  // namespace soliton::jinja
