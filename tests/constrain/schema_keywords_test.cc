// Keywords of schemas beyond the first ones: what may be written by each, at its bounds, and beside others.
#include <gmock/gmock.h>

#include "schema_testing.h"

namespace soliton::constrain {
namespace {

using testing::HasSubstr;

TEST(SchemaKeywords, UnknownOnesSayNothing) {
  expect_takes(R"({"type": "integer", "self": {"vendor": "x"}, "typeName": "AWS", "enumNames": [1]})", {"1"},
               {"null"});
  expect_takes(R"({"type": "string", "format": "int32"})", {"\"x\""}, {"1"});
  expect_takes(R"({"then": false, "minContains": 3, "additionalItems": false, "type": "array"})", {"[1]"},
               {"1"});
}

TEST(SchemaKeywords, OfOtherDraftsAreRefused) {
  EXPECT_EQ(refusal(R"({"$schema": "http://json-schema.org/draft-03/schema#", "divisibleBy": 2})"),
            "5 s: divisibleBy: not supported");
  EXPECT_EQ(refusal(R"({"items": {"propertyDependencies": {}}})"),
            "5 s: items.propertyDependencies: not supported");
}

TEST(SchemaKeywords, InDraft3MembersSayThatTheyAreRequired) {
  const std::string draft = R"({"$schema": "http://json-schema.org/draft-03/schema#", "properties": )";
  expect_takes(draft + R"({"a": {"enum": [1]}, "b": {"enum": [2], "required": true}}})",
               {R"({"b":2})", R"({"a":1,"b":2})"}, {"{}", R"({"a":1})"});
  expect_takes(
      draft + R"({"a": {"required": true, "properties": {"b": {"type": "null", "required": true}}}}})",
      {R"({"a":{"b":null}})"}, {"{}", R"({"a":{}})"});
  expect_takes(draft + R"({"a": {"type": "null", "required": false}}})", {"{}"}, {R"({"a":1})"});
}

TEST(SchemaKeywords, CharactersAreUnicode) {
  expect_takes(R"({"type": "string", "pattern": "^.*$"})", {"\"日本語\"", "\"😀 é\""}, {"\"a\\nb\""});
  expect_takes(R"({"pattern": "^\\S+$"})", {"\"日本\""}, {"\"日 本\"", "\"日\u3000本\"", "\"\u00a0\""});
  expect_takes(R"({"pattern": "^[^,]\\D\\W$"})", {"\"日本、\"", "\"ab-\""},
               {"\",b-\"", "\"a1-\"", "\"abc\""});
  // What dialects differ about is written by none of them.
  expect_takes(R"({"pattern": "^\\d\\D\\w\\W$"})", {"\"1aa-\""},
               {"\"٣aa-\"", "\"1٣a-\"", "\"1aé-\"", "\"1aaé\""});
  expect_takes(R"({"pattern": "^[\\w-.]+\\/\\x41\\u{1F600}\\cJ$"})", {"\"a-.b/A😀\\n\""}, {"\"a/A\""});
}

TEST(SchemaKeywords, CategoriesAndPairs) {
  expect_takes(R"({"pattern": "^[\\p{L}\\p{Nd}_]+\\P{Letter}$"})", {"\"日本1_-\"", "\"aé٣!\""},
               {"\"a-!\"", "\"ab\""});
  expect_takes(R"({"pattern": "^[\\uD800\\uDC00-\\uDBFF\\uDFFF]\\uD83D\\uDE00$"})", {"\"😁😀\""},
               {"\"a😀\"", "\"😁😁\""});
  expect_takes(R"s({"pattern": "\\A(?P<x>[\\p{Graph}])\\p{ASCII}\\Z"})s", {"\"a \""},
               {"\" a\"", "\"ab\\n\"", "\"éa\""});
  EXPECT_THAT(refusal(R"({"pattern": "\\p{Script=Greek}"})"),
              HasSubstr("5 s: pattern: \\p of \"Script=Greek\" is not"));
  // Half a pair is in no text.
  expect_takes(R"({"pattern": "^[a\\uD800-\\uDBFF\\uDC00-\\uDFFF]$"})", {"\"a\""}, {"\"b\"", "\"😀\""});
  EXPECT_THAT(refusal(R"({"pattern": "\\uD800"})"), HasSubstr("expected some text that it can be, got none"));
}

TEST(SchemaKeywords, AnchorsAndAssertions) {
  expect_takes(R"s({"pattern": "(^a$)|(^b)"})s", {"\"a\"", "\"bc\""}, {"\"ab\"", "\"xb\""});
  expect_takes(R"s({"pattern": "^(?!abc$)(?=.*c)[a-d]+$"})s", {"\"c\"", "\"abcd\""}, {"\"abc\"", "\"ab\""});
  expect_takes(R"({"pattern": "a$^|b"})", {"\"b\"", "\"ab\""}, {"\"a\""});
  expect_takes(R"s({"pattern": "^(?!a)[ab]+$|c"})s", {"\"ba\"", "\"ac\""}, {"\"ab\"", "\"\""});
  expect_takes(R"s({"pattern": "^[a-z]+(?!.*--)[a-z-]*(?<!-)$", "maxLength": 6})s", {"\"a-b-c\""},
               {"\"a--b\"", "\"a-b-\"", "\"a-b-c-d\""});
  expect_takes(R"s({"pattern": "^(?:(?!aws:)[a-z:])+$"})s", {"\"aw:s\""}, {"\"aws:\"", "\"xaws:x\""});
  expect_takes(R"s({"pattern": "\\bon\\b", "minLength": 3})s", {"\"on x\"", "\"x-on\""},
               {"\"on\"", "\"xon\"", "\"éon \""});
  expect_takes(R"s({"not": {"pattern": "^a(?=b)"}, "type": "string"})s", {"\"ac\"", "\"a\""}, {"\"ab\""});
  // In Python a line break may stand behind $.
  expect_takes(R"s({"type": "string", "not": {"pattern": "^(a|b$)$|c$()"}})s", {"\"a\\n\\n\"", "\"d\\n\""},
               {"\"a\"", "\"a\\n\"", "\"b\\n\"", "\"c\\n\""});
  EXPECT_THAT(refusal(R"s({"pattern": "(?=a\\b)"})s"), HasSubstr("5 s: pattern: \\b inside an assertion"));
  EXPECT_THAT(refusal(R"s({"pattern": "(?<=a(?=b))"})s"), HasSubstr("inside one that looks back"));
  EXPECT_THAT(refusal(R"s({"pattern": "(?=.{99}a)(?=.{98}b|.*(?!.{97}c))^.*x{99}"})s"),
              HasSubstr("7 s: pattern: expected a pattern of fewer states"));
}

// However long: no states for each length.
TEST(SchemaKeywords, RepeatedClassesAreCounted) {
  std::string fields;
  for (int i = 0; i < 60; ++i)
    fields += fmt::format(R"({}"p{}": {{"pattern": "^[a-z][a-z0-9]{{0,40000}}$"}})", i > 0 ? "," : "", i);
  EXPECT_EQ(refusal("{\"properties\": {" + fields + "}}"), "no error");
  expect_takes(R"({"pattern": "^x[a-c]{2,9}$", "minLength": 5, "maxLength": 7})",
               {"\"xabca\"", "\"xabcabc\""}, {"\"xabc\"", "\"xabcabca\"", "\"xabcad\""});
  expect_takes(R"({"pattern": "^x[a-c]{2,10}\\.d$"})", {"\"xab.d\"", "\"xabcabcabca.d\""},
               {"\"xa.d\"", "\"xabcabcabcab.d\"", "\"xab.\""});
  expect_takes(R"({"pattern": "^[^b]{10,}$"})", {"\"aaaaaaaaaa\"", "\"日本aaaaaaaaaaa\""},
               {"\"aaaaaaaaa\"", "\"aaaaaaaaaab\""});
  expect_takes(R"({"pattern": "^a", "minLength": 3})", {"\"abc\""}, {"\"ab\"", "\"bab\""});
  EXPECT_THAT(refusal(R"({"pattern": "^a{20,30}$", "maxLength": 19})"),
              HasSubstr("4 s: pattern: expected a"));
}

TEST(SchemaKeywords, PatternsBesideLengthsAndEachOther) {
  expect_takes(R"({"pattern": "^[a-z]+$", "minLength": 2, "maxLength": 3})", {"\"ab\"", "\"abc\""},
               {"\"a\"", "\"abcd\"", "\"A2\""});
  expect_takes(R"({"allOf": [{"pattern": "a"}, {"pattern": "b"}], "maxLength": 3, "type": "string"})",
               {"\"ab\"", "\"bxa\""}, {"\"aa\"", "\"bxxa\""});
  expect_takes(R"({"format": "date", "pattern": "^2024"})", {"\"2024-02-28\""}, {"\"2023-02-28\""});
  expect_takes(R"({"format": "email", "maxLength": 8})", {"\"a@b.com\""}, {"\"ab@b.comm\""});
  EXPECT_THAT(refusal(R"({"pattern": "^a+$", "format": "date"})"),
              HasSubstr("expected a text that fits all, got none"));
  EXPECT_THAT(refusal(R"({"pattern": "^.{5}$", "maxLength": 4})"),
              HasSubstr("4 s: pattern: expected a text"));
}

TEST(SchemaKeywords, Formats) {
  expect_takes(R"({"format": "ipv6"})", {"\"1:2:3:4:5:6:7:8\"", "\"::1\"", "\"fe80::1\""},
               {"\"1::2::3\"", "\"1:2\""});
  expect_takes(R"({"format": "hostname"})", {"\"www.example.com\""}, {"\"-a.com\"", "\"a..b\"", "\"a_b\""});
  expect_takes(R"({"format": "uri"})", {"\"https://example.com/a%20b?q=1#f\"", "\"urn:isbn:123\""},
               {"\"example.com\"", "\"//a/b\"", "\"https://a b\""});
  expect_takes(R"({"format": "json-pointer"})", {"\"\"", "\"/a~1b/0\""}, {"\"a\"", "\"/a~2\""});
  expect_takes(R"({"format": "duration"})", {"\"P1Y2M3DT4H\"", "\"PT5S\"", "\"P2W\""},
               {"\"P\"", "\"P1YT\"", "\"P1D2H\""});
}

TEST(SchemaKeywords, Fractions) {
  expect_takes(R"({"type": "number", "minimum": 0.5, "maximum": 2.25})",
               {"0.5", "0.50", "1", "2.2", "2.25", "2.250"},
               {"0.49", "0.4999", "2.26", "2.251", "3", "0", "-1"});
  expect_takes(R"({"type": "number", "exclusiveMinimum": -0.125, "exclusiveMaximum": 0.001})",
               {"-0.12", "0", "0.0009", "-0.1249"}, {"-0.125", "-0.2", "0.001", "0.0010", "1"});
  expect_takes(R"({"type": "number", "minimum": -10.5, "maximum": -9.75})", {"-10.5", "-10", "-9.75"},
               {"-9.7", "-10.51", "10"});
  expect_takes(R"({"type": "number", "minimum": 1, "exclusiveMinimum": true, "maximum": 2})", {"1.5", "2"},
               {"1", "1.0"});
}

// Many programs read numbers as doubles, and what they read must fit too.
TEST(SchemaKeywords, NumbersAreNotRoundedToWhatTheyMustNotBe) {
  expect_takes(R"({"type": "number", "exclusiveMaximum": 100000})",
               {"99999.9999999999", "9999.999999999999999"}, {"99999.999999999999999", "100000"});
  expect_takes(R"({"type": "number", "exclusiveMinimum": -100000})", {"-99999.9999999999"},
               {"-99999.999999999999999"});
  expect_takes(R"({"type": "number", "exclusiveMinimum": 1234567})", {"1234567.00001", "12345678"},
               {"1234567.000000000000001"});
  expect_takes(R"({"type": "number", "exclusiveMaximum": 123456.5})", {"123456.499999999"},
               {"123456.499999999999999"});
  expect_takes(R"({"type": "number", "not": {"type": "integer"}})", {"1.5", "123456789.000001"},
               {"1.0", "555447733884411.007706114779773", "1.000000000000001"});
}

TEST(SchemaKeywords, Multiples) {
  expect_takes(R"({"type": "integer", "multipleOf": 7, "minimum": -20, "maximum": 100})",
               {"-14", "0", "7", "98"}, {"-21", "1", "105", "13"});
  expect_takes(R"({"type": "number", "multipleOf": 0.25})", {"0.25", "3", "-1.5", "2.750"},
               {"0.2", "0.251", "1.1"});
  expect_takes(R"({"type": "integer", "multipleOf": 2.5})", {"5", "10"}, {"2", "7"});
  expect_takes(R"({"allOf": [{"multipleOf": 4}, {"multipleOf": 6}], "type": "integer"})", {"12", "24"},
               {"4", "6", "18"});
}

TEST(SchemaKeywords, PatternProperties) {
  const char* const schema =
      R"({"type": "object", "properties": {"x_1": {"minimum": 3}}, "patternProperties": {
      "^x_": {"type": "integer"}, "_2$": {"type": "integer", "maximum": 5}}, "additionalProperties": false})";
  expect_takes(schema, {"{}", R"({"x_1":3,"x_7":1,"a_2":5,"x_2":5})"},
               {R"({"x_1":2})", R"({"x_1":null})", R"({"a":1})", R"({"x_2":6})", R"({"x_1":3,"x_1":1})"});
  expect_takes(R"({"type": "object", "patternProperties": {"^a": {"type": "null"}}})",
               {R"({"a":null,"b":1})"}, {R"({"a":1})", R"({"ab":1})"});
  expect_takes(
      R"({"type": "object", "patternProperties": {"^a": {"type": "null"}}, "required": ["ab", "c"]})",
      {R"({"ab":null,"c":1})"}, {R"({"ab":1,"c":1})"});
  expect_takes(R"({"type": "object", "patternProperties": {"": false}})", {"{}"}, {R"({"a":1})"});
}

