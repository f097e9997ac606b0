// What a request says of functions: which there are, and whether they are to be called.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "models/strict_json.h"
#include "runtime/server/calls/call_reader.h"

namespace soliton {

struct ToolRequest {
  nlohmann::ordered_json described;  // as templates take them; null: none
  std::vector<Tool> callable = {};   // of these, those that an answer may call
  bool is_required = false;          // an answer is a call
  bool may_be_several = true;        // calls in one answer
};

/// Of tools, tool_choice and parallel_tool_calls. `ordered` is the same body. Throws ApiError and Error, with the member's
/// name.
ToolRequest read_tool_request(const JsonView& body, const nlohmann::ordered_json& ordered);

}  // namespace soliton
