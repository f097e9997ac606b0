// Anthropic's API: what its requests say, and how answers are told, whole and in streams.
#include "runtime/server/anthropic/messages.h"

#include <gmock/gmock.h>

#include "runtime/server/anthropic/messages_format.h"
#include "server/service_fixture.h"

namespace soliton {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;

json chat_of(const json& body) {
  return json(chat_of_messages(body.dump(), false));
}

std::string refused(const json& body, bool wants_limit = false) {
  try {
    const nlohmann::ordered_json chat = chat_of_messages(body.dump(), wants_limit);
    read_api_request(ApiKind::kChat, chat, {}, kMessageNames);
  } catch (const ApiError& error) {
    return error.what();
  }
  return "";
}

json user(const json& content) {
  return {{"role", "user"}, {"content", content}};
}

TEST(MessagesRequest, BecomesAChat) {
  const json chat = chat_of(
      {{"model", "claude"},
       {"system",
        {{{"type", "text"}, {"text", "Be "}, {"cache_control", {{"type", "ephemeral"}}}},
         {{"type", "text"}, {"text", "kind."}}}},
       {"messages",
        {user("hi"),
         {{"role", "assistant"},
          {"content",
           {{{"type", "thinking"}, {"thinking", "hm"}, {"signature", "x"}},
            {{"type", "redacted_thinking"}, {"data", "x"}},
            {{"type", "text"}, {"text", "so"}},
            {{"type", "tool_use"}, {"id", "1"}, {"name", "add"}, {"input", {{"z", 1}, {"a", 2}}}}}}},
         user({{{"type", "tool_result"}, {"tool_use_id", "1"}, {"content", "3"}},
               {{"type", "tool_result"},
                {"tool_use_id", "2"},
                {"content", {{{"type", "text"}, {"text", "no"}}}},
                {"is_error", true}},
               {{"type", "text"}, {"text", "go"}},
               {{"type", "text"}, {"text", " on"}}})}},
       {"tools", {{{"name", "add"}, {"description", "adds"}, {"input_schema", {{"type", "object"}}}}}},
       {"tool_choice", {{"type", "any"}, {"disable_parallel_tool_use", true}}},
       {"stop_sequences", {"x"}},
       {"thinking", {{"type", "enabled"}, {"budget_tokens", 1024}}},
       {"metadata", {{"user_id", "u"}}},
       {"top_k", 5}});
  EXPECT_EQ(chat["messages"],
            json({{{"role", "system"}, {"content", "Be kind."}},
                  {{"role", "user"}, {"content", "hi"}},
                  {{"role", "assistant"},
                   {"content", "so"},
                   {"reasoning_content", "hm"},
                   {"tool_calls",
                    {{{"id", "1"},
                      {"type", "function"},
                      {"function", {{"name", "add"}, {"arguments", {{"z", 1}, {"a", 2}}}}}}}}},
                  {{"role", "tool"}, {"tool_call_id", "1"}, {"content", "3"}},
                  {{"role", "tool"}, {"tool_call_id", "2"}, {"content", "Error: no"}},
                  {{"role", "user"}, {"content", "go on"}}}));
  EXPECT_EQ(chat["tools"][0]["function"],
            json({{"name", "add"}, {"description", "adds"}, {"parameters", {{"type", "object"}}}}));
  EXPECT_EQ(chat["tool_choice"], "required");
  EXPECT_EQ(chat["parallel_tool_calls"], false);
  EXPECT_EQ(chat["stop"], json({"x"}));
  EXPECT_EQ(chat["chat_template_kwargs"]["enable_thinking"], true);
  EXPECT_FALSE(chat.contains("max_tokens"));
  EXPECT_FALSE(chat.contains("continue_final_message"));
  // An answer that has begun goes on.
  EXPECT_EQ(chat_of({{"messages",
                      {user("a"), {{"role", "assistant"}, {"content", "so"}}}}})["continue_final_message"],
            true);
  const json format = {{"type", "json_schema"}, {"schema", {{"type", "object"}}}};
  for (const json& members :
       {json{{"output_format", format}}, json{{"output_config", {{"format", format}}}}}) {
    json body = {{"messages", {user("a")}}};
    body.update(members);
    EXPECT_EQ(chat_of(body)["response_format"]["json_schema"]["schema"], format["schema"]);
  }
}

TEST(MessagesRequest, RefusesByName) {
  const auto with = [](json members) {
    members.emplace("messages", json::array({user("a")}));
    return refused(members);
  };
  EXPECT_EQ(with({}), "");
  EXPECT_THAT(refused({{"messages", {user("a")}}}, true), HasSubstr("max_tokens: expected an integer"));
  EXPECT_THAT(with({{"messages", json::array()}}), HasSubstr("messages: expected at least one message"));
  EXPECT_THAT(with({{"messages", {{{"role", "tool"}, {"content", "a"}}}}}),
              HasSubstr("messages[0].role: expected"));
  EXPECT_THAT(with({{"messages", {user({{{"type", "image"}, {"source", json::object()}}})}}}),
              HasSubstr("messages[0].content[0].type: expected text or tool_result"));
  EXPECT_THAT(with({{"tools", {{{"type", "web_search_20250305"}, {"name", "web_search"}}}}}),
              HasSubstr("tools[0].type: expected custom"));
  EXPECT_THAT(with({{"tools", {{{"name", "f"}}}}}), HasSubstr("tools[0].input_schema: expected an object"));
  EXPECT_THAT(with({{"tools", {{{"name", ""}, {"input_schema", json::object()}}}}}),
              testing::StartsWith("tools[0].name: expected text"));
  EXPECT_THAT(with({{"tool_choice", {{"type", "some"}}}}), HasSubstr("tool_choice.type: expected auto"));
  EXPECT_THAT(with({{"tool_choice", {{"type", "any"}}}}), HasSubstr("tool_choice: expected some tools"));
  EXPECT_THAT(with({{"thinking", {{"type", "deep"}}}}), HasSubstr("thinking.type: expected enabled"));
  EXPECT_THAT(with({{"temperature", -1}}), HasSubstr("temperature: expected a number"));
  EXPECT_THAT(with({{"mcp_servers", {{{"url", "x"}}}}}), HasSubstr("mcp_servers: not supported"));
}

std::vector<std::pair<std::string, json>> named_events(const std::string& text) {
  std::vector<std::pair<std::string, json>> events;
  for (size_t at = 0; (at = text.find("event: ", at)) != std::string::npos;) {
    const size_t data = text.find("\ndata: ", at);
    const size_t end = text.find("\n\n", data);
    events.emplace_back(text.substr(at + 7, data - at - 7),
                        json::parse(text.substr(data + 7, end - data - 7)));
    at = end;
  }
  return events;
}

TEST(MessagesFormat, StreamsBlocksOneAfterAnother) {
  MessagesFormat format("small");
  std::string text = format.begin({.num_prompt = 7});
  text += format.piece(0, {.reasoning = "h"});
  text += format.piece(0, {.reasoning = "m", .content = "a"});
  text += format.piece(0, {.content = "b"});
  AnswerChoice choice{
      .content = "ab", .calls = {{{"f", "{\"a\":1}"}, "c1"}, {{"g", "{}"}, "c2"}}, .end = AnswerEnd::kCalls};
  text += format.end_choice(0, choice);
  text += format.finish({.num_prompt = 7, .num_cached = 3, .num_generated = 9});
  std::vector<std::string> told;
  for (const auto& [name, data] : named_events(text)) {
    EXPECT_EQ(data["type"], name);
    const std::string index = data.contains("index") ? " " + data["index"].dump() : "";
    const std::string type = name == "content_block_start"
                                 ? " " + data["content_block"]["type"].get<std::string>()
                             : name == "content_block_delta" ? " " + data["delta"]["type"].get<std::string>()
                                                             : "";
    told.push_back(name + index + type);
  }
  EXPECT_THAT(
      told,
      ElementsAre(
          "message_start", "content_block_start 0 thinking", "content_block_delta 0 thinking_delta",
          "content_block_delta 0 thinking_delta", "content_block_delta 0 signature_delta",
          "content_block_stop 0", "content_block_start 1 text", "content_block_delta 1 text_delta",
          "content_block_delta 1 text_delta", "content_block_stop 1", "content_block_start 2 tool_use",
          "content_block_delta 2 input_json_delta", "content_block_stop 2", "content_block_start 3 tool_use",
          "content_block_delta 3 input_json_delta", "content_block_stop 3", "message_delta", "message_stop"));
  const json last = named_events(text)[16].second;
  EXPECT_EQ(last["delta"]["stop_reason"], "tool_use");
  EXPECT_EQ(last["usage"]["input_tokens"], 4);
  EXPECT_EQ(last["usage"]["cache_read_input_tokens"], 3);
  EXPECT_EQ(last["usage"]["output_tokens"], 9);
  EXPECT_EQ(named_events(format.fail(ApiError(503, "no")))[0].second["error"]["type"], "overloaded_error");
}

TEST(MessagesFormat, PingsTellHowMuchOfAPromptIsRead) {
  MessagesFormat format("small");
  const auto events =
      named_events(format.progress({.num_tokens = 9, .num_cached = 2, .num_fed = 4, .seconds = 0.5}));
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].first, "ping");
  EXPECT_EQ(events[0].second["prompt_progress"],
            json({{"total", 9}, {"cache", 2}, {"processed", 4}, {"time_ms", 500}}));
  EXPECT_TRUE(
      chat_of_messages(R"({"messages": [{"role": "user", "content": "a"}], "max_tokens": 2, "stream": true,
                                   "return_progress": true})",
                       true)["return_progress"]
          .get<bool>());
}

