#include "runtime/text/constrain/schema_document.h"

#include "runtime/text/constrain/schema_limits.h"

namespace soliton::constrain {
namespace {

constexpr size_t kMostSchemaSteps = 2'000'000;  // of a document: half a second, and 120 MB of copies
constexpr size_t kCopySteps = 4;                // of a value
// An $id is left where it matters beside $ref, and the draft is not said.
constexpr std::array<std::string_view, 7> kUnsupported = {
    "$dynamicRef", "$recursiveRef", "$id", "propertyDependencies", "extends", "disallow", "divisibleBy"};
constexpr std::array<std::string_view, 3> kDependent = {"dependentRequired", "dependentSchemas",
                                                        "dependencies"};

/// Its errors name the document.
const Schema& checked(const Schema& root, const std::string& name) {
  check_schema_size(root, name);
  return root;
}

}  // namespace

SchemaDocument::SchemaDocument(const Schema& root, std::string name)
    : SchemaDocument(root, std::move(name), own_steps_) {}

SchemaDocument::SchemaDocument(const Schema& root, std::string name, size_t& num_steps)
    : root_(checked(root, name)),
      name_(std::move(name)),
      references_(root),
      patterns_([this](size_t steps) { spend(steps, ""); }),
      num_steps_(num_steps) {}

// ---- What schemas say

std::string SchemaDocument::located(const std::string& whole_path, const std::string& message) const {
  constexpr size_t kMostBytes = 300;
  std::string path = whole_path;  // without its middle if it is long
  if (path.size() > kMostBytes) {
    size_t begin = kMostBytes / 2;
    size_t end = path.size() - kMostBytes / 2;
    const auto is_inside = [&](size_t at) { return (path[at] & 0xc0) == 0x80; };  // of a character
    while (is_inside(begin)) --begin;
    while (end < path.size() && is_inside(end)) ++end;
    path.replace(begin, end - begin, "...");
  }
  return path.empty() ? fmt::format("{}: {}", name_, message)
                      : fmt::format("{}: {}: {}", name_, path, message);
}

Error SchemaDocument::unsupported(const std::string& path, const std::string& keyword,
                                  const std::string& why) const {
  return error(ExitCode::kMismatch, keyword.empty() ? path : member_path(path, keyword), "not supported{}{}",
               why.empty() ? "" : " ", why);
}

void SchemaDocument::check_keywords(const Schema& schema, const std::string& path) const {
  for (const std::string_view keyword : kUnsupported) {
    if (schema.contains(keyword)) throw unsupported(path, std::string(keyword));
  }
  for (const std::string_view keyword : kDependent) {  // else there are alternatives in their place
    if (schema.contains(keyword))
      throw error(ExitCode::kBadFile, member_path(path, keyword), "expected an object, got {}",
                  schema[std::string(keyword)].type_name());
  }
}

Types SchemaDocument::named_types(const Schema& schema, const std::string& path) const {
  const Schema& type = schema["type"];
  const std::string at = member_path(path, "type");
  const auto read = [&](const Schema& name) {
    if (!name.is_string()) throw error(ExitCode::kBadFile, at, "expected text, got {}", name.type_name());
    const Types types = type_named(name.get_ref<const std::string&>());
    if (types != 0) return types;
    throw error(ExitCode::kBadFile, at,
                "expected one of object, array, string, number, integer, boolean, null, got {}",
                in_quotes(name.get_ref<const std::string&>()));
  };
  if (!type.is_array()) return read(type);
  if (type.empty()) throw error(ExitCode::kBadFile, at, "expected a type, got an empty list");
  Types types = 0;
  for (const Schema& name : type) types |= read(name);
  return types;
}

bool SchemaDocument::is_nullable(const Schema& schema, const std::string& path) const {
  if (!schema.contains("nullable")) return false;
  if (schema["nullable"].is_boolean()) return schema["nullable"].get<bool>();
  throw error(ExitCode::kBadFile, member_path(path, "nullable"), "expected true or false, got another value");
}

std::pair<std::string, const Schema&> SchemaDocument::alternatives(const Schema& entry,
                                                                   const std::string& path) const {
  const auto first = entry.items().begin();
  std::string at = member_path(path, first.key());
  const Schema& list = first.value();
  if (!list.is_array() || list.empty())
    throw error(ExitCode::kBadFile, at, "expected a list of schemas, got another value");
  return {std::move(at), list};
}

std::pair<int, int> counts_of(const SchemaDocument& document, const Schema& schema, const std::string& path,
                              const char* min, const char* max, int most) {
  const auto count = [&](const char* keyword, double otherwise) {
    if (!schema.contains(keyword)) return otherwise;
    const Schema& value = schema[keyword];
    if (!value.is_number() || type_of(value) != kIntegerType || value.get<double>() < 0)
      throw document.error(ExitCode::kBadFile, member_path(path, keyword), "expected a count, got {}",
                           in_quotes(value.dump()));
    return value.get<double>();
  };
  const double least = count(min, 0);
  const double greatest = count(max, -1);
  if (least > most) {
    throw document.error(ExitCode::kOutOfMemory, member_path(path, min), "expected at most {}, got {}", most,
                         schema[min].dump());
  }
  if (greatest >= 0 && greatest < least)
    throw document.no_value(member_path(path, max), "expected at least {}, got {}", least, greatest);
  return {static_cast<int>(least), static_cast<int>(std::min<double>(greatest, most))};
}

// ---- References

/// Null, as a value, if it leads nowhere.
const Schema& SchemaDocument::at_pointer(const std::string& pointer) const {
  static const Schema kNowhere = nullptr;
  const auto known = normal_.find(pointer);
  if (known != normal_.end()) return known->second;
  const Schema* const found = references_.find(pointer);
  if (found == nullptr) return kNowhere;
  Schema normal = normal_schema(*found, references_.base_at(pointer), references_,
                                [&](size_t steps) { spend(kCopySteps * steps, ""); });
  return normal_.emplace(pointer, std::move(normal)).first->second;
}

const Schema& SchemaDocument::target(const Schema& reference, const std::string& path) const {
  const std::string at = member_path(path, "$ref");
  if (!reference.is_string())
    throw error(ExitCode::kBadFile, at, "expected text, got {}", reference.type_name());
  const std::string& written = reference.get_ref<const std::string&>();
  if (written.starts_with("?") && !written.starts_with("?#"))
    throw error(ExitCode::kMismatch, at, "expected a reference into this schema as #/$defs/NAME, got {}",
                in_quotes(std::string_view(written).substr(1)));
  const Schema& found = written.starts_with("#") ? at_pointer(written.substr(1)) : at_pointer("?");
  if (found.is_null())
    throw error(ExitCode::kBadFile, at, "expected a schema at {}, got nothing",
                in_quotes(std::string_view(written).substr(written.starts_with("?") ? 1 : 0)));
  return found;
}

bool SchemaDocument::is_in_patterns(const Schema& schema, const std::string& name,
                                    const std::string& path) const {
  if (!schema.contains("patternProperties") || !schema["patternProperties"].is_object()) return false;
  const std::string at = member_path(path, "patternProperties");
  bool is_in = false;
  for (const auto& [pattern, value] : schema["patternProperties"].get_ref<const Schema::object_t&>()) {
    const Fit fit = patterns_.fits(pattern, name, located(at, in_quotes(pattern)));
    if (fit == Fit::kMaybe) throw unsupported(path, "patternProperties", "where dialects differ");
    is_in = is_in || fit == Fit::kYes;
  }
  return is_in;
}

// ---- Costs

void SchemaDocument::spend(size_t steps, const std::string& path) const {
  num_steps_ += steps;
  if (num_steps_ <= kMostSchemaSteps) return;
  throw error(ExitCode::kOutOfMemory, path,
              "expected schemas that take at most {} steps to merge and compare, got more", kMostSchemaSteps);
}

Schema SchemaDocument::copied(const Schema& schema, const std::string& path) const {
  spend(kCopySteps * weight(schema), path);
  return schema;
}

}  // namespace soliton::constrain