TEST(SchemaKeywords, NamesOfProperties) {
  expect_takes(R"({"type": "object", "propertyNames": {"maxLength": 2, "pattern": "^[a-z]"}})",
               {"{}", R"({"a":1,"bc":null})"}, {R"({"abc":1})", R"({"1":1})"});
  expect_takes(R"({"type": "object", "properties": {"a": {}, "bcd": {}}, "propertyNames": {"maxLength": 2}})",
               {R"({"a":1})"}, {R"({"bcd":1})"});
  expect_takes(
      R"({"type": "object", "propertyNames": {"enum": ["a", "b"]}, "additionalProperties": {"type": "null"}})",
      {R"({"a":null,"b":null})"}, {R"({"c":null})", R"({"a":1})"});
}

TEST(SchemaKeywords, NamesOfPropertiesThatHaveAlternatives) {
  expect_takes(R"({"type": "object", "additionalProperties": {"type": "null"}, "propertyNames": {
      "anyOf": [{"pattern": "^a"}, {"maxLength": 1}], "not": {"enum": ["ab", "c"]}}})",
               {"{}", R"({"aa":null,"d":null})"}, {R"({"ab":null})", R"({"c":null})", R"({"dd":null})"});
  expect_takes(R"({"type": "object", "propertyNames": {"if": {"minLength": 2}, "then": {"pattern": "^x"}}})",
               {R"({"x":1,"y":1,"xy":1})"}, {R"({"yx":1})"});
  EXPECT_THAT(
      refusal(R"({"type": "object", "propertyNames": {"oneOf": [{"pattern": "a"}, {"pattern": "b"}]}})"),
      HasSubstr("5 s: propertyNames: not supported where names have oneOf"));
}

