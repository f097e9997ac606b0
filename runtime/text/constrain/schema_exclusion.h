// Whether alternatives of oneOf exclude each other, as far as that is to be seen from types, constants and members.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/text/constrain/schema_document.h"

namespace soliton::constrain {

/// What of a schema tells its values apart from those of others.
class Outline {
 public:
  /// The schema must outlive it.
  Outline(const SchemaDocument& document, const Schema& schema, const std::string& path, int depth = 0);
  Outline(Outline&&) = default;

  /// Whether no value that is written by one of them fits the other.
  bool excludes(const Outline& other) const;
  /// A member that tells values of both apart once they have it; nothing if there is none.
  std::optional<std::string> telling_member(const Outline& other) const;
  /// Whether that is so of any two, as far as listed values say it: those of the alternatives, or of a member that all
  /// require. In about linear time.
  static bool are_listed_apart(const std::vector<Outline>& outlines);

 private:
  static bool have_no_value_twice(const std::vector<const Outline*>& outlines);
  const Schema* property(std::string_view name) const;
  bool lacks_required(const Outline& other) const;
  bool differs_in_a_member(const Outline& other) const;
  bool differs_in(std::string_view name, const Outline& other) const;

  const SchemaDocument& document_;
  std::string path_;
  int depth_;
  std::unique_ptr<Schema> made_;  // where it had to be flattened
  const Schema* schema_;
  Types types_ = 0;
  std::optional<std::vector<std::string>> listed_;                      // ascending
  std::vector<std::string_view> required_;                              // ascending
  std::vector<std::pair<std::string_view, const Schema*>> properties_;  // ascending
  std::vector<std::string_view> absent_;                                // ascending
  bool is_closed_ = false;  // what is written has no members but these
};

}  // namespace soliton::constrain