class MessagesService : public ServiceTest {
 protected:
  MessagesService() : ServiceTest(small_options(), 8, 40, small_tokenizer(kJsonSigns), kCallingTemplate) {}

  json message(json body) {
    body.emplace("messages", json::array({user("hello")}));
    body.emplace("max_tokens", 12);
    body.emplace("temperature", 0);
    const HttpAnswer answer = post("/v1/messages", body);
    EXPECT_EQ(answer.status, 200) << answer.body;
    return answer.json();
  }
};

TEST_F(MessagesService, AnswersAsChatsDo) {
  const json as_chat = chat({{"max_tokens", 12}});
  const json whole = message({{"model", "any"}});
  EXPECT_EQ(whole["type"], "message");
  EXPECT_EQ(whole["role"], "assistant");
  EXPECT_EQ(whole["content"],
            json({{{"type", "text"}, {"text", as_chat["choices"][0]["message"]["content"]}}}));
  EXPECT_EQ(whole["stop_reason"],
            as_chat["choices"][0]["finish_reason"] == "length" ? "max_tokens" : "end_turn");
  const json& usage = whole["usage"];  // whose input tokens are those that were not cached
  EXPECT_GT(usage["cache_read_input_tokens"].get<int>(), 0);
  EXPECT_EQ(usage["input_tokens"].get<int>() + usage["cache_read_input_tokens"].get<int>(),
            as_chat["usage"]["prompt_tokens"]);
  EXPECT_EQ(usage["output_tokens"], as_chat["usage"]["completion_tokens"]);
  const HttpAnswer count = post("/v1/messages/count_tokens", {{"messages", {user("hello")}}});
  EXPECT_EQ(count.json()["input_tokens"], as_chat["usage"]["prompt_tokens"]);
  // In a stream the same, and what it is made of in its order.
  const HttpAnswer streamed =
      post("/v1/messages",
           {{"messages", {user("hello")}}, {"max_tokens", 12}, {"temperature", 0}, {"stream", true}});
  EXPECT_EQ(streamed.headers.at("Content-Type"), "text/event-stream");
  std::string text;
  const auto events = named_events(streamed.body);
  for (const auto& [name, data] : events) {
    if (name == "content_block_delta") text += data["delta"]["text"];
  }
  EXPECT_EQ(text, whole["content"][0]["text"]);
  EXPECT_EQ(events.front().first, "message_start");
  EXPECT_EQ(events.back().first, "message_stop");
}

