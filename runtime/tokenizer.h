// Byte-level BPE as tokenizer.json describes it, equal to the reference `tokenizers` library id for id. What
// the file asks for and we do not do is refused by name when it is opened.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace soliton {

/// A tokenizer; immutable, so any number of threads may use one.
class Tokenizer {
 public:
  /// Reads the folder's tokenizer.json. Throws kNotFound if it is absent, kBadFile if it is malformed,
  /// kMismatch if it asks for a normalizer, model, pre-tokenizer, decoder or post-processor that is not
  /// supported. Its truncation and padding settings are for batches and play no part here.
  static Tokenizer open(const std::filesystem::path& folder);

  Tokenizer(Tokenizer&&) noexcept;
  Tokenizer& operator=(Tokenizer&&) noexcept;
  ~Tokenizer();

  /// Token ids of UTF-8 text, without prefix_ids(). Bytes that are no UTF-8 count as U+FFFD. Special tokens
  /// written in the text become their ids only with `parse_special`: never set it for text a user typed.
  /// Added tokens that are not special are always recognised, as in the reference. Throws kOutOfMemory if the
  /// text exceeds 256 MiB or defeats the pattern's limit on backtracking.
  std::vector<int> encode(std::string_view text, bool parse_special = false) const;

  /// Text of the ids, always valid UTF-8: bytes that form no character come out as U+FFFD. Ids without a
  /// token (a model's vocabulary may be padded) give nothing.
  std::string decode(std::span<const int> ids, bool skip_special = false) const;

  /// Raw bytes of one token, which may be part of a character; empty for ids without a token, negative ones
  /// too.
  const std::string& piece(int id) const;
  /// Whether the id is a special token, such as the end of a turn.
  bool is_special(int id) const;
  /// The id of the token that tokenizer.json writes as `text`: "<|eot_id|>", or "Ġthe" in byte-level letters.
  std::optional<int> token_id(std::string_view text) const;
  /// One more than the largest id.
  int vocabulary_size() const;
  /// Ids that belong before a text that stands alone; usually begin-of-text, or none.
  std::span<const int> prefix_ids() const;
  /// Whether there are prefix_ids().
  bool add_bos() const { return !prefix_ids().empty(); }

 private:
  struct State;
  explicit Tokenizer(std::unique_ptr<const State> state);

  std::unique_ptr<const State> state_;
};

/// Turns ids into text one by one, holding back bytes until they form whole characters. The Tokenizer must
/// outlive it. All pushes and the finish together give what Tokenizer::decode does.
class StreamDecoder {
 public:
  explicit StreamDecoder(const Tokenizer& tokenizer, bool skip_special = false)
      : tokenizer_(&tokenizer), skip_special_(skip_special) {}

  /// The characters that `id` completes; empty if none.
  std::string push(int id);
  /// U+FFFD if the text ends inside a character, else empty. Afterwards a new text may begin.
  std::string finish();

 private:
  const Tokenizer* tokenizer_;
  bool skip_special_;
  std::string pending_;  // at most 3 bytes between calls
};

}  // namespace soliton
