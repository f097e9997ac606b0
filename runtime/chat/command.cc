#include "runtime/chat/command.h"

#include <algorithm>
#include <array>
#include <utility>

#include "models/error.h"

namespace soliton {
namespace {

constexpr std::string_view kBlock = R"(""")";
constexpr std::string_view kWhiteSpace = " \t\r";

enum class Argument { kNone, kOptional, kRequired };

struct Entry {
  CommandName name;
  std::string_view word;
  Argument argument;
  std::string_view placeholder;
  std::string_view help;
};

/// What users of other programs type.
struct OtherWord {
  std::string_view word;
  std::string_view meant;
};
constexpr std::array kOtherWords = {OtherWord{"/?", "/help"}, OtherWord{"/bye", "/exit"},
                                    OtherWord{"/quit", "/exit"}};

constexpr std::array kEntries = {
    Entry{CommandName::kHelp, "/help", Argument::kNone, "", "shows this, as /? does"},
    Entry{CommandName::kExit, "/exit", Argument::kNone, "", "ends the program, as /bye, /quit and Ctrl-D do"},
    Entry{CommandName::kClear, "/clear", Argument::kNone, "",
          "forgets the messages, but for the system prompt"},
    Entry{CommandName::kRegen, "/regen", Argument::kNone, "",
          "answers the last message anew, with the next seed"},
    Entry{CommandName::kSystem, "/system", Argument::kOptional, "TEXT",
          "sets the system prompt, \"\" for none; shows it without TEXT"},
    Entry{CommandName::kSet, "/set", Argument::kOptional, "NAME VALUE",
          "sets how answers are chosen: /set shows the names and values"},
    Entry{CommandName::kStats, "/stats", Argument::kNone, "",
          "says how long the conversation is and the last answer took"},
    Entry{CommandName::kSave, "/save", Argument::kRequired, "FILE", "writes the conversation as JSON"},
    Entry{CommandName::kLoad, "/load", Argument::kRequired, "FILE", "goes on with a saved conversation"},
};

std::string_view trim(std::string_view text) {
  const size_t begin = text.find_first_not_of(kWhiteSpace);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kWhiteSpace) - begin + 1);
}

}  // namespace

bool InputLines::add(std::string_view line) {
  const bool is_mark = trim(line) == kBlock;
  if (is_block_ ? is_mark : is_mark && text_.empty()) {
    is_plain_ = false;
    is_block_ = is_open_ = !is_block_;
    if (!is_block_ && !text_.empty()) text_.pop_back();  // the last line's end
    return !is_open_;
  }
  if (is_block_) {
    text_.append(line).append("\n");
    return false;
  }
  is_open_ = line.ends_with('\\');
  if (is_open_) {
    is_plain_ = false;
    line.remove_suffix(1);
  }
  text_.append(line).append(is_open_ ? "\n" : "");
  return !is_open_;
}

std::string InputLines::take() {
  return std::exchange(*this, {}).text_;
}

bool is_command(std::string_view line) {
  return line.starts_with('/');
}

Command parse_command(std::string_view line) {
  const std::string_view word = line.substr(0, line.find_first_of(kWhiteSpace));
  const std::string_view argument = trim(line.substr(word.size()));
  const auto other = std::find_if(kOtherWords.begin(), kOtherWords.end(),
                                  [&](const OtherWord& known) { return known.word == word; });
  const std::string_view meant = other == kOtherWords.end() ? word : other->meant;
  const auto entry =
      std::find_if(kEntries.begin(), kEntries.end(), [&](const Entry& known) { return known.word == meant; });
  if (entry == kEntries.end()) {
    throw Error(
        ExitCode::kUsage,
        fmt::format("{}: expected a command that /help lists, or a space before a message", in_quotes(word)));
  }
  if (entry->argument == Argument::kRequired && argument.empty()) {
    throw Error(ExitCode::kUsage, fmt::format("{}: expected {}, got nothing", word, entry->placeholder));
  }
  if (entry->argument == Argument::kNone && !argument.empty()) {
    throw Error(ExitCode::kUsage,
                fmt::format("{}: expected nothing behind it, got {}", word, in_quotes(argument)));
  }
  return {entry->name, std::string(argument)};
}

std::string command_help() {
  std::string help;
  const auto add = [&help](std::string_view left, std::string_view right) {
    help += fmt::format("{:18} {}\n", left, right);
  };
  for (const Entry& entry : kEntries) add(fmt::format("{} {}", entry.word, entry.placeholder), entry.help);
  add("...\\", "a line that ends in \\ goes on in the next");
  add(kBlock, "begins and ends a message of any lines");
  add("Ctrl-C",
      "stops the answer, or drops the line; a second one, or one at an empty line, ends the program");
  help.pop_back();
  return help;
}

}  // namespace soliton
