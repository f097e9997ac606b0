// A folder for what is being made.
#pragma once

#include <filesystem>
#include <utility>

#include "models/mapped_file.h"

namespace soliton {

/// A lock of a folder, which ends with the process whatever ends it.
class FolderLock {
 public:
  enum class Kind {
    kShared,  // waits
    kAlone,   // waits
    kIfFree,  // alone, or not held
  };
  FolderLock(const std::filesystem::path& folder, Kind kind);
  /// False too where the file system knows no locks.
  bool is_held() const { return is_held_; }

 private:
  OpenFile folder_;
  bool is_held_ = false;
};

/// A new folder that goes away with all in it, and is locked as long as it is there.
class ScratchFolder {
 public:
  /// `prefix` with some letters behind; its parent exists. Throws Error (kNotFound).
  explicit ScratchFolder(const std::filesystem::path& prefix);
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  ~ScratchFolder();

  const std::filesystem::path& path() const { return path_; }

 private:
  explicit ScratchFolder(std::pair<std::filesystem::path, FolderLock> made);

  const std::filesystem::path path_;
  const FolderLock lock_;
};

}  // namespace soliton
