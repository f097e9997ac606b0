// The libraries of Python that tests install: what is pinned where, and the table of clients in tests/README.md.
#include <gmock/gmock.h>

#include <fstream>
#include <map>
#include <set>

#include "documents/document.h"

namespace soliton {
namespace {

namespace fs = std::filesystem;

const fs::path kRepository = SOLITON_SOURCE_DIR;
constexpr const char* kBase = "tests/requirements.txt";
constexpr const char* kOfLongRuns = "tests/server/requirements.txt";
constexpr const char* kOfThePage = "tests/server/page/requirements.txt";

/// As pip compares names.
std::string normalised(std::string name) {
  for (char& c : name) c = c == '_' || c == '.' ? '-' : static_cast<char>(std::tolower(c));
  return name;
}

/// Versions by the names of packages; of those that a marker chooses among, the last.
std::map<std::string, std::string> pinned(const char* file) {
  std::ifstream stream(kRepository / file);
  std::map<std::string, std::string> versions;
  for (std::string line; std::getline(stream, line);) {
    const size_t at = line.find("==");
    if (line.starts_with('#') || at == std::string::npos) continue;
    versions[normalised(line.substr(0, at))] = line.substr(at + 2, line.find(';') - at - 2);
  }
  return versions;
}

// Long runs install all of them at once, and pip refuses two versions of one package.
TEST(Requirements, NameEachPackageInOneFile) {
  std::set<std::string> names;
  for (const char* file : {kBase, kOfLongRuns, kOfThePage}) {
    const auto versions = pinned(file);
    EXPECT_FALSE(versions.empty()) << file;
    for (const auto& [name, version] : versions)
      EXPECT_TRUE(names.insert(name).second) << file << ": " << name << " is in another file too";
  }
}

TEST(Requirements, AreThoseOfTheTableOfClients) {
  const auto base = pinned(kBase);
  const auto of_long_runs = pinned(kOfLongRuns);
  int num_clients = 0;
  for (const Table& table : read_document(kRepository, "tests/README.md").tables) {
    if (table.columns.empty() || table.columns[0] != "client") continue;
    for (const std::vector<std::string>& row : table.rows) {
      ++num_clients;
      const auto& versions = row[2] == "all" ? base : of_long_runs;
      EXPECT_THAT(versions, testing::Contains(testing::Pair(row[0], row[1])));
    }
  }
  EXPECT_GE(num_clients, 9);
}

}  // namespace
}  // namespace soliton
