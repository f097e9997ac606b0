// A conversation and its file: {"messages": [{"role": "user", "content": "..."}, ...]}, as most programs
// write one. At most one system message stands first; then user and assistant take turns.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace soliton {

/// Contents are valid UTF-8.
struct Conversation {
  std::optional<std::string> system;
  std::vector<std::string> turns;  // of the user where the index is even, else of the assistant

  bool operator==(const Conversation&) const = default;

  /// As chat templates take it.
  nlohmann::ordered_json messages() const;
};

/// Writes the file as a whole or not at all. Replaces a conversation, but nothing else. Throws kNotFound if
/// the path cannot be written, kBadFile if another kind of file is there.
void save_conversation(const Conversation& conversation, const std::filesystem::path& path);

/// Reads such a file, or one that is the list of messages alone. Throws what read_json() throws, and kBadFile,
/// naming the message, for anything that would be lost or is out of turn.
Conversation read_conversation(const std::filesystem::path& path);
/// The same of a file's text, for which `name` stands in errors.
Conversation parse_conversation(std::string_view text, const std::string& name);
/// The same of a file whose last message is an answer, else kBadFile.
Conversation load_conversation(const std::filesystem::path& path);

}  // namespace soliton
