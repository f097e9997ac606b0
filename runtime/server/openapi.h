// The server's description of itself by OpenAPI, openapi.json, which is part of the program.
#pragma once

#include "runtime/server/page/page.h"

namespace soliton {

/// What is served at /openapi.json.
const PageFile& openapi_file();

}  // namespace soliton
