// What the runtime's programs share: values read strictly, and one line on stderr, after which the program ends, for
// whatever goes wrong. Flags are in command_line.h.
#pragma once

#include <fmt/format.h>

#include <charconv>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <limits>
#include <new>
#include <string>

#include "models/error.h"

namespace soliton {

/// "expected an integer from 1 to 2147483647, got "x"", unless the text is a decimal integer of at least `min`; then "".
template <class Integer = int>
std::string complaint_of_integer(const std::string& text, Integer min) {
  Integer value{};
  const char* const end = text.data() + text.size();
  const auto [rest, failure] = std::from_chars(text.data(), end, value);
  const bool is_octal = text.size() > 1 && text[0] == '0';
  if (failure == std::errc{} && rest == end && !is_octal && value >= min) return {};
  return fmt::format("expected an integer from {} to {}, got {}", min, std::numeric_limits<Integer>::max(),
                     in_quotes(text));
}

/// The same for a decimal number from `min` to `max`.
inline std::string complaint_of_number(const std::string& text, double min, double max) {
  double value{};
  const char* const end = text.data() + text.size();
  const auto [rest, failure] = std::from_chars(text.data(), end, value);
  if (failure == std::errc{} && rest == end && value >= min && value <= max) return {};
  return fmt::format("expected a number from {} to {}, got {}", min, max, in_quotes(text));
}

/// Throws Error if anything written to stdout so far is lost, as on a full disk.
inline void flush_stdout() {
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) {
    throw Error(ExitCode::kNotFound, "stdout: expected to be written to, got an error");
  }
}

/// The exit status of run(argc, argv); what it throws goes to stderr as one line after the program's name.
inline int run_program(const char* name, int (*run)(int, char**), int argc, char** argv) {
  const auto report = [name](const Error& error) {
    fmt::print(stderr, "{}: {}\n", name, error.what());
    return static_cast<int>(error.code());
  };
  try {
    return run(argc, argv);
  } catch (const Error& error) {
    return report(error);
  } catch (const std::filesystem::filesystem_error& error) {
    return report(file_error(ExitCode::kNotFound, error.path1().string(), "{}", error.code().message()));
  } catch (const std::bad_alloc&) {
    return report(Error(ExitCode::kOutOfMemory, "host memory: expected more than is free"));
  } catch (const std::exception& error) {
    return report(Error(ExitCode::kInternal, fmt::format("internal error: {}", error.what())));
  }
}

}  // namespace soliton
