// Calls of functions in answers, as families of models write them, in pieces of every length.
#include "runtime/server/calls/call_reader.h"

#include <gmock/gmock.h>

#include "cpu_time.h"

namespace soliton {
namespace {

/// An answer taken apart.
struct Taken {
  std::string text;
  std::vector<ToolCall> calls;

  bool operator==(const Taken&) const = default;
};

const nlohmann::ordered_json kAddParameters = {
    {"type", "object"},
    {"properties", {{"a", {{"type", "array"}}}, {"b", {{"type", "integer"}}}, {"s", {{"type", "string"}}}}}};

Taken take(const char* format, const std::string& answer, size_t piece) {
  ToolCallReader reader(call_format(format), std::make_shared<const std::vector<Tool>>(std::vector<Tool>{
                                                 {"add", kAddParameters}, {"time", nullptr}}));
  Taken taken;
  for (size_t at = 0; at < answer.size(); at += piece) taken.text += reader.push(answer.substr(at, piece));
  ToolCallReader::Rest rest = reader.finish("");
  taken.text += rest.text;
  taken.calls = std::move(rest.calls);
  return taken;
}

void expect_taken(const char* format, const std::string& answer, const Taken& expected) {
  for (const size_t piece : {size_t{1}, size_t{2}, size_t{5}, size_t{1000}}) {
    const Taken taken = take(format, answer, piece);
    EXPECT_EQ(taken.text, expected.text) << answer << " in pieces of " << piece;
    EXPECT_EQ(taken.calls, expected.calls) << answer << " in pieces of " << piece;
  }
}

void expect_text(const char* format, const std::string& answer) {
  expect_taken(format, answer, {answer, {}});
}

constexpr const char* kTags = "Hermes, Qwen";
constexpr const char* kObjects = "Llama 3";
constexpr const char* kMistral = "Mistral";
constexpr const char* kPythonic = "Llama, pythonic";
constexpr const char* kGlm = "GLM";
constexpr const char* kDeepSeek = "DeepSeek";
const ToolCall kAdd = {"add", R"({"b":1,"a":[2,"}"]})"};
const ToolCall kTime = {"time", "{}"};

TEST(ToolCalls, TagsOfQwen) {
  const std::string add = R"(<tool_call>
{"name": "add", "arguments": {"b": 1, "a": [2, "}"]}}
</tool_call>)";
  expect_taken(kTags, add, {"", {kAdd}});
  expect_taken(kTags, "Let me see. " + add + "\n<tool_call>{\"name\": \"time\", \"arguments\": {}}",
               {"Let me see. ", {kAdd, kTime}});
  for (const char* text : {"a < b", "<tool_", "<tool_call>", "<tool_call>{\"name\": \"add\"}</tool_call>",
                           "<tool_call>{\"name\": \"other\", \"arguments\": {}}</tool_call>"}) {
    expect_text(kTags, text);
  }
}

TEST(ToolCalls, ObjectsOfLlama) {
  const std::string add = R"({"name": "add", "parameters": {"b": 1, "a": [2, "}"]}})";
  expect_taken(kObjects, add, {"", {kAdd}});
  expect_taken(kObjects, "\n" + add + "; {\"name\": \"time\", \"parameters\": {}}", {"", {kAdd, kTime}});
  expect_taken(kObjects, "<|python_tag|>" + add, {"", {kAdd}});
  expect_text(kObjects, "The sum is {3}.");
  expect_text(kObjects, "{\"a\": 1}");
}

TEST(ToolCalls, MarkerOfMistral) {
  const std::string list =
      R"( [{"name": "add", "arguments": {"b": 1, "a": [2, "}"]}}, {"name": "time", "arguments": {}, "id": "1"}])";
  for (const char* format : {kMistral, "Mistral with [ARGS]"}) {
    expect_taken(format, "[TOOL_CALLS]" + list, {"", {kAdd, kTime}});
    expect_taken(format, R"([TOOL_CALLS]add[ARGS]{"b": 1, "a": [2, "}"]}[TOOL_CALLS]time{})",
                 {"", {kAdd, kTime}});
    expect_taken(format, R"([TOOL_CALLS]time[CALL_ID]123456789[ARGS]{})", {"", {kTime}});
    expect_text(format, list);
    expect_text(format, "[TOOL_CALLS] no list");
  }
}

TEST(ToolCalls, PythonOfLlama) {
  expect_taken(kPythonic, R"([add(b=1, a=[2, "}"]), time()])", {"", {kAdd, kTime}});
  expect_taken(kPythonic, " [add( b = 1 ,a=(2,'}',), )] ", {"", {kAdd}});
  expect_taken(kPythonic, R"([add(b=True, a={"k": None, 'l': -2.5e1,}, s="a\"\n\u00e9\ud83d\ude00\q")])",
               {"", {{"add", R"({"b":true,"a":{"k":null,"l":-25.0},"s":"a\"\né😀\\q"})"}}});
  for (const char* text :
       {"[1, 2]", "[add(1)]", "[add(b=1, b=2)]", "[add(b=)]", "[add(b=1]", "[other()]", "[add(b=1)] so",
        "[add(b=\"x)]", "[add(b=1e5e5)]", "[add(b=\"\\ud83d\")]", "So: [time()]"}) {
    expect_text(kPythonic, text);
  }
}

