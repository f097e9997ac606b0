// JSON schemas, keyword by keyword: what may be written, and what is refused by name.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "schema_testing.h"

namespace soliton::constrain {
namespace {

using testing::HasSubstr;

TEST(JsonGrammar, IsOfObjects) {
  const Grammar grammar = json_object_grammar();
  for (const char* text :
       {"{}", "{ }", "{\"a\":1}", "{\n  \"a\": [1, 2.5e-3, \"\\u00e9\\n\"],\n  \"b\": {}\n}"})
    EXPECT_TRUE(takes(grammar, text)) << text;
  for (const char* text : {"", "[]", "{\"a\"}", "{\"a\":01}", "{\"a\":1,}", "{\"a\":\"\n\"}", " {}", "{\n\n}",
                           "{\"a\" :1}", "{\"a\":1} ", "{\"a\":\"\\ud800\"}", "{\"a\":1e999}"})
    EXPECT_FALSE(takes(grammar, text)) << text;
}

TEST(JsonSchema, Types) {
  expect_takes(R"({"type": "string"})", {"\"\"", "\"a\\\"ü😀\""}, {"1", "\"", "\"\\x\""});
  expect_takes(R"({"type": "boolean"})", {"true", "false"}, {"True", "1"});
  expect_takes(R"({"type": ["null", "integer"]})", {"null", "-12", "0"}, {"1.5", "-0", "00"});
  expect_takes(R"({"type": "number"})", {"0", "-1.50", "1e10", "3.0E-2"}, {"1.", ".5", "+1", "1e100"});
  expect_takes(R"({"type": "array"})", {"[]", "[1, {\"a\": []}]"}, {"[1,]", "{}"});
  expect_takes("{}", {"1", "{}", "[null]"}, {"", "nul"});
  expect_takes(R"({"type": "string", "nullable": true})", {"null", "\"\""}, {"1"});
}

TEST(JsonSchema, MembersComeInOrder) {
  const char* const schema = R"({"type": "object", "properties":
      {"a": {"type": "integer"}, "b": {"type": "boolean"}, "c": {"type": "null"}}, "required": ["b"]})";
  expect_takes(schema, {R"({"b":true})", R"({"a": 1, "b": false, "c": null})", R"({"b":true,"c":null})"},
               {"{}", R"({"a":1})", R"({"b":true,"a":1})", R"({"b":true,"d":1})", R"({"b":true,"b":true})",
                R"({"b":1})", R"({"a":1 "b":true})", R"({,"b":true})"});
  const char* const optional_ones = R"({"properties": {"a": true, "b": true}})";
  expect_takes(optional_ones, {"{}", R"({"a":1})", R"({"b":1})", R"({"a":1,"b":[]})"},
               {R"({"b":1,"a":1})", R"({"c":1})", R"({"a":1,})"});
}

TEST(JsonSchema, FurtherMembersHaveOtherNames) {
  const char* const schema =
      R"({"type": "object", "properties": {"ab": {"type": "null"}, "ü": {"type": "null"}},
      "required": ["z"], "additionalProperties": {"type": "integer"}})";
  expect_takes(schema, {R"({"z":1})", R"({"ab":null,"z":1,"a":2,"abc":3,"":4,"b":5,"ä":6,"üü":7})"},
               {R"({"z":1,"ab":2})", R"({"z":1,"ü":2})", R"({"z":1,"z":2})", R"({"z":1,"\u0061b":2})",
                R"({"a":2})", R"({"z":null})"});
  expect_takes(R"({"type": "object", "additionalProperties": {"type": "null"}})",
               {"{}", R"({"a":null,"b":null})"}, {R"({"a":1})"});
  expect_takes(R"({"type": "object", "additionalProperties": false})", {"{}"}, {R"({"a":1})"});
}

TEST(JsonSchema, Arrays) {
  expect_takes(R"({"items": {"type": "integer"}, "minItems": 1, "maxItems": 3})", {"[1]", "[1, 2,3]"},
               {"[]", "[1,2,3,4]", "[null]"});
  const char* const tuple = R"({"type": "array", "prefixItems": [{"type": "null"}, {"type": "boolean"}],
      "items": {"type": "integer"}, "minItems": 1, "maxItems": 4})";
  expect_takes(tuple, {"[null]", "[null,true]", "[null,true,1,2]"},
               {"[]", "[true]", "[null,1]", "[null,true,1,2,3]"});
  expect_takes(R"({"prefixItems": [true, true], "minItems": 2})", {"[1,2]"}, {"[1]", "[1,2,3]"});
  expect_takes(R"({"prefixItems": [true], "minItems": 3})", {"[1,2,3]"}, {"[1,2]"});
  expect_takes(R"({"prefixItems": [true, true], "items": false})", {"[]", "[1]", "[1,2]"}, {"[1,2,3]"});
  expect_takes(R"({"type": "array", "maxItems": 0})", {"[]"}, {"[1]"});
}

