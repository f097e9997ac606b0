// Decoders: from tokens' texts back to text, token by token. A chain of stages, of which each holds back only
// what a later token may still change; decoding everything at once is the same chain run to its end.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "models/strict_json.h"
#include "runtime/text/tokenizer/text_limit.h"

namespace soliton::tokenization {

/// One step of decoding one text.
class Stage {
 public:
  virtual ~Stage() = default;
  /// Takes one token, valid UTF-8. After a stage that fuses tokens it is some part of the fused one.
  virtual void push(std::string_view token) = 0;
  /// Ends the text: passes on what was held back.
  virtual void finish() = 0;
};

/// A chain of decoders, or none, which joins tokens by spaces. Immutable.
class Decoder {
 public:
  /// Makes a stage that passes what it makes to `next`. That and the limit outlive it.
  using MakeStage = std::function<std::unique_ptr<Stage>(Stage& next, TextLimit& limit)>;
  struct Steps {
    std::vector<MakeStage> stages;
    std::vector<std::function<std::string(std::string, TextLimit&)>>
        pieces;             // what each makes of one token inside a text
    bool is_fused = false;  // tokens are no longer told apart
  };

  /// Reads tokenizer.json's decoder, null for none: ByteLevel, Metaspace, ByteFallback, Fuse, Replace, Strip
  /// and sequences of them. Throws kBadFile, or kMismatch on another.
  static Decoder read(const JsonView& decoder);

  /// The bytes of a token inside a text; they may be part of a character. Throws kOutOfMemory beyond the limit,
  /// of which the token is a part.
  std::string piece(std::string token, TextLimit& limit) const;

 private:
  friend class DecoderStream;
  Steps steps_;
};

/// One text on its way through a decoder, which must outlive it. Throws kOutOfMemory where the decoder makes too
/// much of it.
class DecoderStream {
 public:
  /// `file`, which must outlive this, is what errors name.
  DecoderStream(const Decoder& decoder, std::string_view file);
  ~DecoderStream();

  /// Appends to `text` what the token completes.
  void push(std::string_view token, std::string& text);
  /// Appends what was held back. Afterwards a new text may begin.
  void finish(std::string& text);

 private:
  class Output;
  void restart();

  const Decoder& decoder_;
  std::string_view file_;
  TextLimit limit_;
  std::unique_ptr<Output> output_;
  std::vector<std::unique_ptr<Stage>> stages_;  // last first
};

}  // namespace soliton::tokenization
