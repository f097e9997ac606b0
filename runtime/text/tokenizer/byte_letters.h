// The byte-level alphabet: every byte has a printable character that stands for it, so that a vocabulary of
// bytes can be written as text.
#pragma once

#include <array>
#include <string>
#include <string_view>

namespace soliton::tokenization {

inline constexpr int kNumBytes = 256;

/// The character, as UTF-8, that stands for a byte.
const std::array<std::string, kNumBytes>& byte_letters();

/// Appends a letter for each byte.
void append_letters(std::string& letters, std::string_view bytes);

/// The bytes that valid UTF-8 text stands for; the text itself if one of its characters is not a letter.
std::string letters_to_bytes(std::string_view letters);

}  // namespace soliton::tokenization
