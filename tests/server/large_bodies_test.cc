// Bodies whose every member is as large as it can be: read, or refused, in about linear time. What is read asks for more
// tokens than there is room for, so that nothing is generated.
#include <gmock/gmock.h>

#include "cpu_time.h"
#include "server/service_fixture.h"

namespace soliton::large_bodies {
namespace {

using testing::HasSubstr;

/// `count` parts with commas between them.
template <class Part>
std::string list(int count, Part&& part) {
  std::string all;
  for (int i = 0; i < count; ++i) {
    if (i > 0) all += ',';
    all += part(i);
  }
  return all;
}
std::string members(int count, const std::string& value) {
  return list(count, [&](int i) { return fmt::format("\"{}\":{}", i, value); });
}
std::string times(int count, const std::string& text) {
  std::string all;
  for (int i = 0; i < count; ++i) all += text;
  return all;
}
std::string many(int count, const std::string& value) {
  return list(count, [&](int) { return value; });
}

struct Row {
  const char* what;
  const char* path;
  std::string body;
  const char* answer;  // a part of it
};

constexpr const char* kTooLong = "context: expected at most";
constexpr const char* kUser = R"("messages": [{"role": "user", "content": "a"}])";

Row chat(const char* what, const std::string& body, const char* answer = kTooLong) {
  return {what, "/v1/chat/completions", "{\"max_tokens\": 100000, " + body + "}", answer};
}
Row completion(const char* what, const std::string& body, const char* answer = kTooLong) {
  return {what, "/v1/completions", "{\"max_tokens\": 100000, " + body + "}", answer};
}
Row message(const char* what, const std::string& message, const char* answer = kTooLong) {
  return chat(what, "\"messages\": [{\"role\": \"user\", " + message + "}]", answer);
}
Row call(const char* what, const std::string& arguments, const char* answer = kTooLong) {
  return message(what,
                 "\"tool_calls\": [{\"function\": {\"name\": \"f\", \"arguments\": " +
                     nlohmann::json(arguments).dump() + "}}]",
                 answer);
}
Row content(const char* what, const std::string& text, const char* answer = kTooLong) {
  return message(what, "\"content\": " + nlohmann::json(text).dump(), answer);
}

std::vector<Row> rows_of_members() {
  const std::string user = kUser + std::string(", ");
  const std::string numbers = list(9000, [](int i) { return std::to_string(i); });
  const std::string merged = "{\"allOf\": [{\"enum\": [" + numbers + "]}, {\"enum\": [" + numbers + "]}]}";
  return {
      chat("unknown members", user + members(100'000, "0")),
      chat("too many members", user + members(600'000, "0"), "at most 500000 members"),
      chat("members of members", user + "\"x\": [" + many(30'000, R"({"a":{"b":{"c":0}}})") + "]"),
      chat("equal members", user + members(80'000, "0") + ", \"7\": 0", "7: duplicate key"),
      chat("values", user + "\"x\": [" + many(500'000, "0") + "]"),
      chat("too many values", user + "\"x\": [" + many(2'000'000, "[]") + "]", "at most 2000000 JSON values"),
      chat("logit_bias", user + "\"logit_bias\": {" + members(100'000, "0") + "}"),
      chat("stop", user + "\"stop\": [" + many(64, "\"" + std::string(1000, 'a') + "\"") + "], \"n\": 128"),
      chat("long stop", user + "\"stop\": \"" + std::string(1'000'000, 'a') + "\"", "at most 1000 bytes"),
      chat("many stops", user + "\"stop\": [" + many(150'000, "\"a\"") + "]", "at most 64 texts"),
      chat("tools", user + "\"n\": 128, \"tools\": [" +
                        many(1000, R"({"type": "function", "function": {"name": ")" + std::string(2000, 'f') +
                                       "\"}}") +
                        "]"),
      chat("many tools", user + "\"tools\": [" + many(10'000, R"({"type": "function"})") + "]",
           "tools: expected at most 1000 functions"),
      chat("a large tool", user +
                               R"("tools": [{"type": "function", "function": {"name": "f", "parameters": {)" +
                               members(80'000, "0") + "}}}]"),
      chat("tools that take long",
           user + "\"tools\": [" +
               list(20,
                    [&](int i) {
                      return fmt::format(
                          R"({{"type": "function", "function": {{"name": "f{}", "parameters": {}}}}})", i,
                          merged);
                    }) +
               "]"),
      chat("chat_template_kwargs", user + "\"chat_template_kwargs\": {" + members(80'000, "0") + "}"),
      chat("json_schema", user + R"("json_schema": {"enum": [)" + many(100'000, "0") + "]}",
           "values of enum"),
      chat("response_format",
           user + R"("response_format": {"type": "json_object", "schema": {"required": [)" +
               list(100'000, [](int i) { return fmt::format("\"{}\"", i); }) + "]}}",
           "names of required"),
  };
}

std::vector<Row> rows_of_text() {
  const std::string deep = std::string(100'000, '[') + std::string(100'000, ']');
  return {
      chat("messages", "\"messages\": [" + many(20'000, R"({"role": "user", "content": "a"})") + "]"),
      message("members of a message", "\"content\": \"a\", " + members(80'000, "0")),
      message("parts", "\"content\": [" + many(40'000, R"({"type": "text", "text": "a"})") + "]"),
      message("calls", "\"content\": \"a\", \"tool_calls\": [" +
                           many(20'000, R"({"function": {"name": "f", "arguments": "{}"}})") + "]"),
      call("members of arguments", "{" + members(80'000, "0") + "}"),
      call("equal members of arguments", "{" + many(80'000, "\"a\":0") + "}"),
      call("arguments that nest", deep, "arguments: expected JSON nested at most 64 deep"),
      call("arguments that are text", std::string(1'000'000, 'a')),
      content("content", std::string(700'000, 'a')),
      content("spaces", std::string(700'000, ' ')),
      content("begins of special tokens", std::string(700'000, '<')),
      content("special tokens", times(200'000, "<x>")),
      completion("prompt", "\"prompt\": \"" + std::string(700'000, 'a') + "\""),
      completion("prompt that is echoed",
                 "\"echo\": true, \"n\": 128, \"prompt\": \"" + std::string(100'000, 'a') + "\""),
      completion("tokens", "\"prompt\": [" + many(300'000, "1") + "]"),
      completion("prompts", "\"prompt\": [" + many(128, "[" + many(5000, "1") + "]") + "], \"n\": 128"),
      completion("many prompts", "\"prompt\": [" + many(150'000, "\"a\"") + "]", "1 to 128 prompts"),
      {"tokenize", "/tokenize", "{\"content\": \"" + std::string(300'000, 'a') + "\"}", "\"count\":300000"},
      {"tokenize messages", "/tokenize",
       "{\"messages\": [" + many(20'000, R"({"role": "user", "content": "a"})") + "]}", "\"count\":"},
      {"tokenize arguments that nest", "/tokenize",
       R"({"messages": [{"role": "a", "tool_calls": [{"function": {"name": "f", "arguments": ")" + deep +
           "\"}}]}]}",
       "arguments: expected JSON nested at most 64 deep"},
      {"detokenize", "/detokenize", "{\"tokens\": [" + many(300'000, "1") + "]}", "content"},
  };
}

/// By the other APIs.
Row of(const char* what, const char* path, const std::string& body, const char* answer = kTooLong) {
  return {what, path, "{" + body + "}", answer};
}

std::vector<Row> rows_of_other_apis() {
  const std::string unknown = ", " + members(30'000, "0");
  const std::string limit = "\"max_tokens\": 100000, ";
  const std::string output = "\"max_output_tokens\": 100000, ";
  const std::string predict = R"("options": {"num_predict": 100000}, )";
  const std::string text = R"({"type": "text", "text": "a"})";
  const std::string item = R"({"role": "user", "content": "a"})";
  return {
      of("blocks", "/v1/messages",
         limit + R"("messages": [{"role": "user", "content": [)" + many(30'000, text) + "]}]" + unknown),
      of("messages", "/v1/messages", limit + "\"messages\": [" + many(10'000, item) + "]" + unknown),
      of("calls", "/v1/messages",
         limit + R"("messages": [{"role": "assistant", "content": [)" +
             many(10'000, R"({"type": "tool_use", "id": "1", "name": "f", "input": {}})") + "]}]" + unknown),
      of("results", "/v1/messages",
         limit + R"("messages": [{"role": "user", "content": [)" +
             many(10'000, R"({"type": "tool_result", "tool_use_id": "1", "content": "a"})") + "]}]" +
             unknown),
      of("items", "/v1/responses", output + "\"input\": [" + many(15'000, item) + "]" + unknown),
      of("items of the system", "/v1/responses",
         output + "\"input\": [" + many(30'000, R"({"role": "system", "content": "a"})") + "]" + unknown),
      of("items of calls", "/v1/responses",
         output + "\"input\": [" +
             many(30'000, R"({"type": "function_call", "call_id": "1", "name": "f", "arguments": "{}"})") +
             "]" + unknown),
      of("metadata", "/v1/responses",
         output + R"("input": "a", "metadata": {)" + members(100'000, "\"b\"") + "}"),
      of("messages of Ollama's", "/api/chat",
         predict + "\"messages\": [" + many(10'000, item) + "]" + unknown),
      of("a prompt of Ollama's", "/api/generate",
         predict + "\"prompt\": \"" + std::string(300'000, 'a') + "\""),
      completion("a prompt whose logprobs are wanted",
                 "\"echo\": true, \"logprobs\": 0, \"prompt\": [" + many(300'000, "5") + "]"),
  };
}

class LargeBodies : public ServiceTest {
 protected:
  void expect_quick(const std::vector<Row>& rows) {
    for (const Row& row : rows) {
      HttpRequest request;
      request.method = "POST";
      request.path = row.path;
      request.body = row.body;
      request.host = "localhost";
      const CpuTime time(CLOCK_PROCESS_CPUTIME_ID);
      const std::string answer = response_of(service_->answer(request)).body;
      const double took = time.seconds();
      fmt::print("{:30} {:4} KB {:7.3f} s  {}\n", row.what, row.body.size() >> 10, took,
                 answer.substr(0, 120));
      EXPECT_LT(took, 3) << row.what;
      EXPECT_THAT(answer.substr(0, 300) + answer.substr(answer.size() - std::min<size_t>(answer.size(), 100)),
                  HasSubstr(row.answer))
          << row.what;
    }
  }
};

TEST_F(LargeBodies, MembersAreReadInLinearTime) {
  expect_quick(rows_of_members());
}

TEST_F(LargeBodies, OtherApisAreReadInLinearTime) {
  expect_quick(rows_of_other_apis());
}

TEST_F(LargeBodies, TextsAreReadInLinearTime) {
  expect_quick(rows_of_text());
}

}  // namespace
}  // namespace soliton::large_bodies
