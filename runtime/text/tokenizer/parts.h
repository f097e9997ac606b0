// Reading the parts of tokenizer.json: each has a "type" that names it, some are a Sequence of others, and
// what we do not do is refused by name.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "models/strict_json.h"

namespace soliton::tokenization {

/// A string that must be one character, such as Metaspace's replacement. Throws kBadFile.
std::string read_character(const JsonView& setting);

/// The setting, or `otherwise` if it is absent or null. Throws kBadFile if it is no truth value.
inline bool read_flag(const JsonView& setting, bool otherwise) {
  return setting.is_null() ? otherwise : setting.boolean();
}

/// Refuses a string other than the empty one, which absence and null mean too.
void expect_empty(const JsonView& setting);

/// A kind of part and the function that reads one and appends what it does to `Steps`.
template <class Steps>
struct PartReader {
  std::string_view type;
  void (*read)(const JsonView& part, Steps& steps);
};

/// A chain may be no longer, so that its work stays in proportion to the text.
inline constexpr int kMaxParts = 100;

/// Reads a part by its type, a Sequence's members (under `members`) one after another, and counts them in
/// `num_parts`. Throws kMismatch on a type that no reader has, kOutOfMemory above kMaxParts.
template <class Steps>
void read_part(const JsonView& part, std::string_view members, std::span<const PartReader<Steps>> readers,
               Steps& steps, int& num_parts) {
  if (++num_parts > kMaxParts) {
    throw part.error(ExitCode::kOutOfMemory, "expected at most {} parts, got more", kMaxParts);
  }
  const std::string& type = part["type"].string();
  if (type == "Sequence") {
    const JsonView list = part[members];
    for (size_t i = 0; i < list.array_size(); ++i) read_part(list[i], members, readers, steps, num_parts);
    return;
  }
  std::string known = "Sequence";
  for (const PartReader<Steps>& reader : readers) {
    if (reader.type == type) return reader.read(part, steps);
    known.append(", ").append(reader.type);
  }
  throw part.error(ExitCode::kMismatch, "expected a type of {}, got {}: not supported", known,
                   part["type"].describe());
}

/// Reads a part that is no member of another.
template <class Steps>
void read_part(const JsonView& part, std::string_view members, std::span<const PartReader<Steps>> readers,
               Steps& steps) {
  int num_parts = 0;
  read_part(part, members, readers, steps, num_parts);
}

}  // namespace soliton::tokenization
