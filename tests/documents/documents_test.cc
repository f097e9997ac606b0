// What the documents name is there: the documents themselves, what they link to, files, flags, exit codes, versions.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <regex>
#include <set>

#include "cli/run_program.h"
#include "documents/document.h"
#include "layout/launch.h"

namespace soliton {
namespace {

namespace fs = std::filesystem;

const fs::path kRoot = SOLITON_SOURCE_DIR;
constexpr int kMostReadmeLines = 200;

const std::vector<Document>& documents() {
  static const std::vector<Document> all = read_documents(kRoot);
  return all;
}

const Document& document(const std::string& path) {
  for (const Document& document : documents()) {
    if (document.path == path) return document;
  }
  throw std::runtime_error(path + ": expected a document, got none");
}

/// As GitHub names headings in links: lower case, words joined by '-', without other signs.
std::string anchor_of(const std::string& heading) {
  std::string anchor;
  for (const unsigned char letter : heading) {
    if (std::isalnum(letter) != 0 || letter == '-' || letter == '_')
      anchor += static_cast<char>(std::tolower(letter));
    if (letter == ' ') anchor += '-';
  }
  return anchor;
}

bool has_anchor(const fs::path& path, const std::string& anchor) {
  const auto& headings = document(path).headings;
  return std::any_of(headings.begin(), headings.end(),
                     [&](const Mention& heading) { return anchor_of(heading.text) == anchor; });
}

TEST(Documents, AreWhereANewcomerLooks) {
  std::set<std::string> paths;
  for (const Document& document : documents()) {
    paths.insert(document.path);
    EXPECT_GE(document.num_lines, 20) << document.path;
    ASSERT_FALSE(document.headings.empty()) << document.path;
    EXPECT_EQ(document.headings[0].line, 1) << document.path;
  }
  for (const char* path : {"README.md", "CHANGELOG.md", "generator/README.md", "templates/README.md",
                           "runtime/README.md", "runtime/bench/results/README.md", "tests/README.md"}) {
    EXPECT_TRUE(paths.contains(path)) << path;
  }
}

TEST(Documents, TheReadmeStaysShort) {
  EXPECT_LE(document("README.md").num_lines, kMostReadmeLines);
}

TEST(Documents, LinksLeadSomewhere) {
  int num_links = 0;
  std::set<std::string> linked;
  for (const Document& from : documents()) {
    for (const Mention& link : from.links) {
      if (link.text.starts_with("https://")) continue;
      const size_t hash = link.text.find('#');
      const fs::path path = (from.folder() / link.text.substr(0, hash)).lexically_normal();
      const fs::path target = hash == 0 ? from.path : path;
      EXPECT_TRUE(fs::exists(kRoot / target)) << from.at(link.line) << ": " << link.text;
      if (hash != std::string::npos && fs::exists(kRoot / target)) {
        EXPECT_TRUE(has_anchor(target, link.text.substr(hash + 1)))
            << from.at(link.line) << ": " << link.text;
      }
      if (from.path == "README.md") linked.insert(target);
      ++num_links;
    }
  }
  EXPECT_GE(num_links, 30);
  for (const Document& to : documents()) {
    EXPECT_TRUE(to.path == "README.md" || linked.contains(to.path))
        << "README.md: expected a link to " << to.path;
  }
}

TEST(Documents, TheManualListsEveryWait) {
  std::set<std::string> listed = {wait_name(WaitKind::kNone)};
  for (const Table& table : document("runtime/README.md").tables) {
    for (const auto& row : table.rows) listed.insert(std::regex_replace(row[0], std::regex("`"), ""));
  }
  for (const char* name : kWaitNames) EXPECT_TRUE(listed.contains(name)) << name;
}

TEST(Documents, BlocksSayWhetherTheyHoldCommands) {
  for (const Document& document : documents()) {
    for (const CodeBlock& block : document.blocks) {
      EXPECT_THAT(block.kind, testing::AnyOf("sh", "console", "text", "cpp")) << document.at(block.line);
    }
  }
}

/// Names of all files of the repository, as they are and without folders.
const std::set<std::string>& file_names() {
  static const std::set<std::string> names = [] {
    std::set<std::string> names;
    for (auto at = fs::recursive_directory_iterator(kRoot); at != fs::recursive_directory_iterator(); ++at) {
      const std::string name = at->path().filename();
      if (name == ".git" || fs::exists(at->path() / "CMakeCache.txt")) at.disable_recursion_pending();
      names.insert(name);
    }
    return names;
  }();
  return names;
}

TEST(Documents, FilesBetweenBackticksExist) {
  const std::regex path_pattern("[A-Za-z0-9_.-]+(/[A-Za-z0-9_.-]+)+/?|[A-Za-z0-9_.-]+/");
  const std::regex name_pattern(R"([A-Za-z0-9_-]+\.(cc|h|cuh|cu|py|sh))");
  const std::regex made_pattern(
      "build/.*|models/tuned/|models/my-model.*|generated/my-model.*");  // by commands
  int num_files = 0;
  for (const Document& document : documents()) {
    for (const Mention& code : document.code) {
      const std::string& text = code.text;
      if (std::regex_match(text, made_pattern)) continue;
      if (std::regex_match(text, path_pattern)) {
        EXPECT_TRUE(fs::exists(kRoot / document.folder() / text) || fs::exists(kRoot / text))
            << document.at(code.line) << ": " << text;
      } else if (std::regex_match(text, name_pattern)) {
        EXPECT_TRUE(file_names().contains(text)) << document.at(code.line) << ": " << text;
      } else {
        continue;
      }
      ++num_files;
    }
  }
  EXPECT_GE(num_files, 50);
}

/// What lists the flags that documents may name: --help of the programs, and the scripts.
std::string known_flags() {
  std::string text = read_text(kRoot / "dev");
  const TemporaryFolder folder;
  for (const char* program :
       {"soliton-gen", "soliton-chat", "soliton-bench", "soliton-doctor", "soliton-server"}) {
    text += Process(program, {"--help"}, folder.path()).wait().out;
  }
  for (const fs::path top : {"runtime", "tests", "models"}) {
    for (const auto& entry : fs::recursive_directory_iterator(kRoot / top)) {
      const std::string extension = entry.path().extension();
      if (extension == ".sh" || extension == ".py") text += read_text(entry.path());
    }
  }
  return text;
}

TEST(Documents, FlagsBetweenBackticksExist) {
  const std::string known = known_flags();
  const std::regex flag_pattern(R"((?:^|\s)(--[a-z][a-z-]*))");
  int num_flags = 0;
  for (const Document& document : documents()) {
    for (const Mention& code : document.code) {
      for (std::sregex_iterator at(code.text.begin(), code.text.end(), flag_pattern), end; at != end; ++at) {
        const std::regex whole("[^a-z-]" + (*at)[1].str() + "[^a-z-]");
        EXPECT_TRUE(std::regex_search(known, whole)) << document.at(code.line) << ": " << (*at)[1];
        ++num_flags;
      }
    }
  }
  EXPECT_GE(num_flags, 40);
}

TEST(Documents, TheManualListsTheCommandsOfTheChat) {
  const std::string source = read_text(kRoot / "runtime" / "chat" / "command.cc");
  const std::regex entry("\"(/([a-z]+|[?]))\"");
  std::set<std::string> commands;
  for (std::sregex_iterator at(source.begin(), source.end(), entry), end; at != end; ++at)
    commands.insert((*at)[1]);
  std::set<std::string> listed;
  for (const Mention& code : document("runtime/chat/README.md").code) {
    if (code.text.starts_with("/")) listed.insert(code.text.substr(0, code.text.find(' ')));
  }
  EXPECT_EQ(listed, commands);
  EXPECT_GE(commands.size(), 5u);
}

/// The values of enum ExitCode, wherever it is declared.
std::set<int> exit_codes() {
  std::set<int> codes;
  for (const char* top : {"generator", "models", "runtime"}) {
    for (const auto& entry : fs::recursive_directory_iterator(kRoot / top)) {
      if (entry.path().extension() != ".h") continue;
      const std::string text = read_text(entry.path());
      const size_t begin = text.find("enum class ExitCode");
      if (begin == std::string::npos) continue;
      const std::string body = text.substr(begin, text.find("};", begin) - begin);
      const std::regex value(R"(k\w+ = (\d+),)");
      for (std::sregex_iterator at(body.begin(), body.end(), value), end; at != end; ++at) {
        codes.insert(std::stoi((*at)[1]));
      }
    }
  }
  return codes;
}

TEST(Documents, TheManualListsEveryExitCode) {
  constexpr int kInterrupted = 130;  // by SIGINT, which is not an error's,
  constexpr int kTerminated = 143;   // and by SIGTERM
  std::set<int> listed;
  for (const Table& table : document("runtime/README.md").tables) {
    if (table.columns[0] != "code") continue;
    for (const auto& row : table.rows) EXPECT_TRUE(listed.insert(std::stoi(row[0])).second) << row[0];
  }
  std::set<int> expected = exit_codes();
  EXPECT_GE(expected.size(), 10u);
  expected.insert({kInterrupted, kTerminated});
  EXPECT_EQ(listed, expected);
}

TEST(Documents, TheChangelogTellsOfThisVersion) {
  const Document& changelog = document("CHANGELOG.md");
  std::vector<std::string> versions;
  for (const Mention& heading : changelog.headings) {
    if (heading.text == "Unreleased" || std::isdigit(heading.text[0]) != 0) versions.push_back(heading.text);
  }
  ASSERT_GE(versions.size(), 2u);
  EXPECT_EQ(versions[0], "Unreleased");
  EXPECT_TRUE((versions[1] + " ").starts_with(SOLITON_VERSION " ")) << versions[1];
}

/// Cases that ctest would run, of which an entry may hold several; nothing if some are not built.
std::optional<int> count_cases() {
  const TemporaryFolder folder;
  const fs::path list = folder.path() / "tests";
  const std::string command = "ctest --test-dir " SOLITON_BINARY_DIR " -N > " + list.string();
  if (std::system(command.c_str()) != 0) throw std::runtime_error("ctest -N failed");
  const std::string listed = read_text(list);
  const std::regex not_built("not_built", std::regex::icase);
  if (std::regex_search(listed, not_built)) return std::nullopt;
  const std::regex entry(R"(Test +#\d+: (?:.*\((\d+) cases\))?)");
  int num_cases = 0;
  for (std::sregex_iterator at(listed.begin(), listed.end(), entry), end; at != end; ++at) {
    num_cases += (*at)[1].matched ? std::stoi((*at)[1]) : 1;
  }
  return num_cases;
}

TEST(Documents, SayHowManyTestsThereAre) {
  const std::optional<int> num_cases = count_cases();
  if (!num_cases) GTEST_SKIP() << "not all tests are built";
  const std::regex number(R"(100% tests passed, 0 tests failed out of (\d+)|(\d+) cases: .*)");
  int num_said = 0;
  for (const Document& document : documents()) {
    for (const CodeBlock& block : document.blocks) {
      for (const std::string& line : block.lines) {
        std::smatch said;
        if (!std::regex_match(line, said, number)) continue;
        const std::string text = said[1].matched ? said[1] : said[2];
        EXPECT_NEAR(std::stoi(text), *num_cases, *num_cases / 20) << document.at(block.line);
        ++num_said;
      }
    }
  }
  EXPECT_GE(num_said, 1);
}

}  // namespace
}  // namespace soliton
