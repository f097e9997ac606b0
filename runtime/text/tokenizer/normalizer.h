// Normalizers: what happens to text before it is cut. Normal forms are those of utf8proc's Unicode (15 in
// utf8proc 2.8), the reference's those of Unicode 9: marks assigned later, 98 up to Unicode 14, are put in
// order here and not there, and some 70 compatibility characters decompose.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "models/strict_json.h"
#include "runtime/text/tokenizer/text_limit.h"

namespace soliton::tokenization {

/// A stretch of the text between added tokens.
struct Section {
  std::string text;  // valid UTF-8
  /// Bytes at the front that come from the whole text's first character; 0 if the section begins elsewhere.
  /// Metaspace's "first" asks for it.
  size_t origin_bytes = 0;
};

/// A chain of normalizers, or none. Immutable.
class Normalizer {
 public:
  using Step = std::function<void(Section&, TextLimit&)>;

  /// Reads tokenizer.json's normalizer, null for none: NFC, NFD, NFKC, NFKD, Lowercase, Strip, Prepend,
  /// Replace, ByteLevel and sequences of them. Throws kBadFile, or kMismatch on another.
  static Normalizer read(const JsonView& normalizer);

  /// Throws kOutOfMemory beyond the limit, of which a section is a part.
  void apply(Section& section, TextLimit& limit) const;

 private:
  std::vector<Step> steps_;
};

}  // namespace soliton::tokenization
