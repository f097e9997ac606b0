// The flags of soliton-chat, read strictly.
#pragma once

#include <optional>

#include "runtime/answer/options.h"

namespace soliton {

/// Nothing after --help, which has then been printed. Throws Error (kUsage).
std::optional<Options> parse_options(int argc, char** argv);

}  // namespace soliton
