// The messages of a chat, as templates take them.
#pragma once

#include "runtime/server/api_body.h"

namespace soliton {

/// Throws Error if it is no list of objects with a role, at least one.
void check_messages(const JsonView& messages);
/// messages as chat templates take them, of what stands in the body there. Throws ApiError.
nlohmann::ordered_json read_messages(const nlohmann::ordered_json& messages);

}  // namespace soliton
