// Calls of functions in the text of an answer, as models of several families write them: see call_format.h. Readers take
// what models make of a format too: more white space or less, an end that is missing, Mistral's two ways.
//
// While an answer comes, text that may become a call is held back. What then is none is text after all.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/server/calls/call_format.h"

namespace soliton {

/// A function that may be called.
struct Tool {
  std::string name;
  nlohmann::ordered_json parameters;  // a schema of an object
  bool is_strict = false;             // its schema has to hold, or be refused
};

struct ToolCall {
  std::string name;
  std::string arguments;  // a JSON object

  bool operator==(const ToolCall&) const = default;
};

using Tools = std::shared_ptr<const std::vector<Tool>>;

/// The calls that a text consists of, of these functions; nothing if it is something else. The text begins with what calls
/// of the format begin with.
std::optional<std::vector<ToolCall>> read_calls(const CallFormat& format, const std::vector<Tool>& tools,
                                                std::string_view text);

/// Takes an answer apart as it comes.
class ToolCallReader {
 public:
  /// Copies share the functions. The format must outlive it.
  ToolCallReader(const CallFormat& format, Tools tools) : format_(&format), tools_(std::move(tools)) {}

  /// Returns what is text of the answer for certain.
  std::string push(std::string_view piece);

  struct Rest {
    std::string text;  // held back, and no call
    std::vector<ToolCall> calls;
  };
  /// After the last text.
  Rest finish(std::string_view piece);

 private:
  std::string release();

  const CallFormat* format_;
  Tools tools_;
  std::string held_;
  size_t num_blank_ = 0;   // of what is held, bytes at its begin that are known to be white space
  bool is_call_ = false;   // what is held begins a call
  bool has_text_ = false;  // some of the answer's text has been told
};

}  // namespace soliton
