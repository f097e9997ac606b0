// The one reader of JSON: files, bodies of requests, texts within them, what models write. It reads strictly (duplicate
// keys, depth, size, numbers of values and members), in time linear in the text but for sorting keys, and gives typed
// access whose errors name the file and the key.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "models/error.h"
#include "models/place.h"

namespace soliton {

/// Limit on the text of one JSON document, in bytes; that of a safetensors header.
inline constexpr size_t kMaxJsonBytes = 100'000'000;

/// What a document may have at most. Documents are copied, written and destroyed by recursion, so depth is as much a
/// matter of safety as sizes are.
struct JsonLimits {
  size_t bytes = kMaxJsonBytes;
  size_t depth = 64;
  size_t values = 8'000'000;   // 4 times what the largest published vocabularies need
  size_t members = 4'000'000;  // of all its objects together
};

/// Parses one JSON document. Throws kBadFile, naming `path`, on a syntax error, invalid UTF-8, a duplicate key or above a
/// limit.
nlohmann::json parse_json(std::string_view text, std::string_view path, const JsonLimits& limits = {});

/// The same, with members in the order of the text. They are found by looking at one after another: walk through objects
/// that may be large.
nlohmann::ordered_json parse_ordered_json(std::string_view text, std::string_view path,
                                          const JsonLimits& limits = {});

/// The same of text that may be something else: nothing if it is no JSON. Of equal keys the last one counts, as it does for
/// most readers. Throws kBadFile above a limit only.
std::optional<nlohmann::ordered_json> parse_if_json(std::string_view text, std::string_view path,
                                                    const JsonLimits& limits = {});

/// parse_json of a whole file; also throws what MappedFile::open does.
nlohmann::json read_json(const std::filesystem::path& path);

/// A value inside a JSON document, with its file and key path for errors. Refers to both: keep them alive.
/// Absent members are views too, and null: `config["head_dim"].is_null()`.
class JsonView {
 public:
  JsonView(const nlohmann::json& value, std::string_view file) : JsonView(&value, file, "") {}

  /// Whether the value is absent or null.
  bool is_null() const;
  bool is_array() const;
  bool is_object() const;
  /// A member of this object; throws kBadFile if this is no object.
  JsonView operator[](std::string_view key) const;
  /// An element of this array; throws kBadFile if this is no array or is shorter.
  JsonView operator[](size_t index) const;
  /// Elements of this array; throws kBadFile if this is no array.
  size_t array_size() const;

  /// Typed values; each throws kBadFile on another type or a value outside [min, max].
  int64_t integer(int64_t min, int64_t max) const;
  double number(double min, double max) const;
  /// The same without bounds; of integers beyond 64 bits the nearest that fits.
  int64_t integer() const;
  double number() const;
  bool boolean() const;
  const std::string& string() const;
  const nlohmann::json& object() const;

  /// An Error that reads "file: key.path: message"; the second form is for malformed content.
  template <class... Args>
  Error error(ExitCode code, fmt::format_string<Args...> format, Args&&... args) const {
    return located(code, fmt::format(format, std::forward<Args>(args)...));
  }
  template <class... Args>
  Error error(fmt::format_string<Args...> format, Args&&... args) const {
    return located(ExitCode::kBadFile, fmt::format(format, std::forward<Args>(args)...));
  }
  /// Where the value stands or would stand.
  Place place() const;
  /// The value for a message: "nothing", a scalar as JSON, "an array" or "an object".
  std::string describe() const;

 private:
  JsonView(const nlohmann::json* value, std::string_view file, std::string key)
      : value_(value), file_(file), key_(std::move(key)) {}
  Error located(ExitCode code, std::string_view message) const;
  Error unexpected(std::string_view expected) const;

  const nlohmann::json* value_;  // null if absent
  std::string_view file_;
  std::string key_;
};

}  // namespace soliton
