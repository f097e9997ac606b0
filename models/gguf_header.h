// The bytes of one GGUF file's header: see gguf.h.
#pragma once

#include <nlohmann/json.hpp>
#include <vector>

#include "models/gguf.h"

namespace soliton {

struct GgufHeader {
  nlohmann::json metadata;
  std::vector<GgufTensor> tensors;  // in the order of the file
};

/// Reads and checks all of it. Throws as GgufFile::open().
GgufHeader read_gguf_header(const MappedFile& file);

}  // namespace soliton
