// The folder of a model that a user names, or its GGUF file: by its path, or as Hugging Face does, which looks into the cache
// that its own programs and ours download to (repository.h).
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "models/error.h"
#include "runtime/hub/repository.h"

namespace soliton {

inline constexpr const char* kMainRevision = "main";

/// What a program reads of a model's files, beside config.json.
struct NeededFiles {
  bool text = true;     // tokenizer and chat template
  bool weights = true;  // safetensors
};

/// The folder with the config.json of `model`: a folder; one of the cache, from models--org--name up to HF_HOME if it
/// holds no other model; or a name such as "Qwen/Qwen2.5-7B-Instruct". A .gguf file is returned as it is, and so is the only
/// one of a folder without config.json. A folder that holds nothing known is returned as
/// it is: whoever opens its config.json says so. Throws Error: kNotFound if there is no such folder or the cache has
/// not all of it, with the command that downloads the model; kUsage for another file, and for several GGUF files.
std::filesystem::path find_model(const std::string& model);

/// "; did you mean MODEL?" of the model most like `model` that is in the cache, or in the folder that its path begins with;
/// empty if there is none.
std::string hint_of_model(const std::string& model);

/// Whether `model` is looked up in the cache and on the hub: org/name where no file or folder of that name lies and which does
/// not end in .gguf, or a single word that the cache has.
bool names_repository(const std::string& model);

/// What is missing of the files that are needed from a snapshot, as a download leaves it that was given up, as a sentence;
/// empty if nothing is. What cannot be read is left to its reader.
std::string missing_from(const std::filesystem::path& snapshot, const NeededFiles& needed);

/// The snapshot of a revision in the cache, or its only GGUF file, if all that is needed of it is there. Throws Error (kUsage)
/// if all that it has are several GGUF files.
std::optional<std::filesystem::path> find_cached(const CachedRepository& repository,
                                                 const std::string& revision, const NeededFiles& needed);

/// Of files that the cache lacks and that are not to be downloaded: what find_model() throws, with `remedy` behind it.
Error not_cached(const CachedRepository& repository, const std::string& revision, const NeededFiles& needed,
                 const std::string& remedy);

}  // namespace soliton
