// Saved chats: what is read survives being written, and its file being read again.
#include "runtime/answer/conversation.h"

#include "fuzz/fuzz_target.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace soliton;
  accepts([&] {
    const Conversation conversation = parse_conversation(as_text(data, size), "chat.json");
    for (const std::string& turn : conversation.turns) expect(turn.size() <= size, "turns of the text");
    const std::string written = conversation.messages().dump();
    expect(parse_conversation(written, "chat.json") == conversation, "a conversation that survives");
    const std::filesystem::path path = fuzz_folder().path() / "chat.json";
    save_conversation(conversation, path);
    expect(read_conversation(path) == conversation, "a conversation that survives being saved");
  });
  return 0;
}
