// Prompts whose tokens are told as likely as they were, as evaluations ask for them (lm-eval's local-completions).
#include <gmock/gmock.h>

#include "reference_sampling.h"
#include "server/scheduler_fixture.h"
#include "server/service_fixture.h"

namespace soliton {
namespace {

using nlohmann::json;
using testing::Each;
using testing::HasSubstr;

/// What the engine says of each token of a prompt but the first, fed one by one: the logits in its place.
std::vector<std::vector<float>> logits_of(Engine& engine, const Tokens& prompt) {
  std::vector<std::vector<float>> logits;
  engine.reset_tree();
  for (size_t i = 0; i + 1 < prompt.size(); ++i) {
    const DecodeResult result =
        engine.decode({.tokens = std::span(prompt).subspan(i, 1), .max_tokens = 1, .want_logits = true});
    logits.push_back(result.logits);
  }
  return logits;
}

/// The prompt's tokens as a scheduler tells of them.
struct Scored {
  Generation of(Tokens prompt, int max_tokens, int num_best = 0) {
    return {.prompt = std::move(prompt),
            .max_tokens = max_tokens,
            .num_best = num_best,
            .on_prompt_token = [this](const GeneratedToken& token) { tokens.push_back(token); }};
  }
  std::vector<GeneratedToken> tokens;
};

class PromptScores : public testing::TestWithParam<const char*> {
 protected:
  static constexpr int kContext = 192;
  static constexpr int64_t kPoolTokens = 20 * kKvPageTokens;

  void expect_scores(const Tokens& prompt, const std::vector<GeneratedToken>& told) {
    const std::vector<std::vector<float>> logits = logits_of(reference_.engine(), prompt);
    ASSERT_EQ(told.size(), prompt.size() - 1);
    for (size_t i = 0; i < told.size(); ++i) {
      EXPECT_EQ(told[i].id, prompt[i + 1]);
      ASSERT_TRUE(told[i].logprob) << i;
      EXPECT_NEAR(*told[i].logprob, reference_logprob(logits[i], prompt[i + 1]), 2e-2) << i;
    }
  }

