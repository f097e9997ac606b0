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

// By the names that other servers and the APIs of models have.
TEST(ApiRequest, TakesOthersNames) {
  EXPECT_EQ(chat(R"("n_predict": 7)").max_tokens, 7);
  EXPECT_EQ(chat(R"("n_predict": 7, "max_tokens": 8)").max_tokens, 8);
  EXPECT_THAT(chat(R"("stop_token_ids": [5, 0])").stop_tokens, ElementsAre(5, 0));
  EXPECT_EQ(chat(R"("enable_thinking": false)").variables["enable_thinking"], false);
  const ApiRequest thinking =
      chat(R"("thinking": {"type": "enabled"}, "chat_template_kwargs": {"thinking": 1})");
  EXPECT_EQ(thinking.variables["enable_thinking"], true);
  EXPECT_EQ(thinking.variables["thinking"], 1) << "what the template is told by name goes before";
  EXPECT_TRUE(chat(R"("thinking": null)").variables.is_null());
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
  expect_refused(R"("max_tokens": -2)", "max_tokens", "got -2");
  expect_refused(R"("max_completion_tokens": 1.5)", "max_completion_tokens", "got 1.5");
  expect_refused(R"("stop": [""])", "stop[0]", "expected text");
  expect_refused(R"("stop": 5)", "stop", "got 5");
  expect_refused(R"("stop": ["a", ")" + std::string(1001, 'x') + "\"]", "stop[1]",
                 "expected at most 1000 bytes");
  expect_refused(R"("stream": 1)", "stream", "got 1");
  expect_refused(R"("stream_options": {"include_usage": true})", "stream_options", "without");
  expect_refused(R"("top_logprobs": 3)", "top_logprobs", "without");
  EXPECT_FALSE(chat(R"("top_logprobs": 0)").logprobs);
  expect_refused(R"("logprobs": true, "top_logprobs": 21)", "top_logprobs", "got 21");
  expect_refused(R"("logit_bias": {"5": 101})", "logit_bias.5", "got 101");
  expect_refused(R"("logit_bias": {"-5": 100})", "logit_bias", "expected the ids of tokens, got \"-5\"");
  expect_refused(R"("logit_bias": {"5x": 100})", "logit_bias", "expected the ids of tokens");
  expect_refused(R"("response_format": {"type": "xml"})", "response_format.type", "got \"xml\"");
  expect_refused(R"("response_format": {"type": "json_schema", "json_schema": {"name": "n"}})",
                 "response_format.json_schema.schema", "got nothing");
  expect_refused(
      R"("response_format": {"type": "json_schema", "json_schema": {"schema": {"$dynamicRef": "#a"}}})",
      "response_format.json_schema.schema", "$dynamicRef: not supported");
  expect_refused(R"("json_schema": {"type": "x"})", "json_schema", "expected one of object");
  expect_refused(R"("grammar": "root = x")", "grammar", "grammar:1:6: expected ::=");
  expect_refused(R"("grammar": "root ::= \"x\"", "json_schema": {})", "grammar", "got both");
  for (const char* name : {"min_tokens", "mirostat", "dry_multiplier", "xtc_probability", "dynatemp_range",
                           "top_a", "smoothing_factor", "truncate_prompt_tokens"}) {
    expect_refused(fmt::format("\"{}\": 2", name), name, "not supported");
    chat(fmt::format("\"{}\": 0", name));
  }
  expect_refused(R"("typical_p": 0.5)", "typical_p", "not supported");
  expect_refused(R"("tfs_z": 0.5)", "tfs_z", "not supported");
  expect_refused(R"("allowed_token_ids": [1])", "allowed_token_ids", "not supported");
  expect_refused(R"("documents": [{}])", "documents", "not supported");
  expect_refused(R"("lora": [{"id": 0}])", "lora", "not supported");
  expect_refused(R"("chat_template": "{{ 1 }}")", "chat_template", "not supported");
  expect_refused(R"("thinking_token_budget": 5)", "thinking_token_budget", "not supported");
  expect_refused(R"("modalities": ["text", "audio"])", "modalities", "got \"audio\"");
  expect_refused(R"("skip_special_tokens": false)", "skip_special_tokens", "not supported");
  expect_refused(R"("include_stop_str_in_output": true)", "include_stop_str_in_output", "not supported");
  expect_refused(R"("return_token_ids": 1)", "return_token_ids", "expected");
  expect_refused(R"("add_special_tokens": true)", "add_special_tokens", "not supported");
  expect_refused(R"("repeat_last_n": 64, "repeat_penalty": 1.1)", "repeat_last_n", "got 64");
  const ApiRequest unpenalised = chat(R"("repeat_last_n": 0, "presence_penalty": 1, "repeat_penalty": 1.1)");
  EXPECT_EQ(unpenalised.adjustment.presence_penalty, 0);
  EXPECT_EQ(unpenalised.sampling.repeat_penalty, 1);
  expect_refused(R"("stop_token_ids": [-1])", "stop_token_ids[0]", "expected");
  expect_refused(R"("thinking": {"type": "some"})", "thinking.type", "expected enabled or disabled");
  expect_refused(R"("thinking": true)", "thinking", "expected");
  chat(R"("allowed_token_ids": [], "modalities": ["text"], "skip_special_tokens": true, "repeat_last_n": 64,
          "add_special_tokens": false, "include_stop_str_in_output": false, "top_a": 0, "tfs_z": 1)");
  expect_refused(R"("length_penalty": 2)", "length_penalty", "not supported");
  expect_refused(R"("functions": [{"name": "f"}])", "functions", "not supported");
  expect_refused(R"("bad_words": ["a"])", "bad_words", "not supported");
  expect_refused(R"("audio": {})", "audio", "not supported");
  chat(R"("functions": [], "bad_words": [], "typical_p": 1, "length_penalty": 1.0, "audio": null)");
  expect_refused(R"("guided_json": {"type": "x"})", "guided_json", "expected one of object");
  expect_refused(R"("guided_regex": "(")", "guided_regex", "expected a )");
  expect_refused(R"("regex": "a", "ebnf": "root ::= \"x\"")", "ebnf",
                 "expected one of regex and ebnf, got both");
  expect_refused(R"("guided_choice": [])", "guided_choice", "at least one text");
  expect_refused(R"("structured_outputs": {"regex": "a", "choice": ["b"]})", "structured_outputs.choice",
                 "got two");
  expect_refused(R"("structured_outputs": {"structural_tag": "a"})", "structured_outputs.structural_tag",
                 "not supported");
  try {
    parse_api_request(ApiKind::kChat, R"({"messages": [{"role": "user", "content": "x", "prefix": 1}]})", {});
    ADD_FAILURE() << "accepted a prefix that is a number";
  } catch (const ApiError& error) {
    EXPECT_EQ(error.param(), "messages[0].prefix");
  }
  expect_refused(R"("continue_final_message": true)", "continue_final_message",
                 "expected a last message of the assistant");
  expect_refused(R"("continue_final_message": true, "add_generation_prompt": true)", "continue_final_message",
                 "expected add_generation_prompt to be false");
  expect_refused(R"("presence_penalty": 2.5)", "presence_penalty", "got 2.5");
  expect_refused(R"("best_of": 3, "n": 4)", "best_of", "expected");
  expect_refused(R"("best_of": 3, "stream": true)", "best_of", "in a stream");
  expect_refused(R"("tools": [{"type": "x"}])", "tools[0].type", "expected function");
  expect_refused(R"("tools": [{"type": "function", "function": {}}])", "tools[0].function.name",
                 "got nothing");
  expect_refused(R"("tools": [{"type": "function", "function": {"name": "f", "parameters": []}}])",
                 "tools[0].function.parameters", "expected an object");
  expect_refused(R"("tool_choice": "required")", "tool_choice", "expected some tools");
  expect_refused(R"("n": 1, "n": 2)", "n", "duplicate");
}

