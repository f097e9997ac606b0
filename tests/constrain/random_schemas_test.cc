// Random schemas, of which random answers are written token by token; Python's jsonschema says whether they are valid.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdlib>
#include <fstream>

#include "constrain_testing.h"
#include "error_of.h"
#include "long_tests.h"
#include "temporary_folder.h"

namespace soliton::constrain {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kNumSchemas = 100;
constexpr int kAnswersEach = 3;

class SchemaWriter {
 public:
  explicit SchemaWriter(uint32_t seed) : random_(seed) {}

  Json schema() {
    Json root = value(0);
    if (below(4) == 0) {  // refers to itself
      root = {{"$ref", "#/$defs/node"}};
      root["$defs"]["node"] = {
          {"type", "object"},
          {"properties",
           {{"next", {{"anyOf", {{{"type", "null"}}, {{"$ref", "#/$defs/node"}}}}}}, {"v", value(2)}}},
          {"required", {"next"}}};
    }
    return root;
  }

 private:
  int below(int count) { return static_cast<int>(random_() % static_cast<uint32_t>(count)); }

  Json value(int depth) {
    const int kind = below(depth < 3 ? 13 : 8);
    switch (kind) {
      case 0:
        return integer();
      case 1:
        return number();
      case 2:
        return string();
      case 3:
        return {{"enum", {"red", "gr\"een", 7, nullptr, "ü"}}};
      case 4:
        return {{"type", {"boolean", "null"}}};
      case 5:
        return {{"const", {{"k", {1, 2}}}}};
      case 6:
        return formatted();
      case 7:
        return {{"type", "string"}, {"description", "any"}};
      case 8:
        return array(depth);
      case 9:
        return alternatives(depth);
      case 10:
        return {
            {"allOf",
             {object(depth), {{"type", "object"}, {"required", {"a"}}, {"properties", {{"a", integer()}}}}}}};
      default:
        return object(depth);
    }
  }

  Json integer() {
    Json schema = {{"type", "integer"}};
    if (below(2) == 0) schema["minimum"] = below(2000) - 1000;
    if (below(2) == 0) schema["exclusiveMaximum"] = schema.value("minimum", 0) + 1 + below(500);
    return schema;
  }

  Json number() {
    Json schema = {{"type", "number"}};
    if (below(2) == 0) schema[below(2) == 0 ? "minimum" : "exclusiveMinimum"] = below(20) - 10;
    if (below(2) == 0) schema[below(2) == 0 ? "maximum" : "exclusiveMaximum"] = 10 + below(500);
    return schema;
  }

  Json string() {
    Json schema = {{"type", "string"}};
    if (below(2) == 0) schema["minLength"] = below(4);
    if (below(2) == 0) schema["maxLength"] = 4 + below(20);
    return schema;
  }

  Json formatted() {
    const char* const patterns[] = {"^[A-Z]{2}-\\d{3,5}$", "x[^0-9\"]+y", "^(foo|ba[rz])(, \\w+)*$",
                                    "\\\\|\\s$"};
    const char* const formats[] = {"date", "time", "date-time", "uuid"};
    if (below(2) == 0) return {{"type", "string"}, {"pattern", patterns[below(4)]}};
    return {{"type", "string"}, {"format", formats[below(4)]}};
  }

  Json array(int depth) {
    Json schema = {{"type", "array"}};
    if (below(3) == 0) schema["prefixItems"] = {value(depth + 1), value(depth + 1)};
    if (below(3) != 0) schema["items"] = value(depth + 1);
    if (below(2) == 0) schema["minItems"] = below(4);
    if (below(2) == 0) schema["maxItems"] = 3 + below(3);
    return schema;
  }

  Json object(int depth) {
    const std::vector<std::string> names = {"a", "ab", "b c", "q\"", "é", "name"};
    Json schema = {{"type", "object"}, {"properties", Json::object()}, {"required", Json::array()}};
    for (const std::string& name : names) {
      if (below(2) == 0) continue;
      schema["properties"][name] = name == "a" ? integer() : value(depth + 1);
      if (below(2) == 0) schema["required"].push_back(name);
    }
    schema["properties"].erase(schema["properties"].contains("a") && depth > 1 ? "a" : "none");
    if (below(3) == 0) schema["additionalProperties"] = below(2) == 0 ? Json(false) : integer();
    if (schema.value("additionalProperties", Json()) == false || schema.contains("additionalProperties"))
      schema["properties"]["a"] = Json{{"type", "integer"}};
    if (schema["required"].empty()) schema.erase("required");
    return schema;
  }

