// How families of models write calls of functions. A row is what a template of the family writes; which row is a model's is
// found by what its template makes of a call, so that a family is known by what it does and not by its name.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/text/tokenizer.h"

namespace soliton {

/// White space that may stand between the parts of calls.
inline constexpr std::string_view kCallSpace = " \t\r\n";

/// How arguments are written.
enum class ArgumentStyle {
  kJson,      // {"a": 1}
  kKeywords,  // a=1, b="x", as Python has it
  kTags       // <arg_key>a</arg_key>\n<arg_value>1</arg_value>, of which texts stand as they are
};

/// What readers tell apart.
enum class CallStyle { kTags, kObjects, kMarker, kPython, kArgumentTags, kDeepSeek, kHarmony };

/// `open`, calls with `separator` between them, `close`; a call is `call`, its name, `arguments`, these, and `call_end`.
/// White space in it may be missing in what a model writes.
struct CallFormat {
  std::string_view name;  // of the family
  CallStyle style;
  std::string_view open;
  std::string_view call;
  std::string_view arguments;
  std::string_view call_end;
  std::string_view separator;
  std::string_view close;
  std::string_view
      trigger;  // what the first call begins with, wherever it stands; empty: calls are all of an answer
  std::string_view may_open = {};  // before all this
  ArgumentStyle argument_style = ArgumentStyle::kJson;
  bool has_one_call = false;  // an answer has at most one
  size_t id_characters = 0;   // that the family's templates want of a call's id; 0: any
};

/// All that there are.
std::span<const CallFormat> call_formats();
/// The one of that name; there must be one.
const CallFormat& call_format(std::string_view name);

/// The texts of a format that some tokenizers have as special tokens.
std::vector<std::string> marks_of(const CallFormat& format);

/// A call of a function that there is not, as it may stand in a conversation that a template is tried with.
struct ProbeCall {
  static constexpr std::string_view kName = "soliton_probe_call";
  static constexpr std::string_view kKey = "soliton_key";
  static constexpr std::string_view kValue = "soliton_value";
};
/// The format that a text with a ProbeCall has; null if it is none of these.
const CallFormat* format_written(std::string_view text);
/// The format whose trigger the text mentions, or what of it no other has; null if none.
const CallFormat* format_mentioned(std::string_view text);
/// By the tokens that a tokenizer has for calls.
const CallFormat& format_of_tokens(const Tokenizer& tokenizer);

/// Special tokens that count as text in answers, such as those that calls are marked with.
class AnswerMarks {
 public:
  AnswerMarks() = default;
  /// Of these texts those that are special tokens below `vocabulary`.
  AnswerMarks(const Tokenizer& tokenizer, int vocabulary, std::span<const std::string> texts);

  const std::vector<int32_t>& tokens() const { return tokens_; }
  /// A text as grammars of a Vocabulary with these markers write it.
  std::string encoded(std::string_view text) const;
  /// Of a token, the same.
  std::string encoded(const Tokenizer& tokenizer, int32_t token) const;

 private:
  std::vector<int32_t> tokens_;
  std::vector<std::string> texts_;  // [tokens_]
};

}  // namespace soliton
