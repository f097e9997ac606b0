// BPE tokenizers as tokenizer.json describes them, byte-level (Llama 3, Qwen, GPT-2, Tekken) or with byte
// fallback (Llama 2, Mistral), equal to the reference `tokenizers` library id for id. What the file asks for
// and we do not do is refused by name when it is opened. Where Unicode's versions differ, ours are those of
// PCRE2 and utf8proc: see tokenizer/normalizer.h.
#pragma once

#include <filesystem>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace soliton {

namespace tokenization {
class DecoderStream;
}

/// A tokenizer; immutable, so any number of threads may use one.
class Tokenizer {
 public:
  /// Reads the folder's tokenizer.json, or what a GGUF file says in its place. Throws kNotFound if it is absent, kBadFile
  /// if it is malformed, kMismatch if it asks for a normalizer, model, pre-tokenizer, decoder or post-processor that is
  /// not supported. Its truncation and padding settings are for batches and play no part here.
  static Tokenizer open(const std::filesystem::path& folder);
  /// The same of what would stand in the file, which errors call `name`.
  static Tokenizer read(const nlohmann::json& document, const std::string& name);

  Tokenizer(Tokenizer&&) noexcept;
  Tokenizer& operator=(Tokenizer&&) noexcept;
  ~Tokenizer();

  /// Token ids of UTF-8 text, without prefix_ids(). Bytes that are no UTF-8 count as U+FFFD. Special tokens
  /// written in the text become their ids only with `parse_special`: never set it for text a user typed. Not
  /// even merges make them without it; the reference's do, where a file has such merges. Added tokens that
  /// are not special are always recognised, as in the reference. Throws kOutOfMemory if the text exceeds
  /// 256 MiB, if the file's rules make too much of it, or if it defeats the pattern's limit on backtracking.
  std::vector<int> encode(std::string_view text, bool parse_special = false) const;

  /// Text of the ids, always valid UTF-8: bytes that form no character come out as U+FFFD. Ids without a
  /// token (a model's vocabulary may be padded) give nothing. Throws kOutOfMemory if the file's decoder makes too
  /// much of them; so do streams.
  std::string decode(std::span<const int> ids, bool skip_special = false) const;

  /// Raw bytes of one token inside a text, which may be part of a character; empty for ids without a token,
  /// negative ones too.
  const std::string& piece(int id) const;
  /// Whether the id is a special token, such as the end of a turn.
  bool is_special(int id) const;
  /// The id of the token that tokenizer.json writes as `text`: "<|eot_id|>", or "Ġthe" in byte-level letters.
  std::optional<int> token_id(std::string_view text) const;
  /// One more than the largest id.
  int vocabulary_size() const;
  /// Ids that belong before a text that stands alone; usually begin-of-text, or none.
  std::span<const int> prefix_ids() const;

 private:
  friend class StreamDecoder;
  struct State;
  explicit Tokenizer(std::unique_ptr<const State> state);

  std::unique_ptr<const State> state_;
};

/// Turns ids into text one by one, holding back what a later id may still change: parts of characters, and
/// with byte fallback the whole run of byte tokens, since one bad byte spoils it. The Tokenizer must outlive
/// it. All pushes and the finish together give what Tokenizer::decode does.
class StreamDecoder {
 public:
  explicit StreamDecoder(const Tokenizer& tokenizer, bool skip_special = false);
  StreamDecoder(StreamDecoder&&) noexcept;
  StreamDecoder& operator=(StreamDecoder&&) noexcept;
  ~StreamDecoder();

  /// The text that `id` completes, whole characters; empty if none.
  std::string push(int id);
  /// What was held back, U+FFFD for parts of characters. Afterwards a new text may begin.
  std::string finish();

 private:
  friend class Tokenizer;
  void append(int id, std::string& text);

  const Tokenizer::State* state_;
  std::unique_ptr<tokenization::DecoderStream> stream_;
  bool skip_special_;
};

}  // namespace soliton
