// The folder of a model that a program was given: as find_model() says, and what the cache lacks is downloaded into it from
// Hugging Face's hub, by its protocol and in its layout (repository.h).
#pragma once

#include <filesystem>
#include <string>

#include "runtime/hub/find_model.h"

namespace soliton {

/// What the flags of a program say of downloads.
struct HubOptions {
  std::string revision = {};  // a branch, tag or commit; empty: main
  bool is_offline = false;    // nothing is downloaded, as with HF_HUB_OFFLINE
  bool says_yes = false;      // to any size, without being asked
};

/// More bytes than that are downloaded only once a user at a terminal has agreed.
inline constexpr uint64_t kAskedBytes = 1'000'000'000;

/// find_model(), but that a model of the hub is downloaded as far as `needed` goes and the cache has it not: its config
/// first, so that a model which cannot run is refused before its weights come. Files are checked by size and hash before
/// they get their names; what a download that was cut short has left is gone on with. Says on stderr what it does, with
/// a bar. Throws what find_model() does, HfConfig::open() on what was downloaded, and Error: kUsage for a revision or
/// variable that cannot be, or a revision of a folder; kNotFound if the hub cannot be reached, refuses, has no such
/// model, or the disk no room, or if the user declines; kMismatch if the hub has no safetensors of the model; kBadFile if
/// what it sends is not what it says.
std::filesystem::path fetch_model(const std::string& model, const HubOptions& options,
                                  const NeededFiles& needed = {});

}  // namespace soliton
