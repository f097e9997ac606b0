// A folder for what is being made.
#pragma once

#include <stdlib.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string>

#include "models/error.h"

namespace soliton {

/// A new folder that goes away with all in it.
class ScratchFolder {
 public:
  /// `prefix` with some letters behind; its parent exists. Throws Error (kNotFound).
  explicit ScratchFolder(const std::filesystem::path& prefix) {
    std::string pattern = prefix.string() + "XXXXXX";
    if (::mkdtemp(pattern.data()) == nullptr) {
      throw file_error(ExitCode::kNotFound, pattern, "expected a folder that can be made, got: {}",
                       std::strerror(errno));
    }
    path_ = pattern;
  }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  ~ScratchFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace soliton