  Json alternatives(int depth) {
    if (below(2) == 0) return {{"anyOf", {value(depth + 1), value(depth + 1)}}};
    return {{"oneOf",
             {object(depth + 1), string(), integer(), {{"type", "array"}, {"items", value(depth + 1)}}}}};
  }

  std::mt19937 random_;
};

/// An answer by random tokens that the mask allows; once it is long, of those that shorten it: which close what is open.
std::string answer(const std::shared_ptr<TokenGrammar>& grammar, std::mt19937& random) {
  constexpr size_t kLong = 100;  // bytes
  const std::vector<int> closing = {*tiny().tokenizer.token_id("\""), *tiny().tokenizer.token_id("]"),
                                    *tiny().tokenizer.token_id("}")};
  TokenConstraint constraint(grammar, tiny().end_tokens);
  std::string text;
  for (int i = 0; i < 4000; ++i) {
    if (text.size() > kLong && constraint.may_end()) return text;
    std::vector<int> tokens = tokens_of(constraint.allowed());
    if (tokens.empty()) return text + "<dead end>";
    int token = tokens[random() % tokens.size()];
    for (const int other : closing) {
      if (text.size() > kLong && random() % 4 != 0 && std::binary_search(tokens.begin(), tokens.end(), other))
        token = other;
    }
    if (constraint.may_end() && random() % 8 == 0) token = tiny().end_tokens[0];
    if (!constraint.accept(token)) return text + "<not accepted>";
    if (token == tiny().end_tokens[0]) return text;
    text += tiny().vocabulary->piece(token);
  }
  return text + "<no end>";
}

/// Answers of schemas, for Python to look at.
class Cases {
 public:
  void add(const Json& schema) {
    ++num_schemas_;
    std::shared_ptr<TokenGrammar> grammar;
    try {
      grammar = ready(json_schema_grammar(schema, "s"), tiny().vocabulary);
    } catch (const Error& error) {  // bounds that exclude each other, and the like
      ++num_refused_;
      fmt::print("{}\n  {}\n", error.what(), schema.dump());
      return;
    }
    for (int k = 0; k < kAnswersEach; ++k) {
      const std::string text = answer(grammar, random_);
      num_unended_ += text.ends_with("<no end>");
      if (text.ends_with("<no end>")) continue;
      stream_ << Json{{"schema", schema}, {"answer", text}}.dump() << '\n';
    }
  }

  void check(int most_refused) {
    stream_.close();
    EXPECT_LE(num_refused_, most_refused);
    EXPECT_LE(num_unended_, num_schemas_ / 10);
    const char* const chosen = std::getenv("SOLITON_PYTHON");
    const std::string command = fmt::format("{} -B -W ignore {}/tests/constrain/check_answers.py < {}",
                                            chosen ? chosen : "python3", SOLITON_SOURCE_DIR, path_.string());
    const int status = std::system(command.c_str());
    if (WEXITSTATUS(status) == 77 || WEXITSTATUS(status) == 127) GTEST_SKIP() << "no python3 with jsonschema";
    EXPECT_EQ(status, 0) << "see above which";
  }

 private:
  const TemporaryFolder folder_;
  const std::filesystem::path path_ = folder_.path() / "cases.jsonl";
  std::ofstream stream_{path_};
  std::mt19937 random_{20};
  int num_schemas_ = 0;
  int num_refused_ = 0;
  int num_unended_ = 0;
};

TEST(RandomSchemas, EveryAnswerIsValid) {
  Cases cases;
  for (uint32_t i = 0; i < kNumSchemas; ++i) cases.add(SchemaWriter(i).schema());
  cases.check(kNumSchemas / 10);
}

/// Schemas that hold together, each of which speaks of the same positions and names in its own way.
class MergeWriter {
 public:
  explicit MergeWriter(uint32_t seed) : random_(seed), is_array_(below(2) == 0) {}

