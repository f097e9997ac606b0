// What config.json and generation_config.json say of how tokens are chosen, and of where answers begin and end.
#pragma once

#include "models/hf_config.h"
#include "models/strict_json.h"

namespace soliton {

/// Takes bos_token_id, unless already known, and adds eos_token_id, an integer or a list of them.
void read_token_ids(const JsonView& document, HfConfig& config);
/// Each once.
void sort_eos_ids(HfConfig& config);
GenerationDefaults read_generation(const JsonView& document);

}  // namespace soliton
