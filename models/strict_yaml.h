// A strict reader over yaml-cpp for small files that people write by hand. yaml-cpp takes the first of two
// equal keys, reads 010 as 8 and ignores what nobody asks for; here every such thing is refused. Every error
// is a Error of one line, `file:line: key: expected X, got Y`: lines count from 1, nested keys read
// `rope.factor`, and `top level` stands for the key where the whole file is meant.
#pragma once

#include <yaml-cpp/yaml.h>

#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "models/error.h"
#include "models/place.h"
#include "models/ranges.h"

namespace soliton {

/// The value of plain decimal digits with an optional minus sign; nothing for all else (010, 1e5, 0x10, +1,
/// 1_000) and for what needs more than 64 bits.
std::optional<int64_t> read_integer(std::string_view text);

/// The value of a decimal number such as 4.6e12; nothing for infinities, NaN, hexadecimal digits or leading
/// zeros.
std::optional<double> read_number(std::string_view text);

/// How an error line shows text that should have been an integer: "010, which could be octal".
std::string describe_non_integer(std::string_view text);

/// How an error line shows any text: as it is if it is short and printable, else quoted, escaped and cut.
std::string show_text(std::string_view text);

/// "one of a, b, c", or just "a" for one.
std::string describe_choices(const std::vector<std::string>& choices);

/// One map of a YAML file: the whole file, or the value of a key. No key stands in it twice.
/// Getters throw Error (ExitCode::kBadFile) if the key is missing or its value is not of the kind asked
/// for.
class StrictYaml {
 public:
  /// Reads a file that holds exactly one YAML document, a map.
  /// Throws Error: kNotFound if it cannot be read, kBadFile if it is not such a file.
  static StrictYaml load(const std::filesystem::path& path);

  /// The same for text at hand; `file` is what error lines call it.
  static StrictYaml parse(const std::string& text, const std::string& file);

  /// Refuses every key but these. Call it before the getters, so that a misspelt key is called unknown rather
  /// than the right one missing.
  void allow_keys(std::initializer_list<std::string_view> keys) const;

  bool has(std::string_view key) const { return find(key) != nullptr; }

  /// A string, quoted or not, that is not empty.
  std::string text(std::string_view key) const;

  /// One of the given words.
  std::string text_choice(std::string_view key, std::initializer_list<std::string_view> choices) const;

  /// A decimal integer within the range.
  int integer(std::string_view key, const IntegerRange& range) const;

  /// Any decimal integer of 64 bits; `expected` is for the error where there is none.
  int64_t any_integer(std::string_view key, const std::string& expected) const;

  /// Is the key's value a list? Then its integers, of which there are some.
  bool has_list(std::string_view key) const;
  std::vector<int64_t> any_integers(std::string_view key, const std::string& expected) const;
  /// The same of finite decimal numbers; throws if the value is no list.
  std::vector<double> any_numbers(std::string_view key, const std::string& expected) const;

  /// One of the given integers.
  int integer_choice(std::string_view key, std::initializer_list<int> choices) const;

  /// A decimal number within the range; integers are numbers too.
  double number(std::string_view key, const NumberRange& range) const;

  /// Any finite decimal number; `expected` is for the error where there is none.
  double any_number(std::string_view key, const std::string& expected) const;

  /// `true` or `false`, and no other of YAML's words for them.
  bool boolean(std::string_view key) const;

  /// A nested map.
  StrictYaml map(std::string_view key) const;

  /// The value of `name`: lower-case letters, digits, '.', '-', '_', as it becomes part of folder names and generated text.
  std::string name() const;
  /// The same, which must be the file's name without extension.
  std::string name_of_file() const;

  /// Where a key that is there and has a scalar stands.
  Place place(std::string_view key) const;

  /// The error for a key whose value is fine by itself but does not go with others; stands at the key's line.
  Error error(std::string_view key, const std::string& expected, const std::string& got) const;

 private:
  struct Entry {
    std::string key;
    YAML::Node value;
    int line = 0;  // counts from 1
  };

  StrictYaml(std::string file, std::string prefix, const YAML::Node& node, int line);
  const Entry* find(std::string_view key) const;
  template <class Value>
  std::vector<Value> list(std::string_view key, const std::string& expected,
                          std::optional<Value> (*read)(std::string_view)) const;
  /// The text of an unquoted scalar; what else stands there is refused as not being `expected`.
  std::string plain_scalar(std::string_view key, const std::string& expected) const;

  std::string file_;
  std::string prefix_;  // "rope." within the map rope
  int line_ = 1;        // where the map begins
  std::vector<Entry> entries_;
};

}  // namespace soliton
