#include "runtime/hub/checksum.h"

#include <fmt/format.h>
#include <openssl/evp.h>

#include <array>

#include "models/error.h"

namespace soliton::hub {
namespace {

void check(int result) {
  if (result != 1) throw Error(ExitCode::kInternal, "libcrypto: expected a hash, got an error");
}

}  // namespace

struct Checksum::Context {
  Context() = default;
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;
  ~Context() { EVP_MD_CTX_free(digest); }
  EVP_MD_CTX* const digest = EVP_MD_CTX_new();
};

Checksum::Checksum(Kind kind, uint64_t size) : context_(std::make_unique<Context>()) {
  if (context_->digest == nullptr) throw std::bad_alloc();
  check(EVP_DigestInit_ex(context_->digest, kind == Kind::kSha256 ? EVP_sha256() : EVP_sha1(), nullptr));
  if (kind == Kind::kGitBlob) {
    add(fmt::format("blob {}", size));
    add(std::string_view("", 1));
  }
}

Checksum::Checksum(Checksum&& other) noexcept = default;
Checksum& Checksum::operator=(Checksum&& other) noexcept = default;
Checksum::~Checksum() = default;

void Checksum::add(std::string_view bytes) {
  check(EVP_DigestUpdate(context_->digest, bytes.data(), bytes.size()));
}

std::string Checksum::finish() {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned int size = 0;
  check(EVP_DigestFinal_ex(context_->digest, digest.data(), &size));
  std::string text;
  for (unsigned int i = 0; i < size; ++i) text += fmt::format("{:02x}", digest[i]);
  return text;
}

}  // namespace soliton::hub
