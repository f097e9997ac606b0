// Who may include whom: the rooms of the house, as the #include lines of their files tell them.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "temporary_folder.h"

namespace soliton {
namespace {

namespace fs = std::filesystem;

/// Of each room, those whose files its own may include.
using Rooms = std::map<std::string, std::set<std::string>>;

/// Folders, of which a file belongs to the longest that it lies in. Each lists the rooms below it that it may see.
const Rooms kRooms = {
    {"templates/layout", {}},
    {"templates/formats", {"templates", "templates/layout"}},
    {"templates", {"templates/formats", "templates/layout"}},
    {"models", {"templates/layout"}},
    {"generator", {"runtime/compile", "runtime/hub", "runtime/program", "models", "templates/layout"}},
    // What programs are made of, from the bottom up.
    {"runtime/program", {"models", "templates/layout"}},
    {"runtime/compile", {"models", "templates/layout"}},
    {"runtime/device", {"models", "templates/layout"}},
    {"runtime/hub", {"runtime/program", "models", "templates/layout"}},
    {"runtime/text", {"models"}},
    {"runtime/weights", {"runtime/device", "runtime/program", "models", "templates/layout"}},
    {"runtime/engine",
     {"runtime/weights", "runtime/device", "runtime/program", "models", "templates/layout"}},
    {"runtime/make", {"runtime/compile", "runtime/device", "generator", "models", "templates/layout"}},
    {"runtime/verify", {"runtime/engine", "runtime/weights", "models", "templates/layout"}},
    {"runtime/answer",
     {"runtime/engine", "runtime/hub", "runtime/make", "runtime/compile", "runtime/text", "runtime/device",
      "runtime/program", "models", "templates/layout"}},
    // The programs.
    {"runtime/doctor",
     {"runtime/hub", "runtime/make", "runtime/compile", "runtime/engine", "runtime/weights", "runtime/text",
      "runtime/device", "runtime/program", "generator", "models", "templates/layout"}},
    {"runtime/bench",
     {"runtime/bench/predict", "runtime/bench/tune", "runtime/answer", "runtime/hub", "runtime/make",
      "runtime/compile", "runtime/engine", "runtime/device", "runtime/program", "models",
      "templates/layout"}},
    {"runtime/bench/predict", {"runtime/make", "runtime/compile", "generator", "models", "templates/layout"}},
    {"runtime/bench/tune",
     {"runtime/bench", "runtime/make", "runtime/compile", "runtime/engine", "runtime/device",
      "runtime/program", "generator", "models", "templates/layout"}},
    {"runtime/chat",
     {"runtime/answer", "runtime/verify", "runtime/doctor", "runtime/hub", "runtime/make", "runtime/compile",
      "runtime/engine", "runtime/text", "runtime/program", "models", "templates/layout"}},
    {"runtime/server",
     {"runtime/answer", "runtime/hub", "runtime/make", "runtime/engine", "runtime/text", "runtime/program",
      "models", "templates/layout"}},
    {"runtime/library",
     {"runtime/answer", "runtime/hub", "runtime/make", "runtime/text", "runtime/device", "models",
      "templates/layout"}},
    {"runtime/python", {"runtime/library"}},
    {"runtime/examples", {"runtime/library"}},
    {"runtime", {}},
};

std::string room_of(const std::string& file) {
  std::string room;
  for (const auto& [name, allowed] : kRooms) {
    if (file.starts_with(name + "/") && name.size() > room.size()) room = name;
  }
  return room;
}

/// The files of a source tree and what they include in quotes, all as paths from its root.
class Sources {
 public:
  explicit Sources(const fs::path& root) {
    for (const auto& [room, allowed] : kRooms) {
      if (fs::is_directory(root / room)) read_folder(root, root / room);
    }
  }

  /// "FILE includes FILE" for each line that goes where it may not.
  std::vector<std::string> violations() const {
    std::vector<std::string> found;
    for (const auto& [file, includes] : includes_) {
      for (const std::string& include : includes) {
        const std::string from = room_of(file);
        const std::string to = room_of(include);
        if (to != from && !kRooms.at(from).contains(to)) found.push_back(file + " includes " + include);
      }
    }
    return found;
  }

