// OpenAI's newer API: what its requests say, how answers are told, and conversations that go on by an id.
#include "runtime/server/responses/responses.h"

#include <gmock/gmock.h>

#include "runtime/server/responses/response_store.h"
#include "runtime/server/responses/responses_format.h"
#include "server/service_fixture.h"

namespace soliton {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;

const EarlierResponses kNone = {
    .messages = [](const std::string& id) -> nlohmann::ordered_json {
      throw ApiError(404, "previous_response_id: " + id, "previous_response_id");
    },
    .item = [](const std::string& id) -> std::string { throw ApiError(404, "input: " + id, "input"); }};

json chat_of(const json& body) {
  return json(read_response_request(body.dump(), kNone).chat);
}

std::string refused(json body) {
  body.emplace("input", "a");
  try {
    read_api_request(ApiKind::kChat, read_response_request(body.dump(), kNone).chat, {}, kResponseNames);
  } catch (const ApiError& error) {
    return error.what();
  }
  return "";
}

TEST(ResponseRequests, BecomeChats) {
  const json chat = chat_of(
      {{"instructions", "Be kind."},
       {"input",
        {{{"role", "developer"}, {"content", "And short."}},
         {{"type", "message"}, {"role", "user"}, {"content", {{{"type", "input_text"}, {"text", "hi"}}}}},
         {{"type", "reasoning"},
          {"summary", json::array()},
          {"content", {{{"type", "reasoning_text"}, {"text", "hm"}}}}},
         {{"type", "message"},
          {"role", "assistant"},
          {"content", {{{"type", "output_text"}, {"text", "so"}, {"annotations", json::array()}}}}},
         {{"type", "function_call"}, {"call_id", "1"}, {"name", "add"}, {"arguments", "{\"a\":1}"}},
         {{"type", "function_call"}, {"call_id", "2"}, {"name", "say"}, {"arguments", "{}"}},
         {{"type", "function_call_output"}, {"call_id", "1"}, {"output", "3"}},
         {{"role", "assistant"}, {"content", "one"}},
         {{"role", "assistant"}, {"content", "two"}}}},
       {"tools",
        {{{"type", "function"}, {"name", "add"}, {"parameters", {{"type", "object"}}}, {"strict", true}}}},
       {"tool_choice", {{"type", "function"}, {"name", "add"}}},
       {"max_output_tokens", 5},
       {"text",
        {{"format",
          {{"type", "json_schema"}, {"name", "n"}, {"schema", {{"type", "object"}}}, {"strict", true}}}}},
       {"reasoning", {{"effort", "low"}}},
       {"include", {"message.output_text.logprobs"}},
       {"top_logprobs", 2}});
  const auto call = [](const char* id, const char* name, const char* arguments) {
    return json{{"id", id}, {"type", "function"}, {"function", {{"name", name}, {"arguments", arguments}}}};
  };
  EXPECT_EQ(chat["messages"], json({{{"role", "system"}, {"content", "Be kind.\n\nAnd short."}},
                                    {{"role", "user"}, {"content", "hi"}},
                                    {{"role", "assistant"},
                                     {"content", "so"},
                                     {"reasoning_content", "hm"},
                                     {"tool_calls", {call("1", "add", "{\"a\":1}"), call("2", "say", "{}")}}},
                                    {{"role", "tool"}, {"tool_call_id", "1"}, {"content", "3"}},
                                    {{"role", "assistant"}, {"content", "one"}},
                                    {{"role", "assistant"}, {"content", "two"}}}));
  EXPECT_EQ(chat["tools"][0]["function"],
            json({{"name", "add"}, {"parameters", {{"type", "object"}}}, {"strict", true}}));
  EXPECT_EQ(chat["tool_choice"], json({{"type", "function"}, {"function", {{"name", "add"}}}}));
  EXPECT_EQ(chat["response_format"],
            json({{"type", "json_schema"},
                  {"json_schema", {{"name", "n"}, {"schema", {{"type", "object"}}}, {"strict", true}}}}));
  EXPECT_EQ(chat["max_tokens"], 5);
  EXPECT_EQ(chat["reasoning_effort"], "low");
  EXPECT_EQ(chat["top_logprobs"], 2);
  EXPECT_EQ(chat["logprobs"], true);
}

TEST(ResponseRequests, AreRefusedByName) {
  EXPECT_EQ(refused({}), "");
  EXPECT_THAT(refused({{"input", 5}}), HasSubstr("input: expected"));
  EXPECT_THAT(refused({{"input", json::array()}}), HasSubstr("input: expected at least one item"));
  EXPECT_THAT(refused({{"input", {{{"type", "web_search_call"}, {"id", "x"}}}}}),
              HasSubstr("input[0].type: expected"));
  EXPECT_THAT(refused({{"input", {{{"role", "user"}, {"content", {{{"type", "input_image"}}}}}}}}),
              HasSubstr("input[0].content[0].type: expected input_text"));
  EXPECT_THAT(refused({{"input", {{{"role", "tool"}, {"content", "x"}}}}}),
              HasSubstr("input[0].role: expected"));
  EXPECT_THAT(refused({{"tools", {{{"type", "web_search"}}}}}),
              HasSubstr("tools[0].type: expected function"));
  EXPECT_THAT(refused({{"tool_choice", {{"type", "file_search"}}}}), HasSubstr("tool_choice.type: expected"));
  EXPECT_THAT(refused({{"tools", {{{"type", "function"}, {"name", ""}}}}}),
              testing::StartsWith("tools[0].name: expected text"));
  EXPECT_THAT(refused({{"background", true}}), HasSubstr("background: not supported"));
  EXPECT_THAT(refused({{"conversation", "c"}}), HasSubstr("conversation: not supported"));
  EXPECT_THAT(refused({{"max_output_tokens", 0}}), HasSubstr("max_output_tokens"));
  EXPECT_THAT(refused({{"text", {{"format", {{"type", "xml"}}}}}}), HasSubstr("text.format.type"));
  EXPECT_THAT(refused({{"previous_response_id", "resp_x"}}), HasSubstr("previous_response_id: resp_x"));
}

std::vector<json> events_of(const std::string& text) {
  HttpAnswer answer;
  answer.body = text;
  std::vector<json> events;
  for (const std::string& event : answer.events()) events.push_back(json::parse(event));
  return events;
}

TEST(ResponsesFormat, StreamsItemsOneAfterAnother) {
  const Tokenizer tokenizer = Tokenizer::read(small_tokenizer(), "small");
  const auto make = [&] {
    return ResponsesFormat(tokenizer, {.model = "small", .settings = {{"tools", json::array()}}});
  };
  const AnswerChoice choice{.reasoning = "hm",
                            .content = "ab",
                            .calls = {{{"f", "{\"a\":1}"}, "c1"}, {{"g", "{}"}, "c2"}},
                            .end = AnswerEnd::kCalls};
  const AnswerUsage usage{.num_prompt = 7, .num_cached = 3, .num_generated = 9, .num_reasoning = 2};
  ResponsesFormat format = make();
  std::string text = format.begin({});
  text += format.piece(0, {.reasoning = "h"});
  text += format.piece(0, {.reasoning = "m", .content = "a"});
  text += format.piece(0, {.content = "b"});
  text += format.end_choice(0, choice);
  text += format.finish(usage);
  const std::vector<json> events = events_of(text);
  std::vector<std::string> told;
  for (size_t i = 0; i < events.size(); ++i) {
    EXPECT_EQ(events[i]["sequence_number"], i);
    told.push_back(events[i]["type"].get<std::string>().substr(std::string("response.").size()) +
                   (events[i].contains("output_index") ? " " + events[i]["output_index"].dump() : ""));
  }
  EXPECT_THAT(told, ElementsAre("created", "in_progress", "output_item.added 0", "content_part.added 0",
                                "reasoning_text.delta 0", "reasoning_text.delta 0", "reasoning_text.done 0",
                                "content_part.done 0", "output_item.done 0", "output_item.added 1",
                                "content_part.added 1", "output_text.delta 1", "output_text.delta 1",
                                "output_text.done 1", "content_part.done 1", "output_item.done 1",
                                "output_item.added 2", "function_call_arguments.delta 2",
                                "function_call_arguments.done 2", "output_item.done 2", "output_item.added 3",
                                "function_call_arguments.delta 3", "function_call_arguments.done 3",
                                "output_item.done 3", "completed"));
  const json response = events.back()["response"];
  EXPECT_EQ(response["status"], "completed");
  EXPECT_EQ(response["usage"]["output_tokens_details"]["reasoning_tokens"], 2);
  // Whole, it is the same but for ids.
  ResponsesFormat other = make();
  const std::vector<const AnswerChoice*> choices = {&choice};
  json whole = other.whole(choices, usage);
  ASSERT_EQ(whole["output"].size(), response["output"].size());
  for (size_t i = 0; i < whole["output"].size(); ++i) {
    whole["output"][i]["id"] = response["output"][i]["id"];
    EXPECT_EQ(whole["output"][i], response["output"][i]);
  }
  ResponsesFormat failed = make();
  EXPECT_EQ(events_of(failed.fail(ApiError(503, "no")))[0]["response"]["error"]["code"], "server_error");
}

TEST(ResponseStores, KeepTheLatestWithinTheirBounds) {
  ResponseStore store({.responses = 2, .bytes = 100});
  for (const char* id : {"a", "b", "c"}) store.put(id, {.scope = "s", .messages = "m", .response = id});
  EXPECT_FALSE(store.find("a", "s"));
  EXPECT_EQ(store.find("b", "s")->response, "b");
  EXPECT_FALSE(store.find("b", "other"));
  EXPECT_FALSE(store.erase("b", "other"));
  store.put("large", {.scope = "s", .messages = std::string(91, 'x'), .response = ""});
  EXPECT_FALSE(store.find("c", "s"));
  EXPECT_TRUE(store.find("large", "s"));
  store.put("too large", {.scope = "s", .messages = std::string(101, 'x'), .response = ""});
  EXPECT_FALSE(store.find("too large", "s"));
  EXPECT_TRUE(store.find("large", "s"));
  EXPECT_TRUE(store.erase("large", "s"));
  EXPECT_FALSE(store.erase("large", "s"));
}

TEST(ResponseStores, FindItemsAsLongAsTheirResponses) {
  ResponseStore store({.responses = 1, .bytes = 100});
  const auto put = [&](const std::string& id, const std::string& item) {
    store.put(id, {.scope = "s", .messages = "m", .response = "r", .items = {{"i" + id, "1"}, {id, item}}});
  };
  put("a", "2");
  EXPECT_EQ(store.find_item("a", "s"), "2");
  EXPECT_EQ(store.find_item("ia", "s"), "1");
  EXPECT_FALSE(store.find_item("a", "other"));
  put("b", std::string(101, 'x'));  // too large, with its items
  EXPECT_FALSE(store.find_item("b", "s"));
  put("c", "3");
  EXPECT_FALSE(store.find_item("a", "s"));
  EXPECT_TRUE(store.erase("c", "s"));
  EXPECT_FALSE(store.find_item("c", "s"));
}

class ResponsesService : public ServiceTest {
 protected:
  ResponsesService() : ServiceTest(small_options(), 8, 40, small_tokenizer(kJsonSigns), kCallingTemplate) {}

