// Ollama's API: what its requests say, and how answers are told.
#include "runtime/server/ollama/ollama.h"

#include <gmock/gmock.h>

#include "runtime/server/ollama/ollama_format.h"
#include "runtime/server/timestamp.h"
#include "server/service_fixture.h"

namespace soliton {
namespace {

using nlohmann::json;
using testing::HasSubstr;

std::string refused(const std::function<OllamaRequest()>& read) {
  try {
    const OllamaRequest request = read();
    read_api_request(request.kind, request.body, {});
  } catch (const ApiError& error) {
    return error.what();
  }
  return "";
}

TEST(OllamaRequests, BecomeOpenAis) {
  const json call = {{"function", {{"name", "add"}, {"arguments", {{"z", 1}, {"a", 2}}}}}};
  const json chat = json(
      read_ollama_chat(
          json{{"model", "m"},
               {"messages",
                {{{"role", "user"}, {"content", "hi"}},
                 {{"role", "assistant"}, {"content", ""}, {"thinking", "hm"}, {"tool_calls", {call}}},
                 {{"role", "tool"}, {"tool_name", "add"}, {"content", "3"}}}},
               {"tools", {{{"type", "function"}, {"function", {{"name", "add"}}}}}},
               {"format", {{"type", "object"}}},
               {"think", false},
               {"keep_alive", "5m"},
               {"options", {{"num_predict", -2}, {"temperature", 0.5}, {"num_ctx", 4096}, {"stop", {"x"}}}}}
              .dump())
          .body);
  EXPECT_EQ(chat["messages"][1]["tool_calls"][0]["function"], call["function"]);
  EXPECT_EQ(chat["messages"][1]["reasoning_content"], "hm");
  EXPECT_EQ(chat["messages"][2]["name"], "add");
  EXPECT_EQ(chat["json_schema"], json({{"type", "object"}}));
  EXPECT_EQ(chat["chat_template_kwargs"]["enable_thinking"], false);
  EXPECT_EQ(chat["max_tokens"], -1);
  EXPECT_EQ(chat["temperature"], 0.5);
  EXPECT_EQ(chat["stop"], json({"x"}));
  EXPECT_EQ(chat["stream"], true);
  const std::string generate =
      R"({"prompt": "a", "system": "b", "stream": false, "format": "json", "think": "low"})";
  const OllamaRequest with_template = read_ollama_generate(generate, true);
  EXPECT_EQ(with_template.kind, ApiKind::kChat);
  EXPECT_EQ(with_template.body["messages"].size(), 2u);
  EXPECT_EQ(with_template.body["stream"], false);
  EXPECT_EQ(with_template.body["response_format"]["type"], "json_object");
  EXPECT_EQ(with_template.body["reasoning_effort"], "low");
  const OllamaRequest without = read_ollama_generate(generate, false);
  EXPECT_EQ(without.kind, ApiKind::kCompletion);
  EXPECT_EQ(without.body["prompt"], "a");
  EXPECT_EQ(read_ollama_generate(R"({"prompt": "a", "raw": true})", true).kind, ApiKind::kCompletion);
  EXPECT_FALSE(with_template.only_loads);
  EXPECT_TRUE(read_ollama_generate(R"({"model": "m"})", true).only_loads);
  EXPECT_TRUE(read_ollama_chat(R"({"model": "m", "messages": []})").only_loads);
}

TEST(OllamaRequests, AreRefusedByName) {
  const auto chat = [](json body) {
    body.emplace("messages", json::array({{{"role", "user"}, {"content", "a"}}}));
    return refused([&] { return read_ollama_chat(body.dump()); });
  };
  const auto generate = [](json body) {
    body.emplace("prompt", "a");
    return refused([&] { return read_ollama_generate(body.dump(), true); });
  };
  EXPECT_EQ(chat({}), "");
  EXPECT_EQ(generate({}), "");
  EXPECT_THAT(chat({{"messages", {{{"role", "user"}, {"content", "a"}, {"images", {"x"}}}}}}),
              HasSubstr("messages[0].images: expected none"));
  EXPECT_THAT(chat({{"options", {{"repeat_last_n", 64}, {"repeat_penalty", 1.1}}}}),
              HasSubstr("repeat_last_n: not supported"));
  EXPECT_THAT(chat({{"format", "xml"}}), HasSubstr("format: expected json or a schema"));
  EXPECT_THAT(chat({{"options", 5}}), HasSubstr("options: expected an object"));
  EXPECT_THAT(chat({{"options", {{"num_predict", -3}}}}), HasSubstr("options.num_predict"));
  EXPECT_THAT(chat({{"options", {{"mirostat", 1}}}}), HasSubstr("mirostat: not supported"));
  EXPECT_THAT(generate({{"suffix", "x"}}), HasSubstr("suffix: not supported"));
  EXPECT_THAT(generate({{"context", {1}}}), HasSubstr("context: not supported"));
  EXPECT_THAT(generate({{"prompt", 5}}), HasSubstr("prompt: expected"));
}

TEST(OllamaFormat, TellsCallsAndReasoning) {
  const Tokenizer tokenizer = Tokenizer::read(small_tokenizer(), "small");
  OllamaFormat format(tokenizer, "small", true);
  const AnswerChoice choice{
      .reasoning = "hm", .content = "a", .calls = {{{"f", "{\"a\":1}"}, "c1"}}, .end = AnswerEnd::kCalls};
  EXPECT_EQ(json::parse(format.piece(0, {.reasoning = "hm"}))["message"]["thinking"], "hm");
  const json call = json::parse(format.end_choice(0, choice));
  EXPECT_EQ(call["message"]["tool_calls"][0]["function"], json({{"name", "f"}, {"arguments", {{"a", 1}}}}));
  EXPECT_EQ(call["done"], false);
  const json last =
      json::parse(format.finish({.num_prompt = 3, .num_generated = 2, .prompt_s = 0.5, .generation_s = 1}));
  EXPECT_EQ(last["done_reason"], "stop");
  EXPECT_EQ(last["prompt_eval_duration"], 500'000'000);
  EXPECT_EQ(last["total_duration"], 1'500'000'000);
  const std::vector<const AnswerChoice*> choices = {&choice};
  EXPECT_EQ(OllamaFormat(tokenizer, "small", false).whole(choices, {})["thinking"], "hm");
  EXPECT_EQ(json::parse(format.fail(ApiError(503, "no")))["error"], "no");
  EXPECT_THAT(timestamp_now(), testing::MatchesRegex("20..-..-..T..:..:..\\.......Z"));
}

TEST_F(ServiceTest, AnswersOllamasClients) {
  const json messages = json::array({{{"role", "user"}, {"content", "hello"}}});
  const json as_chat = chat({{"max_tokens", 8}});
  const json options = {{"num_predict", 8}, {"temperature", 0}};
  const json whole =
      post("/api/chat", {{"messages", messages}, {"stream", false}, {"options", options}}).json();
  EXPECT_EQ(whole["message"]["content"], as_chat["choices"][0]["message"]["content"]);
  EXPECT_EQ(whole["done"], true);
  EXPECT_EQ(whole["prompt_eval_count"], as_chat["usage"]["prompt_tokens"]);
  EXPECT_EQ(whole["eval_count"], as_chat["usage"]["completion_tokens"]);
  const HttpAnswer streamed = post("/api/generate", {{"prompt", "hello"}, {"options", options}});
  EXPECT_EQ(streamed.headers.at("Content-Type"), "application/x-ndjson");
  std::istringstream lines(streamed.body);
  std::string text;
  json last;
  for (std::string line; std::getline(lines, line);) {
    last = json::parse(line);
    text += last["response"];
  }
  EXPECT_EQ(text, whole["message"]["content"]);
  EXPECT_EQ(last["done"], true);
  EXPECT_EQ(last["done_reason"], as_chat["choices"][0]["finish_reason"]);
  const json raw =
      post("/api/generate", {{"prompt", "abc"}, {"raw", true}, {"stream", false}, {"options", options}})
          .json();
  EXPECT_EQ(raw["response"], complete({{"prompt", "abc"}, {"max_tokens", 8}})["choices"][0]["text"]);
  EXPECT_EQ(ask(port(), "GET", "/api/tags").json()["models"][0]["name"], "small");
  EXPECT_EQ(ask(port(), "GET", "/api/ps").json()["models"][0]["context_length"], kSmallContext);
  EXPECT_TRUE(ask(port(), "GET", "/api/version").json()["version"].is_string());
  EXPECT_EQ(post("/api/show", {{"model", "small"}}).json()["capabilities"], json({"completion", "tools"}));
  for (const auto& [path, member] :
       {std::pair("/api/chat", "message"), std::pair("/api/generate", "response")}) {
    json ready = post(path, {{"model", "small"}, {"keep_alive", -1}}).json();
    EXPECT_EQ(ready["done_reason"], "load") << path;
    EXPECT_TRUE(ready.contains(member)) << path;
  }
  for (const char* path : {"/api/chat", "/api/generate"}) {  // where nothing is asked neither
    EXPECT_EQ(post(path, {{"options", {{"stop", {1}}}}}).status, 400) << path;
    EXPECT_EQ(post(path, {{"options", {{"top_p", 2}}}}).status, 400) << path;
  }
  EXPECT_EQ(post("/api/chat", {{"top_logprobs", 21}}).status, 400);
  EXPECT_EQ(post("/api/generate", {{"system", 1}, {"raw", true}}).status, 400);
  for (const char* path : {"/api/embed", "/api/embeddings"}) {
    const HttpAnswer refusal = post(path, {{"input", "a"}});
    EXPECT_EQ(refusal.status, 501) << path;
    EXPECT_THAT(refusal.json()["error"].get<std::string>(), HasSubstr("embeddings: expected")) << path;
  }
  const HttpAnswer wrong = post("/api/chat", {{"messages", 5}});
  EXPECT_EQ(wrong.status, 400);
  EXPECT_THAT(wrong.json()["error"].get<std::string>(), HasSubstr("messages: expected"));
}

}  // namespace
}  // namespace soliton
