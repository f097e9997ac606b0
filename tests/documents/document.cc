#include "documents/document.h"

#include <algorithm>
#include <fstream>
#include <regex>

namespace soliton {

namespace fs = std::filesystem;

namespace {

const std::regex kLink(R"(\]\(([^)\s]+)\))");
const std::regex kCode("`([^`]+)`");

std::vector<std::string> matches(const std::string& text, const std::regex& pattern) {
  std::vector<std::string> found;
  for (std::sregex_iterator at(text.begin(), text.end(), pattern), end; at != end; ++at)
    found.push_back((*at)[1]);
  return found;
}

std::string trimmed(const std::string& text) {
  const size_t first = text.find_first_not_of(' ');
  return first == std::string::npos ? "" : text.substr(first, text.find_last_not_of(' ') - first + 1);
}

/// "| a | b |" as its cells.
std::vector<std::string> cells_of(const std::string& line) {
  std::vector<std::string> cells;
  size_t begin = 1;
  for (size_t end; (end = line.find(" |", begin)) != std::string::npos; begin = end + 2) {
    cells.push_back(trimmed(line.substr(begin, end - begin)));
  }
  return cells;
}

/// Reads a document line by line.
class Reader {
 public:
  explicit Reader(Document& document) : document_(document) {}

  void read(const std::string& line) {
    ++document_.num_lines;
    if (line.starts_with("```")) {
      toggle_block(line.substr(3));
    } else if (in_block_) {
      document_.blocks.back().lines.push_back(line);
    } else {
      read_text(line);
    }
  }

 private:
  void toggle_block(const std::string& kind) {
    in_block_ = !in_block_;
    if (in_block_) document_.blocks.push_back({document_.num_lines, kind, {}});
  }

  void read_text(const std::string& line) {
    for (std::string& target : matches(line, kLink))
      document_.links.push_back({document_.num_lines, std::move(target)});
    for (std::string& code : matches(line, kCode))
      document_.code.push_back({document_.num_lines, std::move(code)});
    if (line.starts_with("#")) {
      document_.headings.push_back({document_.num_lines, trimmed(line.substr(line.find_first_not_of('#')))});
    }
    if (line.starts_with("|")) {
      read_row(line);
    } else {
      in_table_ = false;
      if (!line.empty()) caption_ = line;
    }
  }

  void read_row(const std::string& line) {
    if (!in_table_) {
      document_.tables.push_back({document_.num_lines, caption_, cells_of(line), {}});
    } else if (!line.starts_with("| ---")) {
      document_.tables.back().rows.push_back(cells_of(line));
    }
    in_table_ = true;
  }

  Document& document_;
  std::string caption_;
  bool in_block_ = false;
  bool in_table_ = false;
};

}  // namespace

std::optional<size_t> Table::column(const std::string& name) const {
  const auto found = std::find(columns.begin(), columns.end(), name);
  if (found == columns.end()) return std::nullopt;
  return found - columns.begin();
}

Document read_document(const fs::path& root, const fs::path& path) {
  Document document;
  document.path = path;
  Reader reader(document);
  std::ifstream file(root / path);
  for (std::string line; std::getline(file, line);) reader.read(line);
  return document;
}

std::vector<Document> read_documents(const fs::path& root) {
  std::vector<Document> documents;
  for (auto at = fs::recursive_directory_iterator(root); at != fs::recursive_directory_iterator(); ++at) {
    const std::string name = at->path().filename();
    if (at->is_directory() && (name.starts_with(".") || fs::exists(at->path() / "CMakeCache.txt"))) {
      at.disable_recursion_pending();
    } else if (at->path().extension() == ".md") {
      documents.push_back(read_document(root, fs::relative(at->path(), root)));
    }
  }
  std::sort(documents.begin(), documents.end(), [](const auto& a, const auto& b) { return a.path < b.path; });
  return documents;
}

std::vector<Mention> commands_of(const Document& document) {
  std::vector<Mention> commands;
  for (const CodeBlock& block : document.blocks) {
    int line = block.line;
    bool goes_on = false;
    for (std::string text : block.lines) {
      ++line;
      const bool is_prompt = block.kind == "console" && text.starts_with("$ ");
      if (is_prompt) text = text.substr(2);
      if (goes_on) {
        commands.back().text += trimmed(text);
      } else if (block.kind == "sh" || is_prompt) {
        commands.push_back({line, text});
      } else {
        continue;
      }
      goes_on = text.ends_with("\\");
      if (goes_on) commands.back().text.pop_back();
    }
  }
  return commands;
}

std::vector<std::string> links_in(const std::string& text) {
  return matches(text, kLink);
}

}  // namespace soliton
