// The architecture's facts as the metadata of a GGUF file states them: turned into what config.json would say.
#pragma once

#include <filesystem>

#include "models/gguf.h"
#include "models/hf_config.h"

namespace soliton {

/// What HfConfig::open() gives of a GGUF file. Throws what GgufFile::open() and HfConfig::read() do, and kMismatch for an
/// architecture that is not supported; errors name keys as the file has them.
HfConfig open_gguf_config(const std::filesystem::path& path);

/// The members of rope_scaling that the metadata means, whose keys begin with `prefix` ("llama."), and what the tensor
/// "rope_freqs.weight" does: if that has not the factors of Llama 3.1's formula, Error (kMismatch) is thrown. Null for none.
nlohmann::json gguf_rope_scaling(const GgufFile& file, const std::string& prefix, double theta,
                                 int64_t head_dim);

/// How architectures name and store the tensors of their layers.
struct GgufNames {
  bool fused = false;  // q, k and v stand in one tensor, and gate and up
  bool pairs = false;  // rows of q and k stand as pairs that are rotated, see stored_row()
};

/// As make_checkpoint(), of a GGUF file: "blk.0.attn_q".
Checkpoint make_gguf_checkpoint(const ModelFacts& facts, const GgufNames& names);

}  // namespace soliton
