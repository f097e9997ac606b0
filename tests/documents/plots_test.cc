// Pictures of measurements say what files they are drawn from, and by which content: one that is older than its files is found.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>

#include "runtime/hub/checksum.h"

namespace soliton {
namespace {

namespace fs = std::filesystem;

const fs::path kPictures = fs::path(SOLITON_SOURCE_DIR) / "runtime" / "bench" / "results";

std::string read(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::string sha256_of(const fs::path& path) {
  const std::string bytes = read(path);
  hub::Checksum checksum(hub::Checksum::Kind::kSha256, bytes.size());
  checksum.add(bytes);
  return checksum.finish();
}

/// "FILE HASH; FILE HASH", as plot.py writes it.
std::string sources_of(const std::string& picture) {
  const std::string begin = "<dc:source>";
  const size_t at = picture.find(begin);
  if (at == std::string::npos) return "";
  return picture.substr(at + begin.size(), picture.find("</dc:source>") - at - begin.size());
}

TEST(Plots, AreDrawnFromTheFilesAsTheyAre) {
  int num_sources = 0;
  for (const auto& entry : fs::directory_iterator(kPictures)) {
    if (entry.path().extension() != ".svg") continue;
    const std::string picture = entry.path().filename();
    std::istringstream sources(sources_of(read(entry.path())));
    int num_of_picture = 0;
    for (std::string source; std::getline(sources >> std::ws, source, ';'); ++num_of_picture) {
      const std::string name = source.substr(0, source.find(' '));
      EXPECT_EQ(source.substr(name.size() + 1), sha256_of(kPictures / name))
          << picture << ": expected to be drawn from " << name << " as it is; draw it anew by plot.py";
    }
    EXPECT_GT(num_of_picture, 0) << picture << ": expected the names of files that it is drawn from";
    num_sources += num_of_picture;
  }
  EXPECT_GE(num_sources, 6);
}

}  // namespace
}  // namespace soliton
