// See kept_file.h.
#include "models/kept_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <optional>
#include <string>
#include <utility>

#include "models/error.h"
#include "models/hash.h"
#include "models/mapped_file.h"
#include "models/printing.h"

namespace soliton {
namespace {

namespace fs = std::filesystem;

constexpr mode_t kAnyMode = 0666;  // without what the user's mask takes away
constexpr mode_t kOwnersFolder = 0700;
constexpr mode_t kPermissions = 07777;
constexpr mode_t kOthersWrite = S_IWGRP | S_IWOTH;
constexpr std::string_view kSealName = "\nsoliton fnv1a64 ";

Error not_writable(const fs::path& path, int error) {
  return file_error(ExitCode::kNotFound, path.string(), "expected a file that can be written, got: {}",
                    std::strerror(error));
}

/// A new file beside its place, which is gone with this object unless it has been moved there.
class FileInWriting {
 public:
  explicit FileInWriting(const fs::path& place) : place_(place) {
    for (int n = 0;; ++n) {
      const std::string name = fmt::format(".{}.{}-{}", place.filename().string(), ::getpid(), n);
      path_ = place.parent_path() / name;
      file_.emplace(::open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, kAnyMode));
      if (file_->fd >= 0) return;
      if (errno != EEXIST) throw not_writable(place_, errno);
    }
  }
  FileInWriting(const FileInWriting&) = delete;
  FileInWriting& operator=(const FileInWriting&) = delete;
  ~FileInWriting() {
    if (!is_in_place_) ::unlink(path_.c_str());
  }

  void write(std::string_view text) {
    struct stat before {};
    if (::stat(place_.c_str(), &before) == 0) ::fchmod(file_->fd, before.st_mode & kPermissions);
    if (!write_all(file_->fd, text)) throw not_writable(place_, errno);
  }
  void move_into_place() {
    const int fd = std::exchange(file_->fd, -1);
    if (::close(fd) != 0) throw not_writable(place_, errno);  // where a full disk may show
    move_kept_file(path_, place_);
    is_in_place_ = true;
  }

 private:
  const fs::path place_;
  fs::path path_;
  std::optional<OpenFile> file_;
  bool is_in_place_ = false;
};

/// Returns 0, or what is wrong.
int sync(const fs::path& path, int flags) {
  const OpenFile file(::open(path.c_str(), flags | O_CLOEXEC));
  if (file.fd < 0 || ::fsync(file.fd) != 0) return errno;
  return 0;
}

fs::path folder_of(const fs::path& path) {
  return path.has_parent_path() ? path.parent_path() : fs::path(".");
}

std::string seal_of(std::string_view content) {
  Hash hash;
  hash.add(content);
  return fmt::format("{}{:016x}\n", kSealName, hash.value());
}

}  // namespace

void write_kept_file(const fs::path& path, std::string_view text) {
  std::error_code absent;
  const fs::path target = fs::canonical(path, absent);
  if (!absent && fs::is_directory(target)) throw not_writable(path, EISDIR);
  if (!absent && !fs::is_regular_file(target)) throw not_writable(path, EINVAL);  // a device stays one
  FileInWriting file(absent ? path : target);
  file.write(text);
  file.move_into_place();
}

void move_kept_file(const fs::path& from, const fs::path& to) {
  if (const int error = sync(from, O_RDONLY); error != 0) throw not_writable(to, error);
  if (::rename(from.c_str(), to.c_str()) != 0) throw not_writable(to, errno);
  // Some file systems do not sync folders, as they need not. Otherwise the name may be lost, but never half a file be seen.
  const int error = sync(folder_of(to), O_RDONLY | O_DIRECTORY);
  if (error != 0 && error != EINVAL) throw not_writable(to, error);
}

void make_private_folder(const fs::path& folder) {
  std::error_code ignored;
  if (fs::is_directory(folder, ignored)) return;
  if (folder.has_relative_path() && folder.has_parent_path() && folder.parent_path() != folder)
    make_private_folder(folder.parent_path());
  if (::mkdir(folder.c_str(), kOwnersFolder) == 0) return;
  const int error = errno;
  if (error == EEXIST && fs::is_directory(folder, ignored)) return;  // by another program meanwhile
  throw file_error(ExitCode::kNotFound, folder.string(), "expected a folder that can be made, got: {}",
                   std::strerror(error == EEXIST ? ENOTDIR : error));
}

void check_trusted(const fs::path& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0)
    throw file_error(ExitCode::kNotFound, path.string(), "cannot be read: {}", std::strerror(errno));
  const bool is_folder = S_ISDIR(status.st_mode);
  const char* kind = is_folder ? "folder" : "file";
  if (status.st_uid != ::geteuid() && status.st_uid != 0) {
    throw file_error(ExitCode::kNotFound, path.string(),
                     "expected a {} of user {} or root, got one of user {}", kind, ::geteuid(),
                     status.st_uid);
  }
  const bool is_shared = is_folder && (status.st_mode & S_ISVTX) != 0;
  if ((status.st_mode & kOthersWrite) == 0 || is_shared) return;
  throw file_error(ExitCode::kNotFound, path.string(),
                   "expected a {} that only its owner may write, got permissions {:o}; see that what is "
                   "there is yours, then: chmod go-w",
                   kind, status.st_mode & kPermissions);
}

void seal_file(const fs::path& path) {
  std::string seal;
  {
    const MappedFile file = MappedFile::open(path);
    seal = file.read([&] { return seal_of(file.text()); });
  }
  const OpenFile file(::open(path.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC));
  if (file.fd < 0 || !write_all(file.fd, seal)) throw not_writable(path, errno);
}

bool is_sealed(const fs::path& path) {
  const MappedFile file = MappedFile::open(path);
  return file.read([&] {
    const std::string_view text = file.text();
    const size_t end = text.rfind(kSealName);
    return end != std::string_view::npos && text.substr(end) == seal_of(text.substr(0, end));
  });
}

}  // namespace soliton
