// Bodies of requests: what they mean, and who refuses what by which name.
#include "runtime/server/api_request.h"

#include <gmock/gmock.h>

namespace soliton {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr const char* kMessage = R"("messages": [{"role": "user", "content": "Hi"}])";

ApiRequest chat(const std::string& members, const Sampling& defaults = {}) {
  return parse_api_request(
      ApiKind::kChat, "{" + std::string(kMessage) + (members.empty() ? "" : ", ") + members + "}", defaults);
}
ApiRequest completion(const std::string& body) {
  return parse_api_request(ApiKind::kCompletion, body, {});
}

void expect_refused(const std::string& members, const std::string& param, const std::string& fragment) {
  try {
    chat(members);
    ADD_FAILURE() << "accepted: " << members;
  } catch (const ApiError& error) {
    EXPECT_EQ(error.status(), 400) << members;
    EXPECT_EQ(error.param(), param) << error.what();
    EXPECT_THAT(error.what(), HasSubstr(fragment)) << members;
  }
}

TEST(ApiRequest, TakesWhatItKnowsAndTheRestFromTheModel) {
  const Sampling defaults{.temperature = 0.6, .top_k = 20};
  const ApiRequest plain = chat("", defaults);
  EXPECT_EQ(plain.sampling.temperature, 0.6);
  EXPECT_EQ(plain.sampling.top_k, 20);
  EXPECT_EQ(plain.num_choices, 1);
  EXPECT_FALSE(plain.max_tokens);
  EXPECT_NE(chat("").sampling.seed, chat("").sampling.seed);
  const ApiRequest full = chat(
      R"("temperature": 0.5, "top_p": 0.9, "top_k": -1, "min_p": 0.1, "repetition_penalty": 1.1, "seed": 7, "n": 3,
         "max_tokens": 5, "max_completion_tokens": 9, "stop": ["a", "b"], "logprobs": true, "top_logprobs": 2,
         "stream": true, "stream_options": {"include_usage": true}, "ignore_eos": true, "frequency_penalty": 0,
         "logit_bias": {}, "response_format": {"type": "text"}, "user": 5, "unknown": {"x": [1]}, "model": "any")",
      defaults);
  EXPECT_EQ(full.sampling.temperature, 0.5);
  EXPECT_EQ(full.sampling.top_p, 0.9);
  EXPECT_EQ(full.sampling.top_k, 0);
  EXPECT_EQ(full.sampling.min_p, 0.1);
  EXPECT_EQ(full.sampling.repeat_penalty, 1.1);
  EXPECT_EQ(full.sampling.seed, 7u);
  EXPECT_TRUE(full.sampling.logprobs);
  EXPECT_EQ(full.num_choices, 3);
  EXPECT_EQ(full.max_tokens, 9);
  EXPECT_THAT(full.stops, ElementsAre("a", "b"));
  EXPECT_EQ(full.num_top_logprobs, 2);
  EXPECT_TRUE(full.streams && full.includes_usage && full.ignores_stop_tokens);
  EXPECT_EQ(chat(R"("seed": -8589934593)").sampling.seed, chat(R"("seed": -8589934593)").sampling.seed);
}

TEST(ApiRequest, NumbersWithoutAFractionAreIntegers) {
  EXPECT_EQ(chat(R"("max_tokens": 5.0, "seed": 7e2, "n": 2)").max_tokens, 5);
  EXPECT_EQ(chat(R"("seed": 7e2)").sampling.seed, 700u);
  EXPECT_EQ(std::get<std::vector<int32_t>>(completion(R"({"prompt": [1.0, 2]})").prompts.at(0)),
            (std::vector<int32_t>{1, 2}));
  expect_refused(R"("max_tokens": 5.5)", "max_tokens", "got 5.5");
  expect_refused(R"("max_tokens": 1e300)", "max_tokens", "expected an integer");
}

