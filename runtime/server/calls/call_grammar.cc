#include "runtime/server/calls/call_grammar.h"

#include <algorithm>
#include <set>

#include "runtime/text/constrain/json_members.h"
#include "runtime/text/constrain/json_schema.h"
#include "runtime/text/constrain/schema_facts.h"
#include "runtime/text/constrain/text_until.h"

namespace soliton {
namespace {

using namespace constrain;

constexpr size_t kMaxRulesOfCalls = 40'000;  // of all functions together; the automaton has limits of its own

Expression joined(Expression first, Expression second) {
  std::vector<Expression> parts;  // moved: a list in braces would copy what is in them
  parts.push_back(std::move(first));
  parts.push_back(std::move(second));
  return sequence(std::move(parts));
}

Expression any_space() {
  constexpr int kMostSpace = 8;
  return repeat(codes(code_set({{' ', ' '}, {'\n', '\n'}})), 0, kMostSpace);
}

/// The parameters as a schema of an object: without any it is an object of no members, as OpenAI's API has it.
Schema schema_of(const Tool& tool) {
  if (tool.parameters.is_null()) return {{"type", "object"}, {"properties", Schema::object()}};
  Schema schema = tool.parameters;
  const bool names_types = std::ranges::any_of(
      std::initializer_list<const char*>{"type", "$ref", "anyOf", "oneOf", "allOf", "enum", "const"},
      [&](const char* keyword) { return schema.contains(keyword); });
  if (schema.is_object() && !names_types) schema["type"] = "object";
  return schema;
}

class CallGrammar {
 public:
  explicit CallGrammar(const CallGrammarRequest& request)
      : request_(request),
        format_(request.format),
        grammar_{.name = "tools", .rules = {}, .max_rules = kMaxRulesOfCalls},
        schemas_(grammar_) {}

  Grammar run() {
    grammar_.root = grammar_.add("calls");
    std::vector<Expression> alternatives;
    std::set<std::string_view> names;
    for (size_t i = 0; i < request_.tools.size(); ++i) {
      const Tool& tool = request_.tools[i];
      if (!names.insert(tool.name).second) continue;
      Expression call = joined(name_of(tool), rule(arguments_rule(tool, fmt::format("tools[{}]", i))));
      alternatives.push_back(std::move(call));
    }
    const int call = grammar_.add("call");
    std::vector<Expression> parts;
    parts.push_back(loose(format_.call));
    parts.push_back(choice(std::move(alternatives)));
    parts.push_back(loose(format_.call_end));
    grammar_.rules[static_cast<size_t>(call)].expression = sequence(std::move(parts));

    std::vector<Expression> all;
    if (!format_.may_open.empty()) all.push_back(optional(loose(format_.may_open)));
    all.push_back(loose(format_.open));
    all.push_back(rule(call));
    if (request_.may_be_several && !format_.has_one_call)
      all.push_back(repeat(joined(loose(format_.separator), rule(call)), 0));
    all.push_back(loose(format_.close));
    grammar_.rules[static_cast<size_t>(grammar_.root)].expression = sequence(std::move(all));
    return std::move(grammar_);
  }

 private:
  /// A text of the format, whose white space may be missing.
  Expression loose(std::string_view written) const {
    const std::string encoded = request_.marks.encoded(written);
    std::string_view left = encoded;
    std::vector<Expression> parts;
    while (!left.empty()) {
      const bool is_space = kCallSpace.find(left[0]) != kCallSpace.npos;
      const size_t end = std::min(
          is_space ? left.find_first_not_of(kCallSpace) : left.find_first_of(kCallSpace), left.size());
      parts.push_back(is_space ? optional(text(left.substr(0, end))) : text(left.substr(0, end)));
      left.remove_prefix(end);
    }
    return sequence(std::move(parts));
  }

  /// And what stands between it and the arguments. Within JSON it is written as such.
  Expression name_of(const Tool& tool) const {
    const bool is_in_json = format_.call.ends_with('"');
    const std::string quoted = Schema(tool.name).dump();
    return joined(text(is_in_json ? quoted.substr(1, quoted.size() - 2) : tool.name),
                  loose(format_.arguments));
  }

  /// `place` is what errors call the tool.
  int arguments_rule(const Tool& tool, const std::string& place) {
    const std::string name = place + ".function.parameters";
    const Schema schema = schema_of(tool);
    if (!schema.is_object())
      throw bad_file(name, "expected a schema of an object, got {}", schema.type_name());
    try {
      return written_rule(schema, name);
    } catch (const Error& error) {
      if (tool.is_strict || error.code() == ExitCode::kBadFile) throw;
      return written_rule({{"type", "object"}}, name);
    }
  }

  int written_rule(const Schema& schema, const std::string& name) {
    if (format_.argument_style == ArgumentStyle::kJson) return schemas_.add(schema, name);
    return grammar_.add("arguments", listed_arguments(schema, name));
  }

