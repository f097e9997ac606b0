#include "runtime/server/openapi.h"

namespace soliton {
namespace {

constexpr PageFile kFiles[] = {
#include <openapi_file.inc>
};

}  // namespace

const PageFile& openapi_file() {
  return kFiles[0];
}

}  // namespace soliton