  json respond(json body) {
    body.emplace("input", "hello");
    body.emplace("max_output_tokens", 8);
    body.emplace("temperature", 0);
    const HttpAnswer answer = post("/v1/responses", body);
    EXPECT_EQ(answer.status, 200) << answer.body;
    return answer.json();
  }
};

TEST_F(ResponsesService, AnswersAsChatsDo) {
  chat({{"max_tokens", 1}});  // so that both find as much of it cached: else sums have another order
  const json as_chat = chat({{"max_tokens", 8}, {"logprobs", true}});
  const json response = respond({{"include", {"message.output_text.logprobs"}}});
  EXPECT_EQ(response["object"], "response");
  const json& part = response["output"][0]["content"][0];
  EXPECT_EQ(part["text"], as_chat["choices"][0]["message"]["content"]);
  EXPECT_EQ(part["logprobs"], as_chat["choices"][0]["logprobs"]["content"]);
  const bool is_cut = as_chat["choices"][0]["finish_reason"] == "length";
  EXPECT_EQ(response["status"], is_cut ? "incomplete" : "completed");
  EXPECT_EQ(response["incomplete_details"].is_null(), !is_cut);
  EXPECT_EQ(response["usage"]["input_tokens"], as_chat["usage"]["prompt_tokens"]);
  const std::vector<json> events =
      events_of(post("/v1/responses",
                     {{"input", "hello"}, {"max_output_tokens", 8}, {"temperature", 0}, {"stream", true}})
                    .body);
  std::string text;
  for (const json& event : events) {
    if (event["type"] == "response.output_text.delta") text += event["delta"];
  }
  EXPECT_EQ(text, part["text"]);
  EXPECT_EQ(events.back()["response"]["status"], response["status"]);
}

TEST_F(ResponsesService, GoesOnByAnId) {
  const json first = respond({{"instructions", "so"}});
  const json second = respond({{"previous_response_id", first["id"]}, {"input", "more"}});
  const std::string said = first["output"][0]["content"][0]["text"];
  const json as_chat = chat({{"max_tokens", 8},
                             {"messages",
                              {{{"role", "system"}, {"content", "so"}},
                               {{"role", "user"}, {"content", "hello"}},
                               {{"role", "assistant"}, {"content", said}},
                               {{"role", "user"}, {"content", "more"}}}}});
  EXPECT_EQ(second["usage"]["input_tokens"], as_chat["usage"]["prompt_tokens"]);
  const auto counted = [&](const std::string& id) {
    return post("/v1/responses/input_tokens", {{"previous_response_id", id}, {"input", "more"}});
  };
  EXPECT_EQ(counted(first["id"]).json()["input_tokens"], second["usage"]["input_tokens"]);
  EXPECT_EQ(counted("resp_none").status, 404);
  EXPECT_EQ(second["output"][0]["content"][0]["text"], as_chat["choices"][0]["message"]["content"]);
  // The same by references to items, as some clients have them.
  const json user = {{"role", "user"}, {"content", "hello"}};
  const json reference = {{"type", "item_reference"}, {"id", first["output"][0]["id"]}};
  const json by_items = respond(
      {{"instructions", "so"}, {"input", {user, reference, {{"role", "user"}, {"content", "more"}}}}});
  EXPECT_EQ(by_items["usage"]["input_tokens"], second["usage"]["input_tokens"]);
  EXPECT_EQ(by_items["output"][0]["content"], second["output"][0]["content"]);
  const json unknown = {{"input", {{{"type", "item_reference"}, {"id", "msg_none"}}}}};
  EXPECT_EQ(post("/v1/responses", unknown).status, 404);
  // Other instructions take the place of those.
  const json other =
      respond({{"previous_response_id", first["id"]}, {"instructions", "no more"}, {"input", "more"}});
  EXPECT_EQ(other["usage"]["input_tokens"], second["usage"]["input_tokens"].get<int>() + 5);
  const std::string path = "/v1/responses/" + first["id"].get<std::string>();
  EXPECT_EQ(ask(port(), "GET", path).json()["output"], first["output"]);
  EXPECT_EQ(ask(port(), "DELETE", path).json()["deleted"], true);
  EXPECT_EQ(ask(port(), "GET", path).status, 404);
  EXPECT_EQ(post("/v1/responses", {{"previous_response_id", first["id"]}, {"input", "a"}}).status, 404);
  const json unkept = respond({{"store", false}});
  EXPECT_EQ(post("/v1/responses", {{"previous_response_id", unkept["id"]}, {"input", "a"}}).status, 404);
  EXPECT_EQ(ask(port(), "PUT", path).headers.at("Allow"), "GET, DELETE");
}

TEST_F(ResponsesService, CallsFunctions) {
  const json schema = {{"type", "object"},
                       {"properties", {{"a", {{"type", "integer"}, {"minimum", 10}, {"maximum", 99}}}}},
                       {"required", {"a"}}};
  const json tools = {{{"type", "function"}, {"name", "add"}, {"parameters", schema}}};
  const json called = respond({{"tools", tools},
                               {"tool_choice", "required"},
                               {"parallel_tool_calls", false},
                               {"max_output_tokens", 100}});
  ASSERT_EQ(called["output"].size(), 1u) << called;
  const json& call = called["output"][0];
  EXPECT_EQ(call["type"], "function_call");
  EXPECT_GE(json::parse(call["arguments"].get<std::string>())["a"], 10);
  EXPECT_EQ(called["status"], "completed");
  const json output = {{{"type", "function_call_output"}, {"call_id", call["call_id"]}, {"output", "3"}}};
  const json next = respond(
      {{"previous_response_id", called["id"]}, {"input", output}, {"tools", tools}, {"tool_choice", "none"}});
  EXPECT_EQ(next["output"][0]["type"], "message");
}

}  // namespace
}  // namespace soliton
