#include "runtime/text/tokenizer/byte_letters.h"

#include "runtime/text/tokenizer/utf8.h"

namespace soliton::tokenization {
namespace {

/// Code points of the letters: printable Latin-1 for themselves, the other bytes from U+0100 on.
constexpr std::array<char32_t, kNumBytes> make_code_points() {
  std::array<char32_t, kNumBytes> letters{};
  char32_t next = kNumBytes;
  for (size_t byte = 0; byte < kNumBytes; ++byte) {
    const bool prints =
        (byte >= '!' && byte <= '~') || (byte >= 0xa1 && byte <= 0xac) || (byte >= 0xae && byte <= 0xff);
    letters[byte] = prints ? static_cast<char32_t>(byte) : next++;
  }
  return letters;
}

constexpr std::array<char32_t, kNumBytes> kCodePoints = make_code_points();
constexpr size_t kNumLetters = 0x144;  // one more than the largest code point

constexpr std::array<int, kNumLetters> make_bytes() {
  std::array<int, kNumLetters> bytes{};
  for (int& byte : bytes) byte = -1;
  for (size_t byte = 0; byte < kNumBytes; ++byte) bytes[kCodePoints[byte]] = static_cast<int>(byte);
  return bytes;
}

constexpr std::array<int, kNumLetters> kBytes = make_bytes();

}  // namespace

const std::array<std::string, kNumBytes>& byte_letters() {
  static const std::array<std::string, kNumBytes> letters = [] {
    std::array<std::string, kNumBytes> table;
    for (size_t byte = 0; byte < kNumBytes; ++byte) append_character(table[byte], kCodePoints[byte]);
    return table;
  }();
  return letters;
}

void append_letters(std::string& letters, std::string_view bytes) {
  const std::array<std::string, kNumBytes>& table = byte_letters();
  for (const char byte : bytes) letters += table[static_cast<unsigned char>(byte)];
}

std::string letters_to_bytes(std::string_view letters) {
  std::string bytes;
  for (size_t i = 0; i < letters.size();) {
    const Character letter = first_character(letters.substr(i));
    if (letter.code >= kNumLetters || kBytes[letter.code] < 0) return std::string(letters);
    bytes += static_cast<char>(static_cast<unsigned char>(kBytes[letter.code]));
    i += letter.length;
  }
  return bytes;
}

}  // namespace soliton::tokenization
