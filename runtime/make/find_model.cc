#include "runtime/make/find_model.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string_view>
#include <vector>

#include "models/error.h"
#include "models/mapped_file.h"
#include "models/strict_json.h"

namespace soliton {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kCached = "models--";  // begins the name of a model's folder in the cache
constexpr const char* kIndexFile = "model.safetensors.index.json";
constexpr const char* kExpectedFolder = "expected a folder with config.json and safetensors";

/// A path in an environment variable, with ~ for the home folder; empty if it is not set.
fs::path path_from(const char* variable) {
  const char* const value = std::getenv(variable);
  const char* const home = std::getenv("HOME");
  const std::string_view path = value == nullptr ? "" : value;
  if (home == nullptr || !(path == "~" || path.starts_with("~/"))) return path;
  return fs::path(home) / path.substr(std::min<size_t>(path.size(), 2));
}

bool is_folder(const fs::path& path) {
  std::error_code ignored;
  return fs::is_directory(path, ignored);
}

bool is_there(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

/// What a folder holds, sorted.
std::vector<fs::path> list(const fs::path& folder) {
  std::vector<fs::path> paths;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder, ignored)) paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  return paths;
}

/// "name" or "org/name", of the characters that Hugging Face allows.
bool is_repository(std::string_view text) {
  const auto is_part = [](std::string_view part) {
    constexpr std::string_view kSigns = "._-";
    const auto is_allowed = [&](unsigned char c) {
      return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
             kSigns.find(static_cast<char>(c)) != std::string_view::npos;
    };
    return !part.empty() && part[0] != '.' && part[0] != '-' &&
           std::all_of(part.begin(), part.end(), is_allowed);
  };
  const size_t slash = text.find('/');
  return slash == std::string_view::npos ? is_part(text)
                                         : is_part(text.substr(0, slash)) && is_part(text.substr(slash + 1));
}

/// The name of a model in the cache for that of its folder, and the other way round.
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

Error not_downloaded(const fs::path& path, const std::string& repository, const std::string& found) {
  return file_error(ExitCode::kNotFound, path.string(), "{}; to download it: hf download {}", found,
                    repository);
}

/// Throws Error (kMismatch) if all that a folder without config.json has of a model are GGUF files.
void refuse_gguf(const fs::path& folder) {
  for (const fs::path& path : list(folder)) {
    if (path.extension() != ".gguf") continue;
    throw file_error(ExitCode::kMismatch, folder.string(),
                     "{}, got only GGUF, as {}: GGUF is not read; take the repository it was made from",
                     kExpectedFolder, path.filename().string());
  }
}

/// What a download that was given up has left out of a folder, or nothing. What cannot be read is left to its reader.
std::string missing_from(const fs::path& folder) {
  if (!is_there(folder / "config.json")) return "expected config.json, found none";
  if (!is_there(folder / kIndexFile)) {
    const bool has_weights = is_there(folder / "model.safetensors") ||
                             is_there(folder / "pytorch_model.bin") ||
                             is_there(folder / "pytorch_model.bin.index.json");
    return has_weights ? "" : "expected model.safetensors, found none";
  }
  try {
    const nlohmann::json index = read_json(folder / kIndexFile);
    for (const auto& [tensor, shard] : index.at("weight_map").items()) {
      const auto& name = shard.get_ref<const std::string&>();
      if (!is_there(folder / name)) return fmt::format("expected {}, found none", name);
    }
  } catch (const std::exception&) {
    return "";
  }
  return "";
}

/// The snapshot in a model's folder of the cache that refs/main names, or the only one.
fs::path find_snapshot(const fs::path& root) {
  const std::string repository = repository_of(root);
  std::string commit;
  std::ifstream(root / "refs" / "main") >> commit;
  fs::path snapshot = root / "snapshots" / commit;
  if (commit.empty()) {
    const std::vector<fs::path> all = list(root / "snapshots");
    if (all.size() != 1) {
      throw not_downloaded(
          root, repository,
          fmt::format("expected refs/main or one of snapshots/, found {} of these", all.size()));
    }
    snapshot = all.front();
  }
  if (!is_folder(snapshot)) throw not_downloaded(snapshot, repository, "expected a snapshot, found none");
  if (!is_there(snapshot / "config.json")) refuse_gguf(snapshot);
  if (const std::string missing = missing_from(snapshot); !missing.empty()) {
    throw not_downloaded(snapshot, repository, missing);
  }
  return snapshot;
}

bool is_cached_model(const fs::path& folder) {
  return folder.filename().string().starts_with(kCached) && is_folder(folder / "snapshots");
}

fs::path find_in_folder(const fs::path& given) {
  if (is_present(given / "config.json")) return given;
  // "models--org--name/" has a name too.
  const fs::path folder = given.has_filename() ? given : given.parent_path();
  if (is_cached_model(folder)) return find_snapshot(folder);
  std::vector<fs::path> models = list(is_folder(folder / "hub") ? folder / "hub" : folder);
  std::erase_if(models, [](const fs::path& each) { return !is_cached_model(each); });
  if (models.size() == 1) return find_snapshot(models.front());
  if (models.size() > 1) {
    std::vector<std::string> names;
    std::transform(models.begin(), models.end(), std::back_inserter(names), repository_of);
    throw file_error(ExitCode::kUsage, given.string(),
                     "expected one model, got a cache of {}: name one of them", fmt::join(names, ", "));
  }
  refuse_gguf(folder);
  return given;
}

[[noreturn]] void refuse_file(const fs::path& file) {
  const std::string kind = file.extension().string();
  if (kind == ".gguf") {
    throw file_error(ExitCode::kMismatch, file.string(),
                     "{}, got a GGUF file: GGUF is not read; take the repository it was made from",
                     kExpectedFolder);
  }
  if (kind == ".yaml" || kind == ".yml") {
    throw file_error(ExitCode::kUsage, file.string(),
                     "{}, got a model's facts without weights, as for soliton-gen", kExpectedFolder);
  }
  if (kind == ".safetensors" || kind == ".json") {
    const fs::path parent = file.parent_path();
    throw file_error(ExitCode::kUsage, file.string(),
                     "expected the folder that the file is in, {}, got the file",
                     parent.empty() ? "." : parent.string());
  }
  throw file_error(ExitCode::kUsage, file.string(), "{}, got a file", kExpectedFolder);
}

}  // namespace

fs::path huggingface_hub() {
  for (const char* variable : {"HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"}) {  // the second is its older name
    if (const fs::path hub = path_from(variable); !hub.empty()) return hub;
  }
  if (const fs::path home = path_from("HF_HOME"); !home.empty()) return home / "hub";
  if (const fs::path cache = path_from("XDG_CACHE_HOME"); !cache.empty())
    return cache / "huggingface" / "hub";
  const fs::path home = path_from("HOME");
  return home.empty() ? home : home / ".cache" / "huggingface" / "hub";
}

fs::path find_model(const std::string& model) {
  if (is_folder(model)) return find_in_folder(model);
  if (is_there(model)) refuse_file(model);
  const fs::path hub = huggingface_hub();
  if (is_repository(model) && is_cached_model(hub / folder_of(model)))
    return find_snapshot(hub / folder_of(model));
  if (is_repository(model) && model.find('/') != std::string::npos) {
    throw not_downloaded(model, model,
                         fmt::format("expected a folder, or a model in {}, found neither", hub.string()));
  }
  throw file_error(ExitCode::kNotFound, model,
                   "expected a model's folder, or its name on Hugging Face (org/name), found no such folder");
}

}  // namespace soliton
