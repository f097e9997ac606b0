#include "runtime/chat/repl.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <utility>

#include "models/error.h"
#include "models/printing.h"
#include "runtime/chat/command.h"
#include "runtime/chat/console.h"
#include "runtime/chat/interrupt.h"
#include "runtime/chat/prompt_bar.h"

namespace soliton {
namespace {

constexpr const char* kPrompt = ">";
constexpr const char* kMorePrompt = ".";

/// As a shell would: ~/ is the home folder.
std::filesystem::path expand_home(const std::string& path) {
  const char* const home = std::getenv("HOME");
  if (!path.starts_with("~/") || home == nullptr) return path;
  return std::filesystem::path(home) / path.substr(2);
}

/// After it nothing can be relied on.
bool is_fatal(const Error& error) {
  return error.code() == ExitCode::kDevice || error.code() == ExitCode::kInternal;
}

/// What is to be said of how an answer ended, or nothing.
std::string_view note_of(AnswerEnd end) {
  switch (end) {
    case AnswerEnd::kDone:
      return {};
    case AnswerEnd::kInterrupted:
      return kStoppedNote;
    case AnswerEnd::kNumTokens:
      return "[ cut at the tokens that predict allows: see /set ]";
    case AnswerEnd::kContext:
      return "[ cut: the context is full. /clear begins anew, -c sets its size ]";
    case AnswerEnd::kNothing:
      return "[ stopped before the answer began: the message is not kept ]";
  }
  return {};
}

/// What the words after /set name: a setting and its value.
void set(Session& session, const std::string& argument) {
  const size_t space = argument.find_first_of(" \t");
  if (argument.empty()) {
    for (const std::string& line : session.settings().lines()) print_note(line);
    return;
  }
  const std::string name = argument.substr(0, space);
  if (space == std::string::npos) {
    throw Error(ExitCode::kUsage, fmt::format("/set: expected NAME VALUE, got {}", in_quotes(name)));
  }
  session.set(name, argument.substr(argument.find_first_not_of(" \t", space)));
  for (const std::string& line : session.settings().lines()) {
    if (line.starts_with(name + " ")) print_note(fmt::format("[ {} ]", line));
  }
}

void set_system(Session& session, const std::string& argument) {
  if (argument.empty()) {
    const auto& system = session.conversation().system;
    print_note(system ? for_terminal(*system) : "no system prompt");
  } else {
    session.set_system(argument == R"("")" ? "" : argument);
    print_note(session.conversation().system ? "[ system prompt set ]" : "[ no system prompt ]");
  }
}

/// "4 messages and a system prompt".
std::string contents_of(const Conversation& conversation) {
  const size_t num_messages = conversation.turns.size();
  return fmt::format("{} message{}{}", num_messages, num_messages == 1 ? "" : "s",
                     conversation.system ? " and a system prompt" : "");
}

void clear(Session& session) {
  const size_t num_messages = session.conversation().turns.size();
  session.clear();
  print_note(fmt::format("[ {} message{} forgotten{} ]", num_messages, num_messages == 1 ? "" : "s",
                         session.conversation().system ? ", the system prompt stays" : ""));
}

void save(const Session& session, const std::string& file) {
  session.save(expand_home(file));
  print_note(fmt::format("[ saved {} to {} ]", contents_of(session.conversation()), for_terminal(file)));
}

void load(Session& session, const std::string& file) {
  session.load(expand_home(file));
  print_note(fmt::format("[ loaded {} from {} ]", contents_of(session.conversation()), for_terminal(file)));
}

}  // namespace

void Repl::run() {
  print_note("/help lists the commands, Ctrl-D ends.");
  while (step()) {
  }
}

/// One input; false if the user ends the program.
bool Repl::step() {
  InputLines input;
  do {
    forget_interrupts();
    const LineReader::Line line = reader_.read(input.is_open() ? kMorePrompt : kPrompt);
    if (line.end == LineReader::End::kEndOfInput) return false;
    if (line.end == LineReader::End::kInterrupted) return input.is_open() || !line.text.empty();
    input.add(line.text);
  } while (input.is_open());
  const bool is_plain = input.is_plain();
  const std::string text = input.take();
  if (text.find_first_not_of(" \t\r\n") == std::string::npos) return true;
  try {
    if (is_plain && is_command(text)) return obey(text);
    answer([&](const Session::OnText& on_text, const Session::OnRead& on_read) {
      return session_.ask(text, on_text, on_read);
    });
  } catch (const Error& error) {
    if (is_fatal(error) || is_stdout_lost()) throw;
    say_line(error.what());
  }
  return true;
}

/// False for /exit.
bool Repl::obey(const std::string& line) {
  const Command command = parse_command(line);
  switch (command.name) {
    case CommandName::kHelp:
      say_line(command_help());
      break;
    case CommandName::kExit:
      return false;
    case CommandName::kClear:
      clear(session_);
      break;
    case CommandName::kRegen:
      answer([&](const Session::OnText& on_text, const Session::OnRead& on_read) {
        return session_.answer_again(on_text, on_read);
      });
      if (session_.settings().sampling.temperature == 0) {
        print_note("[ the same answer again: temp is 0, see /set ]");
      }
      break;
    case CommandName::kSystem:
      set_system(session_, command.argument);
      break;
    case CommandName::kSet:
      set(session_, command.argument);
      break;
    case CommandName::kStats:
      for (const std::string& note : session_.statistics_lines()) print_note(note);
      break;
    case CommandName::kSave:
      save(session_, command.argument);
      break;
    case CommandName::kLoad:
      load(session_, command.argument);
      break;
  }
  return true;
}

void Repl::answer(const std::function<Answer(const Session::OnText&, const Session::OnRead&)>& ask) {
  forget_interrupts();
  const InterruptsEnd second_interrupt_ends;
  const bool dims = shows_colours(STDOUT_FILENO);
  std::optional<ReasoningReader> reasoning;
  bool has_begun = false;
  const auto show = [](const ReasoningReader::Piece& piece) {
    print_reasoning(piece.reasoning);
    print_answer(piece.content);
  };
  PromptBar bar;
  const auto take = [&](std::string_view text) {
    if (!text.empty()) bar.clear();
    if (dims && !std::exchange(has_begun, true)) reasoning = session_.reasoning_reader();
    if (reasoning) {
      show(reasoning->push(text));
    } else {
      print_answer(text);
    }
    return wants_answer();
  };
  const Answer answer =
      ask(take, [&](size_t num_read, size_t num_tokens) { bar.show(num_read, num_tokens); });
  bar.clear();
  if (reasoning) show(reasoning->finish());
  print_answer("\n");
  flush_stdout();
  if (!answer.logprobs.empty()) print_logprobs(session_.tokenizer(), answer.tokens, answer.logprobs);
  print_note(statistics(answer.timing, answer.remark));
  if (const std::string_view note = note_of(answer.end); !note.empty()) print_note(note);
}

}  // namespace soliton
