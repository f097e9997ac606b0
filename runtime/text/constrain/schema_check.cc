#include "runtime/text/constrain/schema_check.h"

#include <set>

#include "runtime/text/constrain/schema_numbers.h"
#include "runtime/text/constrain/schema_strings.h"

namespace soliton::constrain {
namespace {

Fit fit_if(bool condition) {
  return condition ? Fit::kYes : Fit::kNo;
}

class Checker {
 public:
  Checker(const SchemaDocument& document, const Schema& schema, const Schema& value, const std::string& path,
          int depth)
      : document_(document), schema_(schema), value_(value), path_(path), depth_(depth) {}

  Fit run() {
    document_.spend(4, path_);
    if (schema_.is_boolean()) return fit_if(schema_ == true);
    if (!schema_.is_object())
      throw document_.error(ExitCode::kBadFile, path_, "expected a schema, got {}", schema_.type_name());
    if (depth_ > kMaxNesting) return Fit::kMaybe;
    if (is_true(schema_, "nullable") && value_.is_null()) return Fit::kYes;
    Fit result = values();
    if (result != Fit::kNo) result = both(result, composed());
    if (result != Fit::kNo && value_.is_object()) result = both(result, object());
    if (result != Fit::kNo && value_.is_array()) result = both(result, array());
    if (result != Fit::kNo && value_.is_string()) result = both(result, string());
    if (result != Fit::kNo && value_.is_number()) result = both(result, number());
    const bool is_open = schema_.contains("$dynamicRef") || schema_.contains("$recursiveRef") ||
                         schema_.contains("$id") || schema_.contains("propertyDependencies") ||
                         (value_.is_object() && schema_.contains("unevaluatedProperties")) ||
                         (value_.is_array() && schema_.contains("unevaluatedItems"));
    return is_open ? both(result, Fit::kMaybe) : result;
  }

 private:
  Fit fit_of(const Schema& schema, const Schema& value) const {
    return fit(document_, schema, value, path_, depth_ + 1);
  }

  /// Type, enum and const.
  Fit values() const {
    if (schema_.contains("type") && (document_.named_types(schema_, path_) & type_of(value_)) == 0)
      return Fit::kNo;
    if (!schema_.contains("enum") && !schema_.contains("const")) return Fit::kYes;
    const std::string text = canonical(value_);
    const auto listed = listed_values(schema_);
    if (!listed) return Fit::kMaybe;
    document_.spend(listed->size() * 4, path_);
    return fit_if(std::any_of(listed->begin(), listed->end(),
                              [&](const Schema* other) { return canonical(*other) == text; }));
  }

  Fit composed() const {
    Fit result = Fit::kYes;
    if (schema_.contains("$ref")) result = fit_of(document_.target(schema_["$ref"], path_), value_);
    for (const Schema& part : list("allOf")) result = both(result, fit_of(part, value_));
    for (const Schema& part : list("~nots")) result = both(result, opposite(fit_of(part, value_)));
    for (const Schema& entry : list("~choices")) {
      Fit any = Fit::kNo;
      for (const Schema& part : document_.alternatives(entry, path_).second)
        any = std::max(any, fit_of(part, value_));
      result = both(result, any);
    }
    for (const Schema& entry : list("~ones")) result = both(result, one_of(entry));
    return result;
  }
  Fit one_of(const Schema& entry) const {
    int num_fit = 0;
    int num_open = 0;
    for (const Schema& part : document_.alternatives(entry, path_).second) {
      const Fit each = fit_of(part, value_);
      num_fit += each == Fit::kYes;
      num_open += each == Fit::kMaybe;
    }
    if (num_fit > 1 || num_fit + num_open == 0) return Fit::kNo;
    return num_open == 0 ? Fit::kYes : Fit::kMaybe;
  }

  Fit object() const {
    Fit result = count(value_.size(), "minProperties", "maxProperties");
    for (const Schema& name : list("required"))
      result = both(result, fit_if(name.is_string() && value_.contains(name.get_ref<const std::string&>())));
    for (const Schema& name : list("~absent"))
      result = both(result, fit_if(name.is_string() && !value_.contains(name.get_ref<const std::string&>())));
    for (const auto& [name, member] : value_.items()) {
      result = both(result, fit_member(name, member));
      for (const Schema& names : list("~names")) result = both(result, fit_of(names, name));
      if (result == Fit::kNo) return result;
    }
    return result;
  }
  Fit fit_member(const std::string& name, const Schema& member) const {
    Fit result = Fit::kYes;
    bool is_known = false;
    if (schema_.contains("properties") && schema_["properties"].contains(name)) {
      is_known = true;
      result = fit_of(schema_["properties"][name], member);
    }
    Fit in_patterns = Fit::kNo;
    if (schema_.contains("patternProperties") && schema_["patternProperties"].is_object()) {
      for (const auto& [pattern, schema] : schema_["patternProperties"].items()) {
        const Fit found = document_.patterns().fits(pattern, name, document_.name());
        in_patterns = std::max(in_patterns, found);
        if (found == Fit::kNo) continue;
        const Fit inside = fit_of(schema, member);
        result = both(result, found == Fit::kYes || inside == Fit::kYes ? inside : Fit::kMaybe);
      }
    }
    if (is_known || in_patterns == Fit::kYes || !schema_.contains("additionalProperties")) return result;
    const Fit further = fit_of(schema_["additionalProperties"], member);
    return both(result, in_patterns == Fit::kNo || further == Fit::kYes ? further : Fit::kMaybe);
  }