  /// Properties one behind the other, in the order of the schema.
  Expression listed_arguments(const Schema& schema, const std::string& name) {
    static const Schema kNone = Schema::object();
    const Schema& properties = schema.contains("properties") ? schema["properties"] : kNone;
    if (!properties.is_object())
      throw bad_file(name, "properties: expected an object, got {}", properties.type_name());
    check_is_listed(schema, name);
    std::set<std::string> required;
    if (schema.contains("required") && schema["required"].is_array()) {
      for (const Schema& each : schema["required"]) {
        if (each.is_string()) required.insert(each.get<std::string>());
      }
    }
    const auto needs = [&](const std::string& key) { return required.contains(key); };
    // Behind one that is written, and where none is yet: only there a separator is missing.
    int behind = grammar_.add("arguments");
    int first = format_.argument_style == ArgumentStyle::kKeywords ? grammar_.add("arguments") : behind;
    const bool separates = first != behind;
    const auto& members = properties.get_ref<const Schema::object_t&>();
    for (auto member = members.rbegin(); member != members.rend(); ++member) {
      const int written = grammar_.add("argument", argument(member->first, member->second, schema, name));
      const auto chain = [&](Expression before, int skipped) {
        Expression taken = joined(joined(std::move(before), rule(written)), rule(behind));
        if (needs(member->first)) return taken;
        std::vector<Expression> alternatives;
        alternatives.push_back(std::move(taken));
        alternatives.push_back(rule(skipped));
        return choice(std::move(alternatives));
      };
      const int next_first = separates ? grammar_.add("arguments", chain({}, first)) : first;
      const int next_behind = grammar_.add("arguments", chain(separates ? loose(", ") : loose("\n"), behind));
      behind = next_behind;
      first = separates ? next_first : next_behind;
    }
    return rule(first);
  }

  /// Of schemas only an object's members can be listed.
  static void check_is_listed(const Schema& schema, const std::string& name) {
    const bool is_listed = !schema.contains("type") || schema["type"] == "object";
    const bool has_others = std::ranges::any_of(
        std::initializer_list<const char*>{"$ref", "anyOf", "oneOf", "allOf", "enum", "const"},
        [&](const char* keyword) { return schema.contains(keyword); });
    if (!is_listed || has_others)
      throw file_error(ExitCode::kMismatch, name, "expected an object of properties, got another schema");
  }

  Expression argument(const std::string& key, const Schema& value, const Schema& whole,
                      const std::string& name) {
    const std::string place = fmt::format("{}: properties.{}", name, in_quotes(key));
    if (format_.argument_style == ArgumentStyle::kKeywords)
      return joined(text(key + "="), python_value(value, whole, place));
    std::vector<Expression> parts;
    parts.push_back(loose("<arg_key>" + key + "</arg_key>\n<arg_value>"));
    const std::string end = request_.marks.encoded("</arg_value>");
    if (value.is_object() && value.contains("type") && value["type"] == "string" && !value.contains("enum")) {
      parts.push_back(rule(text_until(grammar_, end)));
    } else if (is_text_choice(value)) {
      std::vector<Expression> texts;
      for (const Schema& each : value["enum"]) texts.push_back(text(each.get_ref<const std::string&>()));
      parts.push_back(joined(choice(std::move(texts)), text(end)));
    } else {
      parts.push_back(joined(json_value(value, whole, place), text(end)));
    }
    return sequence(std::move(parts));
  }

  static bool is_text_choice(const Schema& value) {
    return value.is_object() && value.contains("enum") && value["enum"].is_array() &&
           !value["enum"].empty() &&
           std::ranges::all_of(value["enum"], [](const Schema& each) { return each.is_string(); });
  }

  /// What a property may be, whose references are to the schema that it stands in.
  Expression json_value(const Schema& value, const Schema& whole, const std::string& place) {
    if (!value.is_object()) return rule(schemas_.add(value, place));
    Schema alone = value;
    for (const char* definitions : {"$defs", "definitions"}) {
      if (whole.contains(definitions) && !alone.contains(definitions))
        alone[definitions] = whole[definitions];
    }
    return rule(schemas_.add(alone, place));
  }

  /// Literals that Python and JSON have in common, and Python's own words where they are all of a value.
  Expression python_value(const Schema& value, const Schema& whole, const std::string& place) {
    const bool has_type = value.is_object() && value.contains("type") && !value.contains("enum");
    if (has_type && value["type"] == "boolean") return choice({text("True"), text("False")});
    if (has_type && value["type"] == "null") return text("None");
    return json_value(value, whole, place);
  }

  const CallGrammarRequest& request_;
  const CallFormat& format_;
  Grammar grammar_;
  JsonSchemas schemas_;
};

}  // namespace

Grammar call_grammar(const CallGrammarRequest& request) {
  return CallGrammar(request).run();
}

Grammar either(Grammar first, Grammar second) {
  Grammar both{.name = first.name, .rules = {}, .max_rules = 2 * kMaxRulesOfCalls};
  both.root = both.add("either");
  const int one = both.include(std::move(first));
  const int other = both.include(std::move(second));
  both.rules[static_cast<size_t>(both.root)].expression = choice({rule(one), rule(other)});
  return both;
}

Grammar behind_header(Grammar grammar, const std::string& header) {
  ++grammar.max_rules;
  const int root = grammar.root;
  grammar.root = grammar.add("message", joined(text(header), rule(root)));
  return grammar;
}

Grammar behind_reasoning(Grammar grammar, const ReasoningMarks& marks) {
  grammar.max_rules = 3 * kMaxRulesOfCalls;
  const int root = grammar.root;
  Expression thoughts = joined(rule(text_until(grammar, marks.close)), any_space());
  if (!marks.has_begun) {
    Expression opened = joined(text(marks.open), std::move(thoughts));
    thoughts = optional(joined(any_space(), std::move(opened)));
  }
  grammar.root = grammar.add("answer", joined(std::move(thoughts), rule(root)));
  return grammar;
}

}  // namespace soliton
