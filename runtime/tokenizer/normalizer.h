// Normalizers: what happens to text before it is cut.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "runtime/mapped_file.h"

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
  using Step = std::function<void(Section&)>;

  /// Reads tokenizer.json's normalizer, null for none: NFC, NFD, NFKC, NFKD, Lowercase, Strip, Prepend,
  /// Replace, ByteLevel and sequences of them. Throws kBadFile, or kMismatch on another.
  static Normalizer read(const JsonView& normalizer);

  void apply(Section& section) const;

 private:
  std::vector<Step> steps_;
};

}  // namespace soliton::tokenization
