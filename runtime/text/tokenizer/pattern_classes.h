// The classes of characters that patterns name, as members of PCRE2's classes in brackets.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string_view>

namespace soliton::tokenization {

/// Members of classes. Oniguruma takes \w by itself to have six more characters of Latin-1 than [\w].
inline constexpr std::string_view kSpace =
    R"(\t-\r\x{85}\p{Z})";  // as White_Space; PCRE2's \s has U+180E too
inline constexpr std::string_view kWord = R"(\p{Alphabetic}\p{M}\p{Nd}\p{Pc})";
inline constexpr std::string_view kWordAlone = R"(\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\xb2\xb3\xb9\xbc-\xbe)";
inline constexpr std::string_view kHexDigit = "0-9a-fA-F";

struct NamedMembers {
  std::string_view name;
  std::string_view members;
};

/// Names of POSIX, which are properties too, and the long names of categories.
inline constexpr std::array<NamedMembers, 16> kNamed = {{{"alpha", R"(\p{Alphabetic})"},
                                                         {"alnum", R"(\p{Alphabetic}\p{Nd})"},
                                                         {"digit", R"(\p{Nd})"},
                                                         {"lower", R"(\p{Lowercase})"},
                                                         {"punct", R"(\p{P}\p{S})"},
                                                         {"space", kSpace},
                                                         {"upper", R"(\p{Uppercase})"},
                                                         {"word", kWord},
                                                         {"xdigit", kHexDigit},
                                                         {"letter", R"(\p{L})"},
                                                         {"mark", R"(\p{M})"},
                                                         {"number", R"(\p{N})"},
                                                         {"other", R"(\p{C})"},
                                                         {"punctuation", R"(\p{P})"},
                                                         {"separator", R"(\p{Z})"},
                                                         {"symbol", R"(\p{S})"}}};
inline constexpr size_t kNumPosix = 9;  // of them, from the first on

inline std::string_view named_members(std::string_view name, size_t count) {
  for (const NamedMembers& named : std::span(kNamed).first(count)) {
    if (named.name == name) return named.members;
  }
  return {};
}

}  // namespace soliton::tokenization
