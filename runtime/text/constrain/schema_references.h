// Where references of a JSON schema lead: by pointer, by $id and by anchor, within one document.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <unordered_map>

#include "runtime/text/constrain/schema_facts.h"

namespace soliton::constrain {

/// A reference as absolute URI, by the rules of RFC 3986, without its fragment; `base` has none.
std::string resolved_uri(std::string_view base, std::string_view reference);
/// What stands for the bytes of a URI that are written as %XX. What is malformed stays as it is.
std::string percent_decoded(std::string_view text);

/// The schemas of a document that have names, and any place in it by JSON pointer. For one thread.
class SchemaReferences {
 public:
  /// `root` must outlive it.
  explicit SchemaReferences(const Schema& root);

  /// The pointer to what `reference` means in a schema whose base URI is `base`, "" for the root; null if this document
  /// has no such place, as where it is in another one.
  std::optional<std::string> pointer_of(std::string_view reference, std::string_view base);
  /// Null if it leads nowhere. Large objects on the way are indexed once.
  const Schema* find(std::string_view pointer);
  /// Whether `$schema` says a draft in which `$ref` has no keywords beside it, one in which it has, or neither.
  enum class Siblings { kIgnored, kRead, kUnsaid };
  Siblings siblings() const;
  bool is_draft_3() const;
  /// The base URI of references in the schema that stands there.
  std::string base_at(std::string_view pointer);
  /// The one of a schema whose parent has `base`.
  std::string base_of(const Schema& schema, const std::string& base) const;

 private:
  static constexpr int kMostLooked = 64;  // as deep as documents may be

  void look_at(const Schema& schema, const std::string& pointer, const std::string& base, int depth);
  void name_it(const Schema& schema, const std::string& pointer, const std::string& base);
  const Schema* step(const Schema& at, std::string_view& pointer);
  /// Null if there is none.
  const Schema* member(const Schema& object, std::string_view name);

  const Schema& root_;
  const char* id_keyword_;                       // "id" up to draft 4
  std::map<std::string, std::string> pointers_;  // of URIs, with the anchor behind # if there is one
  std::unordered_map<const Schema*, std::map<std::string_view, const Schema*>> indices_;
};

/// A part of a JSON pointer for a member's name, with / before it.
std::string pointer_part(std::string_view name);

}  // namespace soliton::constrain
