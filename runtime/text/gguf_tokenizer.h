// Tokenizers of GGUF files, as the tokenizer.json that they were made from would describe them.
#pragma once

#include <nlohmann/json.hpp>

#include "models/gguf.h"

namespace soliton {

/// For Tokenizer::read(): byte-level BPE (tokenizer.ggml.model "gpt2") or BPE of SentencePiece ("llama"). Throws kBadFile if
/// metadata is missing or malformed; kMismatch for another model or pre-tokenizer, by name; kOutOfMemory if scores make too
/// many merges.
nlohmann::json gguf_tokenizer(const GgufFile& file);

}  // namespace soliton
