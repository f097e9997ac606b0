// Pre-tokenizers: how a section is cut into pieces, each tokenized by itself.
#pragma once

#include <cstddef>
#include <functional>
#include <string_view>
#include <vector>

#include "models/strict_json.h"
#include "runtime/text/tokenizer/normalizer.h"

namespace soliton::tokenization {

/// A piece: bytes of its section.
struct Span {
  size_t begin;
  size_t end;
};

/// A section and its pieces from left to right; none is empty.
struct Pieces {
  Section section;
  std::vector<Span> spans;

  std::string_view text(const Span& span) const {
    return std::string_view(section.text).substr(span.begin, span.end - span.begin);
  }
};

/// A chain of pre-tokenizers, or none, which leaves one piece. Immutable.
class PreTokenizer {
 public:
  using Step = std::function<void(Pieces&, TextLimit&)>;

  /// Reads tokenizer.json's pre_tokenizer, null for none: ByteLevel, Split, Digits, Metaspace and sequences
  /// of them. Throws kBadFile, or kMismatch on another.
  static PreTokenizer read(const JsonView& pre_tokenizer);

  /// Throws kOutOfMemory beyond the limit, of which the section is a part.
  Pieces cut(Section section, TextLimit& limit) const;

 private:
  std::vector<Step> steps_;
};

}  // namespace soliton::tokenization
