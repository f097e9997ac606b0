// Files that users bring, mapped read-only. Nothing here trusts a byte of the file.
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "models/error.h"
#include "models/watched_mapping.h"

namespace soliton {

/// Whether the folder lists a file of that name, be it a link that leads nowhere: then to open it says what is wrong.
bool is_present(const std::filesystem::path& path);

/// An open file, closed with the object.
struct OpenFile {
  explicit OpenFile(int number) : fd(number) {}
  OpenFile(OpenFile&& other) noexcept : fd(std::exchange(other.fd, -1)) {}
  OpenFile& operator=(OpenFile&& other) = delete;
  ~OpenFile();
  int fd;  // below 0: none
};

/// reader(), from files whose check_whole() `source` calls: that throws whatever reader() says of zeros that it got.
template <class Source, class Reader>
auto read_whole(const Source& source, Reader&& reader) {
  try {
    auto result = reader();
    source.check_whole();
    return result;
  } catch (const Error&) {
    source.check_whole();
    throw;
  }
}

/// A regular file mapped read-only for the object's lifetime. Move-only; the bytes stay where they are on a move. Of a
/// file that somebody cuts short meanwhile the rest reads as zeros: see read().
class MappedFile {
 public:
  /// Throws kNotFound if the path is absent, unreadable or no regular file; kBadFile if it is empty or a
  /// git-LFS pointer in place of the content.
  static MappedFile open(const std::filesystem::path& path);

  MappedFile(MappedFile&& other) noexcept = default;
  MappedFile& operator=(MappedFile&& other) noexcept = default;

  const std::string& path() const { return path_; }
  std::span<const std::byte> bytes() const { return mapping_->memory.bytes(); }
  std::string_view text() const { return {reinterpret_cast<const char*>(bytes().data()), bytes().size()}; }

  /// Throws kBadFile if the file is shorter than it was when it was opened, or bytes that were read were gone.
  void check_whole() const;

  /// What `reader` makes of the content, in any number of threads that end with it. Throws as check_whole() does,
  /// whatever `reader` says of the zeros that it got.
  template <class Reader>
  auto read(Reader&& reader) const {
    return read_whole(*this, std::forward<Reader>(reader));
  }

 private:
  /// The file stays open, so that its size can be asked for whatever becomes of its name.
  struct Mapping {
    const OpenFile file;
    const WatchedMapping memory;
  };

  MappedFile(std::string path, std::unique_ptr<const Mapping> mapping)
      : path_(std::move(path)), mapping_(std::move(mapping)) {}

  std::string path_;
  std::unique_ptr<const Mapping> mapping_;
};

/// A copy of a file's text. Throws what MappedFile::open() and read() do.
std::string load_text(const std::filesystem::path& path);

}  // namespace soliton
