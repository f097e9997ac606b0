// Chat templates, rendered for a conversation that has a bit of everything.
#include "runtime/text/chat_template/chat_template.h"

#include "fuzz/fuzz_target.h"

namespace soliton {
namespace {

using nlohmann::ordered_json;

const ordered_json& messages() {
  static const ordered_json list = ordered_json::parse(R"([
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "What is 2 + 2? \u00e9 <|eot_id|>"},
    {"role": "assistant", "content": null,
     "tool_calls": [{"id": "a1b2c3d4e", "type": "function", "function": {"name": "add", "arguments": {"a": 2, "b": 2.5}}}]},
    {"role": "tool", "name": "add", "tool_call_id": "a1b2c3d4e", "content": "4"},
    {"role": "assistant", "content": "<think>sum</think>It is 4."},
    {"role": "user", "content": [{"type": "text", "text": "Thanks"}]}])");
  return list;
}

ChatOptions options() {
  ChatOptions options;
  options.tools = ordered_json::parse(
      R"([{"type": "function", "function": {"name": "add", "description": "Adds.", "parameters":
          {"type": "object", "properties": {"a": {"type": "number"}}, "required": ["a"]}}}])");
  options.variables =
      ordered_json::parse(R"({"enable_thinking": false, "n": 3, "x": [1, "two", null, 4.5]})");
  options.bos_token = "<s>";
  options.eos_token = "</s>";
  options.clock = [] { return std::tm{}; };
  return options;
}

}  // namespace
}  // namespace soliton

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace soliton;
  accepts([&] {
    const ChatTemplate chat = ChatTemplate::parse(as_text(data, size), "t");
    std::string first;
    const bool renders = accepts([&] { first = chat.render(messages(), options()).text(); });
    accepts([&] {
      const RenderedChat again = chat.render(messages(), options());
      expect(renders && again.text() == first, "the same text again");
      for (const TextPiece& piece : again.pieces) expect(!piece.text.empty(), "pieces that are not empty");
      again.begins_with("<s>");
    });
  });
  return 0;
}
