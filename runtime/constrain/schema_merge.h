// JSON schemas that hold together: references followed, allOf and the like made one schema.
#pragma once

#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "runtime/constrain/grammar.h"

namespace soliton::constrain {

using Schema = nlohmann::ordered_json;

/// A document with schemas in it.
class SchemaDocument {
 public:
  /// `root` must outlive it. `name` is what errors call it.
  SchemaDocument(const Schema& root, std::string name) : root_(root), name_(std::move(name)) {}

  const Schema& root() const { return root_; }
  const std::string& name() const { return name_; }

  /// An Error that reads "name: path: message"; the path of the root is empty.
  template <class... Args>
  Error error(ExitCode code, const std::string& path, fmt::format_string<Args...> format,
              Args&&... args) const {
    return located(code, path, fmt::format(format, std::forward<Args>(args)...));
  }
  /// An Error for what a schema may say and this does not do.
  Error unsupported(const std::string& path, const std::string& keyword, const std::string& why = {}) const;

  /// What "#/$defs/NAME" and the like stand for. Throws Error: kMismatch if it is no reference into the document, kBadFile
  /// if there is nothing.
  const Schema& target(const Schema& reference, const std::string& path) const;
  /// The schema without $ref and allOf at its top. Throws Error, if what is to be merged does not fit (kMismatch) or is too
  /// much, as what refers to itself (kOutOfMemory).
  Schema flattened(const Schema& schema, const std::string& path, int depth = 0) const;
  /// What fits both; flattens them.
  Schema merged(const Schema& a, const Schema& b, const std::string& path, int depth = 0) const;
  /// Whether no value fits both, as far as that is to be seen from types, constants and required members.
  bool exclude_each_other(const Schema& a, const Schema& b, const std::string& path, int depth = 0) const;

 private:
  Error located(ExitCode code, const std::string& path, const std::string& message) const;
  void merge_keyword(Schema& into, const std::string& keyword, const Schema& value, const std::string& path,
                     int depth) const;
  void check_additional(const Schema& a, const Schema& b, const std::string& path) const;

  const Schema& root_;
  std::string name_;
  mutable int num_merges_ = 0;
};

/// Path of a member, for errors.
std::string member_path(const std::string& path, std::string_view member);
/// Types that a schema names, "number" also as "integer"; all if it names none.
std::set<std::string> types_of(const Schema& schema);
/// Of a value: null, boolean, object, array, string, integer or number.
std::string type_of(const Schema& value);
/// Keywords that say nothing about values.
bool is_annotation(const std::string& keyword);
/// Values of enum or const; empty if it has neither.
std::vector<Schema> listed_values(const Schema& schema);

}  // namespace soliton::constrain
