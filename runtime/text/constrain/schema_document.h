// JSON schemas that hold together: references followed, allOf and the like made one schema. All are in normal form, as
// schema_normal.h has it.
//
// What is made takes exactly the values that all of them take. Keywords that speak of what others of the same schema leave,
// items behind prefixItems and additionalProperties beside properties, are merged for each position and each name. What
// cannot be merged is refused by name.
#pragma once

#include <map>
#include <string>
#include <utility>

#include "models/error.h"
#include "runtime/text/constrain/grammar.h"
#include "runtime/text/constrain/schema_normal.h"
#include "runtime/text/constrain/schema_patterns.h"

namespace soliton::constrain {

/// A schema takes no value, or none that can be written. Where there are others, they are written.
class NoValue : public Error {
 public:
  explicit NoValue(const std::string& message) : Error(ExitCode::kBadFile, message) {}
};

/// A document with schemas in it. For one thread.
class SchemaDocument {
 public:
  /// `root` must outlive it. `name` is what errors call it. Throws kOutOfMemory if it is larger than schemas may be.
  SchemaDocument(const Schema& root, std::string name);
  /// With other documents' steps in `num_steps`, which they share and which must outlive it: see spend().
  SchemaDocument(const Schema& root, std::string name, size_t& num_steps);
  SchemaDocument(const SchemaDocument&) = delete;
  SchemaDocument& operator=(const SchemaDocument&) = delete;

  const Schema& root() const { return at_pointer(""); }
  const std::string& name() const { return name_; }

  /// An Error that reads "name: path: message"; the path of the root is empty.
  template <class... Args>
  Error error(ExitCode code, const std::string& path, fmt::format_string<Args...> format,
              Args&&... args) const {
    return Error(code, located(path, fmt::format(format, std::forward<Args>(args)...)));
  }
  template <class... Args>
  NoValue no_value(const std::string& path, fmt::format_string<Args...> format, Args&&... args) const {
    return NoValue(located(path, fmt::format(format, std::forward<Args>(args)...)));
  }
  /// An Error for what a schema may say and this does not do.
  Error unsupported(const std::string& path, const std::string& keyword, const std::string& why = {}) const;
  /// Throws unsupported() for a keyword that is.
  void check_keywords(const Schema& schema, const std::string& path) const;

  /// Types that the keyword `type` names. Throws kBadFile if it is malformed.
  Types named_types(const Schema& schema, const std::string& path) const;
  /// What `nullable` says, which allows null beside all that a schema says else.
  bool is_nullable(const Schema& schema, const std::string& path) const;
  /// The list of schemas that stands in an entry of ~choices or ~ones, and what errors call it. Throws kBadFile if it is
  /// malformed.
  std::pair<std::string, const Schema&> alternatives(const Schema& entry, const std::string& path) const;

  /// What a reference in normal form stands for. Throws Error: kMismatch if it leads out of the document, kBadFile if there
  /// is nothing.
  const Schema& target(const Schema& reference, const std::string& path) const;
  /// Whether it has references or allOf at its top.
  static bool is_flat(const Schema& schema);
  /// The schema without $ref and allOf at its top. Throws Error, if what is to be merged does not fit (NoValue, kMismatch)
  /// or is too much, as what refers to itself (kOutOfMemory).
  Schema flattened(const Schema& schema, const std::string& path, int depth = 0) const;
  /// What fits both; flattens them.
  Schema merged(const Schema& a, const Schema& b, const std::string& path, int depth = 0) const;
  /// Says unevaluatedItems and unevaluatedProperties of a flat schema, with no alternatives left in it, by items and
  /// additionalProperties. Throws unsupported() if there are any.
  void resolve_unevaluated(Schema& schema, const std::string& path) const;

  SchemaPatterns& patterns() const { return patterns_; }
  /// Whether a member of this name is one that patternProperties of the schema speak of. Throws unsupported() if dialects
  /// of patterns differ about that.
  bool is_in_patterns(const Schema& schema, const std::string& name, const std::string& path) const;

  /// Counts steps of copying and comparing. Throws kOutOfMemory if they become too many.
  void spend(size_t steps, const std::string& path) const;
  Schema copied(const Schema& schema, const std::string& path) const;

 private:
  std::string located(const std::string& path, const std::string& message) const;
  const Schema& at_pointer(const std::string& pointer) const;
  Schema both_of(Schema a, Schema b, const std::string& path) const;
  Schema joined(Schema a, Schema b, const std::string& path) const;
  Schema taken(Schema& from, const char* keyword, Schema otherwise, const std::string& path) const;
  void write_null(Schema& schema, const std::string& path) const;
  void merge_members(Schema& a, Schema& b, const std::string& path) const;
  void merge_patterns(Schema& a, Schema& b, const std::string& path) const;
  void merge_items(Schema& a, Schema& b, const std::string& path) const;
  void merge_keyword(Schema& into, const std::string& keyword, Schema& value, const std::string& path) const;
  void merge_types(Schema& into, const Schema& other, const std::string& path) const;

  const Schema& root_;  // as it was written
  std::string name_;
  mutable SchemaReferences references_;
  mutable std::map<std::string, Schema, std::less<>> normal_;  // of pointers that have been followed
  mutable SchemaPatterns patterns_;
  size_t own_steps_ = 0;
  size_t& num_steps_;
};

/// minItems and the like; the second is negative if there is no bound. Above `most` no more than that is written. Throws
/// kBadFile if they are malformed, NoValue if they exclude each other, kOutOfMemory if the first is above `most`.
std::pair<int, int> counts_of(const SchemaDocument& document, const Schema& schema, const std::string& path,
                              const char* min, const char* max, int most = kMaxRepetitions);

}  // namespace soliton::constrain
