// Calls of functions in answers, as families of models write them, in pieces of every length.
#include "runtime/server/tool_calls.h"

#include <gmock/gmock.h>

#include "cpu_time.h"

namespace soliton {
namespace {

constexpr int kMarkerToken = 7;
constexpr int kOtherToken = 8;

/// An answer taken apart.
struct Taken {
  std::string text;
  std::vector<ToolCall> calls;

  bool operator==(const Taken&) const = default;
};

Taken take(ToolStyle style, const std::string& answer, size_t piece, bool begins_with_marker = false) {
  ToolCallReader reader({style, kMarkerToken}, {"add", "time"});
  Taken taken;
  if (begins_with_marker) taken.text += reader.push(kMarkerToken, "");
  for (size_t at = 0; at < answer.size(); at += piece)
    taken.text += reader.push(kOtherToken, answer.substr(at, piece));
  ToolCallReader::Rest rest = reader.finish("");
  taken.text += rest.text;
  taken.calls = std::move(rest.calls);
  return taken;
}

void expect_taken(ToolStyle style, const std::string& answer, const Taken& expected,
                  bool begins_with_marker = false) {
  for (const size_t piece : {size_t{1}, size_t{2}, size_t{5}, size_t{1000}}) {
    const Taken taken = take(style, answer, piece, begins_with_marker);
    EXPECT_EQ(taken.text, expected.text) << answer << " in pieces of " << piece;
    EXPECT_EQ(taken.calls, expected.calls) << answer << " in pieces of " << piece;
  }
}

const ToolCall kAdd = {"add", R"({"b":1,"a":[2,"}"]})"};
const ToolCall kTime = {"time", "{}"};

TEST(ToolCalls, TagsOfQwen) {
  const std::string add = R"(<tool_call>
{"name": "add", "arguments": {"b": 1, "a": [2, "}"]}}
</tool_call>)";
  expect_taken(ToolStyle::kTags, add, {"", {kAdd}});
  expect_taken(ToolStyle::kTags,
               "Let me see. " + add + "\n<tool_call>{\"name\": \"time\", \"arguments\": {}}",
               {"Let me see. ", {kAdd, kTime}});
  for (const char* text : {"a < b", "<tool_", "<tool_call>", "<tool_call>{\"name\": \"add\"}</tool_call>",
                           "<tool_call>{\"name\": \"other\", \"arguments\": {}}</tool_call>"}) {
    expect_taken(ToolStyle::kTags, text, {text, {}});
  }
}

TEST(ToolCalls, ObjectsOfLlama) {
  const std::string add = R"({"name": "add", "parameters": {"b": 1, "a": [2, "}"]}})";
  expect_taken(ToolStyle::kObjects, add, {"", {kAdd}});
  expect_taken(ToolStyle::kObjects, "\n" + add + "; {\"name\": \"time\", \"parameters\": {}}",
               {"", {kAdd, kTime}});
  expect_taken(ToolStyle::kObjects, add, {"", {kAdd}}, true);
  expect_taken(ToolStyle::kObjects, "The sum is {3}.", {"The sum is {3}.", {}});
  expect_taken(ToolStyle::kObjects, "{\"a\": 1}", {"{\"a\": 1}", {}});
}

TEST(ToolCalls, MarkerOfMistral) {
  const std::string list =
      R"( [{"name": "add", "arguments": {"b": 1, "a": [2, "}"]}}, {"name": "time", "arguments": {}}])";
  expect_taken(ToolStyle::kMarker, list, {"", {kAdd, kTime}}, true);
  expect_taken(ToolStyle::kMarker, "[TOOL_CALLS]" + list, {"", {kAdd, kTime}});
  expect_taken(ToolStyle::kMarker, R"(add[ARGS]{"b": 1, "a": [2, "}"]}[TOOL_CALLS]time{})",
               {"", {kAdd, kTime}}, true);
  expect_taken(ToolStyle::kMarker, list, {list, {}});
  expect_taken(ToolStyle::kMarker, " no list", {"[TOOL_CALLS] no list", {}}, true);
}

TEST(ToolCalls, WhatNestsTooDeeplyIsText) {
  const std::string deep = std::string(100'000, '[') + std::string(100'000, ']');
  for (const auto& [style, text] :
       {std::pair{ToolStyle::kTags,
                  "<tool_call>{\"name\": \"add\", \"arguments\": {\"a\": " + deep + "}}</tool_call>"},
        {ToolStyle::kObjects, "{\"name\": \"add\", \"parameters\": {\"a\": " + deep + "}}"},
        {ToolStyle::kMarker, "[TOOL_CALLS]add[ARGS]{\"a\": " + deep + "}"},
        {ToolStyle::kMarker, "[TOOL_CALLS]" + deep}})
    EXPECT_EQ(take(style, text, 1000), (Taken{text, {}}));
}

std::string times(size_t count, const std::string& text) {
  std::string all;
  for (size_t i = 0; i < count; ++i) all += text;
  return all;
}

// An answer is taken on the thread that all answers wait for: each row costs the square of its length where something is
// looked at again with every token or every call.
TEST(ToolCalls, TakesLongAnswersInLinearTime) {
  const std::string call = R"({"name": "add", "arguments": {}})";
  const struct {
    ToolStyle style;
    std::string answer;
    size_t num_calls;
  } rows[] = {
      {ToolStyle::kObjects, std::string(1'000'000, ' '), 0},
      {ToolStyle::kObjects, times(50'000, call + ";"), 50'000},
      {ToolStyle::kTags, times(50'000, "<tool_call>" + call), 50'000},
      {ToolStyle::kTags, times(50'000, "<tool_call>" + call + "</tool_call>"), 50'000},
      {ToolStyle::kTags, times(100'000, "<tool_"), 0},
      {ToolStyle::kTags, "<tool_call>" + times(500'000, "{ "), 0},
      {ToolStyle::kMarker, times(50'000, "[TOOL_CALLS]add{}"), 50'000},
      {ToolStyle::kMarker, "[TOOL_CALLS][" + times(50'000, call + ",") + call + "]", 50'001},
      {ToolStyle::kMarker, times(100'000, "[TOOL_CALLS"), 0},
  };
  for (const auto& row : rows) {
    const CpuTime time;
    EXPECT_EQ(take(row.style, row.answer, 4).calls.size(), row.num_calls);
    EXPECT_LT(time.seconds(), 3) << row.answer.substr(0, 60);
  }
}

}  // namespace
}  // namespace soliton
