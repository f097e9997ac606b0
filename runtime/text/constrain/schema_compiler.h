// Schemas of one document made rules of a grammar.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "runtime/text/constrain/json_members.h"
#include "runtime/text/constrain/json_rules.h"
#include "runtime/text/constrain/schema_document.h"
#include "runtime/text/constrain/schema_strings.h"

namespace soliton::constrain {

class SchemaCompiler {
 public:
  /// All but the name must outlive it; `num_schemas` counts those looked at, `num_steps` is as SchemaDocument has it.
  SchemaCompiler(const Schema& root, std::string_view name, Grammar& grammar, JsonRules& json,
                 int& num_schemas, size_t& num_steps)
      : document_(root, std::string(name), num_steps),
        grammar_(grammar),
        json_(json),
        num_schemas_(num_schemas) {}

  /// The index of the root's rule. Throws what JsonSchemas::add() does.
  int run() { return rule_of(document_.root(), "", 0); }

 private:
  template <class... Args>
  Error bad(const std::string& path, fmt::format_string<Args...> format, Args&&... args) const {
    return document_.error(ExitCode::kBadFile, path, format, std::forward<Args>(args)...);
  }

  // Any schema: schema_compiler.cc. Each throws NoValue if there is nothing to write.
  int rule_of(const Schema& schema, const std::string& path, int depth);
  /// The same, or nothing if there is nothing to write.
  std::optional<int> rule_if_any(const Schema& schema, const std::string& path, int depth);
  int known_rule(const std::string& key, const Schema& schema, const std::string& name,
                 const std::string& path, int depth);
  Expression value_of(const Schema& schema, const std::string& path, int depth);
  Expression flat_value(Schema schema, const std::string& path, int depth);
  Expression reference(const Schema& reference, const std::string& path, int depth);
  Expression listed(const Schema& schema, const std::string& path) const;
  std::vector<const Schema*> listed_that_fit(const Schema& schema, const std::string& path) const;
  Expression typed(const Schema& schema, const std::string& path, int depth);
  Expression of_type(const std::string& type, const Schema& schema, const std::string& path, int depth);

  // Alternatives: schema_alternatives.cc.
  Expression any_of(const Schema& schema, const std::string& path, int depth);
  Expression one_of(const Schema& schema, const std::string& path, int depth);
  Expression none_of_nots(const Schema& schema, const std::string& path, int depth);
  void exclude(std::vector<Schema>& wholes, const Schema& alternatives, const std::string& path,
               const std::string& label);
  std::vector<Schema> without_alternatives(const Schema& flat, const std::string& path, int depth = 0) const;
  Schema whole(const Schema& rest, const Schema& alternative, const std::string& path) const;

  // Objects: schema_objects.cc.
  std::vector<std::string> names_of_list(const Schema& schema, const char* keyword,
                                         const std::string& path) const;
  std::vector<std::string> named(const Schema& schema, const std::string& path) const;
  bool may_be_named(const Schema& schema, const std::string& name, const std::string& path) const;
  Schema schema_of_name(const Schema& schema, const std::string& name, const std::string& path) const;
  std::vector<Member> named_members(const Schema& schema, const std::vector<std::string>& names,
                                    const std::string& path, int depth);
  std::optional<Expression> further_members(const Schema& schema, const std::vector<std::string>& names,
                                            const std::string& path, int depth);
  std::optional<Expression> member_of_patterns(const Schema& schema, const std::vector<std::string>& names,
                                               const std::vector<bool>& is_in, const std::string& path,
                                               int depth);
  Expression key_of(const Schema& schema, StringRules rules, const std::string& path);
  int additional_rule(const Schema& schema, const std::string& path, int depth);
  Expression object_of(const Schema& schema, const std::string& path, int depth);

  // Arrays: schema_arrays.cc.
  struct Items {
    std::vector<Schema> firsts;
    Schema others;  // false: none
    int min;
    int max;  // negative: no bound
  };
  Items items_of(const Schema& schema, const std::string& path) const;
  void place_contained(Items& items, const Schema& contained, const std::string& path, int depth);
  Expression values_array(std::vector<Expression> firsts, std::optional<Expression> item, int min, int max);
  Expression array_of(const Schema& schema, const std::string& path, int depth);

  // Arrays of different items: schema_unique.cc.
  std::vector<Schema> member_apart(const Schema& member, const std::string& path) const;
  std::vector<Schema> items_apart(const Schema& flat, const std::string& path) const;
  Expression unique_items(const Items& items, const std::string& path, int depth);
  Expression unique_values(const Items& items, const std::vector<const Schema*>& values,
                           const std::string& path);

  SchemaDocument document_;
  Grammar& grammar_;
  JsonRules& json_;
  std::map<std::string, int> known_rules_;  // of references, and of what is to be merged, by their text
  int& num_schemas_;
};

}  // namespace soliton::constrain
