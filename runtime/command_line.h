// What the runtime's programs share: flags read strictly, CLI11's complaints in our words, and one line on
// stderr, after which the program ends, for whatever goes wrong.
#pragma once

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <limits>
#include <new>
#include <string>

#include "models/error.h"

namespace soliton {

/// Accepts a decimal integer of at least `min`. CLI11 alone takes 010 for 8.
template <class Integer = int>
CLI::Validator at_least(Integer min) {
  const auto check = [min](const std::string& text) -> std::string {
    Integer value{};
    const char* const end = text.data() + text.size();
    const auto [rest, failure] = std::from_chars(text.data(), end, value);
    const bool is_octal = text.size() > 1 && text[0] == '0';
    if (failure == std::errc{} && rest == end && !is_octal && value >= min) return {};
    return fmt::format("expected an integer from {} to {}, got {}", min, std::numeric_limits<Integer>::max(),
                       in_quotes(text));
  };
  return CLI::Validator(check, "");
}

/// Accepts a decimal number from `min` to `max`.
inline CLI::Validator number_from(double min, double max) {
  const auto check = [min, max](const std::string& text) -> std::string {
    double value{};
    const char* const end = text.data() + text.size();
    const auto [rest, failure] = std::from_chars(text.data(), end, value);
    if (failure == std::errc{} && rest == end && value >= min && value <= max) return {};
    return fmt::format("expected a number from {} to {}, got {}", min, max, in_quotes(text));
  };
  return CLI::Validator(check, "");
}

/// Refuses an empty value, as a script passes when its variable is not set.
inline CLI::Validator not_empty() {
  return CLI::Validator(
      [](const std::string& text) { return std::string(text.empty() ? "expected a value, got \"\"" : ""); },
      "");
}

/// Parses the command line, to which --version is added. Returns false after --help or --version, which has then been
/// printed. Throws Error (kUsage).
bool parse_command_line(CLI::App& app, int argc, char** argv);

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
