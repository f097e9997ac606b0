// Schemas that hold together (allOf, $ref, anyOf and oneOf with keywords beside them): every answer fits each of them, with
// the keywords that speak of what others of the same schema leave.
#include <gmock/gmock.h>

#include "schema_testing.h"

namespace soliton::constrain {
namespace {

using testing::HasSubstr;

TEST(SchemaMerge, ItemsAreBehindTheFirstOnesOfTheirOwnSchema) {
  expect_takes(R"({"type": "array", "allOf": [{"prefixItems": [{"minimum": 3, "type": "integer"}]}],
      "items": {"minimum": 5, "type": "integer"}})",
               {"[5]", "[7,6]", "[]"}, {"[3]", "[4]", "[7,4]"});
  expect_takes(
      R"({"type": "array", "prefixItems": [{"type": "integer", "maximum": 1}, {"type": "integer"}], "allOf": [
      {"prefixItems": [{"type": "integer"}, {"minimum": 4}, {"maximum": 9}], "items": {"type": "integer", "minimum": 8}},
      {"items": {"type": "integer", "maximum": 9}}]})",
      {"[1]", "[1,4,9]", "[1,9,0,8,9]"}, {"[2]", "[1,3]", "[1,10]", "[1,4,10]", "[1,4,9,7]"});
  for (const char* keyword : {"anyOf", "oneOf"}) {
    const std::string schema =
        std::string(R"({"type": "array", "items": {"type": "integer", "maximum": 9}, ")") + keyword +
        R"(": [{"prefixItems": [{"type": "integer", "minimum": 3}]}]})";
    expect_takes(schema, {"[3]", "[9,1]"}, {"[10]", "[2]", "[3,10]"});
  }
  expect_takes(
      R"({"$ref": "#/$defs/a", "items": false, "$defs": {"a": {"type": "array", "prefixItems": [true]}}})",
      {"[]"}, {"[1]"});
  expect_takes(R"({"type": "array", "prefixItems": [true, false, true], "items": true})", {"[]", "[1]"},
               {"[1,2]"});
  EXPECT_THAT(refusal(R"({"type": "array", "prefixItems": [true, false], "minItems": 2})"),
              HasSubstr("minItems: expected at most 1, got 2"));
  expect_takes(R"({"allOf": [{"type": "array", "items": [true]}, {"items": {"type": "null"}}]})",
               {"[]", "[null]"}, {"[1]", "[null,1]"});
}

TEST(SchemaMerge, AdditionalMembersAreThoseOfTheirOwnSchema) {
  expect_takes(R"({"type": "object", "properties": {"a": {"type": "integer"}},
      "allOf": [{"additionalProperties": {"type": "integer", "maximum": 5}}]})",
               {R"({"a":5})", R"({"a":5,"b":4})"}, {R"({"a":6})", R"({"b":6})"});
  expect_takes(R"({"type": "object", "allOf": [
      {"properties": {"a": {"type": "null"}}, "additionalProperties": {"type": "integer"}},
      {"properties": {"b": {"minimum": 3}}, "additionalProperties": {"type": ["null", "integer"]}}]})",
               {R"({"a":null,"b":3,"c":1})"}, {R"({"a":1})", R"({"b":2})", R"({"b":null})", R"({"c":null})"});
  expect_takes(R"({"type": "object", "allOf": [{"properties": {"a": {}}, "additionalProperties": false},
      {"properties": {"b": {}}}]})",
               {"{}", R"({"a":1})"}, {R"({"b":1})"});
  for (const char* keyword : {"anyOf", "oneOf"}) {
    const std::string schema =
        std::string(R"({"type": "object", "additionalProperties": {"type": "null"}, ")") + keyword +
        R"(": [{"properties": {"a": {"type": ["null", "integer"]}}}]})";
    expect_takes(schema, {R"({"a":null})"}, {R"({"a":1})", R"({"b":1})"});
  }
  EXPECT_THAT(
      refusal(R"({"type": "object", "allOf": [{"additionalProperties": false}, {"required": ["b"]}]})"),
      HasSubstr("got \"b\", which is none"));
}