TEST(ApiRequest, RefusesByName) {
  expect_refused(R"("temperature": -1)", "temperature", "expected a number");
  expect_refused(R"("temperature": "hot")", "temperature", "got \"hot\"");
  expect_refused(R"("top_p": 2)", "top_p", "got 2");
  expect_refused(R"("n": 0)", "n", "got 0");
  expect_refused(R"("n": 129)", "n", "got 129");
  expect_refused(R"("max_tokens": 0)", "max_tokens", "got 0");
  expect_refused(R"("max_completion_tokens": 1.5)", "max_completion_tokens", "got 1.5");
  expect_refused(R"("stop": [""])", "stop[0]", "expected text");
  expect_refused(R"("stop": 5)", "stop", "got 5");
  expect_refused(R"("stop": ["a", ")" + std::string(1001, 'x') + "\"]", "stop[1]",
                 "expected at most 1000 bytes");
  expect_refused(R"("stream": 1)", "stream", "got 1");
  expect_refused(R"("stream_options": {"include_usage": true})", "stream_options", "without");
  expect_refused(R"("top_logprobs": 3)", "top_logprobs", "without");
  expect_refused(R"("logprobs": true, "top_logprobs": 21)", "top_logprobs", "got 21");
  expect_refused(R"("logit_bias": {"5": 1})", "logit_bias", "got 1 of token 5");
  expect_refused(R"("logit_bias": {"5": 101})", "logit_bias.5", "got 101");
  expect_refused(R"("logit_bias": {"-5": 100})", "logit_bias", "expected the ids of tokens, got \"-5\"");
  expect_refused(R"("logit_bias": {"5x": 100})", "logit_bias", "expected the ids of tokens");
  expect_refused(R"("logit_bias": {"5": 100}, "json_schema": {})", "logit_bias", "beside a grammar");
  expect_refused(R"("response_format": {"type": "xml"})", "response_format.type", "got \"xml\"");
  expect_refused(R"("response_format": {"type": "json_schema", "json_schema": {"name": "n"}})",
                 "response_format.json_schema.schema", "got nothing");
  expect_refused(R"("response_format": {"type": "json_schema", "json_schema": {"schema": {"not": {}}}})",
                 "response_format.json_schema.schema", "not: not supported");
  expect_refused(R"("json_schema": {"type": "x"})", "json_schema", "expected one of object");
  expect_refused(R"("grammar": "root = x")", "grammar", "grammar:1:6: expected ::=");
  expect_refused(R"("grammar": "root ::= \"x\"", "json_schema": {})", "grammar", "got both");
  expect_refused(R"("json_schema": {}, "tools": [{"type": "function", "function": {"name": "f"}}])", "tools",
                 "expected none beside a grammar");
  expect_refused(R"("guided_json": {})", "guided_json", "not supported");
  expect_refused(R"("presence_penalty": 0.5)", "presence_penalty", "not supported");
  expect_refused(R"("best_of": 3, "n": 4)", "best_of", "expected");
  expect_refused(R"("best_of": 3, "stream": true)", "best_of", "in a stream");
  expect_refused(R"("tools": [{"type": "x"}])", "tools[0].type", "expected function");
  expect_refused(R"("tools": [{"type": "function", "function": {}}])", "tools[0].function.name",
                 "got nothing");
  expect_refused(R"("tool_choice": "required")", "tool_choice", "not supported");
  expect_refused(R"("tool_choice": {"type": "function", "function": {"name": "f"}})", "tool_choice",
                 "not supported");
  expect_refused(R"("n": 1, "n": 2)", "n", "duplicate");
}

