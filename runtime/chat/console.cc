#include "runtime/chat/console.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <nlohmann/json.hpp>

#include "models/printing.h"
#include "runtime/chat/interrupt.h"

namespace soliton {

bool shows_colours(int fd) {
  const char* const forbidden = std::getenv("NO_COLOR");
  if (forbidden != nullptr && *forbidden != '\0') return false;
  const char* const terminal = std::getenv("TERM");
  return ::isatty(fd) == 1 && terminal != nullptr && std::string_view(terminal) != "dumb";
}

std::string for_terminal(std::string_view text) {
  constexpr unsigned char kDelete = 0x7f;
  std::string safe;
  for (size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    // U+0080 to U+009F are controls too, in UTF-8 C2 80 to C2 9F.
    const bool is_wide_control =
        byte == 0xc2 && i + 1 < text.size() && static_cast<unsigned char>(text[i + 1]) < 0xa0;
    const bool is_control = byte < ' ' && byte != '\n' && byte != '\t';
    if (is_control || byte == kDelete) {
      safe += fmt::format("\\x{:02x}", byte);
    } else if (is_wide_control) {
      safe += fmt::format("\\x{:02x}", static_cast<unsigned char>(text[++i]));
    } else {
      safe += text[i];
    }
  }
  return safe;
}

bool wants_answer() {
  return !interrupted() && !is_stdout_lost();
}

void print_answer(std::string_view text) {
  const std::string shown = ::isatty(STDOUT_FILENO) == 1 ? for_terminal(text) : std::string(text);
  print(shown);
  std::fflush(stdout);
}

void print_reasoning(std::string_view text) {
  if (text.empty()) return;
  print(fmt::format("\x1b[2m{}\x1b[0m", for_terminal(text)));
  std::fflush(stdout);
}

void print_note(std::string_view line) {
  const bool dims = shows_colours(STDERR_FILENO);
  say("{}{}{}", dims ? "\x1b[2m" : "", line, dims ? "\x1b[0m" : "");
}

void print_logprobs(const Tokenizer& tokenizer, std::span<const int32_t> tokens,
                    std::span<const float> logprobs) {
  for (size_t i = 0; i < logprobs.size(); ++i) {
    const std::string text = tokenizer.decode(tokens.subspan(i, 1));
    print_note(
        fmt::format("{:9.4f} {:6} {}", logprobs[i], tokens[i], for_terminal(nlohmann::json(text).dump())));
  }
}

std::string statistics(const Timing& timing, std::string_view remark) {
  return fmt::format("[ Prompt: {:.1f} t/s | Generation: {:.1f} t/s{} ]", timing.prompt_rate(),
                     timing.generation_rate(), remark);
}

}  // namespace soliton
