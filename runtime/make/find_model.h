// The folder of a model that a user names: by its path, or as Hugging Face does, which looks into the cache that its
// own programs download to.
//
//   HUB/models--org--name/refs/main          the commit that was downloaded last
//   HUB/models--org--name/snapshots/COMMIT/  config.json, tokenizer.json, safetensors
#pragma once

#include <filesystem>
#include <string>

namespace soliton {

/// Where Hugging Face's programs keep what they download: HF_HUB_CACHE, else hub/ in HF_HOME, else huggingface/hub/ in
/// XDG_CACHE_HOME or ~/.cache. Need not exist; empty if none of these is set.
std::filesystem::path huggingface_hub();

/// The folder with the config.json of `model`: a folder; one of the cache, from models--org--name up to HF_HOME if it
/// holds no other model; or a name such as "Qwen/Qwen2.5-7B-Instruct". A folder that holds nothing known is returned as
/// it is: whoever opens its config.json says so. Throws Error: kNotFound if there is no such folder or the cache has
/// not all of it, with the command that downloads the model; kUsage for a file; kMismatch for GGUF files.
std::filesystem::path find_model(const std::string& model);

}  // namespace soliton
