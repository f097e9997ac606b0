#include "runtime/text/constrain/schema_exclusion.h"

#include <algorithm>
#include <iterator>

namespace soliton::constrain {
namespace {

bool is_object(const Schema& schema, const char* keyword) {
  return schema.contains(keyword) && schema[keyword].is_object();
}

/// Where no object is written that has members other than those that `properties` and `required` name. Alternatives may add
/// some.
bool is_closed(const Schema& schema) {
  if (schema.contains("anyOf") || schema.contains("oneOf")) return false;
  return schema.contains("additionalProperties") ? schema["additionalProperties"] == false
                                                 : schema.contains("properties");
}

/// Of ascending lists.
bool have_common(const std::vector<std::string>& a, const std::vector<std::string>& b) {
  for (auto x = a.begin(), y = b.begin(); x != a.end() && y != b.end();) {
    const int compared = x->compare(*y);
    if (compared == 0) return true;
    ++(compared < 0 ? x : y);
  }
  return false;
}

}  // namespace

Outline::Outline(const SchemaDocument& document, const Schema& schema, const std::string& path, int depth)
    : document_(document), path_(path), depth_(depth), schema_(&schema) {
  if (!SchemaDocument::is_flat(schema)) {
    made_ = std::make_unique<Schema>(document.flattened(schema, path));
    schema_ = made_.get();
  }
  if (!schema_->is_object()) {
    types_ = *schema_ == false ? 0 : kAllTypes;
    return;
  }
  types_ = types_of(*schema_);
  if (const auto values = listed_values(*schema_)) {
    listed_.emplace();
    for (const Schema* value : *values) listed_->push_back(canonical(*value));
    if (is_true(*schema_, "nullable")) listed_->push_back(canonical(nullptr));
    std::sort(listed_->begin(), listed_->end());
  }
  if (schema_->contains("required") && (*schema_)["required"].is_array()) {
    for (const Schema& name : (*schema_)["required"]) {
      if (name.is_string()) required_.push_back(name.get_ref<const std::string&>());
    }
    std::sort(required_.begin(), required_.end());
  }
  if (is_object(*schema_, "properties")) {
    for (const auto& [name, value] : (*schema_)["properties"].get_ref<const Schema::object_t&>())
      properties_.emplace_back(name, &value);
    std::sort(properties_.begin(), properties_.end());
  }
  is_closed_ = is_closed(*schema_);
}

bool Outline::excludes(const Outline& other) const {
  document_.spend(1, other.path_);
  const Types both = types_ & other.types_;
  if (both == 0) return true;
  if (listed_ && other.listed_) {
    document_.spend(listed_->size() + other.listed_->size(), other.path_);
    return !have_common(*listed_, *other.listed_);
  }
  if (both != kObjectType) return false;
  return differs_in_a_member(other) || (lacks_required(other) && other.lacks_required(*this));
}

/// Whether both have a member whose values exclude each other.
bool Outline::differs_in_a_member(const Outline& other) const {
  constexpr int kMostLooked = 8;  // into required members of required members
  if (depth_ >= kMostLooked) return false;
  document_.spend(required_.size() + other.required_.size(), path_);
  std::vector<std::string_view> names;
  std::set_intersection(required_.begin(), required_.end(), other.required_.begin(), other.required_.end(),
                        std::back_inserter(names));
  const auto schema_of = [](const Outline& outline, std::string_view name) -> const Schema* {
    const auto found =
        std::lower_bound(outline.properties_.begin(), outline.properties_.end(), name,
                         [](const auto& member, std::string_view key) { return member.first < key; });
    return found == outline.properties_.end() || found->first != name ? nullptr : found->second;
  };
  return std::any_of(names.begin(), names.end(), [&](std::string_view name) {
    const Schema* const own = schema_of(*this, name);
    const Schema* const others = schema_of(other, name);
    if (own == nullptr || others == nullptr) return false;
    document_.spend(weight(*own) + weight(*others), path_);
    return Outline(document_, *own, path_, depth_ + 1)
        .excludes(Outline(document_, *others, path_, depth_ + 1));
  });
}

/// Whether what is written has not all the members that the other one requires.
bool Outline::lacks_required(const Outline& other) const {
  if (!is_closed_) return false;
  document_.spend(other.required_.size(), path_);
  return std::any_of(other.required_.begin(), other.required_.end(), [&](std::string_view name) {
    const auto is_before = [](const auto& member, std::string_view key) { return member.first < key; };
    const auto found = std::lower_bound(properties_.begin(), properties_.end(), name, is_before);
    const bool is_property = found != properties_.end() && found->first == name;
    return !is_property && !std::binary_search(required_.begin(), required_.end(), name);
  });
}

}  // namespace soliton::constrain