TEST(SchemaMerge, NullHasToFitAll) {
  expect_takes(R"({"allOf": [{"type": "string", "nullable": true}, {"type": "string"}]})", {"\"a\""},
               {"null"});
  expect_takes(R"({"allOf": [{"type": "string"}, {"type": "string", "nullable": true}]})", {"\"a\""},
               {"null"});
  expect_takes(R"({"allOf": [{"type": "string", "nullable": true}, {"type": "string", "nullable": true}]})",
               {"null", "\"a\""}, {"1"});
  expect_takes(
      R"({"allOf": [{"type": "string", "nullable": true}, {"type": ["string", "null"], "minLength": 2}]})",
      {"null", "\"ab\""}, {"\"a\""});
  expect_takes(R"({"allOf": [{"type": "string", "nullable": true}, {"type": "null"}]})", {"null"}, {"\"a\""});
  expect_takes(
      R"({"allOf": [{"enum": ["a", "b"], "nullable": true}, {"enum": ["b", "c"], "nullable": true}]})",
      {"null", "\"b\""}, {"\"a\""});
  expect_takes(R"({"allOf": [{"enum": ["a", "b"], "nullable": true}, {"enum": ["b", "c"]}]})", {"\"b\""},
               {"null"});
  expect_takes(R"({"allOf": [{"const": "a", "nullable": true}, {"type": ["string", "null"]}]})",
               {"null", "\"a\""}, {"\"b\""});
  // Of the whole schema it allows null beside all that the schema says.
  expect_takes(R"({"nullable": true, "allOf": [{"$ref": "#/$defs/a"}], "$defs": {"a": {"type": "string"}}})",
               {"null", "\"a\""}, {"1"});
  expect_takes(R"({"nullable": true, "anyOf": [{"type": "string"}, {"const": 1}]})", {"null", "\"a\"", "1"},
               {"2"});
  expect_takes(R"({"$ref": "#/$defs/a", "$defs": {"a": {"type": "object", "required": ["a"], "properties": {
      "a": {"$ref": "#/$defs/a", "nullable": true}}}}})",
               {R"({"a":null})", R"({"a":{"a":null}})"}, {"null"});
  EXPECT_THAT(refusal(R"({"allOf": [{"type": "string", "nullable": 1}]})"),
              HasSubstr("nullable: expected true or false"));
}

// What one alternative writes fits no other, also with what stands beside them.
TEST(SchemaMerge, AlternativesOfOneOfExcludeEachOther) {
  EXPECT_THAT(refusal(R"({"oneOf": [{"const": {"a": 1, "b": 2}}, {"const": {"b": 2, "a": 1}}]})"),
              HasSubstr("expected a listed value that fits, got none"));
  expect_takes(R"({"oneOf": [{"const": 1}, {"enum": [2, 1.0]}]})", {"2"}, {"1", "1.0"});
  expect_takes(R"({"oneOf": [{"const": "a", "nullable": true}, {"const": "b", "nullable": true}]})",
               {"\"a\"", "\"b\""}, {"null"});
  expect_takes(
      R"({"type": "object", "properties": {"a": {}, "b": {}}, "oneOf": [{"required": ["a"]}, {"required": ["b"]}]})",
      {R"({"a":1})", R"({"b":1})"}, {"{}", R"({"a":1,"b":1})"});
  expect_takes(R"({"type": "object", "properties": {"a": {}, "b": {}}, "oneOf": [
               {"properties": {"a": {"type": "null"}}, "required": ["a"]},
               {"properties": {"b": {"type": "null"}}, "required": ["b"]}]})",
               {R"({"a":null})", R"({"b":null})", R"({"a":null,"b":1})"},
               {R"({"a":null,"b":null})", R"({"a":1})", "{}"});
  expect_takes(R"({"oneOf": [{"type": "object", "properties": {"a": {}}, "required": ["a", "b"]},
               {"type": "object", "properties": {"c": {}}, "required": ["b"]}]})",
               {R"({"c":1,"b":1})", R"({"b":1})"}, {R"({"a":1,"b":1})", "{}"});
  expect_takes(R"({"oneOf": [
               {"type": "object", "properties": {"a": {}}, "required": ["a"], "anyOf": [{"properties": {"b": {}}}]},
               {"type": "object", "properties": {"b": {}}, "required": ["b"]}]})",
               {R"({"a":1})", R"({"b":1})"}, {R"({"a":1,"b":1})"});
  expect_takes(R"({"oneOf": [{"type": "integer"}, {"type": "number"}]})", {"1.5", "-0.25"},
               {"1", "1.0", "0"});
  expect_takes(R"({"oneOf": [{"type": "string", "maxLength": 3}, {"type": "string", "minLength": 2}]})",
               {"\"\"", "\"a\"", "\"abcd\""}, {"\"ab\"", "\"abc\""});
  expect_takes(R"({"oneOf": [{"enum": ["a", "b"]}, {"type": "string"}]})", {"\"c\"", "\"ab\"", "\"\""},
               {"\"a\"", "\"b\""});
  expect_takes(R"({"oneOf": [{"type": "object", "properties": {"a": {"type": "null"}}, "required": ["a"]},
      {"type": "object", "properties": {"b": {"type": "null"}}, "required": ["b"]}]})",
               {R"({"a":null})", R"({"b":null})"}, {R"({"a":null,"b":null})", "{}"});
  expect_takes(R"({"oneOf": [{"type": "string", "nullable": true}, {"type": "integer"}]})", {"null", "1"},
               {"true"});
}

