#include "runtime/hub/hub_settings.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string_view>

#include "models/error.h"
#include "runtime/hub/repository.h"

namespace soliton::hub {
namespace {

namespace fs = std::filesystem;

constexpr const char* kHuggingFace = "https://huggingface.co";
constexpr size_t kMaxTokenBytes = 4096;

std::string value_of(const char* variable) {
  const char* const value = std::getenv(variable);
  return value == nullptr ? "" : value;
}

bool is_true(std::string value) {
  std::transform(value.begin(), value.end(), value.begin(), [](unsigned char c) { return std::tolower(c); });
  return value == "1" || value == "on" || value == "yes" || value == "true";
}

std::string trimmed(const std::string& text) {
  constexpr const char* kSpace = " \t\r\n";
  const size_t begin = text.find_first_not_of(kSpace);
  return begin == std::string::npos ? "" : text.substr(begin, text.find_last_not_of(kSpace) + 1 - begin);
}

/// The token, which never stands in a message.
std::string checked_token(const std::string& token, const std::string& place) {
  const bool fits =
      token.size() <= kMaxTokenBytes &&
      std::all_of(token.begin(), token.end(), [](unsigned char c) { return c > ' ' && c < 0x7f; });
  if (fits) return token;
  throw file_error(ExitCode::kUsage, place,
                   "expected a token of at most {} printable characters, got another", kMaxTokenBytes);
}

std::string read_token() {
  for (const char* variable : {"HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"}) {  // the second is its older name
    if (const std::string token = trimmed(value_of(variable)); !token.empty())
      return checked_token(token, variable);
  }
  if (is_true(value_of("HF_HUB_DISABLE_IMPLICIT_TOKEN"))) return "";
  fs::path file = path_from("HF_TOKEN_PATH");
  if (file.empty()) file = huggingface_home() / "token";
  std::string text(kMaxTokenBytes + 1, '\0');
  std::ifstream stream(file, std::ios::binary);
  stream.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<size_t>(stream.gcount()));
  return checked_token(trimmed(text), file.string());
}

std::string read_endpoint() {
  std::string endpoint = trimmed(value_of("HF_ENDPOINT"));
  if (endpoint.empty()) return kHuggingFace;
  while (endpoint.ends_with('/')) endpoint.pop_back();
  const size_t host = endpoint.find("://") + 3;
  const bool is_web = endpoint.starts_with("https://") || endpoint.starts_with("http://");
  if (!is_web || host == endpoint.size()) {
    throw Error(ExitCode::kUsage, fmt::format("HF_ENDPOINT: expected an address such as {}, got {}",
                                              kHuggingFace, in_quotes(endpoint)));
  }
  return endpoint;
}

}  // namespace

Settings read_settings() {
  return {.endpoint = read_endpoint(),
          .token = read_token(),
          .is_offline = is_true(value_of("HF_HUB_OFFLINE")) || is_true(value_of("TRANSFORMERS_OFFLINE"))};
}

}  // namespace soliton::hub