TEST(ApiRequest, ReadsWhatAnswersMayBe) {
  const auto grammar = [](const std::string& members) {
    return parse_api_request(ApiKind::kChat,
                             R"({"messages": [{"role": "user", "content": "x"}], )" + members + "}", {})
        .grammar;
  };
  EXPECT_FALSE(grammar(R"("response_format": {"type": "text"}, "grammar": "")"));
  for (
      const char* members :
      {R"("response_format": {"type": "json_object"})",
       R"("response_format": {"type": "json_object", "schema": {"type": "object"}})",
       R"("response_format": {"type": "json_schema", "json_schema": {"name": "n", "strict": true, "schema": {}}})",
       R"("json_schema": {"properties": {"b": {}, "a": {}}})", R"("grammar": "root ::= \"x\"")"})
    EXPECT_TRUE(grammar(members)) << members;
}

TEST(ApiRequest, RefusesWhatIsNoBody) {
  const auto refusal = [](const std::string& body) {
    try {
      parse_api_request(ApiKind::kChat, body, {});
    } catch (const ApiError& error) {
      return error.status();
    }
    return 200;
  };
  for (const char* body :
       {"", "{", "[]", "5", "{}", R"({"messages": []})", R"({"messages": [5]})", R"({"messages": {}})",
        R"({"messages": [{"role": "user"}]})", R"({"messages": [{"content": "x"}]})",
        "{\"messages\": [{\"role\": \"user\", \"content\": \"\xff\"}]}"}) {
    EXPECT_EQ(refusal(body), 400) << body;
  }
  EXPECT_EQ(refusal(std::string(100'000, '[')), 400);
}

TEST(ApiRequest, MessagesAreAsTemplatesTakeThem) {
  const ApiRequest request = parse_api_request(ApiKind::kChat, R"({"messages": [
      {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]},
      {"role": "assistant", "content": null, "tool_calls": [
        {"id": "1", "type": "function", "function": {"name": "f", "arguments": "{\"z\": 1, \"a\": 2}"}}]},
      {"role": "tool", "tool_call_id": "1", "content": "3"}],
      "tools": [{"type": "function", "function": {"name": "f", "parameters": {"z": 1, "a": 2}}}]})",
                                               {});
  EXPECT_EQ(request.messages[0]["content"], "ab");
  EXPECT_EQ(request.messages[1]["content"], "");
  EXPECT_EQ(request.messages[1]["tool_calls"][0]["function"]["arguments"].dump(), R"({"z":1,"a":2})");
  EXPECT_EQ(request.tools[0]["function"]["parameters"].dump(), R"({"z":1,"a":2})");
  EXPECT_TRUE(chat(R"("tools": [{"type": "function", "function": {"name": "f"}}], "tool_choice": "none")")
                  .tools.is_null());
  try {
    parse_api_request(ApiKind::kChat,
                      R"({"messages": [{"role": "user", "content": [{"type": "image_url"}]}]})", {});
    ADD_FAILURE();
  } catch (const ApiError& error) {
    EXPECT_EQ(error.param(), "messages[0].content[0].type");
  }
}

TEST(ApiRequest, ArgumentsOfCallsAreReadAsStrictlyAsBodies) {
  const auto with = [](const std::string& arguments) {
    const nlohmann::json body = {
        {"messages",
         {{{"role", "assistant"},
           {"tool_calls", {{{"function", {{"name", "f"}, {"arguments", arguments}}}}}}}}}};
    return parse_api_request(ApiKind::kChat, body.dump(), {})
        .messages[0]["tool_calls"][0]["function"]["arguments"];
  };
  EXPECT_EQ(with(""), nlohmann::ordered_json::object());
  EXPECT_EQ(with("no JSON"), "no JSON");
  EXPECT_EQ(with("{\"a\": 1, \"a\": 2}").dump(), "{\"a\":2}");
  for (const size_t depth : {size_t{65}, size_t{100'000}}) {
    try {
      with(std::string(depth, '[') + std::string(depth, ']'));
      ADD_FAILURE() << "accepted " << depth;
    } catch (const ApiError& error) {
      EXPECT_EQ(error.status(), 400);
      EXPECT_STREQ(
          error.what(),
          "messages[0].tool_calls[0].function.arguments: expected JSON nested at most 64 deep, got deeper");
      EXPECT_EQ(error.param(), "messages[0].tool_calls[0].function.arguments");
    }
  }
}

TEST(ApiRequest, PromptsAreTextOrTokens) {
  using Tokens = std::vector<int32_t>;
  EXPECT_EQ(std::get<std::string>(completion(R"({"prompt": "a"})").prompts.at(0)), "a");
  EXPECT_EQ(completion(R"({"prompt": ["a", "b"]})").prompts.size(), 2u);
  EXPECT_EQ(std::get<Tokens>(completion(R"({"prompt": [1, 2]})").prompts.at(0)), (Tokens{1, 2}));
  EXPECT_EQ(std::get<Tokens>(completion(R"({"prompt": [[1], [2, 3]]})").prompts.at(1)), (Tokens{2, 3}));
  EXPECT_EQ(completion(R"({"prompt": "a", "logprobs": 0})").num_top_logprobs, 0);
  EXPECT_TRUE(completion(R"({"prompt": "a", "logprobs": 0})").logprobs);
  for (const char* body : {R"({})", R"({"prompt": []})", R"({"prompt": [-1]})", R"({"prompt": [[]]})",
                           R"({"prompt": [1, "a"]})", R"({"prompt": {"a": 1}})"}) {
    EXPECT_THROW(completion(body), ApiError) << body;
  }
}

}  // namespace
}  // namespace soliton