TEST(ApiRequest, ReadsWhatIsDoneToLogits) {
  const ApiRequest request = chat(
      R"("logit_bias": {"5": 1.5, "6": -100, "7": 0, "8": 100}, "frequency_penalty": -2, "presence_penalty": 0.5)");
  EXPECT_THAT(request.adjustment.biases, ElementsAre(std::pair(5, 1.5f)));
  EXPECT_EQ(request.adjustment.frequency_penalty, -2);
  EXPECT_EQ(request.adjustment.presence_penalty, 0.5);
  EXPECT_THAT(request.forbidden, ElementsAre(6));
  EXPECT_THAT(request.only, ElementsAre(8));
  EXPECT_TRUE(chat(R"("logit_bias": {"5": 100, "7": 0}, "frequency_penalty": 0)").adjustment.is_none());
  const ApiRequest of_schema = chat(R"("logit_bias": {"5": 100, "6": -100}, "json_schema": {})");
  EXPECT_THAT(of_schema.adjustment.biases, ElementsAre(std::pair(6, -100.0f), std::pair(5, 100.0f)));
  EXPECT_TRUE(of_schema.only.empty() && of_schema.forbidden.empty());
}

TEST(ApiRequest, ContentsMayBeNull) {
  for (const char* role : {"user", "assistant", "tool", "system"}) {
    const std::string body = fmt::format(R"({{"messages": [{{"role": "{}", "content": null}}]}})", role);
    EXPECT_EQ(parse_api_request(ApiKind::kChat, body, {}).messages[0]["content"], "") << role;
  }
}