  Json schema() {
    Json base = layer();
    base["type"] = type();
    switch (below(6)) {
      case 0:
        base["allOf"] = {layer(), layer()};
        return base;
      case 1:
        return with({{"allOf", {base, layer()}}}, layer());
      case 2:
        base["anyOf"] = {layer(), layer()};
        return base;
      case 3: {
        Json alternative = layer();
        alternative["type"] = type();
        return with({{"oneOf", {alternative, {{"type", "string"}}}}}, layer());
      }
      case 4:
        if (below(3) == 0) base["anyOf"] = {layer(), layer()};
        return with({{"$ref", "#/$defs/base"}, {"$defs", {{"base", base}}}}, layer());
      default:
        return excluding();
    }
  }

 private:
  int below(int count) { return static_cast<int>(random_() % static_cast<uint32_t>(count)); }
  const char* type() const { return is_array_ ? "array" : "object"; }
  static Json with(Json schema, const Json& further) {
    schema.update(further);
    return schema;
  }

  /// Any two of them have a value in common.
  Json leaf(int depth = 0) {
    if (below(12) == 0) return true;
    Json schema = {{"type", "integer"}};
    if (depth < 2 && below(4) == 0) schema = with(layer(depth + 1), {{"type", {"integer", type()}}});
    if (below(2) == 0) schema["minimum"] = below(6);
    if (below(2) == 0) schema["maximum"] = 6 + below(3);
    if (below(4) == 0) schema["nullable"] = true;
    if (below(6) == 0) schema["type"] = {"integer", "null"};
    if (depth < 2 && below(16) == 0) return {{"anyOf", {schema, leaf(depth + 1)}}};
    return schema;
  }

  Json layer(int depth = 0) {
    Json schema = Json::object();
    if (is_array_) {
      for (int i = below(4); i > 0; --i) schema["prefixItems"].push_back(leaf(depth));
      if (below(2) == 0) schema["items"] = below(8) == 0 ? Json(false) : leaf(depth);
      if (below(6) == 0) schema["minItems"] = below(3);
      return schema;
    }
    for (const char* name : {"a", "b", "c"}) {
      if (below(2) == 0) schema["properties"][name] = leaf(depth);
      if (below(6) == 0) schema["required"].push_back(name);
    }
    if (below(2) == 0) schema["additionalProperties"] = below(8) == 0 ? Json(false) : leaf(depth);
    return schema;
  }

  /// Alternatives of oneOf by what they require, which what stands beside them may allow to others too.
  Json excluding() {
    is_array_ = false;
    Json schema = {{"type", "object"},
                   {"oneOf",
                    {{{"properties", {{"a", leaf()}}}, {"required", {"a"}}},
                     {{"properties", {{"b", leaf()}}}, {"required", {"b"}}}}}};
    if (below(2) == 0) schema["properties"] = {{"c", leaf()}};
    if (below(4) == 0) schema["properties"]["b"] = leaf();
    if (below(4) == 0) schema["oneOf"][1]["nullable"] = true;
    return schema;
  }

  std::mt19937 random_;
  bool is_array_;
};

TEST(RandomSchemas, EveryAnswerFitsAllThatHoldTogether) {
  const int num_schemas = long_tests() ? 3000 : 150;
  Cases cases;
  for (int i = 0; i < num_schemas; ++i) cases.add(MergeWriter(static_cast<uint32_t>(i)).schema());
  cases.check(num_schemas / 5);
}

/// Keywords that forbid, count and depend on each other, over a few names and values, so that they meet.
class KeywordWriter {
 public:
  explicit KeywordWriter(uint32_t seed) : random_(seed) {}

  Json schema(int depth = 0) {
    switch (below(depth < 3 ? 9 : 4)) {
      case 0:
        return number();
      case 1:
        return string();
      case 2:
        return {{"enum", {1, 2.5, "a", "ab", nullptr, true, {1, 2}, {{"a", 1}}}}};
      case 3:
        return {{"type", {"integer", "boolean", "null"}}};
      case 4:
        return array(depth);
      case 5:
        return combined(depth);
      default:
        return object(depth);
    }
  }

 private:
  int below(int count) { return static_cast<int>(random_() % static_cast<uint32_t>(count)); }

  Json number() {
    Json schema = {{"type", below(2) == 0 ? "number" : "integer"}};
    if (below(2) == 0) schema[below(2) == 0 ? "minimum" : "exclusiveMinimum"] = below(40) / 4.0 - 5;
    if (below(2) == 0) schema[below(2) == 0 ? "maximum" : "exclusiveMaximum"] = below(40) / 8.0 + 4;
    if (below(3) == 0) schema["multipleOf"] = below(2) == 0 ? 0.5 : 1 + below(5);
    return schema;
  }

