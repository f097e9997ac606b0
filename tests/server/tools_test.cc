// Functions that answers call, by a model that has never learnt to: what it writes is what grammars make it.
#include <gmock/gmock.h>

#include "server/service_fixture.h"

namespace soliton {
namespace {

using nlohmann::json;
using testing::AnyOf;
using testing::HasSubstr;

json function(const std::string& name, const json& parameters, bool is_strict = false) {
  return {{"type", "function"},
          {"function", {{"name", name}, {"parameters", parameters}, {"strict", is_strict}}}};
}

const json kTools = {
    function("add", {{"type", "object"},
                     {"properties", {{"a", {{"type", "integer"}, {"minimum", 10}, {"maximum", 99}}}}},
                     {"required", {"a"}}}),
    function(
        "say",
        {{"type", "object"}, {"properties", {{"word", {{"enum", {"yes", "no"}}}}}}, {"required", {"word"}}})};

class ToolService : public ServiceTest {
 protected:
  explicit ToolService(const json& tokenizer = small_tokenizer(kJsonSigns),
                       const std::string& chat_template = kCallingTemplate)
      : ServiceTest(small_options(), 8, 40, tokenizer, chat_template) {}

  json call(json body, const json& tools = kTools) {
    body.emplace("tools", tools);
    body.emplace("max_tokens", 150);
    return chat(std::move(body))["choices"][0];
  }
  HttpAnswer refused(json body) {
    body.emplace("messages", json::array({{{"role", "user"}, {"content", "x"}}}));
    return post("/v1/chat/completions", body);
  }
};

void expect_call(const json& call, const std::string& name = {}) {
  EXPECT_EQ(call["type"], "function");
  if (!name.empty()) {
    EXPECT_EQ(call["function"]["name"], name);
  }
  const json arguments = json::parse(call["function"]["arguments"].get<std::string>());
  if (call["function"]["name"] == "add") {
    EXPECT_TRUE(arguments.at("a") >= 10 && arguments.at("a") <= 99) << arguments;
  } else {
    EXPECT_THAT(arguments.at("word").get<std::string>(), AnyOf("yes", "no"));
  }
  EXPECT_EQ(arguments.size(), 1u);
}

TEST_F(ToolService, RequiredAnswersAreCalls) {
  const json required =
      call({{"tool_choice", "required"}, {"parallel_tool_calls", false}, {"temperature", 1.5}, {"seed", 2}});
  EXPECT_EQ(required["finish_reason"], "tool_calls") << required;
  EXPECT_TRUE(required["message"]["content"].is_null());
  ASSERT_EQ(required["message"]["tool_calls"].size(), 1u);
  expect_call(required["message"]["tool_calls"][0]);
  const json named = call({{"tool_choice", {{"type", "function"}, {"function", {{"name", "say"}}}}},
                           {"parallel_tool_calls", false}});
  ASSERT_EQ(named["message"]["tool_calls"].size(), 1u);
  expect_call(named["message"]["tool_calls"][0], "say");
}

TEST_F(ToolService, StreamsCalls) {
  json body = {{"messages", json::array({{{"role", "user"}, {"content", "x"}}})},
               {"tools", kTools},
               {"tool_choice", "required"},
               {"parallel_tool_calls", false},
               {"max_tokens", 100}};
  const std::vector<json> chunks = stream("/v1/chat/completions", body);
  size_t num_calls = 0;
  for (const json& chunk : chunks) {
    const json& delta = chunk["choices"][0]["delta"];
    EXPECT_EQ(delta.value("content", ""), "");
    if (delta.contains("tool_calls")) {
      ++num_calls;
      expect_call(delta["tool_calls"][0]);
    }
  }
  EXPECT_EQ(num_calls, 1u);
  EXPECT_EQ(chunks.back()["choices"][0]["finish_reason"], "tool_calls");
}

TEST_F(ToolService, FormatsStandBesideCalls) {
  const json format = {
      {"type", "json_schema"},
      {"json_schema", {{"name", "n"}, {"schema", {{"type", "integer"}, {"minimum", 10}, {"maximum", 99}}}}}};
  const json first =
      call({{"response_format", format}, {"max_tokens", 1}, {"logprobs", true}, {"top_logprobs", 20}});
  std::set<std::string> begins;
  for (const json& best : first["logprobs"]["content"][0]["top_logprobs"]) begins.insert(best["token"]);
  EXPECT_THAT(begins, testing::ElementsAre("1", "2", "3", "4", "5", "6", "7", "8", "9", "{"));
  const json required =
      call({{"response_format", format}, {"tool_choice", "required"}, {"parallel_tool_calls", false}});
  EXPECT_EQ(required["finish_reason"], "tool_calls");
  const json none = call({{"response_format", format}, {"tool_choice", "none"}});
  EXPECT_THAT(none["message"]["content"].get<std::string>(), testing::MatchesRegex("[1-9][0-9]"));
}

TEST_F(ToolService, SchemasThatGrammarsCannotSay) {
  const json odd = {{"type", "object"}, {"$dynamicRef", "#a"}};
  const json any = call({{"tool_choice", "required"},
                         {"parallel_tool_calls", false},
                         {"max_tokens", 250},
                         {"temperature", 1},
                         {"seed", 1}},
                        json::array({function("f", odd)}));
  if (any["finish_reason"] == "tool_calls") {
    EXPECT_TRUE(
        json::parse(any["message"]["tool_calls"][0]["function"]["arguments"].get<std::string>()).is_object());
  }
  const HttpAnswer strict = refused({{"tools", json::array({function("f", odd, true)})}});
  EXPECT_EQ(strict.status, 400);
  EXPECT_EQ(strict.json()["error"]["param"], "tools");
  EXPECT_THAT(strict.body, HasSubstr("tools[0].function.parameters: $dynamicRef: not supported"));
  const HttpAnswer bad = refused({{"tools", json::array({function("f", {{"type", "text"}})})}});
  EXPECT_EQ(bad.status, 400);
  EXPECT_THAT(bad.body, HasSubstr("tools[0].function.parameters"));
}

class DeafService : public ToolService {
 protected:
  DeafService()
      : ToolService(small_tokenizer(kJsonSigns),
                    "{% for message in messages %}{{ message.content }}{% endfor %}") {}
};

TEST_F(DeafService, RefusesToolsThatItsTemplateIgnores) {
  const HttpAnswer answer = refused({{"tools", kTools}});
  EXPECT_EQ(answer.status, 400);
  EXPECT_EQ(answer.json()["error"]["param"], "tools");
  EXPECT_THAT(answer.body, HasSubstr("does not tell the model of functions"));
  EXPECT_EQ(call({{"tool_choice", "none"}, {"max_tokens", 2}})["finish_reason"], "length");
}

// ---- Calls that begin within a text

constexpr const char* kMistralTemplate =
    "{% for message in messages %}{% if message.tool_calls %}[TOOL_CALLS] [{% for call in message.tool_calls "
    "%}"
    "{\"name\": \"{{ call.function.name }}\", \"arguments\": {{ call.function.arguments | tojson }}}{% "
    "endfor %}]"
    "{% else %}{{ message.content }}{% endif %}{% endfor %}{% for tool in tools or [] %}{{ "
    "tool.function.name }}{% endfor %}";

// The model's fourth token becomes the one that begins calls: what the launch has chosen behind it is forgotten.
TEST(ToolTriggers, TextIsFreeUpToTheFirstCall) {
  const json tokenizer = small_tokenizer(kJsonSigns, {"[TOOL_CALLS]", "</s>"});
  const json body = {
      {"tools", kTools}, {"max_tokens", 120}, {"parallel_tool_calls", false}, {"ignore_eos", true}};
  const std::string user = "hi";
  std::string text;
  {
    SmallService plain(tokenizer, kMistralTemplate);
    text = plain.chat(body, user)["choices"][0]["message"]["content"];
  }
  // Not one that the prompt has, nor one that stood before.
  size_t at = 3;
  const std::string taken = user + "addsay";
  while (taken.find(text[at]) != taken.npos || text.find(text[at]) < at || text[at] == ' ' ||
         text[at] == '\n')
    ++at;
  SmallService service(exchanged(tokenizer, std::string(1, text[at]), "[TOOL_CALLS]"), kMistralTemplate);
  const json choice = service.chat(body, user)["choices"][0];
  EXPECT_EQ(choice["message"]["content"], text.substr(0, at)) << choice;
  ASSERT_EQ(choice["message"]["tool_calls"].size(), 1u) << choice;
  expect_call(choice["message"]["tool_calls"][0]);
  EXPECT_EQ(choice["message"]["tool_calls"][0]["id"].get<std::string>().size(), 9u);
  // Where nothing can be called, it is a special token as others are.
  const json plain = service.chat({{"max_tokens", 60}, {"ignore_eos", true}}, taken)["choices"][0]["message"];
  EXPECT_THAT(plain["content"].get<std::string>(), testing::Not(HasSubstr("[TOOL")));
}

}  // namespace
}  // namespace soliton
