// JSON schemas that hold together: references followed, allOf and the like made one schema.
//
// What is made takes no value that one of them refuses. Keywords that speak of what others of the same schema leave, items
// behind prefixItems and additionalProperties beside properties, are merged for each position and each name. What cannot be
// merged is refused by name.
#pragma once

#include <map>
#include <string>
#include <utility>

#include "models/error.h"
#include "runtime/text/constrain/grammar.h"
#include "runtime/text/constrain/schema_facts.h"

namespace soliton::constrain {

/// A document with schemas in it. For one thread.
class SchemaDocument {
 public:
  /// `root` must outlive it. `name` is what errors call it. Throws kOutOfMemory if it is larger than schemas may be.
  SchemaDocument(const Schema& root, std::string name);
  /// With other documents' steps in `num_steps`, which they share and which must outlive it: see spend().
  SchemaDocument(const Schema& root, std::string name, size_t& num_steps);
  SchemaDocument(const SchemaDocument&) = delete;
  SchemaDocument& operator=(const SchemaDocument&) = delete;

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
  /// Throws unsupported() for a keyword that is.
  void check_keywords(const Schema& schema, const std::string& path) const;

  /// Types that the keyword `type` names. Throws kBadFile if it is malformed.
  Types named_types(const Schema& schema, const std::string& path) const;
  /// What `nullable` says, which allows null beside all that a schema says else.
  bool is_nullable(const Schema& schema, const std::string& path) const;

  /// What "#/$defs/NAME" and the like stand for. Throws Error: kMismatch if it is no reference into the document, kBadFile
  /// if there is nothing.
  const Schema& target(const Schema& reference, const std::string& path) const;
  /// Whether it has references or allOf at its top.
  static bool is_flat(const Schema& schema);
  /// The schema without $ref and allOf at its top. Throws Error, if what is to be merged does not fit (kMismatch) or is too
  /// much, as what refers to itself (kOutOfMemory).
  Schema flattened(const Schema& schema, const std::string& path, int depth = 0) const;
  /// What fits both; flattens them.
  Schema merged(const Schema& a, const Schema& b, const std::string& path, int depth = 0) const;

  /// Counts steps of copying and comparing. Throws kOutOfMemory if they become too many.
  void spend(size_t steps, const std::string& path) const;

 private:
  Error located(ExitCode code, const std::string& path, const std::string& message) const;
  const Schema* find(std::string_view pointer) const;
  Schema copied(const Schema& schema, const std::string& path) const;
  Schema both_of(Schema a, Schema b, const std::string& path, int depth) const;
  Schema joined(Schema a, Schema b, const std::string& path, int depth) const;
  Schema taken(Schema& from, const char* keyword, Schema otherwise, const std::string& path) const;
  void write_null(Schema& schema, const std::string& path) const;
  void merge_members(Schema& a, Schema& b, const std::string& path, int depth) const;
  void merge_items(Schema& a, Schema& b, const std::string& path, int depth) const;
  void merge_keyword(Schema& into, const std::string& keyword, Schema& value, const std::string& path) const;
  void merge_types(Schema& into, const Schema& other, const std::string& path) const;

  const Schema& root_;
  std::string name_;
  mutable std::map<std::string, const Schema*, std::less<>>
      targets_;  // of references that have been followed
  mutable std::map<const Schema*, std::map<std::string_view, const Schema*>>
      indices_;  // members of what they lead through
  size_t own_steps_ = 0;
  size_t& num_steps_;
};

}  // namespace soliton::constrain
