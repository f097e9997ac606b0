#include "models/installation.h"

#include <dlfcn.h>
#include <link.h>

#include <array>

namespace soliton {
namespace {

namespace fs = std::filesystem;

/// The shared library that this code is in; empty if it is the program itself.
fs::path own_library() {
  Dl_info info{};
  void* map = nullptr;
  if (::dladdr1(reinterpret_cast<void*>(&own_library), &info, &map, RTLD_DL_LINKMAP) == 0) return {};
  return static_cast<const link_map*>(map)->l_name;
}

bool has_data(const fs::path& prefix) {
  std::error_code ignored;
  return fs::exists(prefix / "share" / "soliton" / "templates" / "one_row" / "kernel.cuh", ignored);
}

}  // namespace

fs::path code_folder() {
  const fs::path library = own_library();
  return library.empty() ? fs::read_symlink("/proc/self/exe").parent_path()
                         : fs::canonical(library).parent_path();
}

std::optional<fs::path> installed_prefix() {
  const fs::path above = code_folder().parent_path();
  // Libraries may lie a folder deeper.
  for (const fs::path& prefix : std::array{above, own_library().empty() ? above : above.parent_path()}) {
    if (has_data(prefix)) return prefix;
  }
  return std::nullopt;
}

fs::path data_folder() {
  const std::optional<fs::path> prefix = installed_prefix();
  return prefix ? *prefix / "share" / "soliton" : fs::path(SOLITON_SOURCE_DIR);
}

}  // namespace soliton