  Json string() {
    const char* const patterns[] = {"^a",   "b$",          "^[ab]*$", "^(?!ab)",
                                    "[^a]", "^(.(?!b))*$", "^..$",    "(?<!a)b\\b"};
    Json schema = {{"type", "string"}};
    if (below(2) == 0) schema["pattern"] = patterns[below(8)];
    if (below(3) == 0) schema["not"] = {{"pattern", patterns[below(6)]}};
    if (below(3) == 0) schema["minLength"] = below(3);
    if (below(3) == 0) schema["maxLength"] = 2 + below(3);
    return schema;
  }

  Json array(int depth) {
    Json schema = {{"type", "array"}};
    if (below(2) == 0) schema["items"] = schema_of_items(depth);
    if (below(3) == 0) schema["prefixItems"] = {this->schema(depth + 1)};
    if (below(3) == 0) schema["contains"] = this->schema(depth + 1);
    if (below(4) == 0) schema["maxContains"] = 1 + below(2);
    if (below(3) == 0) schema["minItems"] = below(3);
    if (below(3) == 0) schema["maxItems"] = 2 + below(2);
    if (below(4) == 0) schema["unevaluatedItems"] = false;
    if (below(6) == 0) schema["uniqueItems"] = true;
    if (schema.contains("items") && schema["items"].contains("enum") && !schema.contains("contains")) {
      schema.erase("prefixItems");
      schema["uniqueItems"] = true;
    }
    return schema;
  }
  Json schema_of_items(int depth) { return below(3) == 0 ? Json{{"enum", {1, 2, "x"}}} : schema(depth + 1); }

  Json object(int depth) {
    const char* const names[] = {"a", "b", "ab", "c"};
    Json schema = {{"type", "object"}};
    for (const char* name : names) {
      if (below(2) == 0) schema["properties"][name] = this->schema(depth + 1);
      if (below(5) == 0) schema["required"].push_back(name);
    }
    if (below(3) == 0) schema["patternProperties"][below(2) == 0 ? "^a" : "b"] = this->schema(depth + 1);
    if (below(3) == 0) schema["additionalProperties"] = below(2) == 0 ? Json(false) : this->schema(depth + 1);
    if (below(5) == 0) schema["propertyNames"] = {{"maxLength", 1 + below(2)}};
    if (below(8) == 0)
      schema["propertyNames"] = {{"anyOf", {{{"pattern", "^a"}}, {{"not", {{"pattern", "b"}}}}}}};
    if (below(4) == 0) schema["minProperties"] = below(3);
    if (below(4) == 0) schema["maxProperties"] = 2 + below(2);
    if (below(4) == 0) schema["dependentRequired"] = {{"a", {"b"}}};
    if (below(5) == 0) schema["dependentSchemas"] = {{"b", piece(depth)}};
    if (below(5) == 0)
      schema["unevaluatedProperties"] = below(2) == 0 ? Json(false) : this->schema(depth + 1);
    return schema;
  }

  /// Of an object, without its type.
  Json piece(int depth) {
    Json schema = object(depth + 1);
    if (below(2) == 0) schema.erase("type");
    return schema;
  }

  Json combined(int depth) {
    Json schema = below(2) == 0 ? object(depth) : Json::object();
    switch (below(5)) {
      case 0:
        schema["not"] = below(2) == 0 ? piece(depth) : this->schema(depth + 1);
        return schema;
      case 1:
        schema["oneOf"] = {piece(depth), piece(depth)};
        return schema;
      case 2:
        schema["oneOf"] = {this->schema(depth + 1), this->schema(depth + 1), this->schema(depth + 1)};
        return schema;
      case 3:
        schema["if"] = piece(depth);
        if (below(3) != 0) schema["then"] = piece(depth);
        if (below(3) != 0) schema["else"] = piece(depth);
        return schema;
      default:
        schema["anyOf"] = {piece(depth), piece(depth)};
        schema["allOf"] = {piece(depth)};
        return schema;
    }
  }

  std::mt19937 random_;
};

TEST(RandomSchemas, EveryAnswerFitsAllKeywords) {
  const int num_schemas = long_tests() ? 5000 : 200;
  Cases cases;
  for (int i = 0; i < num_schemas; ++i) cases.add(KeywordWriter(static_cast<uint32_t>(i)).schema());
  cases.check(num_schemas / 3);
}

}  // namespace
}  // namespace soliton::constrain