TEST(SchemaKeywords, NumbersOfProperties) {
  expect_takes(R"({"properties": {"a": {}, "b": {}, "c": {}}, "minProperties": 2, "type": "object"})",
               {R"({"a":1,"c":1})", R"({"a":1,"b":1,"c":1})"}, {"{}", R"({"b":1})"});
  expect_takes(R"({"properties": {"a": {}, "b": {}, "c": {}}, "maxProperties": 1, "type": "object"})",
               {"{}", R"({"b":1})"}, {R"({"a":1,"b":1})"});
  expect_takes(R"({"type": "object", "minProperties": 1, "maxProperties": 2})",
               {R"({"a":1})", R"({"a":1,"b":1})"}, {"{}", R"({"a":1,"b":1,"c":1})"});
  // The same name twice is one.
  expect_takes(R"({"type": "object", "required": ["a"], "minProperties": 2})", {R"({"a":1,"b":1})"},
               {R"({"a":1})"});
  EXPECT_THAT(refusal(R"({"properties": {"a": {}}, "minProperties": 2, "type": "object"})"),
              HasSubstr("4 s: minProperties: expected at most 1, got 2"));
}

TEST(SchemaKeywords, DifferentItems) {
  expect_takes(R"({"items": {"enum": ["a", "b", "c"]}, "uniqueItems": true, "minItems": 1, "maxItems": 2})",
               {R"(["a"])", R"(["c", "a"])"}, {"[]", R"(["a","a"])", R"(["a","b","c"])"});
  expect_takes(R"({"items": {"enum": [1, 2, 3, 4, 5, 6, 7, 8]}, "uniqueItems": true, "type": "array"})",
               {"[]", "[1,3,8]"}, {"[1,1]", "[9]"});
  expect_takes(R"({"items": {"type": "boolean"}, "uniqueItems": true})", {"[true,false]", "[false]"},
               {"[true,true]"});
  expect_takes(R"({"type": "array", "uniqueItems": true, "maxItems": 1})", {"[]", "[7]"}, {"[7,8]"});
}