  /// Files of `room` that see one of `other`, be it through files of other rooms.
  std::vector<std::string> seeing(const std::string& room, const std::string& other) const {
    std::vector<std::string> found;
    for (const auto& [file, includes] : includes_) {
      if (room_of(file) != room) continue;
      for (const std::string& seen : all_seen_by(file)) {
        if (room_of(seen) == other) found.push_back(file + " sees " + seen);
      }
    }
    return found;
  }

  size_t size() const { return includes_.size(); }

 private:
  void read_folder(const fs::path& root, const fs::path& folder) {
    for (const auto& entry : fs::recursive_directory_iterator(folder)) {
      const std::string extension = entry.path().extension();
      if (extension != ".cc" && extension != ".h" && extension != ".cuh") continue;
      std::vector<std::string>& includes = includes_[entry.path().lexically_relative(root)];
      includes.clear();  // of a room within a room
      std::ifstream stream(entry.path());
      const std::string start = "#include \"";
      for (std::string line; std::getline(stream, line);) {
        if (!line.starts_with(start)) continue;
        const std::string name = line.substr(start.size(), line.find('"', start.size()) - start.size());
        includes.push_back(fs::exists(root / "templates" / name) ? "templates/" + name : name);
      }
    }
  }

  std::set<std::string> all_seen_by(const std::string& file) const {
    std::set<std::string> seen;
    std::vector<std::string> rest = {file};
    while (!rest.empty()) {
      const std::string next = rest.back();
      rest.pop_back();
      const auto known = includes_.find(next);
      if (known == includes_.end()) continue;
      for (const std::string& include : known->second) {
        if (seen.insert(include).second) rest.push_back(include);
      }
    }
    return seen;
  }

  std::map<std::string, std::vector<std::string>> includes_;
};

TEST(Includes, GoOneWay) {
  const Sources sources(SOLITON_SOURCE_DIR);
  EXPECT_GT(sources.size(), 200u);
  EXPECT_EQ(sources.violations(), std::vector<std::string>{});
}

// What makes kernels may call the generator; whoever calls that does not see its headers.
TEST(Includes, NothingOfTheGeneratorShowsThroughWhatMakesKernels) {
  const Sources sources(SOLITON_SOURCE_DIR);
  for (const auto& [room, allowed] : kRooms) {
    if (room == "generator") continue;
    EXPECT_EQ(sources.seeing(room, "generator").empty(), !allowed.contains("generator")) << room;
  }
}

TEST(Includes, EveryFolderOfTheRuntimeIsARoom) {
  const fs::path runtime = fs::path(SOLITON_SOURCE_DIR) / "runtime";
  for (const auto& entry : fs::directory_iterator(runtime)) {
    const std::string name = entry.path().filename();
    const bool known = entry.is_directory() ? name == "packaging" || kRooms.contains("runtime/" + name)
                                            : name == "README.md" || name == "CMakeLists.txt";
    EXPECT_TRUE(known) << name;
  }
}

TEST(Includes, AreFoundWhereTheyMayNotBe) {
  const TemporaryFolder folder;
  for (const char* room :
       {"templates/layout", "models", "generator", "runtime/answer", "runtime/engine", "runtime/make"}) {
    fs::create_directories(folder.path() / room);
  }
  folder.write("templates/layout/page.h", "#include <vector>\n");
  folder.write("generator/plan.h", "#include \"layout/page.h\"\n");
  folder.write("runtime/engine/engine.h", "#include \"generator/plan.h\"\n");
  folder.write("runtime/answer/model.h", "#include \"runtime/make/make.h\"\n");
  folder.write("runtime/make/make.h", "#include \"generator/plan.h\"\n");
  folder.write("models/error.h", "#include \"runtime/engine/engine.h\"\n#include \"no/such/file.h\"\n");
  const Sources sources(folder.path());
  EXPECT_EQ(sources.violations(),
            (std::vector<std::string>{"models/error.h includes runtime/engine/engine.h",
                                      "models/error.h includes no/such/file.h",
                                      "runtime/engine/engine.h includes generator/plan.h"}));
  EXPECT_EQ(sources.seeing("runtime/answer", "generator"),
            std::vector<std::string>{"runtime/answer/model.h sees generator/plan.h"});
}

}  // namespace
}  // namespace soliton
