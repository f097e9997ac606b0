#include "runtime/server/page/page.h"

#include <algorithm>

namespace soliton {
namespace {

constexpr PageFile kPageFiles[] = {
#include <page_files.inc>
};

}  // namespace

std::span<const PageFile> page_files() {
  return kPageFiles;
}

const PageFile* find_page_file(std::string_view path) {
  const PageFile* const file = std::ranges::find(kPageFiles, path, &PageFile::path);
  return file == std::end(kPageFiles) ? nullptr : file;
}

}  // namespace soliton
