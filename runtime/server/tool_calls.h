// Calls of functions in the text of an answer, as models of several families write them:
//
//   Qwen, Hermes  <tool_call>\n{"name": ..., "arguments": {...}}\n</tool_call>, any number of them, behind text or not
//   Llama 3       {"name": ..., "parameters": {...}}, perhaps behind <|python_tag|>, several with ; between, and no text
//   Mistral       [TOOL_CALLS] [{"name": ..., "arguments": {...}}, ...], or [TOOL_CALLS]name[ARGS]{...} for each
//
// While an answer comes, text that may become a call is held back. What then is none is text after all.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/text/tokenizer.h"

namespace soliton {

enum class ToolStyle { kTags, kObjects, kMarker };

struct ToolCall {
  std::string name;
  std::string arguments;  // a JSON object

  bool operator==(const ToolCall&) const = default;
};

/// How a model writes calls, by the tokens that its tokenizer has for that.
struct ToolSyntax {
  ToolStyle style = ToolStyle::kTags;
  std::optional<int> marker;  // the token that begins calls; its text may not be part of the answer's

  static ToolSyntax of(const Tokenizer& tokenizer);
};

/// Takes an answer apart as it comes.
class ToolCallReader {
 public:
  /// Only functions of these names are called. Copies share them.
  ToolCallReader(const ToolSyntax& syntax, std::vector<std::string> names)
      : syntax_(syntax), names_(std::make_shared<const std::vector<std::string>>(std::move(names))) {}

  /// A token, and the text that it completes. Returns what is text of the answer for certain.
  std::string push(int32_t token, std::string_view piece);

  struct Rest {
    std::string text;  // held back, and no call
    std::vector<ToolCall> calls;
  };
  /// After the last token, and text that came behind it.
  Rest finish(std::string_view piece);

 private:
  void add(std::string_view piece);
  std::string release();
  bool read_calls(std::string_view text, std::vector<ToolCall>& calls) const;
  bool read_tags(std::string_view text, std::vector<ToolCall>& calls) const;
  bool read_objects(std::string_view text, std::vector<ToolCall>& calls) const;
  bool read_marked(std::string_view text, std::vector<ToolCall>& calls) const;
  std::optional<ToolCall> read_call(std::string_view json) const;
  bool add_call(std::optional<ToolCall> call, std::vector<ToolCall>& calls) const;
  std::string_view opening() const;

  ToolSyntax syntax_;
  std::shared_ptr<const std::vector<std::string>> names_;
  std::string held_;
  size_t num_blank_ = 0;   // of what is held, bytes at its begin that are known to be white space
  bool is_call_ = false;   // what is held begins a call
  bool has_text_ = false;  // some of the answer's text has been told
};

}  // namespace soliton