TEST_F(MessagesService, CallsFunctionsAndStops) {
  const json schema = {{"type", "object"},
                       {"properties", {{"a", {{"type", "integer"}, {"minimum", 10}, {"maximum", 99}}}}},
                       {"required", {"a"}}};
  json body = {{"tools", {{{"name", "add"}, {"input_schema", schema}}}},
               {"tool_choice", {{"type", "tool"}, {"name", "add"}, {"disable_parallel_tool_use", true}}},
               {"max_tokens", 100}};
  const json called = message(body);
  EXPECT_EQ(called["stop_reason"], "tool_use");
  ASSERT_EQ(called["content"].size(), 1u);
  const json& use = called["content"][0];
  EXPECT_EQ(use["type"], "tool_use");
  EXPECT_EQ(use["name"], "add");
  EXPECT_GE(use["input"]["a"], 10);
  // And its result is read.
  body["messages"] = {user("hello"),
                      {{"role", "assistant"}, {"content", {use}}},
                      user({{{"type", "tool_result"}, {"tool_use_id", use["id"]}, {"content", "3"}}})};
  body.erase("tool_choice");
  body["max_tokens"] = 2;
  EXPECT_GT(message(body)["usage"]["input_tokens"], called["usage"]["input_tokens"]);
  const std::string text = message({{"max_tokens", 20}})["content"][0]["text"];
  const json stopped = message({{"max_tokens", 20}, {"stop_sequences", {text.substr(2, 2)}}});
  EXPECT_EQ(stopped["stop_reason"], "stop_sequence");
  EXPECT_EQ(stopped["stop_sequence"], text.substr(2, 2));
}

