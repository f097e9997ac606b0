// Added tokens: texts that are tokens by themselves wherever they stand, found before anything else is done.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "models/strict_json.h"
#include "runtime/text/tokenizer/bpe.h"
#include "runtime/text/tokenizer/normalizer.h"

namespace soliton::tokenization {

struct AddedToken {
  std::string content;
  std::string normalized_content;  // what is looked for if `normalized`, and what decoding starts from
  int id;
  bool special;
  bool normalized;   // looked for in normalized text
  bool single_word;  // not if a word continues on either side
  bool lstrip;       // takes the white space before it
  bool rstrip;       // and after it
};

/// Finds the longest of some texts.
class LongestMatch {
 public:
  struct Entry {
    std::string text;  // not empty
    size_t value;
  };

  LongestMatch() = default;
  explicit LongestMatch(std::vector<Entry> entries);

  /// The longest entry that `text` begins with, or null.
  const Entry* at(std::string_view text) const;
  /// The first byte at or after `from` where an entry may begin; the text's size if none.
  size_t next_start(std::string_view text, size_t from) const;

 private:
  std::vector<Entry> entries_;  // sorted
  std::array<bool, 256> starts_{};
};

/// All added tokens of a file. Immutable.
class AddedTokens {
 public:
  /// Reads tokenizer.json's added_tokens. Throws kBadFile if two disagree, or one disagrees with the
  /// vocabulary or with the id that the reference would give it, kOutOfMemory beyond the limit on normalized
  /// contents.
  static AddedTokens read(const JsonView& list, const Bpe& bpe, const Normalizer& normalizer,
                          TextLimit limit);

  const std::vector<AddedToken>& all() const { return tokens_; }
  std::optional<int> id_of(std::string_view content) const;

  /// A token found, or text between.
  struct Part {
    size_t begin;
    size_t end;
    const AddedToken* token;  // null: text
  };

  /// Cuts text at those tokens that are, or are not, `normalized`. Special ones count only with
  /// `parse_special`. Parts are in order and may overlap where tokens strip the same white space.
  std::vector<Part> cut(std::string_view text, bool normalized, bool parse_special) const;

 private:
  std::vector<AddedToken> tokens_;
  ByText<size_t> by_content_;           // indices into tokens_
  std::array<LongestMatch, 2> search_;  // by AddedToken::normalized
};

}  // namespace soliton::tokenization
