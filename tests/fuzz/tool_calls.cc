// Answers with calls of functions, in pieces: the first byte says in which format the model writes them, the second one how
// long pieces are. However they are cut, the same comes out.
#include <nlohmann/json.hpp>

#include "fuzz/expand.h"
#include "models/strict_json.h"
#include "runtime/server/calls/call_reader.h"

namespace soliton {
namespace {

struct Taken {
  std::string text;
  std::vector<ToolCall> calls;
  bool operator==(const Taken&) const = default;
};

Taken take(const ToolCallReader& fresh, std::string_view answer, size_t piece) {
  ToolCallReader reader = fresh;
  Taken taken;
  for (; !answer.empty(); answer.remove_prefix(std::min(piece, answer.size())))
    taken.text += reader.push(answer.substr(0, piece));
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
  const CallFormat& format = call_formats()[data[0] % call_formats().size()];
  const ToolCallReader reader(
      format, std::make_shared<const std::vector<Tool>>(std::vector<Tool>{{"add", nullptr}, {"f", nullptr}}));
  const std::string answer = expanded(as_text(data, size).substr(2));
  const TimeLimit limit;
  const Taken whole = take(reader, answer, answer.size() + 1);
  const Taken cut = take(reader, answer, 1 + data[1] % 16);
  expect(whole == cut, "the same from pieces of any length");
  if (whole.calls.empty()) expect(whole.text == answer, "text that is no call as it is");
  for (const ToolCall& call : whole.calls) {
    expect(call.name == "add" || call.name == "f", "calls of functions that there are");
    const auto arguments = parse_if_json(call.arguments, "arguments");
    expect(arguments && arguments->is_object(), "arguments that are an object");
  }
  return 0;
}