  KernelUnderTest kernel_{GetParam(), kContext, kPoolTokens};
  KernelUnderTest reference_{"micro-2-all", kContext};
};

TEST_P(PromptScores, AreThoseOfTheModel) {
  SchedulerUnderTest test(kernel_.engine(), {.context = kContext});
  const Tokens prompt = kernel_.prompt(70);
  Scored scored;
  const Heard heard = test.alone(scored.of(prompt, 2, 3));
  expect_scores(prompt, scored.tokens);
  EXPECT_EQ(heard.tokens.size(), 2u);
  for (const GeneratedToken& token : scored.tokens) {
    ASSERT_EQ(token.best.size(), 3u);
    EXPECT_GE(token.best[0].logprob, token.best[1].logprob);
    EXPECT_GE(token.best[0].logprob, *token.logprob);
    if (token.best[0].id == token.id) {
      EXPECT_EQ(token.best[0].logprob, *token.logprob);
    }
  }
  // What is cached is fed again, for that alone.
  Scored again;
  EXPECT_EQ(test.alone(again.of(prompt, 2)).tokens, heard.tokens);
  EXPECT_EQ(again.tokens.size(), prompt.size() - 1);
  EXPECT_EQ(test.alone({.prompt = prompt, .max_tokens = 2}).end->num_cached, 69);
}

// Who decodes beside, or waits, is not disturbed, and nothing is told twice.
TEST_P(PromptScores, AreTheSameBesideOthers) {
  SchedulerUnderTest test(kernel_.engine(),
                          {.context = kContext, .max_rows = std::min(3, kernel_.engine().max_rows())});
  const Heard alone = test.alone({.prompt = kernel_.prompt(20), .max_tokens = 12});
  std::array<Scored, 3> scored;
  const size_t first = test.ask({.prompt = kernel_.prompt(20), .max_tokens = 12});
  test.run(2);
  const std::array<int, 3> lengths = {40, 70, 2};
  for (size_t i = 0; i < 3; ++i) test.ask(scored[i].of(kernel_.prompt(lengths[i]), 1));
  test.run_to_end();
  EXPECT_EQ(test.heard(first).tokens, alone.tokens);
  for (size_t i = 0; i < 3; ++i) expect_scores(kernel_.prompt(lengths[i]), scored[i].tokens);
}

TEST_P(PromptScores, NeedNoAnswer) {
  SchedulerUnderTest test(kernel_.engine(), {.context = kContext});
  const Tokens prompt = kernel_.prompt(33);
  Scored scored;
  const Heard heard = test.alone(scored.of(prompt, 0));
  EXPECT_TRUE(heard.tokens.empty());
  EXPECT_EQ(heard.end->end, SampleEnd::kLength);
  expect_scores(prompt, scored.tokens);
  // Prompts of one token, and those of which all is cached, end too.
  for (const int length : {1, 33})
    EXPECT_TRUE(test.alone({.prompt = kernel_.prompt(length), .max_tokens = 0}).end);
  // The whole context may be a prompt, and one token more.
  Scored whole;
  EXPECT_TRUE(test.alone(whole.of(kernel_.prompt(kContext), 1)).end);
  EXPECT_EQ(whole.tokens.size(), kContext - 1u);
}

INSTANTIATE_TEST_SUITE_P(Kernels, PromptScores, testing::Values("micro-2-all", "micro-1"),
                         [](const auto& info) {
                           return std::string(info.param) == "micro-1" ? "OneRow" : "Rows";
                         });

// Where pages run out, one that is sent back goes on where it was: others grow while a long prompt is read.
TEST(PromptScore, GoesOnWhereItWasSentBack) {
  KernelUnderTest kernel("micro-2-all", 320, 17 * kKvPageTokens);
  SchedulerUnderTest test(kernel.engine(), {.context = 320, .launch_tokens = 1});
  for (int i = 0; i < 5; ++i)
    test.ask({.prompt = Tokens(40, 5 + i), .max_tokens = 120, .sampling = {.temperature = 1}});
  test.run(30);
  Scored scored;
  const size_t index = test.ask(scored.of(kernel.prompt(318), 2));
  size_t num_before = 0;
  while (test.metrics().value(Metrics::Counter::kSentBack) == 0 && test.scheduler().run_once())
    num_before = scored.tokens.size();
  EXPECT_GT(num_before, 0u);
  EXPECT_LT(num_before, 317u);
  test.run_to_end();
  EXPECT_EQ(test.heard(index).tokens.size(), 2u);
  ASSERT_EQ(scored.tokens.size(), 317u);
  for (size_t i = 0; i < 317; ++i) EXPECT_EQ(scored.tokens[i].id, kernel.prompt(318)[i + 1]);
}

// ---- Over HTTP

TEST_F(ServiceTest, EchoesPromptsWithTheirLogprobs) {
  // As lm-eval asks: tokens of several prompts, one token behind them, which it forgets.
  const std::vector<int> one = text_->tokenizer.encode("once upon"),
                         two = text_->tokenizer.encode("a time ago");
  const json body = {{"model", "any"}, {"prompt", {one, two}}, {"max_tokens", 1}, {"logprobs", 1},
                     {"seed", 1234},   {"temperature", 0},     {"echo", true}};
  const json answer = complete(body);
  ASSERT_EQ(answer["choices"].size(), 2u);
  KernelUnderTest alone("micro-2-all", kSmallContext);
  for (size_t i = 0; i < 2; ++i) {
    const json& logprobs = answer["choices"][i]["logprobs"];
    const std::vector<int>& prompt = i == 0 ? one : two;
    EXPECT_THAT(answer["choices"][i]["text"].get<std::string>(),
                testing::StartsWith(i == 0 ? "once upon" : "a time ago"));
    for (const auto& [name, list] : logprobs.items()) EXPECT_EQ(list.size(), prompt.size() + 1) << name;
    EXPECT_TRUE(logprobs["token_logprobs"][0].is_null());
    EXPECT_TRUE(logprobs["top_logprobs"][0].is_null());
    const std::vector<std::vector<float>> logits = logits_of(alone.engine(), {prompt.begin(), prompt.end()});
    for (size_t at = 1; at < prompt.size(); ++at) {
      EXPECT_EQ(logprobs["text_offset"][at], at);
      const double logprob = logprobs["token_logprobs"][at];
      EXPECT_NEAR(logprob, reference_logprob(logits[at - 1], prompt[at]), 2e-2);
      const json& best = logprobs["top_logprobs"][at];
      ASSERT_EQ(best.size(), 1u);
      // So it finds out whether the token would have been taken.
      EXPECT_GE(best.begin()->get<double>(), logprob);
      const bool is_best = best.begin().key() == logprobs["tokens"][at];
      EXPECT_EQ(is_best, best.begin()->get<double>() == logprob);
    }
  }
  EXPECT_EQ(answer["usage"]["completion_tokens"], 2);
}

TEST_F(ServiceTest, ScoresWithoutAnAnswerAndInStreams) {
  json body = {{"prompt", "once upon"}, {"max_tokens", 0}, {"logprobs", 2}, {"echo", true}};
  const json whole = complete(body);
  const json& choice = whole["choices"][0];
  EXPECT_EQ(choice["text"], "once upon");
  EXPECT_EQ(choice["finish_reason"], "length");
  EXPECT_EQ(choice["logprobs"]["tokens"].size(), 9u);
  EXPECT_EQ(whole["usage"]["completion_tokens"], 0);
  const std::vector<json> chunks = stream("/v1/completions", body);
  EXPECT_EQ(chunks[0]["choices"][0]["text"], "once upon");
  EXPECT_EQ(chunks[0]["choices"][0]["logprobs"], choice["logprobs"]);
  // Every choice has them, and all are read once.
  body["n"] = 2;
  body["max_tokens"] = 3;
  const json two = complete(body);
  for (const json& each : two["choices"]) EXPECT_EQ(each["logprobs"]["tokens"].size(), 12u);
  for (size_t i = 1; i < 9; ++i)
    EXPECT_EQ(two["choices"][0]["logprobs"]["token_logprobs"][i],
              two["choices"][1]["logprobs"]["token_logprobs"][i]);
  body["prompt"] = json::array();
  for (int i = 0; i < 128; ++i) body["prompt"].push_back(std::vector<int>(300, 5));
  body["n"] = 128;
  const HttpAnswer refusal = post("/v1/completions", body);
  EXPECT_EQ(refusal.status, 400);
  EXPECT_EQ(refusal.json()["error"]["param"], "logprobs");
}

/// Of all chunks of a stream, those of the prompt once.
std::vector<int> ids_of(const std::vector<json>& chunks, const char* name) {
  std::vector<int> ids;
  const auto add = [&](const json& at) {
    if (!at.contains(name)) return;
    for (const int id : at[name]) ids.push_back(id);
  };
  for (const json& chunk : chunks) {
    add(chunk);
    for (const json& choice : chunk["choices"]) add(choice);
  }
  return ids;
}

TEST_F(ServiceTest, TellsTheIdsOfTokens) {
  json body = {{"prompt", "once upon"}, {"max_tokens", 5}, {"return_token_ids", true}, {"ignore_eos", true}};
  const json choice = complete(body)["choices"][0];
  const std::vector<int> prompt = choice["prompt_token_ids"];
  const std::vector<int> answer = choice["token_ids"];
  EXPECT_EQ(post("/detokenize", {{"tokens", prompt}}).json()["content"], "once upon");
  EXPECT_EQ(answer.size(), 5u);
  EXPECT_EQ(post("/detokenize", {{"tokens", answer}}).json()["content"], choice["text"]);
  const std::vector<json> chunks = stream("/v1/completions", body);
  EXPECT_EQ(ids_of(chunks, "prompt_token_ids"), prompt);
  EXPECT_EQ(ids_of(chunks, "token_ids"), answer);
  // The token that ends an answer is one of them, though it is not shown.
  body["stop_token_ids"] = {answer[1]};
  body["ignore_eos"] = false;
  const std::vector<int> stopped(answer.begin(), std::find(answer.begin(), answer.end(), answer[1]) + 1);
  EXPECT_EQ(complete(body)["choices"][0]["token_ids"], json(stopped));
  EXPECT_EQ(ids_of(stream("/v1/completions", body), "token_ids"), stopped);
  body["return_token_ids"] = false;
  EXPECT_FALSE(complete(body)["choices"][0].contains("token_ids"));
}

TEST_F(ServiceTest, TellsTheIdsOfTokensOfChats) {
  json body = {{"max_tokens", 4}, {"n", 2}, {"return_token_ids", true}, {"ignore_eos", true}};
  const json whole = chat(body);
  EXPECT_EQ(whole["prompt_token_ids"].size(), whole["usage"]["prompt_tokens"]);
  for (const json& choice : whole["choices"]) EXPECT_EQ(choice["token_ids"].size(), 4u);
  body["n"] = 1;
  body["temperature"] = 0;
  body["messages"] = json::array({{{"role", "user"}, {"content", "hello"}}});
  const std::vector<json> chunks = stream("/v1/chat/completions", body);
  EXPECT_EQ(json(ids_of(chunks, "prompt_token_ids")), whole["prompt_token_ids"]);
  EXPECT_EQ(json(ids_of(chunks, "token_ids")), whole["choices"][0]["token_ids"]);
}

TEST_F(ServiceTest, NamesTokensByTheirIds) {
  json body = {{"prompt", "once upon"}, {"max_tokens", 2}, {"logprobs", 1}, {"return_token_ids", true}};
  body["return_tokens_as_token_ids"] = true;
  const json choice = complete(body)["choices"][0];
  for (size_t i = 0; i < choice["logprobs"]["tokens"].size(); ++i) {
    const std::string name = "token_id:" + choice["token_ids"][i].dump();
    EXPECT_EQ(choice["logprobs"]["tokens"][i], name);
    EXPECT_EQ(choice["logprobs"]["top_logprobs"][i].begin().key(), name);
  }
  const json said = chat({{"max_tokens", 1},
                          {"logprobs", true},
                          {"top_logprobs", 1},
                          {"return_token_ids", true},
                          {"return_tokens_as_token_ids", true}})["choices"][0];
  const json& entry = said["logprobs"]["content"][0];
  EXPECT_EQ(entry["token"], "token_id:" + said["token_ids"][0].dump());
  EXPECT_EQ(entry["top_logprobs"][0]["token"], entry["token"]);
}

TEST_F(ServiceTest, AnswersAsLongAsThereIsRoomFor) {
  const json all = complete({{"prompt", "abc"}, {"max_tokens", -1}, {"ignore_eos", true}});
  EXPECT_EQ(all["usage"]["completion_tokens"], kSmallContext - 2);
  EXPECT_EQ(complete({{"prompt", "abc"}, {"max_tokens", 0}})["choices"][0]["text"], "");
  EXPECT_EQ(chat({{"max_tokens", 0}})["usage"]["completion_tokens"], 0);
  // Nor is there a grammar of nothing.
  EXPECT_EQ(
      chat({{"max_tokens", 0}, {"response_format", {{"type", "json_object"}}}})["usage"]["completion_tokens"],
      0);
}

TEST_F(ServiceTest, TellsHowMuchOfAPromptIsRead) {
  const json body = {{"prompt", std::string(200, 'a')}, {"max_tokens", 2}, {"return_progress", true}};
  std::vector<size_t> fed;
  for (const json& chunk : stream("/v1/completions", body)) {
    if (!chunk.contains("prompt_progress")) continue;
    EXPECT_EQ(chunk["prompt_progress"]["total"], 200);
    EXPECT_GE(chunk["prompt_progress"]["time_ms"], 0);
    EXPECT_EQ(chunk["prompt_progress"]["cache"], 0);
    fed.push_back(chunk["prompt_progress"]["processed"]);
  }
  EXPECT_EQ(fed.front(), 0u);
  EXPECT_EQ(fed.back(), 200u);
  EXPECT_TRUE(std::ranges::is_sorted(fed));
  const std::vector<json> again = stream("/v1/completions", body);
  EXPECT_EQ(again[0]["prompt_progress"]["cache"], 199);
}

}  // namespace
}  // namespace soliton