// An order of kinds of which each stands at most once: so no two are equal.
TEST(SchemaKeywords, DifferentItemsThatAreNotListed) {
  expect_takes(R"({"items": {"type": "string"}, "uniqueItems": true, "maxItems": 3})",
               {"[]", R"(["b"])", R"(["#x", "1", "zebra"])", R"(["apple","Berry"])", R"(["é","a"])"},
               {R"(["a","a"])", R"(["a","A"])", R"(["b","a"])", R"(["a","b","c","d"])", R"(["#","é"])"});
  expect_takes(R"({"items": {"type": "integer", "minimum": 0}, "uniqueItems": true, "minItems": 2})",
               {"[0,1,2,10,20,80,443,8080]", "[5,100000]"}, {"[7]", "[1,1]", "[10,11]", "[-1,1]", "[2,1]"});
  expect_takes(R"({"uniqueItems": true, "type": "array"})",
               {R"([null,true,-1.5,0.5,1,"a"])", "[false, true]"}, {"[null,null]", "[0,0.0]", "[[]]"});
  expect_takes(R"({"uniqueItems": true, "items": {"anyOf": [{"type": "string"}, {"type": "null"}]}})",
               {R"([null,"a"])"}, {"[null,null]", "[1]"});
  expect_takes(R"({"uniqueItems": true, "items": {"type": "string", "pattern": "^[ab]+$", "maxLength": 2}})",
               {R"(["aa","b"])"}, {R"(["aa","ab"])", R"(["aaa"])"});
}

TEST(SchemaKeywords, DifferentObjects) {
  const std::string object = R"({"uniqueItems": true, "items": {"type": "object", "properties": {
      "x": {"type": "null"}, "name": {"type": "string"}, "kind": {"enum": ["u", 1]}}, "required": ["x", )";
  expect_takes(object + R"("name"]}})", {R"([{"x":null,"name":"a"},{"x":null,"name":"b","kind":"u"}])"},
               {R"([{"x":null,"name":"a"},{"x":null,"name":"a"}])", "[{}]"});
  expect_takes(object + R"("kind"]}})", {R"([{"x":null,"kind":"u"},{"x":null,"name":"a","kind":1}])"},
               {R"([{"x":null,"kind":"u"},{"x":null,"name":"a","kind":"u"}])"});
  expect_takes(
      R"({"uniqueItems": true, "items": {"type": "object", "properties": {"Key": {"type": "string"}, "Value": {}}}})",
      {R"([{"Value":1},{"Key":"a"},{"Key":"b","Value":1}])", "[{}]"},
      {"[{},{}]", R"([{"Value":1},{"Value":2}])", R"([{"Key":"a"},{"Key":"a","Value":1}])"});
  EXPECT_THAT(refusal(R"({"uniqueItems": true, "items": {"type": "object", "properties": {"a": {}}}})"),
              HasSubstr("5 s: uniqueItems: not supported of items without a member to tell them by"));
  EXPECT_THAT(refusal(R"({"uniqueItems": true, "items": {"type": "string"}, "minItems": 50})"),
              HasSubstr("5 s: uniqueItems: not supported of more than 37 such items"));
}

TEST(SchemaKeywords, Contains) {
  expect_takes(R"({"type": "array", "contains": {"const": 5}, "items": {"type": "integer"}})",
               {"[5]", "[5,1,5]"}, {"[]", "[1]", "[5,null]"});
  expect_takes(R"({"type": "array", "contains": {"type": "null"}, "minContains": 2, "maxContains": 2,
      "items": {"type": ["null", "integer"]}})",
               {"[null,null]", "[null,null,1]"}, {"[null]", "[null,null,null]"});
  expect_takes(R"({"type": "array", "contains": {"type": "null"}, "minContains": 0, "maxContains": 0})",
               {"[]", "[1]"}, {"[null]", "[1,null]"});
  expect_takes(R"({"prefixItems": [{"type": "string"}], "contains": {"type": "null"}})", {"[\"a\",null]"},
               {"[\"a\"]"});
}

