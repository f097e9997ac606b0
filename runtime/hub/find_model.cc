#include "runtime/hub/find_model.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string_view>
#include <variant>
#include <vector>

#include "models/gguf.h"
#include "models/mapped_file.h"
#include "models/strict_json.h"
#include "runtime/program/nearest.h"

namespace soliton {
namespace {

namespace fs = std::filesystem;

constexpr const char* kIndexFile = "model.safetensors.index.json";
constexpr const char* kExpectedFolder = "expected a folder with config.json and safetensors, or a .gguf file";

bool is_folder(const fs::path& path) {
  std::error_code ignored;
  return fs::is_directory(path, ignored);
}

bool is_there(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

/// Whether the file is a part of a model, but not the first: its name ends in "-00002-of-00003.gguf".
bool is_later_part(const std::string& name) {
  constexpr size_t kEnding = std::string_view("-00002-of-00003.gguf").size();
  if (name.size() < kEnding) return false;
  const std::string ending = name.substr(name.size() - kEnding);
  return ending[0] == '-' && ending.compare(6, 4, "-of-") == 0 && !ending.starts_with("-00001-");
}

/// The GGUF file that a folder without config.json holds; nothing if it has none. Throws Error (kUsage) if it has several
/// models.
std::optional<fs::path> find_gguf(const fs::path& folder) {
  std::vector<fs::path> files;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder, ignored)) {
    if (is_gguf(entry.path()) && !is_later_part(entry.path().filename().string()))
      files.push_back(entry.path());
  }
  if (files.empty()) return std::nullopt;
  if (files.size() == 1) return files.front();
  const fs::path first = *std::min_element(files.begin(), files.end());
  throw file_error(ExitCode::kUsage, folder.string(),
                   "expected one GGUF file, got {}: name one of them, such as {}", files.size(),
                   first.string());
}

std::string missing_weights(const fs::path& folder) {
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

/// Where something is missing, and what.
struct Lack {
  fs::path place;
  std::string what;
};

/// A snapshot with all that is needed: of the commit that the revision has, or the only one there is. Else what it lacks.
std::variant<fs::path, Lack> look_up(const CachedRepository& repository, const std::string& revision,
                                     const NeededFiles& needed) {
  if (!repository.exists()) {
    return Lack{repository.name(), fmt::format("expected a folder, or a model in {}, found neither",
                                               repository.root().parent_path().string())};
  }
  fs::path snapshot = repository.snapshot(repository.commit_of(revision));
  if (!snapshot.has_filename()) {
    const std::vector<fs::path> all = repository.snapshots();
    if (all.size() != 1 || revision != kMainRevision) {
      const std::string choice = revision == kMainRevision ? " or one of snapshots/" : "";
      return Lack{repository.root(),
                  fmt::format("expected refs/{}{}, found {}", revision, choice,
                              choice.empty() ? "none" : fmt::format("{} of these", all.size()))};
    }
    snapshot = all.front();
  }
  if (!is_folder(snapshot)) return Lack{snapshot, "expected a snapshot, found none"};
  if (!is_there(snapshot / "config.json")) {
    if (const auto gguf = find_gguf(snapshot)) return *gguf;
  }
  std::string missing = missing_from(snapshot, needed);
  if (!missing.empty()) return Lack{snapshot, std::move(missing)};
  return snapshot;
}

/// The snapshot of a model's folder in the cache. Who reads the tokenizer says if there is none.
fs::path find_snapshot(const CachedRepository& repository) {
  const NeededFiles needed{.text = false};
  const auto found = look_up(repository, kMainRevision, needed);
  if (const auto* snapshot = std::get_if<fs::path>(&found)) return *snapshot;
  throw not_cached(repository, kMainRevision, needed,
                   fmt::format("soliton-chat {} downloads it", repository.name()));
}

fs::path find_in_folder(const fs::path& given) {
  if (is_present(given / "config.json")) return given;
  // "models--org--name/" has a name too.
  const fs::path folder = given.has_filename() ? given : given.parent_path();
  if (is_cached_model(folder)) return find_snapshot(CachedRepository::of_folder(folder));
  const std::vector<CachedRepository> models =
      cached_models(is_folder(folder / "hub") ? folder / "hub" : folder);
  if (models.size() == 1) return find_snapshot(models.front());
  if (models.size() > 1) {
    std::vector<std::string> names;
    for (const CachedRepository& each : models) names.push_back(each.name());
    throw file_error(ExitCode::kUsage, given.string(),
                     "expected one model, got a cache of {}: name one of them", fmt::join(names, ", "));
  }
  return find_gguf(folder).value_or(given);
}

[[noreturn]] void refuse_file(const fs::path& file) {
  const std::string kind = file.extension().string();
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

std::string missing_from(const fs::path& snapshot, const NeededFiles& needed) {
  if (!is_there(snapshot / "config.json")) return "expected config.json, found none";
  if (needed.text && !is_there(snapshot / "tokenizer.json")) return "expected tokenizer.json, found none";
  return needed.weights ? missing_weights(snapshot) : "";
}

std::optional<fs::path> find_cached(const CachedRepository& repository, const std::string& revision,
                                    const NeededFiles& needed) {
  const auto found = look_up(repository, revision, needed);
  const auto* snapshot = std::get_if<fs::path>(&found);
  return snapshot == nullptr ? std::nullopt : std::optional(*snapshot);
}

Error not_cached(const CachedRepository& repository, const std::string& revision, const NeededFiles& needed,
                 const std::string& remedy) {
  const auto found = look_up(repository, revision, needed);
  // A model of which there is something is named right.
  const std::string hint = repository.exists() ? "" : hint_of_model(repository.name());
  const Lack lack = std::holds_alternative<Lack>(found) ? std::get<Lack>(found) : Lack{repository.root(), ""};
  return file_error(ExitCode::kNotFound, lack.place.string(), "{}; {}{}", lack.what, remedy, hint);
}

std::string hint_of_model(const std::string& model) {
  std::vector<std::string> names;
  for (const CachedRepository& cached : cached_models(huggingface_hub())) names.push_back(cached.name());
  std::error_code ignored;
  const fs::path folder = fs::path(model).parent_path();
  for (const auto& entry : fs::directory_iterator(folder.empty() ? "." : folder, ignored)) {
    if (is_there(entry.path() / "config.json") || is_gguf(entry.path()))
      names.push_back((folder / entry.path().filename()).string());
  }
  std::sort(names.begin(), names.end());
  return did_you_mean(nearest_word(model, names));
}

bool names_repository(const std::string& model) {
  if (is_there(model) || is_gguf(model) || !is_repository(model)) return false;
  return model.find('/') != std::string::npos || CachedRepository(model).exists();
}

fs::path find_model(const std::string& model) {
  if (is_folder(model)) return find_in_folder(model);
  if (is_there(model) && is_gguf(model)) return model;
  if (is_there(model)) refuse_file(model);
  if (names_repository(model)) return find_snapshot(CachedRepository(model));
  if (is_gguf(model)) throw file_error(ExitCode::kNotFound, model, "no such file{}", hint_of_model(model));
  throw file_error(
      ExitCode::kNotFound, model,
      "expected a model's folder, or its name on Hugging Face (org/name), found no such folder{}",
      hint_of_model(model));
}

}  // namespace soliton