// That the other one does not hold is said by a member that only the first one lists.
TEST(SchemaMerge, AlternativesOfOneOfDifferInMembersThatOneLacks) {
  expect_takes(
      R"({"oneOf": [{"type": "object", "properties": {"a": {"type": "null"}}, "additionalProperties": false},
      {"type": "object", "properties": {"b": {"type": "null"}}, "additionalProperties": false}]})",
      {R"({"a":null})", R"({"b":null})"}, {"{}", R"({"a":null,"b":null})"});
  expect_takes(R"({"properties": {"a": {"type": ["string", "null"]}, "x": {}, "b": {}},
      "not": {"properties": {"b": {}}, "patternProperties": {"^x": {}}, "additionalProperties": {"type": "null"}}})",
               {R"({"a":"1"})", R"({"a":"","x":1,"b":1})"},
               {"{}", R"({"a":null})", R"({"x":1})", R"({"b":1})"});
  EXPECT_THAT(refusal(R"({"properties": {"a": {}}, "type": "object",
      "not": {"properties": {"a": {}}, "additionalProperties": false}})"),
              HasSubstr("5 s: not.additionalProperties: not supported where it must not hold"));
}

// A member that may be left out tells them apart too: then it is written.
TEST(SchemaMerge, AlternativesOfOneOfHaveTheMemberThatTellsThemApart) {
  const char* const schema =
      R"({"oneOf": [{"type": "object", "properties": {"type": {"enum": ["a"]}, "x": {"type": "integer"}}},
      {"type": "object", "properties": {"type": {"enum": ["b", null]}, "x": {"type": "null"}}}]})";
  expect_takes(schema, {R"({"type":"a"})", R"({"type":"b","x":null})", R"({"type":null})"},
               {"{}", R"({"x":1})", R"({"type":"a","x":null})", R"({"type":"b","x":1})"});
  // What neither may have tells nothing.
  expect_takes(
      R"({"oneOf": [{"type": "object", "properties": {"a": false, "b": {"const": 1}}, "required": ["b"]},
      {"type": "object", "properties": {"a": {"type": "null"}, "b": {"const": 2}}}]})",
      {R"({"b":1})", R"({"b":2})", R"({"a":null,"b":2})"}, {"{}", R"({"a":null,"b":1})"});
}

TEST(SchemaMerge, RefusesWhatFitsNothing) {
  EXPECT_THAT(refusal(R"({"allOf": [{"enum": [1, 2]}, {"enum": [3]}]})"),
              HasSubstr("enum: expected a value that fits all, got none"));
  EXPECT_THAT(refusal(R"({"allOf": [{"type": "string"}, {"type": "null"}]})"),
              HasSubstr("type that fits all"));
}

}  // namespace
}  // namespace soliton::constrain
