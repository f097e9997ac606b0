// The hash by which the hub names the content of a file, by OpenSSL: of a large file (LFS) SHA-256, of another one what git
// calls it, SHA-1 of "blob SIZE", a zero byte and the content.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace soliton::hub {

class Checksum {
 public:
  enum class Kind { kSha256, kGitBlob };
  /// Of `size` bytes to come. Throws Error (kInternal) if the library has no such hash.
  Checksum(Kind kind, uint64_t size);
  Checksum(Checksum&& other) noexcept;
  Checksum& operator=(Checksum&& other) noexcept;
  ~Checksum();

  void add(std::string_view bytes);
  /// In hexadecimal digits. Nothing can be added after that.
  std::string finish();

 private:
  struct Context;
  std::unique_ptr<Context> context_;
};

}  // namespace soliton::hub
