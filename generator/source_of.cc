#include "generator/source_of.h"

#include <algorithm>
#include <string_view>

#include "models/installation.h"
#include "models/strict_yaml.h"

namespace soliton {
namespace {

namespace fs = std::filesystem;

/// "org/name" of models--org--name/snapshots/COMMIT; empty of another folder.
std::string repository_of(const fs::path& folder) {
  constexpr std::string_view kCached = "models--";
  const std::string cached = folder.parent_path().parent_path().filename().string();
  if (folder.parent_path().filename() != "snapshots" || !cached.starts_with(kCached)) return "";
  std::string name = cached.substr(kCached.size());
  if (const size_t dashes = name.find("--"); dashes != std::string::npos) name.replace(dashes, 2, "/");
  return name;
}

std::string place_of(const fs::path& file) {
  const bool is_folder = file.filename() == "config.json";
  const fs::path source = is_folder ? file.parent_path() : file;
  if (const std::string name = is_folder ? repository_of(source) : ""; !name.empty()) return name;
  if (source.is_absolute()) {
    const fs::path within = source.lexically_relative(data_folder());
    if (!within.empty() && *within.begin() != "..") return within.string();
  }
  return source.string();
}

}  // namespace

std::string source_of(const fs::path& file) {
  const std::string place = place_of(file);
  const bool is_plain =
      std::all_of(place.begin(), place.end(), [](unsigned char c) { return c > ' ' && c != 0x7f; });
  return is_plain ? place : show_text(place);
}

}  // namespace soliton
