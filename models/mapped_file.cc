// See mapped_file.h.
#include "models/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "models/error.h"

namespace soliton {
namespace {

constexpr std::string_view kLfsPointer = "version https://git-lfs";

Error unreadable(const std::string& path, int error) {
  if (error == ENOENT) {
    return file_error(ExitCode::kNotFound, path, "{}",
                      is_present(path) ? "no such file, only a link to it" : "no such file");
  }
  return file_error(ExitCode::kNotFound, path, "cannot be read: {}", std::strerror(error));
}

}  // namespace

OpenFile::~OpenFile() {
  if (fd >= 0) ::close(fd);
}

bool is_present(const std::filesystem::path& path) {
  std::error_code ignored;
  return std::filesystem::exists(std::filesystem::symlink_status(path, ignored));
}

MappedFile MappedFile::open(const std::filesystem::path& path) {
  const std::string name = path.string();
  if (name.find('\0') != std::string::npos) throw unreadable(name, EINVAL);
  // Without O_NONBLOCK a named pipe would wait for a writer before we can refuse it.
  OpenFile file(::open(name.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.fd < 0) throw unreadable(name, errno);
  struct stat status {};
  if (::fstat(file.fd, &status) != 0) throw unreadable(name, errno);
  if (S_ISDIR(status.st_mode))
    throw file_error(ExitCode::kNotFound, name, "expected a file, got a directory");
  if (!S_ISREG(status.st_mode)) throw file_error(ExitCode::kNotFound, name, "expected a regular file");
  if (status.st_size == 0) throw bad_file(name, "the file is empty");
  const auto size = static_cast<size_t>(status.st_size);
  void* const address = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.fd, 0);
  if (address == MAP_FAILED) throw unreadable(name, errno);
  MappedFile mapped(
      name, std::unique_ptr<const Mapping>(new Mapping{std::move(file), WatchedMapping(address, size)}));
  if (mapped.text().starts_with(kLfsPointer)) {
    throw bad_file(name, "a git-LFS pointer, not the content; run `git lfs pull` in its folder");
  }
  return mapped;
}

void MappedFile::check_whole() const {
  const size_t expected = bytes().size();
  struct stat status {};
  const bool is_known = ::fstat(mapping_->file.fd, &status) == 0;
  // Of the last page that the file still has, what it has lost reads as zeros without a signal.
  if (is_known && static_cast<size_t>(status.st_size) < expected) {
    throw bad_file(path_, "cut short while it was read: expected {} bytes, got {}; download it again",
                   expected, status.st_size);
  }
  if (mapping_->memory.has_lost_bytes()) {
    throw bad_file(path_, "changed while it was read, or its disk fails: expected {} bytes throughout",
                   expected);
  }
}

std::string load_text(const std::filesystem::path& path) {
  const MappedFile file = MappedFile::open(path);
  return file.read([&] { return std::string(file.text()); });
}

}  // namespace soliton