TEST(ApiRequest, ReadsWhichFunctionsMayBeCalled) {
  const std::string tools =
      R"("tools": [{"type": "function", "function": {"name": "f", "strict": true}}, {"type": "function", "function": {"name": "g"}}])";
  const auto called = [&](const std::string& members) {
    const ToolRequest request = chat(tools + members).tools;
    std::string text = request.described.is_null() ? "none:" : request.is_required ? "required:" : "auto:";
    for (const Tool& tool : request.callable) text += " " + tool.name;
    return text + (request.may_be_several ? "" : ", one");
  };
  EXPECT_EQ(called(""), "auto: f g");
  EXPECT_EQ(called(R"(, "tool_choice": "auto", "parallel_tool_calls": true)"), "auto: f g");
  EXPECT_EQ(called(R"(, "tool_choice": "none")"), "none:");
  EXPECT_EQ(called(R"(, "tool_choice": "required", "parallel_tool_calls": false)"), "required: f g, one");
  EXPECT_EQ(called(R"(, "tool_choice": "any")"), "required: f g");
  EXPECT_EQ(called(R"(, "tool_choice": {"type": "function", "function": {"name": "g"}})"), "required: g");
  const std::string allowed =
      R"(, "tool_choice": {"type": "allowed_tools", "allowed_tools": {"tools": [{"type": "function", "function": {"name": "f"}}], "mode": )";
  EXPECT_EQ(called(allowed + "\"auto\"}}"), "auto: f");
  EXPECT_EQ(called(allowed + "\"required\"}}"), "required: f");
  EXPECT_TRUE(chat(tools).tools.callable[0].is_strict);
  const auto refused = [&](const std::string& members, const std::string& param,
                           const std::string& fragment) {
    expect_refused(tools + ", " + members, param, fragment);
  };
  refused(R"("tool_choice": "some")", "tool_choice", "expected none, auto, required or a function");
  refused(R"("tool_choice": {"type": "function", "function": {"name": "h"}})", "tool_choice.function.name",
          "expected the name of one of the tools");
  refused(R"("tool_choice": {"type": "custom"})", "tool_choice.type", "expected function or allowed_tools");
  refused(R"("tool_choice": {"type": "allowed_tools", "allowed_tools": {"mode": "none", "tools": []}})",
          "tool_choice.allowed_tools.mode", "expected auto or required");
  refused(R"("parallel_tool_calls": 1)", "parallel_tool_calls", "got 1");
  EXPECT_EQ(chat(tools + R"(, "tool_choice": "required", "logit_bias": {"5": 100})").adjustment.biases.size(),
            1u);
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
       R"("json_schema": {"properties": {"b": {}, "a": {}}})", R"("grammar": "root ::= \"x\"")",
       R"("regex": "a+")", R"("ebnf": "root ::= \"x\"")", R"("json_schema": "{\"type\": \"object\"}")",
       R"("guided_json": {})", R"("guided_json": "{}")", R"("guided_regex": "a")",
       R"("guided_choice": ["a", "b"])", R"("guided_grammar": "root ::= \"x\"")",
       R"("structured_outputs": {"json": {}})", R"("structured_outputs": {"regex": "a"})",
       R"("structured_outputs": {"choice": ["a"]})", R"("structured_outputs": {"grammar": "root ::= \"x\""})",
       R"("structured_outputs": {"json_object": true})"})
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
  EXPECT_EQ(request.tools.described[0]["function"]["parameters"].dump(), R"({"z":1,"a":2})");
  EXPECT_EQ(request.tools.callable.at(0).parameters.dump(), R"({"z":1,"a":2})");
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
  EXPECT_EQ(completion(R"({"prompt": "a", "max_tokens": -1})").max_tokens, kAllTokens);
  EXPECT_TRUE(completion(R"({"prompt": "a", "logprobs": 0, "echo": true, "n": 2})").echoes);
  for (const char* body : {R"({})", R"({"prompt": []})", R"({"prompt": [-1]})", R"({"prompt": [[]]})",
                           R"({"prompt": [1, "a"]})", R"({"prompt": {"a": 1}})",
                           R"({"prompt": "a", "logprobs": 0, "echo": true, "n": 2, "stream": true})"}) {
    EXPECT_THROW(completion(body), ApiError) << body;
  }
}

}  // namespace
}  // namespace soliton