TEST(SchemaKeywords, Negations) {
  expect_takes(R"({"not": {"type": ["string", "object"]}})", {"1", "[]", "null", "true"}, {"\"\"", "{}"});
  expect_takes(R"({"type": "string", "not": {"enum": ["a", "bc"]}})", {"\"b\"", "\"\"", "\"ab\""},
               {"\"a\"", "\"bc\""});
  expect_takes(R"({"type": "string", "not": {"pattern": "^a"}})", {"\"ba\"", "\"\""}, {"\"a\"", "\"ab\""});
  expect_takes(R"({"type": "object", "properties": {"a": {"type": "integer"}}, "not": {"required": ["a"]}})",
               {"{}"}, {R"({"a":1})"});
  expect_takes(R"({"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"],
      "not": {"properties": {"a": {"minimum": 3}}}})",
               {R"({"a":2})"}, {R"({"a":3})"});
  expect_takes(R"({"type": "integer", "not": {"anyOf": [{"minimum": 3}, {"maximum": -3}]}})", {"2", "-2"},
               {"3", "-3"});
  expect_takes(R"({"type": "integer", "not": {"not": {"minimum": 3}}})", {"3"}, {"2"});
}

TEST(SchemaKeywords, Conditions) {
  const char* const schema =
      R"({"type": "object", "properties": {"kind": {"enum": ["a", "b"]}, "n": {"type": "integer"}},
      "required": ["kind"], "if": {"properties": {"kind": {"const": "a"}}}, "then": {"required": ["n"]},
      "else": {"properties": {"n": {"maximum": 3}}}})";
  expect_takes(schema, {R"({"kind":"a","n":9})", R"({"kind":"b"})", R"({"kind":"b","n":3})"},
               {R"({"kind":"a"})", R"({"kind":"b","n":4})", "{}"});
  expect_takes(
      R"({"type": "object", "properties": {"a": {}, "b": {}, "c": {}}, "dependentRequired": {"a": ["b"]}})",
      {"{}", R"({"b":1})", R"({"a":1,"b":1,"c":1})"}, {R"({"a":1})", R"({"a":1,"c":1})"});
  expect_takes(
      R"({"type": "object", "properties": {"a": {}, "b": {}}, "dependencies": {"a": {"required": ["b"]}, "b": []}})",
      {R"({"b":1})", R"({"a":1,"b":1})"}, {R"({"a":1})"});
}

