// Keeps error messages to one printable line.
#include "models/error.h"

namespace soliton {
namespace {

std::string one_line(std::string_view text) {
  constexpr unsigned char kDelete = 0x7f;
  std::string line;
  line.reserve(text.size());
  for (const char character : text) {
    const auto byte = static_cast<unsigned char>(character);
    if (byte < ' ' || byte == kDelete) {
      line += fmt::format("\\x{:02x}", byte);
    } else {
      line += character;
    }
  }
  return line;
}

bool continues_character(char byte) {
  return (static_cast<unsigned char>(byte) & 0xc0) == 0x80;
}

}  // namespace

Error::Error(ExitCode code, std::string_view message) : std::runtime_error(one_line(message)), code_(code) {}

std::string in_quotes(std::string_view text, size_t limit) {
  if (text.size() <= limit) return fmt::format("\"{}\"", text);
  size_t cut = limit;
  while (cut > 0 && continues_character(text[cut])) --cut;
  return fmt::format("\"{}...\"", text.substr(0, cut));
}

}  // namespace soliton
