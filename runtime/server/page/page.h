// The web page that the server shows at "/": files that are part of the program.
#pragma once

#include <span>
#include <string_view>

namespace soliton {

struct PageFile {
  std::string_view path;          // at which it is asked for: "/", "/page.css"
  std::string_view content_type;  // "text/html; charset=utf-8"
  std::string_view text;
};

std::span<const PageFile> page_files();

/// Nothing if there is none at this path.
const PageFile* find_page_file(std::string_view path);

}  // namespace soliton
