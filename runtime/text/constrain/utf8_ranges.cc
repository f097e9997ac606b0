#include "runtime/text/constrain/utf8_ranges.h"

#include <algorithm>

#include "runtime/text/tokenizer/utf8.h"

namespace soliton::constrain {
namespace {

constexpr char32_t kFirstSurrogate = 0xd800;
constexpr char32_t kLastSurrogate = 0xdfff;
constexpr int kContinuationBits = 6;

std::string utf8(char32_t code) {
  std::string bytes;
  tokenization::append_character(bytes, code);
  return bytes;
}

/// A range of characters of equally many bytes. It is cut where a byte behind the first that differs does not run over
/// all that continuations can be.
void split(char32_t first, char32_t last, std::vector<ByteSequence>& sequences) {
  const std::string low = utf8(first);
  const std::string high = utf8(last);
  for (int bits = kContinuationBits; bits < kContinuationBits * static_cast<int>(low.size());
       bits += kContinuationBits) {
    const char32_t mask = (char32_t{1} << bits) - 1;
    if ((first & ~mask) == (last & ~mask)) continue;
    if ((first & mask) != 0) {
      split(first, first | mask, sequences);
      split((first | mask) + 1, last, sequences);
      return;
    }
    if ((last & mask) != mask) {
      split(first, (last & ~mask) - 1, sequences);
      split(last & ~mask, last, sequences);
      return;
    }
  }
  ByteSequence sequence;
  for (size_t i = 0; i < low.size(); ++i) {
    sequence.push_back({static_cast<uint8_t>(low[i]), static_cast<uint8_t>(high[i])});
  }
  sequences.push_back(std::move(sequence));
}

}  // namespace

std::vector<ByteSequence> utf8_sequences(const CodeSet& set) {
  static const CodeSet kLengths = {{0, 0x7f},
                                   {0x80, 0x7ff},
                                   {0x800, kFirstSurrogate - 1},
                                   {kLastSurrogate + 1, 0xffff},
                                   {0x10000, kMaxCode}};
  std::vector<ByteSequence> sequences;
  for (const CodeRange& range : intersection(set, kLengths)) split(range.first, range.last, sequences);
  return sequences;
}

}  // namespace soliton::constrain
