#include "runtime/text/constrain/schema_exclusion.h"

#include <algorithm>
#include <iterator>
#include <set>

namespace soliton::constrain {
namespace {

constexpr int kMostLooked = 8;

bool is_object(const Schema& schema, const char* keyword) {
  return schema.contains(keyword) && schema[keyword].is_object();
}

/// Where no object is written that has members other than those that `properties` and `required` name. Alternatives may add
/// some.
bool is_closed(const Schema& schema) {
  for (const char* keyword : {"~choices", "~ones", "~nots", "patternProperties", "unevaluatedProperties"}) {
    if (schema.contains(keyword)) return false;
  }
  return schema.contains("additionalProperties") ? schema["additionalProperties"] == false
                                                 : schema.contains("~closes");
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
    made_ = std::make_unique<Schema>(false);
    schema_ = made_.get();
    try {
      *made_ = document.flattened(schema, path);
    } catch (const NoValue&) {
    }
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
  const auto read_names = [&](const char* keyword, std::vector<std::string_view>& names) {
    if (!schema_->contains(keyword) || !(*schema_)[keyword].is_array()) return;
    for (const Schema& name : (*schema_)[keyword]) {
      if (name.is_string()) names.push_back(name.get_ref<const std::string&>());
    }
    std::sort(names.begin(), names.end());
  };
  read_names("required", required_);
  read_names("~absent", absent_);
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
  const auto have_common_name = [](const auto& a, const auto& b) {
    return std::any_of(a.begin(), a.end(),
                       [&](std::string_view name) { return std::binary_search(b.begin(), b.end(), name); });
  };
  if (have_common_name(absent_, other.required_) || have_common_name(other.absent_, required_)) return true;
  return differs_in_a_member(other) || (lacks_required(other) && other.lacks_required(*this));
}

/// Null if nothing is said of it.
const Schema* Outline::property(std::string_view name) const {
  const auto found =
      std::lower_bound(properties_.begin(), properties_.end(), name,
                       [](const auto& member, std::string_view key) { return member.first < key; });
  return found == properties_.end() || found->first != name ? nullptr : found->second;
}

bool Outline::have_no_value_twice(const std::vector<const Outline*>& outlines) {
  std::set<std::string_view> values;
  for (const Outline* const outline : outlines) {
    if (!outline->listed_) return false;
    outline->document_.spend(outline->listed_->size(), outline->path_);
    for (const std::string& value : *outline->listed_) {
      if (!values.insert(value).second) return false;
    }
  }
  return true;
}

bool Outline::are_listed_apart(const std::vector<Outline>& outlines) {
  constexpr int kMostNames = 4;
  std::vector<const Outline*> all;
  for (const Outline& outline : outlines) all.push_back(&outline);
  if (all.empty() || have_no_value_twice(all)) return true;
  if (std::any_of(all.begin(), all.end(), [](const Outline* each) { return each->types_ != kObjectType; }))
    return false;
  int num_looked = 0;
  for (const std::string_view name : all[0]->required_) {
    if (std::any_of(all.begin(), all.end(), [&](const Outline* each) {
          return each->property(name) == nullptr ||
                 !std::binary_search(each->required_.begin(), each->required_.end(), name);
        }))
      continue;
    if (++num_looked > kMostNames) return false;
    std::vector<Outline> members;
    for (const Outline* const each : all)
      members.emplace_back(each->document_, *each->property(name), each->path_, each->depth_ + 1);
    std::vector<const Outline*> pointers;
    for (const Outline& member : members) pointers.push_back(&member);
    if (have_no_value_twice(pointers)) return true;
  }
  return false;
}

/// Whether both have a member whose values exclude each other.
bool Outline::differs_in_a_member(const Outline& other) const {
  if (depth_ >= kMostLooked) return false;  // into required members of required members
  document_.spend(required_.size() + other.required_.size(), path_);
  std::vector<std::string_view> names;
  std::set_intersection(required_.begin(), required_.end(), other.required_.begin(), other.required_.end(),
                        std::back_inserter(names));
  return std::any_of(names.begin(), names.end(),
                     [&](std::string_view name) { return differs_in(name, other); });
}

/// Whether both say of it what excludes each other, and may have it.
bool Outline::differs_in(std::string_view name, const Outline& other) const {
  const Schema* const own = property(name);
  const Schema* const others = other.property(name);
  if (own == nullptr || others == nullptr || *own == false || *others == false) return false;
  document_.spend(weight(*own) + weight(*others), path_);
  return Outline(document_, *own, path_, depth_ + 1).excludes(Outline(document_, *others, path_, depth_ + 1));
}

std::optional<std::string> Outline::telling_member(const Outline& other) const {
  if ((types_ & other.types_) != kObjectType) return {};
  int num_looked = 0;
  for (const auto& [name, schema] : properties_) {
    if (other.property(name) == nullptr) continue;
    if (++num_looked > kMostLooked) break;
    if (differs_in(name, other)) return std::string(name);
  }
  return {};
}

/// Whether what is written has not all the members that the other one requires.
bool Outline::lacks_required(const Outline& other) const {
  if (!is_closed_) return false;
  document_.spend(other.required_.size(), path_);
  return std::any_of(other.required_.begin(), other.required_.end(), [&](std::string_view name) {
    const bool is_property = property(name) != nullptr;
    return !is_property && !std::binary_search(required_.begin(), required_.end(), name);
  });
}

}  // namespace soliton::constrain
