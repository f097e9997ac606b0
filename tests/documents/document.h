// The documents of the repository, taken apart: what tests compare with the programs, files and results.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace soliton {

/// A fenced block. Of kind "sh" all lines are commands, of kind "console" those behind "$ "; "text" has none.
struct CodeBlock {
  int line = 0;
  std::string kind;
  std::vector<std::string> lines;
};

/// A table, and the last line of text before it.
struct Table {
  int line = 0;
  std::string caption;
  std::vector<std::string> columns;
  std::vector<std::vector<std::string>> rows;  // [row][column]

  /// Index of a column, if there is one of this name.
  std::optional<size_t> column(const std::string& name) const;
};

/// Some text and its line: a heading, a code span, the target of a link, or a command.
struct Mention {
  int line = 0;
  std::string text;
};

struct Document {
  std::filesystem::path path;  // from the root of the repository on
  int num_lines = 0;
  std::vector<CodeBlock> blocks;
  std::vector<Table> tables;
  std::vector<Mention> headings;
  std::vector<Mention> links;
  std::vector<Mention> code;  // what stands between backticks

  /// Where something stands, for messages.
  std::string at(int line) const { return path.string() + ":" + std::to_string(line); }
  std::filesystem::path folder() const { return path.parent_path(); }
};

Document read_document(const std::filesystem::path& root, const std::filesystem::path& path);

/// Every .md file of the repository, but for those of build folders.
std::vector<Document> read_documents(const std::filesystem::path& root);

/// The commands of all blocks, those of several lines as one.
std::vector<Mention> commands_of(const Document& document);

/// The targets of the links in a text.
std::vector<std::string> links_in(const std::string& text);

}  // namespace soliton