TEST(SchemaKeywords, WhatIsNotEvaluated) {
  expect_takes(
      R"({"type": "object", "allOf": [{"properties": {"a": {}}}], "anyOf": [{"properties": {"b": {}}}, {"properties":
      {"c": {}}, "required": ["c"]}], "unevaluatedProperties": {"type": "null"}})",
      {R"({"a":1,"b":1})", R"({"a":1,"c":1})", R"({"d":null})"}, {R"({"d":1})"});
  expect_takes(R"({"prefixItems": [true], "unevaluatedItems": false})", {"[1]"}, {"[1,2]"});
}

TEST(SchemaKeywords, ListedValuesBesideOthers) {
  expect_takes(R"({"enum": ["a", "bcd", 7, 3], "maxLength": 2, "minimum": 5})", {"\"a\"", "7"},
               {"\"bcd\"", "3"});
  expect_takes(R"({"enum": [1, 2, 3, 4], "not": {"multipleOf": 2}})", {"1", "3"}, {"2", "4"});
}

TEST(SchemaKeywords, References) {
  expect_takes(R"({"$ref": "#/$defs/a%20b~1c%25", "$defs": {"a b/c%": {"type": "null"}}})", {"null"}, {"1"});
  expect_takes(R"({"$ref": "#x", "$defs": {"a": {"$anchor": "x", "type": "null"}}})", {"null"}, {"1"});
  expect_takes(
      R"({"$id": "http://a/b/root.json", "$ref": "sub.json#/$defs/n", "$defs": {"s": {"$id": "sub.json",
      "$defs": {"n": {"$ref": "#/$defs/m"}, "m": {"type": "null"}}}, "m": {"type": "integer"}}})",
      {"null"}, {"1"});
  // Whether $id beside $ref says where this leads depends on the draft.
  const auto sibling = [](const std::string& draft) {
    return draft +
           R"("$id": "http://a/b/", "items": {"$id": "http://a/c/", "$ref": "n"}, "type": "array", "$defs": {
        "b": {"$id": "http://a/b/n", "type": "null"}, "c": {"$id": "http://a/c/n", "type": "integer"}}})";
  };
  expect_takes(sibling(R"({"$schema": "http://json-schema.org/draft-07/schema#", )"), {"[null]"}, {"[1]"});
  expect_takes(sibling(R"({"$schema": "https://json-schema.org/draft/2020-12/schema", )"), {"[1]"},
               {"[null]"});
  EXPECT_THAT(refusal(sibling("{")), HasSubstr("5 s: items.$id: not supported"));
  // Two trees at once: rules of their own, that refer to themselves.
  expect_takes(R"({"allOf": [{"$ref": "#/$defs/a"}, {"$ref": "#/$defs/b"}], "$defs": {
      "a": {"type": "object", "properties": {"next": {"$ref": "#/$defs/a"}, "v": {"type": "integer"}}},
      "b": {"type": "object", "properties": {"next": {"$ref": "#/$defs/b"}, "v": {"minimum": 3}}}}})",
               {R"({"next":{"next":{"v":3}}})"}, {R"({"next":{"next":{"v":2}}})", R"({"next":{"v":null}})"});
}

}  // namespace
}  // namespace soliton::constrain
