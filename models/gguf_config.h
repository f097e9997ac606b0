// The architecture's facts as the metadata of a GGUF file states them: turned into what config.json would say.
#pragma once

#include <filesystem>

#include "models/gguf.h"
#include "models/gguf_architectures.h"
#include "models/hf_config.h"

namespace soliton {

/// What HfConfig::open() gives of a GGUF file. Throws what GgufFile::open() and HfConfig::read() do, and kMismatch for an
/// architecture that is not supported; errors name keys as the file has them.
HfConfig open_gguf_config(const std::filesystem::path& path);

/// The members of rope_scaling that the metadata means, and what the tensor "rope_freqs.weight" does: if that has not the
/// factors of Llama 3.1's formula, Error (kMismatch) is thrown. Null for none.
nlohmann::json gguf_rope_scaling(const GgufFile& file, const GgufArchitecture& architecture, double theta,
                                 int64_t head_dim);

/// As make_checkpoint(), of a GGUF file: "blk.0.attn_q".
Checkpoint make_gguf_checkpoint(const ModelFacts& facts, const GgufNames& names);

}  // namespace soliton
