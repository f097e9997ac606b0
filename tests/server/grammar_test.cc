// Answers of a grammar, beside others.
#include <gmock/gmock.h>

#include <thread>

#include "server/service_fixture.h"

namespace soliton {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::MatchesRegex;

class GrammarService : public ServiceTest {};

const char* const kWords = "root ::= word (\" \" word){2}\nword ::= [a-f]{2,3} | \"x\" [0-9]";
const char* const kWordsPattern = "([a-f]{2,3}|x[0-9])( ([a-f]{2,3}|x[0-9])){2}";

TEST_F(GrammarService, AnswersAreOfTheGrammar) {
  const json answer = complete({{"prompt", "once"}, {"max_tokens", 40}, {"grammar", kWords}});
  EXPECT_THAT(answer["choices"][0]["text"].get<std::string>(), MatchesRegex(kWordsPattern));
  EXPECT_EQ(answer["choices"][0]["finish_reason"], "stop");
  const json drawn = complete({{"prompt", "once"},
                               {"max_tokens", 40},
                               {"grammar", kWords},
                               {"temperature", 2},
                               {"seed", 3},
                               {"n", 4}});
  std::set<std::string> texts;
  for (const json& choice : drawn["choices"]) {
    texts.insert(choice["text"].get<std::string>());
    EXPECT_THAT(*texts.rbegin(), MatchesRegex(kWordsPattern));
    EXPECT_THAT(choice["text"].get<std::string>(), MatchesRegex(kWordsPattern));
  }
  EXPECT_GT(texts.size(), 1u);
}

TEST_F(GrammarService, CutAnswersAreBeginnings) {
  const json answer = complete({{"prompt", "once"}, {"max_tokens", 3}, {"grammar", "root ::= \"abcdef\""}});
  EXPECT_EQ(answer["choices"][0]["text"], "abc");
  EXPECT_EQ(answer["choices"][0]["finish_reason"], "length");
}

TEST_F(GrammarService, JsonOfASchema) {
  const json format = {
      {"type", "json_schema"},
      {"json_schema", {{"name", "n"}, {"schema", {{"type", "integer"}, {"minimum", 10}, {"maximum", 99}}}}}};
  const json answer = chat({{"max_tokens", 9}, {"response_format", format}});
  EXPECT_THAT(answer["choices"][0]["message"]["content"].get<std::string>(), MatchesRegex("[1-9][0-9]"));
}

// By the names of vLLM and SGLang.
TEST_F(GrammarService, PatternsAndChoices) {
  for (const json& members : {json{{"regex", "(ab|c\\d){3}"}}, json{{"guided_regex", "^(ab|c[0-9]){3}$"}},
                              json{{"structured_outputs", {{"regex", "(?:ab|c\\d){3}"}}}}}) {
    json body = {{"max_tokens", 20}};
    body.update(members);
    EXPECT_THAT(chat(body)["choices"][0]["message"]["content"].get<std::string>(),
                MatchesRegex("(ab|c[0-9])(ab|c[0-9])(ab|c[0-9])"))
        << members;
  }
  const json choice = chat({{"max_tokens", 20}, {"guided_choice", {"yes", "no"}}});
  EXPECT_THAT(choice["choices"][0]["message"]["content"].get<std::string>(), MatchesRegex("yes|no"));
}

// The best tokens are of those that are allowed, and their probabilities add up to 1.
TEST_F(GrammarService, LogprobsAreOfWhatIsAllowed) {
  const json answer =
      chat({{"max_tokens", 9}, {"grammar", "root ::= [ab] \"c\""}, {"logprobs", true}, {"top_logprobs", 5}});
  const json& content = answer["choices"][0]["logprobs"]["content"];
  ASSERT_EQ(content.size(), 2u);
  ASSERT_EQ(content[0]["top_logprobs"].size(), 2u);
  double sum = 0;
  for (const json& best : content[0]["top_logprobs"]) sum += std::exp(best["logprob"].get<double>());
  EXPECT_NEAR(sum, 1, 1e-3);
  EXPECT_EQ(content[1]["top_logprobs"].size(), 1u);
}

// One request's mask is none of another's.
TEST_F(GrammarService, OthersAnswerAsIfAlone) {
  const json body = {{"prompt", "once upon"}, {"max_tokens", 30}, {"ignore_eos", true}};
  const json alone = complete(body);
  json beside;
  std::thread other([&] {
    beside = complete({{"prompt", "xyz"}, {"max_tokens", 60}, {"grammar", "root ::= [0-9]{50}"}});
  });
  const json answer = complete(body);
  other.join();
  EXPECT_EQ(answer["choices"][0]["text"].get<std::string>().size(),
            alone["choices"][0]["text"].get<std::string>().size());
  EXPECT_THAT(beside["choices"][0]["text"].get<std::string>(), MatchesRegex("[0-9]{50}"));
}

TEST_F(GrammarService, RefusesWhatItsTokensCannotWrite) {
  const HttpAnswer answer =
      post("/v1/completions", {{"prompt", "x"}, {"response_format", {{"type", "json_object"}}}});
  EXPECT_EQ(answer.status, 400);
  EXPECT_EQ(answer.json()["error"]["param"], "response_format");
  EXPECT_THAT(answer.body, HasSubstr("expected some text that it can be"));
  // Also where a stream is wanted, which has not begun then.
  const HttpAnswer stream = post(
      "/v1/completions", {{"prompt", "x"}, {"stream", true}, {"response_format", {{"type", "json_object"}}}});
  EXPECT_EQ(stream.status, 400);
  EXPECT_EQ(stream.json()["error"]["param"], "response_format");
  EXPECT_EQ(stream.headers.at("Content-Type"), "application/json");
}

// What is found while it is decoded is told the client alone.
TEST_F(GrammarService, AmbiguityEndsTheAnswerOnly) {
  std::string grammar = "root ::= s0\n";  // after each a three ways stay open
  for (int i = 0; i < 16; ++i)
    grammar += fmt::format("s{0} ::= \"a\" s{1} \"b\" | \"a\" s{1} \"c\" | \"a\" s{1} \"d\"\n", i, i + 1);
  const HttpAnswer answer =
      post("/v1/completions", {{"prompt", "x"}, {"max_tokens", 60}, {"grammar", grammar + "s16 ::= \"x\""}});
  EXPECT_EQ(answer.status, 400);
  EXPECT_EQ(answer.json()["error"]["param"], "grammar");
  EXPECT_THAT(answer.body, HasSubstr("make it less ambiguous"));
  // A stream that has begun ends with it.
  const HttpAnswer stream =
      post("/v1/completions",
           {{"prompt", "x"}, {"max_tokens", 60}, {"stream", true}, {"grammar", grammar + "s16 ::= \"x\""}});
  EXPECT_EQ(stream.status, 200);
  EXPECT_THAT(stream.events().at(stream.events().size() - 2), HasSubstr("make it less ambiguous"));
  EXPECT_EQ(
      complete({{"prompt", "x"}, {"max_tokens", 4}, {"ignore_eos", true}})["usage"]["completion_tokens"], 4);
}

}  // namespace
}  // namespace soliton
