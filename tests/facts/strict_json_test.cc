// Strict JSON, chiefly every way in which it can be wrong.
#include "models/strict_json.h"

#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>

#include "cpu_time.h"
#include "refusals.h"

namespace soliton {
namespace {

using nlohmann::json;

TEST(JsonTest, RefusesDuplicateKeysAtAnyDepth) {
  expect_error([] { parse_json(R"({"a": 1, "a": 1})", "f"); }, ExitCode::kBadFile, "f: a: duplicate key");
  expect_error([] { parse_json(R"({"a": [0, {"b": 1, "c": {"d": 2, "d": 3}}]})", "f"); }, ExitCode::kBadFile,
               "f: a[1].c.d: duplicate key");
  EXPECT_NO_THROW(parse_json(R"({"a": {"a": [{"a": 1}, {"a": 1}]}})", "f"));
}

TEST(JsonTest, LimitsDepth) {
  const auto nested = [](size_t depth) { return std::string(depth, '[') + std::string(depth, ']'); };
  EXPECT_NO_THROW(parse_json(nested(63), "f"));
  EXPECT_NO_THROW(parse_json(nested(64), "f"));
  expect_error([&] { parse_json(nested(65), "f"); }, ExitCode::kBadFile, "nested at most 64 deep");
  expect_error([&] { parse_json(std::string(1 << 20, '['), "f"); }, ExitCode::kBadFile,
               "nested at most 64 deep");
  std::string objects;
  for (int i = 0; i < 100; ++i) objects += "{\"a\":";
  expect_error([&] { parse_json(objects, "f"); }, ExitCode::kBadFile, "nested at most 64 deep");
}

TEST(JsonTest, LimitsTheNumberOfValues) {
  std::string text = "[0";
  for (int i = 0; i < 8'000'000; ++i) text += ",0";
  expect_error([&] { parse_json(text + "]", "f"); }, ExitCode::kBadFile, "at most 8000000 JSON values");
}

TEST(JsonTest, LimitsAreThoseOfTheCaller) {
  EXPECT_NO_THROW(parse_json("[[1, {\"a\": 2}]]", "f", {.depth = 3, .values = 5, .members = 1}));
  expect_error([] { parse_json("[[[]]]", "f", {.depth = 2}); }, ExitCode::kBadFile,
               "f: expected JSON nested at most 2");
  expect_error([] { parse_json("[0, 0]", "f", {.values = 2}); }, ExitCode::kBadFile, "at most 2 JSON values");
  expect_error([] { parse_json(R"([{"a": 1}, {"a": 1}])", "f", {.members = 1}); }, ExitCode::kBadFile,
               "f: expected at most 1 members of JSON objects, got more");
  expect_error([] { parse_json("[ ]", "f", {.bytes = 2}); }, ExitCode::kBadFile,
               "f: expected at most 2 bytes of JSON, got 3");
}

TEST(JsonTest, OrderedKeepsTheOrderOfMembers) {
  EXPECT_EQ(parse_ordered_json(R"({"z": [1, {"y": 2.5, "b": -3}], "a": {}, "m": null})", "f").dump(),
            R"({"z":[1,{"y":2.5,"b":-3}],"a":{},"m":null})");
  EXPECT_EQ(parse_json(R"({"z": 1, "a": true})", "f").dump(), R"({"a":true,"z":1})");
  expect_error([] { parse_ordered_json(R"({"b": 1, "a": 2, "b": 3})", "f"); }, ExitCode::kBadFile,
               "f: b: duplicate key");
  expect_error([] { parse_ordered_json("[", "f"); }, ExitCode::kBadFile, "f: not valid JSON");
}

TEST(JsonTest, TextThatMayBeSomethingElse) {
  for (const char* text : {"", "no", "{", "{} {}", "\"\xff\""})
    EXPECT_FALSE(parse_if_json(text, "f")) << text;
  EXPECT_EQ(parse_if_json("null", "f"), nlohmann::ordered_json(nullptr));
  EXPECT_EQ(parse_if_json(R"({"b": 1, "a": 2, "b": {"c": 3, "c": 4}, "a": 5})", "f").value().dump(),
            R"({"b":{"c":4},"a":5})");
  expect_error([] { parse_if_json(std::string(100'000, '['), "f"); }, ExitCode::kBadFile,
               "nested at most 64 deep");
}

// Objects that grow by one member after another have cost the square of their size, and each growth a copy of all.
TEST(JsonTest, ReadsLargeObjectsInLinearTime) {
  constexpr int kNumMembers = 400'000;
  std::string wide = "{";
  for (int i = 0; i < kNumMembers; ++i) wide += fmt::format("\"{:06}\":0,", i);
  wide += "\"last\":0}";
  std::string deep = "[";  // in the first of several members of an object in the first of several members ...
  for (int i = 0; i < kNumMembers; ++i) deep += "0,";
  deep += "0]";
  for (int i = 0; i < 60; ++i) {
    deep = "{\"a\":" + deep;
    for (int k = 0; k < 40; ++k) deep += fmt::format(",\"{}\":0", k);
    deep += '}';
  }
  const CpuTime time;
  EXPECT_EQ(parse_ordered_json(wide, "f").size(), kNumMembers + 1u);
  EXPECT_EQ(parse_json(wide, "f").size(), kNumMembers + 1u);
  EXPECT_EQ(parse_ordered_json(deep, "f").size(), 41u);
  EXPECT_LT(time.seconds(), 5);
}

TEST(JsonTest, RefusesBadSyntax) {
  for (const char* text :
       {"", "{", "{\"a\"}", "[1,]", "nul", "1 2", "\"\xff\"", "\"\x01\"", "[1e999]", "{'a': 1}"}) {
    expect_error([&] { parse_json(text, "f"); }, ExitCode::kBadFile, "f: not valid JSON");
  }
}

TEST(JsonTest, TypedAccessChecksTypeAndRange) {
  const json document =
      parse_json(R"({"big": 18446744073709551615, "negative": -1, "huge": 99999999999999999999,
                                       "float": 2.0, "text": "2", "list": [1], "max": 9223372036854775807})",
                 "f");
  const JsonView root(document, "f");
  constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
  const auto refused = [&](const char* key, const std::string& message) {
    expect_error([&] { root[key].integer(0, kMax); }, ExitCode::kBadFile, message);
  };
  refused("big", "f: big: expected an integer in [0, 9223372036854775807], got 18446744073709551615");
  refused("negative", "got -1");
  refused("huge", "f: huge: expected an integer, got 1e+20");
  refused("float", "expected an integer, got 2.0");
  refused("text", "expected an integer, got \"2\"");
  refused("list", "expected an integer, got an array");
  refused("absent", "f: absent: expected an integer, got nothing");
  EXPECT_EQ(root["max"].integer(0, kMax), kMax);
  expect_error([&] { root["list"][1]; }, ExitCode::kBadFile, "f: list: expected at least 2 elements, got 1");
  expect_error([&] { root["list"]["x"]; }, ExitCode::kBadFile, "f: list: expected an object, got an array");
}

}  // namespace
}  // namespace soliton
