// What a user types: messages of one line or several, and commands.
#pragma once

#include <string>
#include <string_view>

namespace soliton {

/// Lines on their way to one input. A line that ends in a backslash goes on in the next; between two lines of
/// """ everything is taken as it is.
class InputLines {
 public:
  /// Adds a line, without its end. True if the input is complete.
  bool add(std::string_view line);
  /// Whether lines have come that are no complete input.
  bool is_open() const { return is_open_; }
  /// Whether the input is one plain line, as a command must be.
  bool is_plain() const { return is_plain_; }
  /// The input, and begins anew.
  std::string take();

 private:
  std::string text_;
  bool is_open_ = false;
  bool is_block_ = false;
  bool is_plain_ = true;
};

enum class CommandName { kHelp, kExit, kClear, kRegen, kSystem, kSet, kStats, kSave, kLoad };

struct Command {
  CommandName name = CommandName::kHelp;
  std::string argument;  // without white space around it
};

/// Whether a plain line is meant as a command.
bool is_command(std::string_view line);
/// Throws Error (kUsage) for an unknown command, a missing argument, or one where there is none.
Command parse_command(std::string_view line);
/// A line for each command and each way to write a message.
std::string command_help();

}  // namespace soliton
