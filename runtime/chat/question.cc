#include "runtime/chat/question.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "models/mapped_file.h"
#include "models/strict_json.h"

namespace soliton {
namespace {

constexpr const char* kStdin = "-";  // in place of a file

/// Text as an editor leaves it, without the end of its last line.
std::string without_last_end(std::string text) {
  if (text.ends_with('\n')) text.pop_back();
  if (text.ends_with('\r')) text.pop_back();
  return text;
}

std::string read_stdin() {
  constexpr size_t kBlock = 1 << 16;
  std::string text;
  while (true) {
    const size_t before = text.size();
    text.resize(before + kBlock);
    const ssize_t got = ::read(STDIN_FILENO, text.data() + before, kBlock);
    text.resize(before + static_cast<size_t>(std::max<ssize_t>(got, 0)));
    if (got == 0) return text;
    if (got < 0 && errno != EINTR) {
      throw file_error(ExitCode::kNotFound, "stdin", "expected to be read, got: {}", std::strerror(errno));
    }
  }
}

/// The prompt that flags name, if they do.
std::optional<std::string> prompt_of_flags(const Options& options) {
  if (options.prompt) return options.prompt;
  if (options.prompt_file.empty()) return std::nullopt;
  return load_prompt(options.prompt_file);
}

Conversation read_messages(const std::string& file) {
  if (file != kStdin) return read_conversation(file);
  return parse_conversation(read_stdin(), "stdin");
}

/// The messages, with a prompt behind them if flags name one.
Conversation question_of_messages(const Options& options) {
  Conversation question = read_messages(options.messages_file);
  const std::string name = options.messages_file == kStdin ? "stdin" : options.messages_file;
  if (options.system && question.system) {
    throw Error(ExitCode::kUsage,
                fmt::format("--system-prompt: expected no message of the system in {}, got one", name));
  }
  if (options.system) question.system = options.system;
  const bool asks = question.turns.size() % 2 != 0;
  const std::optional<std::string> prompt = prompt_of_flags(options);
  if (prompt && asks) {
    throw bad_file(
        name,
        "expected an answer of the assistant at the end, as a prompt is given too, got a message of "
        "the user");
  }
  if (!prompt && !asks) {
    throw bad_file(name, "expected a message of the user at the end, or --prompt, got {}",
                   question.turns.empty() ? "none" : "an answer of the assistant");
  }
  if (prompt) question.turns.push_back(*prompt);
  return question;
}

}  // namespace

std::string load_prompt(const std::string& file) {
  return without_last_end(load_text(file));
}

std::optional<Conversation> read_question(const Options& options) {
  if (!options.messages_file.empty()) return question_of_messages(options);
  std::optional<std::string> prompt = prompt_of_flags(options);
  if (!prompt) {
    if (::isatty(STDIN_FILENO) == 1) return std::nullopt;
    prompt = without_last_end(read_stdin());
    if (prompt->empty()) throw Error(ExitCode::kUsage, "--prompt: expected a value, got nothing");
  }
  return Conversation{.system = options.system, .turns = {*prompt}};
}

}  // namespace soliton
