// See command_line.h. SOLITON_VERSION is the version of the CMake project.
#include "runtime/program/command_line.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <iostream>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/program/nearest.h"

namespace soliton {
namespace {

constexpr const char* kUnknown = "expected a flag that --help lists";

/// Flags of llama.cpp that its users bring along, and what there is in their place.
struct ForeignFlag {
  std::string_view name;
  const char* instead;
};
constexpr std::array kForeignFlags = {
    ForeignFlag{"-ngl", "the whole model is always on the card"},
    ForeignFlag{"--gpu-layers", "the whole model is always on the card"},
    ForeignFlag{"--n-gpu-layers", "the whole model is always on the card"},
    ForeignFlag{"-t", "the CPU computes nothing"},
    ForeignFlag{"--threads", "the CPU computes nothing"},
    ForeignFlag{"-fa", "attention is always fused"},
    ForeignFlag{"--flash-attn", "attention is always fused"},
    ForeignFlag{"-b", "the kernel decides how many tokens of a prompt go together"},
    ForeignFlag{"-ub", "the kernel decides how many tokens of a prompt go together"},
    ForeignFlag{"--batch-size", "the kernel decides how many tokens of a prompt go together"},
    ForeignFlag{"--ubatch-size", "the kernel decides how many tokens of a prompt go together"},
    ForeignFlag{"-cnv", "without a prompt there is always a conversation"},
    ForeignFlag{"--conversation", "without a prompt there is always a conversation"},
    ForeignFlag{"-hf", "a name such as org/name stands in the place of a folder"},
    ForeignFlag{"--hf-repo", "a name such as org/name stands in the place of a folder"},
};

/// The long flag that is most like what was written; empty if none is much like it.
std::string nearest_flag(const CLI::App& app, std::string_view written) {
  const std::string_view name =
      written.substr(0, written.find('=')).substr(std::min(written.find_first_not_of('-'), written.size()));
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options())
    names.insert(names.end(), option->get_lnames().begin(), option->get_lnames().end());
  const std::string nearest = nearest_word(name, names);
  return nearest.empty() ? nearest : "--" + nearest;
}

Error unknown_flag(const CLI::App& app, const std::string& flag) {
  return Error(ExitCode::kUsage,
               fmt::format("{}: {}{}", flag, kUnknown, did_you_mean(nearest_flag(app, flag))));
}

/// Throws what CLI11 would take for another flag with a value behind it: -ngl for -n with "gl", -prompt for -p.
void check_flags(const CLI::App& app, int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--") return;
    if (word.size() < 2 || word[0] != '-') continue;
    const std::string flag = word.substr(0, word.find('='));
    if (const CLI::Option* option = app.get_option_no_throw(flag); option != nullptr) {
      if (flag == word && option->get_expected_min() > 0) ++i;  // its value
      continue;
    }
    const auto foreign = std::find_if(kForeignFlags.begin(), kForeignFlags.end(),
                                      [&](const ForeignFlag& each) { return each.name == flag; });
    if (foreign != kForeignFlags.end()) {
      throw Error(ExitCode::kUsage,
                  fmt::format("{}: {}, got one of llama.cpp: here {}", flag, kUnknown, foreign->instead));
    }
    const bool has_one_dash = flag.size() > 2 && flag[1] != '-';
    if (has_one_dash && app.get_option_no_throw("-" + flag) != nullptr) throw unknown_flag(app, flag);
  }
}

/// Of words that belong to no flag, and of flags that are none.
Error unknown_words(const CLI::App& app, const UsageHints& hints) {
  const std::vector<std::string> rest = app.remaining();
  const auto flag = std::find_if(rest.begin(), rest.end(), [](const auto& word) { return word[0] == '-'; });
  if (flag != rest.end()) return unknown_flag(app, *flag);
  return unexpected_words(fmt::format("{}", fmt::join(rest, " ")), hints);
}

/// `error` as an Error of the form "FLAG: expected X, got Y".
Error usage_error(const CLI::App& app, const CLI::ParseError& error, const UsageHints& hints) {
  const std::string message = error.what();
  const std::string flag = message.substr(0, message.find_first_of(": "));
  if (dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr) return unknown_words(app, hints);
  if (message.find("received") != std::string::npos) {  // --model: At Most 1 required but received 2
    return Error(ExitCode::kUsage, fmt::format("{}: expected to be given once, got {} times", flag,
                                               message.substr(message.rfind(' ') + 1)));
  }
  if (dynamic_cast<const CLI::ExcludesError*>(&error) != nullptr) {  // --model excludes --random-weights
    return Error(ExitCode::kUsage,
                 fmt::format("{}: expected no {}, got both", flag, message.substr(message.rfind(' ') + 1)));
  }
  // --model is required; --model: 1 required TEXT missing
  const bool is_without_value = dynamic_cast<const CLI::RequiredError*>(&error) != nullptr ||
                                dynamic_cast<const CLI::ArgumentMismatch*>(&error) != nullptr;
  return Error(ExitCode::kUsage, is_without_value ? flag + ": expected a value, got nothing" : message);
}

}  // namespace

CLI::Validator one_of(std::vector<std::string> words) {
  return CLI::Validator(
      [words = std::move(words)](const std::string& text) {
        const bool is_known = std::find(words.begin(), words.end(), text) != words.end();
        return is_known ? std::string()
                        : fmt::format("expected {}, got {}", fmt::join(words, " or "), in_quotes(text));
      },
      "");
}

Error unexpected_words(const std::string& words, const UsageHints& hints) {
  const std::string flag = hints.flag_of_words;
  return Error(ExitCode::kUsage, flag.empty() ? fmt::format("{}: {}", in_quotes(words), kUnknown)
                                              : fmt::format("{}: {}; did you mean {} {}?", in_quotes(words),
                                                            kUnknown, flag, in_quotes(words)));
}

bool parse_command_line(CLI::App& app, int argc, char** argv, const UsageHints& hints) {
  begin_group(app, app.get_help_ptr()->get_group());
  app.set_version_flag("--version", fmt::format("{} {}", app.get_name(), SOLITON_VERSION));
  if (argc == 1 && !hints.usage.empty()) {
    throw Error(ExitCode::kUsage,
                fmt::format("usage: {} {}; --help lists all flags", app.get_name(), hints.usage));
  }
  check_flags(app, argc, argv);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& success) {
    app.exit(success);
    std::cout.flush();  // so that what is lost is seen by flush_stdout()
    return false;
  } catch (const CLI::ParseError& error) {
    throw usage_error(app, error, hints);
  }
  return true;
}

}  // namespace soliton