  Fit array() const {
    Fit result = count(value_.size(), "minItems", "maxItems");
    const Schema& firsts = list("prefixItems");
    for (size_t i = 0; i < value_.size() && result != Fit::kNo; ++i) {
      if (i < firsts.size()) {
        result = both(result, fit_of(firsts[i], value_[i]));
      } else if (schema_.contains("items")) {
        result = both(result, fit_of(schema_["items"], value_[i]));
      }
    }
    if (is_true(schema_, "uniqueItems")) {
      std::set<std::string> texts;
      for (const Schema& item : value_) {
        if (!texts.insert(canonical(item)).second) return Fit::kNo;
      }
    }
    for (const Schema& contained : list("~contains")) result = both(result, contains(contained));
    return result;
  }
  Fit contains(const Schema& contained) const {
    size_t num_fit = 0;
    size_t num_open = 0;
    for (const Schema& item : value_) {
      const Fit each = fit_of(contained["schema"], item);
      num_fit += each == Fit::kYes;
      num_open += each == Fit::kMaybe;
    }
    const auto [min, max] = counts_of(document_, contained, path_, "minContains", "maxContains");
    const auto is_within = [&, low = min, high = max](size_t number) {
      return number >= static_cast<size_t>(low) && (high < 0 || number <= static_cast<size_t>(high));
    };
    if (num_open == 0) return fit_if(is_within(num_fit));
    return Fit::kMaybe;
  }

  Fit string() const {
    const std::string& text = value_.get_ref<const std::string&>();
    Fit result = Fit::kYes;
    if (schema_.contains("minLength") || schema_.contains("maxLength"))
      result = count(codes_of(text).size(), "minLength", "maxLength");
    for (const Schema& pattern : list("~patterns"))
      result = both(
          result, document_.patterns().fits(pattern_text(document_, pattern, path_), text, document_.name()));
    for (const Schema& pattern : list("~unmatched"))
      result = both(result, opposite(document_.patterns().fits(pattern_text(document_, pattern, path_), text,
                                                               document_.name())));
    for (const Schema& other : list("~others")) result = both(result, fit_if(other != value_));
    for (const Schema& format : list("~formats"))
      result = both(result, is_of_format(document_, format, text) ? Fit::kYes : Fit::kMaybe);
    return result;
  }

  Fit number() const {
    Fit result = Fit::kYes;
    const auto bound = [&](const char* keyword, auto holds) {
      if (schema_.contains(keyword) && schema_[keyword].is_number())
        result = both(result, fit_if(holds(value_, schema_[keyword])));
    };
    bound("minimum", std::greater_equal<const Schema>());
    bound("maximum", std::less_equal<const Schema>());
    bound("exclusiveMinimum", std::greater<const Schema>());
    bound("exclusiveMaximum", std::less<const Schema>());
    if (schema_.contains("~fractions") && type_of(value_) == kIntegerType) return Fit::kNo;
    for (const Schema& of : list("~multiples")) {
      const std::optional<bool> is = is_multiple(value_, of);
      result = both(result, is ? fit_if(*is) : Fit::kMaybe);
    }
    return result;
  }

  Fit count(size_t number, const char* min, const char* max) const {
    const auto limit = [&](const char* keyword, double otherwise) {
      return schema_.contains(keyword) && schema_[keyword].is_number() ? schema_[keyword].get<double>()
                                                                       : otherwise;
    };
    const auto size = static_cast<double>(number);
    return fit_if(size >= limit(min, 0) && size <= limit(max, size));
  }
  const Schema& list(const char* keyword) const {
    static const Schema kNone = Schema::array();
    return schema_.contains(keyword) && schema_[keyword].is_array() ? schema_[keyword] : kNone;
  }

  const SchemaDocument& document_;
  const Schema& schema_;
  const Schema& value_;
  const std::string& path_;
  int depth_;
};

}  // namespace

Fit fit(const SchemaDocument& document, const Schema& schema, const Schema& value, const std::string& path,
        int depth) {
  return Checker(document, schema, value, path, depth).run();
}

}  // namespace soliton::constrain
