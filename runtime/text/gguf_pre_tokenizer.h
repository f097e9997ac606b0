// How GGUF files name the rules by which byte-level tokenizers cut text into words.
#pragma once

#include <nlohmann/json.hpp>

#include "models/strict_json.h"

namespace soliton {

struct GgufPreTokenizer {
  nlohmann::json normalizer;     // as tokenizer.json has them
  nlohmann::json pre_tokenizer;  // likewise
  bool ignore_merges = false;
  bool adds_bos = false;  // where the file does not say
};

/// What tokenizer.ggml.pre means; absent it is "default", as llama.cpp takes it. Throws kMismatch for a name that is not known.
GgufPreTokenizer gguf_pre_tokenizer(const JsonView& pre);

}  // namespace soliton
