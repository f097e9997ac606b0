// What the hub says of a revision: its commit and its files; and which of these a program needs.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/hub/checksum.h"
#include "runtime/hub/find_model.h"

namespace soliton::hub {

struct HubFile {
  std::string name;
  uint64_t size = 0;  // bytes
  std::string hash;   // by which its blob is named, in hexadecimal digits
  Checksum::Kind kind = Checksum::Kind::kGitBlob;
};

struct Listing {
  std::string source;  // for messages
  std::string commit;
  std::vector<HubFile> files;

  /// Nothing if there is none of that name.
  const HubFile* find(std::string_view name) const;
};

/// Limits on what the hub sends of a model: its largest ones list some thousand files.
inline constexpr size_t kMaxListingBytes = 16 << 20;
inline constexpr size_t kMaxFiles = 100'000;

/// Reads the answer of the hub's API to models/NAME/revision/REVISION?blobs=true. Throws Error (kBadFile), which names
/// `source`, if it is none, above a limit, and if the name of a file leads out of the model's folder.
Listing parse_listing(std::string_view text, const std::string& source);

/// The files beside the weights, config.json first and tokenizer.json last: who finds that one in the cache finds all of
/// them. Throws Error: kMismatch if there is no config.json, or with `needed.text` no tokenizer.json, or with
/// `needed.weights` no safetensors.
std::vector<HubFile> choose_small_files(const Listing& listing, const NeededFiles& needed);

/// The files of the weights, of which the index has come already if there is one: model.safetensors alone, else the shards
/// that the text of the index names. Throws Error: kBadFile if it names what lies not beside it, kNotFound if the
/// listing has no such file.
std::vector<HubFile> choose_weights(const Listing& listing, std::string_view index_text);

/// Whether the weights stand in several files, of which an index names them.
bool has_index(const Listing& listing);
inline constexpr const char* kWeightsIndex = "model.safetensors.index.json";

}  // namespace soliton::hub
