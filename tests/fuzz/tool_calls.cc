// Answers with calls of functions, in pieces: the first byte says how the model writes them, the second one how long pieces
// are. However they are cut, the same comes out.
#include "runtime/server/tool_calls.h"

#include <nlohmann/json.hpp>

#include "fuzz/expand.h"
#include "models/strict_json.h"

namespace soliton {
namespace {

struct Taken {
  std::string text;
  std::vector<ToolCall> calls;
  bool operator==(const Taken&) const = default;
};

Taken take(const ToolCallReader& fresh, std::string_view answer, size_t piece, bool begins_with_marker) {
  ToolCallReader reader = fresh;
  Taken taken;
  if (begins_with_marker) taken.text += reader.push(1, "");
  for (; !answer.empty(); answer.remove_prefix(std::min(piece, answer.size())))
    taken.text += reader.push(0, answer.substr(0, piece));
  ToolCallReader::Rest rest = reader.finish("");
  taken.text += rest.text;
  taken.calls = std::move(rest.calls);
  return taken;
}

}  // namespace
}  // namespace soliton

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace soliton;
  if (size < 2) return 0;
  const auto style = static_cast<ToolStyle>(data[0] % 3);
  const ToolCallReader reader({style, 1}, {"add", "f"});
  const std::string answer = expanded(as_text(data, size).substr(2));
  const bool begins_with_marker = data[0] / 3 % 2 == 1;
  const TimeLimit limit;
  const Taken whole = take(reader, answer, answer.size() + 1, begins_with_marker);
  const Taken cut = take(reader, answer, 1 + data[1] % 16, begins_with_marker);
  expect(whole == cut, "the same from pieces of any length");
  if (whole.calls.empty() && !begins_with_marker)
    expect(whole.text == answer, "text that is no call as it is");
  for (const ToolCall& call : whole.calls) {
    expect(call.name == "add" || call.name == "f", "calls of functions that there are");
    const auto arguments = parse_if_json(call.arguments, "arguments");
    expect(arguments && arguments->is_object(), "arguments that are an object");
  }
  return 0;
}
