// What the runtime's programs share of reading their flags: strictly, with CLI11's complaints in our words. Only sources
// that declare flags include it: CLI11 takes the compiler long.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "runtime/program/program.h"

namespace soliton {

/// Accepts a decimal integer of at least `min`. CLI11 alone takes 010 for 8.
template <class Integer = int>
CLI::Validator at_least(Integer min) {
  return CLI::Validator([min](const std::string& text) { return complaint_of_integer(text, min); }, "");
}

/// Accepts a decimal number from `min` to `max`.
inline CLI::Validator number_from(double min, double max) {
  return CLI::Validator([min, max](const std::string& text) { return complaint_of_number(text, min, max); },
                        "");
}

/// Refuses an empty value, as a script passes when its variable is not set.
inline CLI::Validator not_empty() {
  return CLI::Validator(
      [](const std::string& text) { return std::string(text.empty() ? "expected a value, got \"\"" : ""); },
      "");
}

/// Accepts one of the words.
CLI::Validator one_of(std::vector<std::string> words);

/// From now on flags are listed under this title by --help.
inline void begin_group(CLI::App& app, const std::string& title) {
  app.option_defaults()->group(title);
}

/// What a program answers to those who do not know it yet.
struct UsageHints {
  std::string usage =
      {};  // what follows the program's name, to be said where nothing does; empty: nothing may
  std::string flag_of_words = {};  // that words which belong to no flag are meant for: "-p"
};

/// Of words that belong to no flag.
Error unexpected_words(const std::string& words, const UsageHints& hints);

/// Parses the command line, to which --version is added. Returns false after --help or --version, which has then been
/// printed. Throws Error (kUsage): of a flag that is none, with the nearest one that is.
bool parse_command_line(CLI::App& app, int argc, char** argv, const UsageHints& hints = {});

}  // namespace soliton