TEST_F(MessagesService, ErrorsAreAnthropics) {
  const HttpAnswer wrong = post("/v1/messages", {{"messages", {user("a")}}});
  EXPECT_EQ(wrong.status, 400);
  EXPECT_EQ(wrong.json()["type"], "error");
  EXPECT_EQ(wrong.json()["error"]["type"], "invalid_request_error");
  EXPECT_THAT(wrong.json()["error"]["message"].get<std::string>(), HasSubstr("max_tokens"));
  EXPECT_EQ(ask(port(), "GET", "/v1/messages").json()["type"], "error");
  const HttpAnswer large = post("/v1/messages", {{"messages", {user("a")}}, {"max_tokens", 4000}});
  EXPECT_EQ(large.status, 400);
}

class GuardedMessages : public ServiceTest {
 protected:
  GuardedMessages() : ServiceTest({.model = "small", .api_key = "secret", .origins = {}}) {}
};

TEST_F(GuardedMessages, TakeTheKeyByAnthropicsName) {
  const std::string body = json{{"messages", {user("a")}}, {"max_tokens", 1}}.dump();
  EXPECT_EQ(ask(port(), "POST", "/v1/messages", body).json()["error"]["type"], "authentication_error");
  EXPECT_EQ(ask(port(), "POST", "/v1/messages", body, "x-api-key: secret\r\n").status, 200);
  EXPECT_EQ(ask(port(), "POST", "/v1/messages", body, "x-api-key: secrets\r\n").status, 401);
  EXPECT_EQ(ask(port(), "POST", "/v1/messages", body, "x-api-key: a\r\nx-api-key: secret\r\n").status, 400);
}

// ---- Paths

TEST_F(ServiceTest, PathsAreFoundAsClientsWriteThem) {
  const json body = {{"prompt", "a"}, {"max_tokens", 1}};
  for (const char* path : {"/v1/completions", "/completions", "/v1/completions/", "/completions//",
                           "//v1/completions", "/v1//completions"})
    EXPECT_EQ(post(path, body).status, 200) << path;
  for (const char* path : {"/models", "/v1/models/", "/models/small", "/health/"})
    EXPECT_EQ(ask(port(), "GET", path).status, 200) << path;
  for (const char* path : {"/v1", "/v1/health", "/v2/models", "/v1/v1/models"})
    EXPECT_EQ(ask(port(), "GET", path).status, 404) << path;
  const HttpAnswer embeddings = post("/v1/embeddings", {{"input", "a"}});
  EXPECT_EQ(embeddings.status, 501);
  EXPECT_THAT(embeddings.json()["error"]["message"].get<std::string>(), HasSubstr("embeddings: expected"));
}

TEST_F(ServiceTest, TellsWhatLlamaCppTells) {
  const json messages = json::array({user("a")});
  EXPECT_EQ(post("/apply-template", {{"messages", messages}}).json()["prompt"], "user: a\nassistant:");
  EXPECT_EQ(post("/apply-template", {{"messages", 5}}).status, 400);
  const json pieces = post("/tokenize", {{"content", "ab"}, {"with_pieces", true}}).json()["tokens"];
  EXPECT_EQ(pieces[1]["piece"], "b");
  EXPECT_EQ(post("/tokenize", {{"prompt", "ab"}, {"return_token_strs", true}}).json()["token_strs"].back(),
            "b");
  const json properties = ask(port(), "GET", "/props").json();
  EXPECT_EQ(properties["default_generation_settings"]["n_ctx"], kSmallContext);
  const json tokenizer = ask(port(), "GET", "/tokenizer_info").json();
  EXPECT_EQ(
      post("/tokenize", {{"prompt", tokenizer["eos_token"]}, {"add_special_tokens", false}}).json()["tokens"],
      json(text_->style.stop_tokens));
  EXPECT_EQ(post("/tokenize", {{"prompt", "</s>s"}, {"add_special_tokens", false}}).json()["count"], 2);
  const json slots = ask(port(), "GET", "/slots").json();
  EXPECT_EQ(slots.size(), properties["total_slots"]);
  EXPECT_EQ(slots[0]["is_processing"], false);
}

}  // namespace
}  // namespace soliton
