// The architectures of GGUF files that are read: which family each is, and what only it says or stores otherwise.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "models/checkpoint.h"
#include "models/gguf.h"

namespace soliton {

/// How an architecture names and stores the tensors of its layers.
struct GgufNames {
  Projections projections = Projections::kApart;
  bool pairs = false;                 // rows of q and k stand as pairs that are rotated, see stored_row()
  const char* ffn_norm = "ffn_norm";  // the norm before the feed-forward network, where none is behind blocks
  const char* router_bias = "exp_probs_b.bias";  // all of its name
};

struct GgufArchitecture {
  const char* name;                      // general.architecture
  const char* family = nullptr;          // of config.json's architectures
  const char* mixture = nullptr;         // the same where there are experts; nullptr: there may be none
  const char* expert_ffn = nullptr;      // the member that says how wide they are
  const char* expert_ffn_key = nullptr;  // and its key, behind the prefix
  const char* num_experts = nullptr;     // the member that says how many
  GgufNames names = {};
  bool lists_windows = false;   // layers differ in them
  bool norm_offset = false;     // norms are stored with the 1 that is added to them
  bool partial_rotary = false;  // rope.dimension_count may be fewer than a head's
  bool mxfp4_experts = false;   // experts may be in MXFP4
  bool states_mscale = false;   // rope.scaling.yarn_log_multiplier is mscale_all_dim, of an mscale of 1
  /// Puts what only this architecture says into what config.json would say.
  void (*put_further)(const GgufFile& file, nlohmann::json& config) = nullptr;

  std::string prefix() const { return std::string(name) + "."; }
};

/// By general.architecture. Throws Error (kMismatch) for one that is not read.
const GgufArchitecture& find_gguf_architecture(const GgufFile& file);

/// Whether norms of the file have the 1 that is added to their weights.
bool has_norm_offset(const GgufFile& file);

/// The key of a member of config.json that has another name in a GGUF file, or the member itself.
std::string gguf_key_of(const std::string& prefix, const std::string& member);

/// Puts all members whose values stand in the file as they stand in config.json.
void put_renamed(const GgufFile& file, const std::string& prefix, nlohmann::json& config);

}  // namespace soliton
