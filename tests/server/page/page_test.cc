// The page as the program holds it. How it behaves is tested in a browser, beside this.
#include "runtime/server/page/page.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <regex>
#include <set>

#include "cli/run_program.h"

namespace soliton {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::Not;

const fs::path kPageFolder = SOLITON_SOURCE_DIR "/runtime/server/page";

std::string type_of_file(const fs::path& file) {
  if (file.extension() == ".html") return "text/html; charset=utf-8";
  return file.extension() == ".css" ? "text/css; charset=utf-8" : "text/javascript; charset=utf-8";
}

TEST(Page, HasEveryFileOfItsFolderAsItStandsThere) {
  std::set<std::string> paths;
  for (const auto& entry : fs::directory_iterator(kPageFolder)) {
    const std::string extension = entry.path().extension();
    if (extension != ".html" && extension != ".css" && extension != ".js") continue;
    const std::string name = entry.path().filename();
    const std::string path = name == "page.html" ? "/" : "/" + name;
    const PageFile* const file = find_page_file(path);
    ASSERT_NE(file, nullptr) << path;
    EXPECT_EQ(file->text, read_text(entry.path())) << path;
    EXPECT_EQ(file->content_type, type_of_file(entry.path())) << path;
    paths.insert(path);
  }
  EXPECT_EQ(paths.size(), page_files().size());
  EXPECT_GE(paths.size(), 3u);
  for (const char* path : {"", "/page.html", "/page.h", "/../page.css", "//", "/page.css/"}) {
    EXPECT_EQ(find_page_file(path), nullptr) << path;
  }
}

// What it names is part of it, but for the name of a format in an icon.
TEST(Page, LoadsNothingFromElsewhere) {
  const std::regex reference(R"re((?:(?:src|href)=|from |import )["']([^"'\s]+))re");
  size_t num_references = 0;
  for (const PageFile& file : page_files()) {
    const std::string text(file.text);
    EXPECT_THAT(text, Not(HasSubstr("url("))) << file.path;
    for (std::sregex_iterator at(text.begin(), text.end(), reference), end; at != end; ++at) {
      std::string target = (*at)[1];
      if (target.starts_with("#") || target.starts_with("data:image/svg+xml,")) continue;
      if (target.starts_with("./")) target.erase(0, 2);
      EXPECT_NE(find_page_file("/" + target), nullptr) << file.path << " names " << target;
      ++num_references;
    }
  }
  EXPECT_GT(num_references, 5u);
}

}  // namespace
}  // namespace soliton
