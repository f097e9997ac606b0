// Files that a measurement ends with: checked before it, which may take long, and replaced as a whole after it.
#pragma once

#include <string>

namespace soliton {

/// Throws Error (kNotFound) if the file could not be written. Missing folders are in order with `make_folders`.
void check_writable(const std::string& path, bool make_folders = false);

/// Replaces the file as a whole, or not at all. Throws Error (kNotFound).
void write_file(const std::string& path, const std::string& text);

}  // namespace soliton
