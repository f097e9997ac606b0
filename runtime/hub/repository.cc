#include "runtime/hub/repository.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>

namespace soliton {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kCached = "models--";  // begins the name of a model's folder in the cache
constexpr size_t kMaxNameBytes = 200;             // of a repository or revision; a file's name may have 255

bool is_name_character(unsigned char c) {
  constexpr std::string_view kSigns = "._-";
  return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
         kSigns.find(static_cast<char>(c)) != std::string_view::npos;
}

/// Of letters, digits and signs, and no hidden file, no flag, no folder above.
bool is_name(std::string_view part) {
  return !part.empty() && part[0] != '.' && part[0] != '-' &&
         std::all_of(part.begin(), part.end(), is_name_character);
}

std::string repository_of(const fs::path& folder) {
  std::string name = folder.filename().string().substr(kCached.size());
  if (const size_t dashes = name.find("--"); dashes != std::string::npos) name.replace(dashes, 2, "/");
  return name;
}

std::string folder_of(std::string repository) {
  if (const size_t slash = repository.find('/'); slash != std::string::npos)
    repository.replace(slash, 1, "--");
  return std::string(kCached) + repository;
}

bool has_folder(const fs::path& path) {
  std::error_code ignored;
  return fs::is_directory(path, ignored);
}

std::vector<fs::path> list(const fs::path& folder) {
  std::vector<fs::path> paths;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder, ignored)) paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  return paths;
}

}  // namespace

fs::path path_from(const char* variable) {
  const char* const value = std::getenv(variable);
  const char* const home = std::getenv("HOME");
  const std::string_view path = value == nullptr ? "" : value;
  if (home == nullptr || !(path == "~" || path.starts_with("~/"))) return path;
  return fs::path(home) / path.substr(std::min<size_t>(path.size(), 2));
}

fs::path huggingface_home() {
  if (const fs::path home = path_from("HF_HOME"); !home.empty()) return home;
  if (const fs::path cache = path_from("XDG_CACHE_HOME"); !cache.empty()) return cache / "huggingface";
  const fs::path home = path_from("HOME");
  return home.empty() ? home : home / ".cache" / "huggingface";
}

fs::path huggingface_hub() {
  for (const char* variable : {"HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"}) {  // the second is its older name
    if (const fs::path hub = path_from(variable); !hub.empty()) return hub;
  }
  const fs::path home = huggingface_home();
  return home.empty() ? home : home / "hub";
}

bool is_repository(std::string_view text) {
  const size_t slash = text.find('/');
  if (text.size() > kMaxNameBytes) return false;
  return slash == std::string_view::npos ? is_name(text)
                                         : is_name(text.substr(0, slash)) && is_name(text.substr(slash + 1));
}

bool is_revision(std::string_view text) {
  if (text.size() > kMaxNameBytes) return false;
  for (size_t at = 0;;) {
    const size_t slash = text.find('/', at);
    if (!is_name(text.substr(at, slash == std::string_view::npos ? slash : slash - at))) return false;
    if (slash == std::string_view::npos) return true;
    at = slash + 1;
  }
}

bool is_commit(std::string_view text) {
  constexpr size_t kDigits = 40;
  return text.size() == kDigits && text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

CachedRepository::CachedRepository(const std::string& name)
    : CachedRepository(name, huggingface_hub() / folder_of(name)) {}

CachedRepository CachedRepository::of_folder(const fs::path& root) {
  return CachedRepository(repository_of(root), root);
}

bool CachedRepository::exists() const {
  return is_cached_model(root_);
}

fs::path CachedRepository::lock(const std::string& hash) const {
  return root_.parent_path() / ".locks" / root_.filename() / (hash + ".lock");
}

std::string CachedRepository::commit_of(const std::string& revision) const {
  std::string commit;
  std::ifstream(ref(revision)) >> commit;
  if (!is_name(commit)) commit.clear();
  if (commit.empty() && has_folder(snapshot(revision))) return revision;
  return commit;
}

std::vector<fs::path> CachedRepository::snapshots() const {
  return list(root_ / "snapshots");
}

bool is_cached_model(const fs::path& folder) {
  return folder.filename().string().starts_with(kCached) && has_folder(folder / "snapshots");
}

std::vector<CachedRepository> cached_models(const fs::path& hub) {
  std::vector<CachedRepository> models;
  for (const fs::path& folder : list(hub)) {
    if (is_cached_model(folder)) models.push_back(CachedRepository::of_folder(folder));
  }
  return models;
}

}  // namespace soliton
