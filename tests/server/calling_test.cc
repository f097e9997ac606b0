// A model that calls a function by itself and then says that it is done: agents' loops, from question to answer, by what
// clients send where they let the model choose.
#include <gmock/gmock.h>

#include "long_tests.h"
#include "server/chain_model.h"
#include "server/clients_fixture.h"

namespace soliton {
namespace {

using nlohmann::json;

constexpr const char* kCall = R"({"name": "add", "parameters": {"a": 12}})";

/// As kCallingTemplate, but where no call is to follow the answer begins behind a point.
std::string calling_template() {
  std::string text = kCallingTemplate;
  const std::string begin = "assistant:";
  text.replace(text.rfind(begin), begin.size(),
               "assistant{% if tools and messages[-1].role != 'tool' %}:{% else %}.{% endif %}");
  return text;
}

/// In which a token of its own is the call.
json calling_tokenizer() {
  std::vector<std::string> signs = kJsonSigns;
  std::ranges::replace(signs, "+", "_");
  json tokenizer = small_tokenizer(signs);
  json& vocabulary = tokenizer["model"]["vocab"];
  const int id = vocabulary["z"];
  vocabulary.erase("z");
  vocabulary[kCall] = id;
  tokenizer["added_tokens"].push_back({{"id", id},
                                       {"content", kCall},
                                       {"single_word", false},
                                       {"lstrip", false},
                                       {"rstrip", false},
                                       {"normalized", false},
                                       {"special", false}});
  return tokenizer;
}

class CallingModel : public ClientsTest {
 protected:
  CallingModel() : ClientsTest(calling_tokenizer(), calling_template()) {
    const TokenChain chain = {{":", kCall}, {".", "d"}, {"d", "o"}, {"o", "n"}, {"n", "e"}};
    const TemporaryModel folder(chain_weights(kernel_.facts(), calling_tokenizer()["model"]["vocab"], chain),
                                kernel_.facts());
    kernel_.engine().load(TensorSource::open(folder.path()), nullptr);
  }
};

TEST_F(CallingModel, CallsWhereItMayAndEndsBehindTheResult) {
  const json tool = {
      {"type", "function"},
      {"function",
       {{"name", "add"},
        {"parameters", {{"type", "object"}, {"properties", {{"a", {{"type", "integer"}}}}}}}}}};
  json messages = {{{"role", "user"}, {"content", "hello"}}};
  const json body = {{"tools", {tool}}, {"temperature", 1}, {"messages", messages}};
  const json first = chat(body)["choices"][0];
  EXPECT_EQ(first["finish_reason"], "tool_calls");
  const json call = first["message"]["tool_calls"][0];
  EXPECT_EQ(call["function"]["name"], "add");
  EXPECT_EQ(json::parse(call["function"]["arguments"].get<std::string>()), (json{{"a", 12}}));
  messages.push_back(first["message"]);
  messages.push_back({{"role", "tool"}, {"tool_call_id", call["id"]}, {"content", "3"}});
  const json last = chat({{"tools", {tool}}, {"messages", messages}})["choices"][0];
  EXPECT_EQ(last["message"]["content"], "done");
  EXPECT_EQ(last["finish_reason"], "stop");
}

TEST_F(CallingModel, IsCalledByTheOfficialClients) {
  SOLITON_LONG_RUNS_ONLY("ToolClientsTest does, in front of a model of the test");
  expect_good("calling_client.py");
}

TEST_F(CallingModel, WorksForAgents) {
  if (!long_tests()) GTEST_SKIP() << "skipped: only in long runs (SOLITON_LONG_TESTS=1)";
  expect_good("calling_agents_client.py");
}

}  // namespace
}  // namespace soliton
