#include "runtime/answer/conversation.h"

#include "models/kept_file.h"
#include "models/strict_json.h"

namespace soliton {
namespace {

namespace fs = std::filesystem;

constexpr int kPrettyIndent = 2;

const char* role_of_turn(size_t index) {
  return index % 2 == 0 ? "user" : "assistant";
}

/// Throws unless there is nothing at the path, or a conversation.
void check_replaceable(const fs::path& path) {
  std::error_code ignored;
  if (!fs::exists(path, ignored)) return;
  try {
    load_conversation(path);
  } catch (const Error&) {
    throw bad_file(path.string(), "expected no file or a saved conversation, got another file");
  }
}

/// The content of a message; throws unless it has the role and nothing that would be lost.
std::string read_message(const JsonView& message, std::string_view role) {
  if (message["role"].string() != role) {
    throw message["role"].error("expected {}, got {}", role, message["role"].describe());
  }
  for (const auto& [key, value] : message.object().items()) {
    if (key != "role" && key != "content") {
      throw message.error("expected role and content only, got {}", in_quotes(key));
    }
  }
  return message["content"].string();
}

Conversation conversation_of(const nlohmann::json& document, const std::string& name) {
  const JsonView root(document, name);
  const JsonView list = root.is_array() ? root : root["messages"];
  const size_t num_messages = list.array_size();
  Conversation conversation;
  size_t first_turn = 0;
  if (num_messages > 0 && list[0]["role"].string() == "system") {
    conversation.system = read_message(list[0], "system");
    first_turn = 1;
  }
  for (size_t i = first_turn; i < num_messages; ++i) {
    conversation.turns.push_back(read_message(list[i], role_of_turn(conversation.turns.size())));
  }
  return conversation;
}

}  // namespace

nlohmann::ordered_json Conversation::messages() const {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  if (system) list.push_back({{"role", "system"}, {"content", *system}});
  for (size_t i = 0; i < turns.size(); ++i)
    list.push_back({{"role", role_of_turn(i)}, {"content", turns[i]}});
  return list;
}

void save_conversation(const Conversation& conversation, const fs::path& path) {
  check_replaceable(path);
  const nlohmann::ordered_json document = {{"messages", conversation.messages()}};
  write_kept_file(path, document.dump(kPrettyIndent) + "\n");
}

Conversation read_conversation(const fs::path& path) {
  return conversation_of(read_json(path), path.string());
}

Conversation parse_conversation(std::string_view text, const std::string& name) {
  return conversation_of(parse_json(text, name), name);
}

Conversation load_conversation(const fs::path& path) {
  Conversation conversation = read_conversation(path);
  if (conversation.turns.size() % 2 == 0) return conversation;
  throw bad_file(path.string(), "expected an answer of the assistant at the end, got a message of the user");
}

}  // namespace soliton