TEST(ToolCalls, ArgumentTagsOfGlm) {
  expect_taken(kGlm,
               "Well.\n<tool_call>add\n<arg_key>b</arg_key>\n<arg_value>1</arg_value>\n<arg_key>a</arg_key>\n"
               "<arg_value>[2, \"}\"]</arg_value>\n</tool_call>\n<tool_call>time</tool_call>",
               {"Well.\n", {kAdd, kTime}});
  // A text stays as it is; what the schema does not know is JSON where it can be.
  expect_taken(kGlm,
               "<tool_call>add\n<arg_key>s</arg_key><arg_value>1 "
               "</arg_value><arg_key>x</arg_key><arg_value>{2</arg_value>"
               "<arg_key>y</arg_key><arg_value>null</arg_value></tool_call>",
               {"", {{"add", R"({"s":"1 ","x":"{2","y":null})"}}});
  for (const char* text : {"<tool_call>other</tool_call>", "<tool_call>add\n<arg_key>b</arg_key></tool_call>",
                           "<tool_call>add\n<arg_key>b</arg_key><arg_value>1</arg_value>x</tool_call>"})
    expect_text(kGlm, text);
}

TEST(ToolCalls, MarksOfDeepSeek) {
  const std::string begin = "<｜tool▁calls▁begin｜>";
  const std::string end = "<｜tool▁calls▁end｜>";
  const std::string old =
      "<｜tool▁call▁begin｜>function<｜tool▁sep｜>add\n```json\n{\"b\": 1, \"a\": [2, "
      "\"}\"]}\n```<｜tool▁call▁end｜>";
  for (const char* format : {kDeepSeek, "DeepSeek V3.1"}) {
    expect_taken(format, "So. " + begin + old + end, {"So. ", {kAdd}});
    expect_taken(format, begin + old + "\n<｜tool▁call▁begin｜>time<｜tool▁sep｜>{}<｜tool▁call▁end｜>" + end,
                 {"", {kAdd, kTime}});
    expect_taken(format, begin + old, {"", {kAdd}});
    expect_text(format, begin + "<｜tool▁call▁begin｜>time" + end);
    expect_text(format, begin + old + end + "more");
  }
}

TEST(ToolCalls, ChannelOfHarmony) {
  expect_taken(
      "harmony",
      R"(<|channel|>commentary to=functions.add <|constrain|>json<|message|>{"b": 1, "a": [2, "}"]})",
      {"", {kAdd}});
  // As the reader of reasoning tells what names the function before its channel.
  expect_taken(
      "harmony",
      R"(I will add.<|channel|>commentary to=functions.add<|channel|>commentary json<|message|>{"b": 1, )"
      R"("a": [2, "}"]})",
      {"I will add.", {kAdd}});
  expect_text("harmony", "<|channel|>commentary to=functions.other<|message|>{}");
}

TEST(ToolCalls, WhatNestsTooDeeplyIsText) {
  const std::string deep = std::string(100'000, '[') + std::string(100'000, ']');
  for (const auto& [format, text] :
       {std::pair{kTags, "<tool_call>{\"name\": \"add\", \"arguments\": {\"a\": " + deep + "}}</tool_call>"},
        {kObjects, "{\"name\": \"add\", \"parameters\": {\"a\": " + deep + "}}"},
        {kMistral, "[TOOL_CALLS]add[ARGS]{\"a\": " + deep + "}"},
        {kMistral, "[TOOL_CALLS]" + deep},
        {kPythonic, "[add(a=" + deep + ")]"}})
    EXPECT_EQ(take(format, text, 1000), (Taken{text, {}}));
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
    const char* format;
    std::string answer;
    size_t num_calls;
  } rows[] = {
      {kObjects, std::string(1'000'000, ' '), 0},
      {kObjects, times(50'000, call + ";"), 50'000},
      {kTags, times(50'000, "<tool_call>" + call), 50'000},
      {kTags, times(50'000, "<tool_call>" + call + "</tool_call>"), 50'000},
      {kTags, times(100'000, "<tool_"), 0},
      {kTags, "<tool_call>" + times(500'000, "{ "), 0},
      {kMistral, times(50'000, "[TOOL_CALLS]add{}"), 50'000},
      {kMistral, "[TOOL_CALLS][" + times(50'000, call + ",") + call + "]", 50'001},
      {kMistral, times(100'000, "[TOOL_CALLS"), 0},
      {kPythonic, "[" + times(50'000, "add(b=1),") + "add()]", 50'001},
      {kPythonic, "[add(a=[" + times(200'000, "1,") + "])]", 1},
      {kGlm, times(50'000, "<tool_call>add<arg_key>b</arg_key><arg_value>1</arg_value></tool_call>"), 50'000},
      {kGlm, times(100'000, "<tool_call>add<arg_key>"), 0},
      {kDeepSeek,
       "<｜tool▁calls▁begin｜>" +
           times(50'000, "<｜tool▁call▁begin｜>add<｜tool▁sep｜>{}<｜tool▁call▁end｜>"),
       50'000},
  };
  for (const auto& row : rows) {
    const CpuTime time;
    EXPECT_EQ(take(row.format, row.answer, 4).calls.size(), row.num_calls);
    EXPECT_LT(time.seconds(), 3) << row.answer.substr(0, 60);
  }
}

}  // namespace
}  // namespace soliton
