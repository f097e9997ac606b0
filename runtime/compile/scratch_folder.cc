#include "runtime/compile/scratch_folder.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/file.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "models/error.h"

namespace soliton {
namespace {

int operation_of(FolderLock::Kind kind) {
  switch (kind) {
    case FolderLock::Kind::kShared:
      return LOCK_SH;
    case FolderLock::Kind::kAlone:
      return LOCK_EX;
    case FolderLock::Kind::kIfFree:
      return LOCK_EX | LOCK_NB;
  }
  return LOCK_EX;
}

std::filesystem::path make_folder(const std::filesystem::path& prefix) {
  std::string pattern = prefix.string() + "XXXXXX";
  if (::mkdtemp(pattern.data()) == nullptr) {
    throw file_error(ExitCode::kNotFound, pattern, "expected a folder that can be made, got: {}",
                     std::strerror(errno));
  }
  return pattern;
}

/// So that nobody takes the new folder for one whose maker is gone before it is locked.
std::pair<std::filesystem::path, FolderLock> make_locked(const std::filesystem::path& prefix) {
  const FolderLock nobody_cleans(prefix.parent_path(), FolderLock::Kind::kShared);
  std::filesystem::path path = make_folder(prefix);
  FolderLock lock(path, FolderLock::Kind::kAlone);
  return {std::move(path), std::move(lock)};
}

}  // namespace

FolderLock::FolderLock(const std::filesystem::path& folder, Kind kind)
    : folder_(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
  if (folder_.fd < 0) return;
  int status = 0;
  do {
    status = ::flock(folder_.fd, operation_of(kind));
  } while (status != 0 && errno == EINTR);
  is_held_ = status == 0;
}

ScratchFolder::ScratchFolder(const std::filesystem::path& prefix) : ScratchFolder(make_locked(prefix)) {}

ScratchFolder::ScratchFolder(std::pair<std::filesystem::path, FolderLock> made)
    : path_(std::move(made.first)), lock_(std::move(made.second)) {}

ScratchFolder::~ScratchFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace soliton
