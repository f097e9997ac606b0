// Files that users bring, mapped read-only. Nothing here trusts a byte of the file.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace soliton {

/// Whether the folder lists a file of that name, be it a link that leads nowhere: then to open it says what is wrong.
bool is_present(const std::filesystem::path& path);

/// A regular file mapped read-only for the object's lifetime. Move-only; the bytes stay where they are on a
/// move. Whoever shortens the file meanwhile ends the process with SIGBUS.
class MappedFile {
 public:
  /// Throws kNotFound if the path is absent, unreadable or no regular file; kBadFile if it is empty or a
  /// git-LFS pointer in place of the content.
  static MappedFile open(const std::filesystem::path& path);

  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile();

  const std::string& path() const { return path_; }
  std::span<const std::byte> bytes() const { return {static_cast<const std::byte*>(address_), size_}; }
  std::string_view text() const { return {static_cast<const char*>(address_), size_}; }

 private:
  MappedFile(std::string path, void* address, size_t size)
      : path_(std::move(path)), address_(address), size_(size) {}

  std::string path_;
  void* address_ = nullptr;
  size_t size_ = 0;  // bytes
};

}  // namespace soliton