TEST(JsonSchema, ListedValues) {
  expect_takes(R"({"enum": ["a", "b\"c", 1, null, {"x": [1]}]})",
               {"\"a\"", "\"b\\\"c\"", "1", "null", "{\"x\":[1]}"}, {"\"b\"", "2"});
  expect_takes(R"({"enum": ["a", 1], "type": "string"})", {"\"a\""}, {"1"});
  expect_takes(R"({"const": "a"})", {"\"a\""}, {"\"ab\""});
}

TEST(JsonSchema, Strings) {
  expect_takes(R"({"minLength": 2, "maxLength": 3})", {"\"ab\"", "\"ü😀\\n\"", "\"\\u00e9bc\""},
               {"\"a\"", "\"abcd\""});
  expect_takes(R"({"type": "string", "pattern": "^[a-c]+\\d{2,3}(x|yz)?$"})", {"\"ab12\"", "\"a123yz\""},
               {"\"a1\"", "\"12\"", "\"ab12xx\"", "\"ab12 \""});
  expect_takes(R"({"type": "string", "pattern": "b\"c"})", {R"("b\"c")", R"("ab\"cd")"}, {"\"b\"", "\"bc\""});
  expect_takes(R"({"type": "string", "pattern": "^a|b$"})", {"\"ax\"", "\"xb\""}, {"\"xax\"", "\"bx\""});
  expect_takes(R"({"type": "string", "pattern": "^[^a\\\\]\\S\\n$"})", {R"("b-\n")"},
               {R"("a-\n")", R"("b \n")"});
  expect_takes(R"({"format": "date"})", {"\"2024-02-28\"", "\"1999-12-31\""},
               {"\"2024-02-30\"", "\"2024-13-01\""});
  expect_takes(R"({"format": "date-time"})", {"\"2024-02-28T23:59:59Z\"", "\"2024-02-28T23:59:59.5+02:00\""},
               {"\"2024-02-28\"", "\"2024-02-28T24:00:00Z\""});
  expect_takes(R"({"format": "uuid"})", {"\"123e4567-e89b-12d3-a456-426614174000\""}, {"\"123e4567\""});
  expect_takes(R"({"format": "email"})", {"\"a.b@example.com\""}, {"\"a.b@\"", "\"@example.com\""});
}

TEST(JsonSchema, BoundsOfIntegersAreExact) {
  for (const auto& [low, high] : std::vector<std::pair<int, int>>{
           {0, 0}, {-3, 12}, {7, 105}, {-120, -9}, {10, 99}, {95, 1004}, {-1, 1}, {1, 1000}, {-1000, 1000}}) {
    const auto grammar = ready(
        schema_grammar(fmt::format(R"({{"type": "integer", "minimum": {}, "maximum": {}}})", low, high)));
    for (int value = -1200; value <= 1200; ++value) {
      TokenConstraint constraint(grammar, {});
      const bool takes_it = constraint.accept_bytes(std::to_string(value)) && constraint.may_end();
      ASSERT_EQ(takes_it, low <= value && value <= high) << low << " " << value << " " << high;
    }
  }
  expect_takes(R"({"type": "integer", "exclusiveMinimum": 1, "exclusiveMaximum": 4.5})", {"2", "4"},
               {"1", "5"});
  expect_takes(R"({"type": "integer", "minimum": 100})", {"100", "999999999999999"},
               {"99", "1000000000000000"});
}

TEST(JsonSchema, BoundsOfNumbers) {
  expect_takes(R"({"type": "number", "minimum": 0, "maximum": 1})", {"0", "1", "0.5", "0.00"},
               {"1.5", "-0.5", "1.01", "2"});
  expect_takes(R"({"type": "number", "exclusiveMinimum": 0})", {"0.5", "0.10", "7", "19.90"},
               {"0", "0.0", "-1"});
  expect_takes(R"({"type": "number", "minimum": -2, "exclusiveMaximum": 3})",
               {"-2", "-1.99", "-0.5", "0", "2.99"}, {"-2.01", "3", "3.0", "-3"});
}

TEST(JsonSchema, Alternatives) {
  expect_takes(R"({"anyOf": [{"type": "null"}, {"minimum": 3, "type": "integer"}]})", {"null", "3"},
               {"2", "\"\""});
  expect_takes(R"({"type": "object", "properties": {"k": {"type": "integer"}}, "required": ["k"],
      "anyOf": [{"properties": {"a": {"type": "null"}}}, {"properties": {"b": {"type": "null"}}}]})",
               {R"({"k":1})", R"({"k":1,"a":null})", R"({"k":1,"b":null})"},
               {R"({"k":1,"a":null,"b":null})", "{}"});
  expect_takes(R"({"oneOf": [{"properties": {"k": {"const": "x"}, "v": {"type": "null"}}, "required": ["k"]},
      {"properties": {"k": {"const": "y"}}, "required": ["k"], "type": "object"}]})",
               {R"({"k":"y"})"}, {R"({"k":"z"})"});
  EXPECT_THAT(refusal(R"({"oneOf": [{"multipleOf": 0.3, "type": "number"}, {"type": "number"}]})"),
              HasSubstr("5 s: oneOf[1].not.multipleOf: not supported where it must not hold"));
}

