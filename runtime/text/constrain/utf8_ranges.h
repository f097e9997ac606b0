// Sets of characters as what their UTF-8 consists of.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/text/constrain/grammar.h"

namespace soliton::constrain {

struct ByteRange {
  uint8_t first;
  uint8_t last;

  auto operator<=>(const ByteRange&) const = default;
};

/// Byte after byte, each any of its range.
using ByteSequence = std::vector<ByteRange>;

/// Sequences that together are the UTF-8 of the characters; surrogates have none.
std::vector<ByteSequence> utf8_sequences(const CodeSet& set);

}  // namespace soliton::constrain
