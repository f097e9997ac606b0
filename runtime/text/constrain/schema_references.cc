#include "runtime/text/constrain/schema_references.h"

#include <array>
#include <charconv>

#include "runtime/text/constrain/characters.h"

namespace soliton::constrain {
namespace {

constexpr std::array<std::string_view, 13> kSchemas = {"additionalItems",
                                                       "additionalProperties",
                                                       "contains",
                                                       "else",
                                                       "if",
                                                       "items",
                                                       "not",
                                                       "propertyNames",
                                                       "then",
                                                       "unevaluatedItems",
                                                       "contentSchema",
                                                       "unevaluatedProperties",
                                                       "additionalContent"};
constexpr std::array<std::string_view, 5> kLists = {"allOf", "anyOf", "oneOf", "prefixItems", "items"};
constexpr std::array<std::string_view, 6> kMaps = {"$defs",      "definitions",       "dependentSchemas",
                                                   "properties", "patternProperties", "dependencies"};

/// Part of a JSON pointer as the member's name that it is.
std::string unescaped(std::string_view part) {
  std::string name;
  for (size_t i = 0; i < part.size(); ++i) {
    const bool is_escape =
        part[i] == '~' && i + 1 < part.size() && (part[i + 1] == '0' || part[i + 1] == '1');
    name += is_escape ? (part[++i] == '0' ? '~' : '/') : part[i];
  }
  return name;
}

/// Up to the colon behind the scheme; empty if there is none.
std::string_view scheme_of(std::string_view uri) {
  const size_t end = uri.find_first_of(":/?#");
  return end == std::string_view::npos || uri[end] != ':' || end == 0 ? std::string_view()
                                                                      : uri.substr(0, end + 1);
}

/// Where the path begins, behind scheme and authority.
size_t path_begin(std::string_view uri) {
  size_t begin = scheme_of(uri).size();
  if (uri.substr(begin).starts_with("//")) begin = std::min(uri.find_first_of("/?", begin + 2), uri.size());
  return begin;
}

/// Without . and .. in the path.
std::string without_dots(std::string_view path) {
  std::string made;
  while (!path.empty()) {
    const size_t end = std::min(path.find('/', 1), path.size());
    const std::string_view part = path.substr(0, end);
    path.remove_prefix(end);
    const bool is_up = part == "/..";
    if (is_up) made.erase(made.find_last_of('/') == std::string::npos ? 0 : made.find_last_of('/'));
    if (!is_up && part != "/.") made += part;
    if ((is_up || part == "/.") && path.empty()) made += '/';
  }
  return made;
}

std::string_view without_fragment(std::string_view uri) {
  return uri.substr(0, uri.find('#'));
}

bool is_of_draft(const Schema& root, std::string_view draft) {
  return root.is_object() && root.contains("$schema") && root["$schema"].is_string() &&
         root["$schema"].get_ref<const std::string&>().find(draft) != std::string::npos;
}

}  // namespace

std::string resolved_uri(std::string_view base, std::string_view reference) {
  reference = without_fragment(reference);
  if (reference.empty()) return std::string(base);
  if (!scheme_of(reference).empty()) return std::string(reference);
  if (reference.starts_with("//")) return std::string(scheme_of(base)) + std::string(reference);
  const size_t begin = path_begin(base);
  const std::string_view base_path = base.substr(begin, base.find('?', begin) - begin);
  std::string path(reference);
  if (reference.starts_with('?')) {
    path = std::string(base_path) + path;
  } else if (!reference.starts_with('/')) {
    const size_t last = base_path.rfind('/');
    path = (last == std::string_view::npos ? "/" : std::string(base_path.substr(0, last + 1))) + path;
  }
  return std::string(base.substr(0, begin)) + without_dots(path);
}

std::string percent_decoded(std::string_view text) {
  std::string decoded;
  for (size_t i = 0; i < text.size(); ++i) {
    const auto digit = [&](size_t at) {
      return at < text.size() ? hex_digit(static_cast<unsigned char>(text[at])) : -1;
    };
    if (text[i] == '%' && digit(i + 1) >= 0 && digit(i + 2) >= 0) {
      decoded += static_cast<char>(digit(i + 1) * 16 + digit(i + 2));
      i += 2;
    } else {
      decoded += text[i];
    }
  }
  return decoded;
}

std::string pointer_part(std::string_view name) {
  std::string part = "/";
  for (const char c : name) {
    if (c == '~') {
      part += "~0";
    } else if (c == '/') {
      part += "~1";
    } else {
      part += c;
    }
  }
  return part;
}

SchemaReferences::SchemaReferences(const Schema& root)
    : root_(root),
      id_keyword_(is_of_draft(root, "draft-04") || is_of_draft(root, "draft-03") ? "id" : "$id") {
  pointers_.emplace("", "");
  look_at(root, "", "", 0);
}

bool SchemaReferences::is_draft_3() const {
  return is_of_draft(root_, "draft-03");
}

SchemaReferences::Siblings SchemaReferences::siblings() const {
  for (const char* draft : {"draft-03", "draft-04", "draft-06", "draft-07"}) {
    if (is_of_draft(root_, draft)) return Siblings::kIgnored;
  }
  return is_of_draft(root_, "2019-09") || is_of_draft(root_, "2020-12") ? Siblings::kRead : Siblings::kUnsaid;
}

std::string SchemaReferences::base_of(const Schema& schema, const std::string& base) const {
  if (!schema.is_object() || !schema.contains(id_keyword_) || !schema[id_keyword_].is_string()) return base;
  return resolved_uri(base, schema[id_keyword_].get_ref<const std::string&>());
}

void SchemaReferences::name_it(const Schema& schema, const std::string& pointer, const std::string& base) {
  pointers_.emplace(base, pointer);  // the first one, where a parent has the same
  for (const char* keyword : {"$anchor", "$dynamicAnchor", "$id", "id"}) {
    if (!schema.contains(keyword) || !schema[keyword].is_string()) continue;
    const std::string& name = schema[keyword].get_ref<const std::string&>();
    const size_t mark = keyword[1] == 'a' || keyword[1] == 'd' ? std::string::npos : name.find('#');
    const bool is_anchor =
        keyword[0] == '$' && (keyword[1] == 'a' || std::string_view(keyword) == "$dynamicAnchor");
    if (is_anchor) pointers_.emplace(base + "#" + name, pointer);
    // Up to draft 7 an anchor is said by $id. One that looks like a pointer is none.
    if (!is_anchor && mark != std::string::npos && mark + 1 < name.size() && name[mark + 1] != '/')
      pointers_.emplace(base + "#" + name.substr(mark + 1), pointer);
  }
}

/// Only where schemas stand: an enum may list what looks like one.
void SchemaReferences::look_at(const Schema& schema, const std::string& pointer, const std::string& base,
                               int depth) {
  if (!schema.is_object() || depth > kMostLooked) return;
  const std::string own = base_of(schema, base);
  name_it(schema, pointer, own);
  for (const auto& [keyword, value] : schema.get_ref<const Schema::object_t&>()) {
    const std::string at = pointer + pointer_part(keyword);
    if (is_one_of(kSchemas, keyword) && value.is_object()) look_at(value, at, own, depth + 1);
    if (is_one_of(kLists, keyword) && value.is_array()) {
      for (size_t i = 0; i < value.size(); ++i)
        look_at(value[i], at + "/" + std::to_string(i), own, depth + 1);
    }
    if (is_one_of(kMaps, keyword) && value.is_object()) {
      for (const auto& [name, member] : value.get_ref<const Schema::object_t&>())
        look_at(member, at + pointer_part(name), own, depth + 1);
    }
  }
}

std::optional<std::string> SchemaReferences::pointer_of(std::string_view reference, std::string_view base) {
  const std::string uri = resolved_uri(base, reference);
  const size_t mark = reference.find('#');
  const std::string fragment =
      mark == std::string_view::npos ? "" : percent_decoded(reference.substr(mark + 1));
  const bool is_anchor = !fragment.empty() && fragment[0] != '/';
  const auto known = pointers_.find(is_anchor ? uri + "#" + fragment : uri);
  if (known == pointers_.end()) return std::nullopt;
  return is_anchor ? known->second : known->second + fragment;
}

/// The next part of the pointer, which is cut off.
const Schema* SchemaReferences::step(const Schema& at, std::string_view& pointer) {
  const size_t end = std::min(pointer.find('/', 1), pointer.size());
  const std::string name = unescaped(pointer.substr(1, end - 1));
  pointer.remove_prefix(end);
  if (at.is_array()) {
    size_t index = 0;
    const auto read = std::from_chars(name.data(), name.data() + name.size(), index);
    const bool is_index =
        read.ec == std::errc() && read.ptr == name.data() + name.size() && (name == "0" || name[0] != '0');
    return is_index && index < at.size() ? &at[index] : nullptr;
  }
  return at.is_object() ? member(at, name) : nullptr;
}

const Schema* SchemaReferences::member(const Schema& object, std::string_view name) {
  auto& index = indices_[&object];
  if (index.empty()) {
    for (const auto& [key, value] : object.get_ref<const Schema::object_t&>()) index.emplace(key, &value);
  }
  const auto found = index.find(name);
  return found == index.end() ? nullptr : found->second;
}

const Schema* SchemaReferences::find(std::string_view pointer) {
  const Schema* at = &root_;
  while (at != nullptr && !pointer.empty()) at = step(*at, pointer);
  return at;
}

std::string SchemaReferences::base_at(std::string_view pointer) {
  std::string base;
  for (const Schema* at = &root_; at != nullptr; at = step(*at, pointer)) {
    if (pointer.empty()) return base;  // its own $id is read by whoever reads the schema
    const Schema* const id = at->is_object() ? member(*at, id_keyword_) : nullptr;
    if (id != nullptr && id->is_string()) base = resolved_uri(base, id->get_ref<const std::string&>());
  }
  return base;
}

}  // namespace soliton::constrain