TEST(JsonSchema, WhatHoldsTogether) {
  expect_takes(
      R"({"allOf": [{"type": ["integer", "null"], "minimum": 3}, {"type": "number", "maximum": 5, "minimum": 1}]})",
      {"3", "5"}, {"2", "6", "null", "3.5"});
  expect_takes(
      R"({"allOf": [{"$ref": "#/$defs/a"}, {"properties": {"y": {"type": "null"}}, "required": ["y"]}],
      "$defs": {"a": {"type": "object", "properties": {"x": {"type": "null"}}, "required": ["x"]}}})",
      {R"({"x":null,"y":null})"}, {R"({"y":null,"x":null})", R"({"x":null})", R"({"y":null})"});
}

TEST(JsonSchema, RefersToItself) {
  const char* const tree = R"({"$ref": "#/$defs/tree", "$defs": {"tree": {"type": "object", "properties": {
      "value": {"type": "integer"}, "children": {"type": "array", "items": {"$ref": "#/$defs/tree"}}},
      "required": ["value"], "additionalProperties": false}}})";
  expect_takes(tree, {R"({"value":1})", R"({"value":1,"children":[{"value":2,"children":[]},{"value":3}]})"},
               {R"({"value":1,"children":[1]})"});
  EXPECT_THAT(refusal(R"({"$ref": "#"})"), HasSubstr("expected some text that it can be"));
  EXPECT_THAT(refusal(R"({"$ref": "#/$defs/a", "$defs": {"a": {"type": "object", "properties":
      {"a": {"$ref": "#/$defs/a"}}, "required": ["a"]}}})"),
              HasSubstr("expected some text that it can be"));
  EXPECT_THAT(refusal(R"({"allOf": [{"$ref": "#"}], "type": "object"})"), HasSubstr("7 s: "));
}

TEST(JsonSchema, RefusesByName) {
  EXPECT_EQ(refusal(R"({"properties": {"a": {"not": {"uniqueItems": true}}}})"),
            "5 s: properties.a.not.uniqueItems: not supported where it must not hold");
  EXPECT_EQ(refusal(R"({"properties": {"a": {"items": {"type": "array"}, "uniqueItems": true}}})"),
            "5 s: properties.a.uniqueItems: not supported of items without a member to tell them by");
  EXPECT_EQ(refusal(R"({"items": {"type": "object", "minProperties": 2}})"),
            "5 s: items.minProperties: not supported above the number of names that are listed, and one");
  EXPECT_EQ(refusal(R"({"type": "strin"})").substr(0, 27), "4 s: type: expected one of ");
  EXPECT_EQ(refusal(R"({"type": "number", "multipleOf": 12345})"), "5 s: multipleOf: not supported as 12345");
  EXPECT_EQ(refusal(R"({"$ref": "#/$defs/b"})"),
            "4 s: $ref: expected a schema at \"#/$defs/b\", got nothing");
  EXPECT_THAT(refusal(R"({"items": {"$ref": "https://example.com/other"}})"),
              HasSubstr("5 s: items.$ref: expected a reference into this schema"));
  EXPECT_EQ(refusal(R"({"minLength": -1})"), "4 s: minLength: expected a count, got \"-1\"");
  EXPECT_EQ(refusal(R"({"minItems": 100000})"), "7 s: minItems: expected at most 4096, got 100000");
  EXPECT_EQ(refusal(R"({"type": "integer", "minimum": 3, "maximum": 2})"),
            "4 s: expected a number between the bounds, got none");
  EXPECT_EQ(refusal(R"({"type": "object", "additionalProperties": false, "required": ["a"]})"),
            "4 s: required: expected properties, got \"a\", which is none");
  EXPECT_THAT(refusal(R"s({"pattern": "(?i)b"})s"),
              HasSubstr("5 s: pattern: a group of the kind (? is not supported"));
  EXPECT_THAT(refusal(R"({"pattern": "a\\G"})"), HasSubstr("\\G is not supported"));
  EXPECT_THAT(refusal(R"({"pattern": "a(b"})"), HasSubstr("4 s: pattern: expected a ), got the end"));
  EXPECT_THAT(refusal("[]"), HasSubstr("4 s: expected a schema, got array"));
  EXPECT_EQ(
      refusal(
          R"({"title": "T", "description": "D", "default": 1, "examples": [], "$schema": "x", "x-y": 1})"),
      "no error");
}

// Doubling at every level must not cost what it would double to.
TEST(JsonSchema, EndsOnSchemasThatMultiply) {
  std::string schema = R"({"$ref": "#/$defs/d0", "$defs": {)";
  for (int i = 0; i < 40; ++i)
    schema += fmt::format(R"("d{}": {{"allOf": [{{"$ref": "#/$defs/d{}"}}, {{"$ref": "#/$defs/d{}"}}]}},)", i,
                          i + 1, i + 1);
  EXPECT_THAT(refusal(schema + R"("d40": {"type": "null"}}})"), HasSubstr("7 s: "));
}

}  // namespace
}  // namespace soliton::constrain
