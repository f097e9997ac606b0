// All JSON goes through models/strict_json: nothing else calls a parser of the library, whose depth and size nothing limits.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

namespace soliton {
namespace {

namespace fs = std::filesystem;

/// "FILE: CALL" of each parser that a source calls by a name of the library's types.
std::vector<std::string> parsers(const std::string& file, const std::string& source) {
  std::set<std::string> names = {"json", "ordered_json"};
  static const std::regex alias("using (\\w+) = (?:nlohmann::)?(?:ordered_)?json;");
  for (std::sregex_iterator i(source.begin(), source.end(), alias), end; i != end; ++i) names.insert((*i)[1]);
  static const std::regex call(
      "(\\w+)::(?:parse|accept|sax_parse|from_\\w+)\\(|sax_parse\\(|\\)_json\\b|\"_json\\b");
  std::vector<std::string> found;
  for (std::sregex_iterator i(source.begin(), source.end(), call), end; i != end; ++i) {
    if ((*i)[1].matched && !names.contains((*i)[1])) continue;  // of another type
    found.push_back(file + ": " + i->str());
  }
  return found;
}

std::string text_of(const fs::path& path) {
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

TEST(OneReader, NothingElseParsesJson) {
  const fs::path root = SOLITON_SOURCE_DIR;
  std::vector<std::string> found;
  size_t num_files = 0;
  for (const char* room : {"models", "generator", "runtime"}) {
    for (const auto& entry : fs::recursive_directory_iterator(root / room)) {
      const fs::path path = entry.path();
      const std::set<std::string> kinds = {".cc", ".h", ".hpp"};
      if (!kinds.contains(path.extension()) || path.stem() == "strict_json") continue;
      const std::string source = text_of(path);
      ++num_files;
      if (source.find("json") == std::string::npos) continue;
      const std::vector<std::string> more = parsers(path.lexically_relative(root), source);
      found.insert(found.end(), more.begin(), more.end());
    }
  }
  EXPECT_GT(num_files, 200u);
  EXPECT_EQ(found, std::vector<std::string>{});
}

TEST(OneReader, OtherParsersAreFound) {
  const std::string source = R"(using Tree = nlohmann::ordered_json;
      auto a = Tree::parse(text); b = nlohmann::json::accept(text); c = Yaml::parse(text); json::from_cbor(d);)";
  EXPECT_EQ(parsers("f", source),
            (std::vector<std::string>{"f: Tree::parse(", "f: json::accept(", "f: json::from_cbor("}));
}

}  // namespace
}  // namespace soliton
