// Turns of a conversation against a generator that follows a script.
#include "runtime/chat/session.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>

#include "cli/run_program.h"
#include "models/error.h"
#include "temporary_folder.h"

namespace soliton {
namespace {

using testing::HasSubstr;
using Tokens = std::vector<int32_t>;

constexpr int kContext = 60;

/// Gives out scripted tokens and notes what it was asked for.
class Script : public Generator {
 public:
  Generated generate(const GenerateRequest& request, const OnToken& on_token) override {
    prompts.emplace_back(request.prompt.begin(), request.prompt.end());
    seeds.push_back(request.sampling.seed);
    max_tokens.push_back(request.max_tokens);
    Generated generated;
    if (request.goes_on && !request.goes_on()) return generated;
    if (fails) throw Error(ExitCode::kDevice, "no device");
    const Tokens tokens = answers.empty() ? Tokens{} : answers.front();
    if (!answers.empty()) answers.pop_front();
    for (const int32_t token : tokens) {
      if (std::ssize(generated.tokens) == request.max_tokens) break;
      generated.tokens.push_back(token);
      generated.hit_stop_token =
          std::count(request.stop_tokens.begin(), request.stop_tokens.end(), token) > 0;
      const auto logprob = static_cast<float>(-token);
      if (!on_token({token, request.sampling.logprobs ? std::optional(logprob) : std::nullopt}) ||
          generated.hit_stop_token)
        break;
    }
    return generated;
  }
  int context() const override { return kContext; }
  void check(const Sampling& sampling) const override {
    if (sampling.num_drafts > 3) throw Error(ExitCode::kUsage, "--lookup: too many");
  }

  std::deque<Tokens> answers;
  bool fails = false;
  std::vector<Tokens> prompts;
  std::vector<uint32_t> seeds;
  std::vector<int> max_tokens;
};

class SessionTest : public testing::Test {
 protected:
  SessionTest()
      : tokenizer_(Tokenizer::open(std::string(SOLITON_SOURCE_DIR) + "/tests/runtime/data/llama")),
        stop_(*tokenizer_.token_id("<|eot_id|>")),
        prompter_(tokenizer_,
                  ChatTemplate::parse("{% for m in messages %}{% if m.content == 'refuse me' %}"
                                      "{{ raise_exception('no such message') }}{% endif %}"
                                      "{{ m.role }}={{ m.content }};{% endfor %}assistant=",
                                      "test"),
                  {}) {}

  Session session(Session::Setup setup = {}) {
    setup.style.stop_tokens = {stop_};
    return Session(tokenizer_, prompter_, script_, std::move(setup));
  }
  /// Makes the next answer, with or without its end.
  void script(const std::string& text, bool ends = true) {
    Tokens tokens = tokenizer_.encode(text);
    if (ends) tokens.push_back(stop_);
    script_.answers.push_back(std::move(tokens));
  }
  std::string last_prompt() const {
    const Tokens& prompt = script_.prompts.back();
    return tokenizer_.decode(std::span(prompt).subspan(tokenizer_.prefix_ids().size()));
  }
  static bool all(std::string_view) { return true; }

  Tokenizer tokenizer_;
  int stop_;
  Prompter prompter_;
  Script script_;
  TemporaryFolder folder_;
};

TEST_F(SessionTest, KnowsWhereReasoningStands) {
  script("one");
  Session plain = session();
  plain.ask("A", all);
  EXPECT_FALSE(plain.reasoning_reader());
  const Prompter thinking(tokenizer_, ChatTemplate::parse("{{ messages[-1].content }}<think>\n", "test"), {});
  Session::Setup setup;
  setup.style.stop_tokens = {stop_};
  Session chat(tokenizer_, thinking, script_, setup);
  script("so</think>\nyes");
  std::optional<ReasoningReader> reader;
  ReasoningReader::Piece shown;
  chat.ask("A", [&](std::string_view text) {
    if (!reader) reader = chat.reasoning_reader();
    const ReasoningReader::Piece piece = reader.value().push(text);
    shown.reasoning += piece.reasoning;
    shown.content += piece.content;
    return true;
  });
  EXPECT_EQ(shown.reasoning, "so</think>");
  EXPECT_EQ(shown.content, "\nyes");
  EXPECT_EQ(chat.conversation().turns.back(), "so</think>\nyes");
}

TEST_F(SessionTest, KeepsWhatWasSaid) {
  Session chat = session({.style = {}, .settings = {}, .system = "S"});
  script("one");
  std::string shown;
  const Answer answer = chat.ask("A", [&](std::string_view text) {
    shown += text;
    return true;
  });
  EXPECT_EQ(answer.text, "one");
  EXPECT_EQ(shown, "one");
  EXPECT_EQ(answer.end, AnswerEnd::kDone);
  EXPECT_EQ(last_prompt(), "system=S;user=A;assistant=");
  script("two");
  chat.ask("B", all);
  EXPECT_EQ(last_prompt(), "system=S;user=A;assistant=one;user=B;assistant=");
  EXPECT_EQ(chat.conversation(), (Conversation{.system = "S", .turns = {"A", "one", "B", "two"}}));
  chat.clear();
  EXPECT_EQ(chat.conversation(), (Conversation{.system = "S", .turns = {}}));
}

TEST_F(SessionTest, AnswersAgainWithTheNextSeed) {
  Session chat =
      session({.style = {}, .settings = {.sampling = {.seed = 5}, .num_tokens = {}}, .system = {}});
  EXPECT_THROW(chat.answer_again(all), Error);
  for (const char* text : {"one", "two", "three", "four"}) script(text);
  chat.ask("A", all);
  chat.answer_again(all);
  chat.answer_again(all);
  EXPECT_EQ(chat.conversation().turns, (std::vector<std::string>{"A", "three"}));
  EXPECT_EQ(script_.prompts[0], script_.prompts[2]);
  chat.ask("B", all);
  EXPECT_EQ(script_.seeds, (std::vector<uint32_t>{5, 6, 7, 5}));
}

TEST_F(SessionTest, EndsAtAStopString) {
  Session chat = session({.style = {.stop_tokens = {}, .stops = {"fox jum"}, .skips_special = true},
                          .settings = {},
                          .system = {}});
  script("The quick brown fox jumps over");
  std::string shown;
  const Answer answer = chat.ask("A", [&](std::string_view text) {
    shown += text;
    return true;
  });
  EXPECT_EQ(answer.end, AnswerEnd::kDone);
  EXPECT_EQ(shown, "The quick brown ");
  EXPECT_EQ(chat.conversation().turns.back(), "The quick brown ");
  EXPECT_TRUE(answer.logprobs.empty());
}

TEST_F(SessionTest, TellsTheTokensThatTheTextIsMadeOf) {
  Session chat = session({.style = {.stop_tokens = {}, .stops = {" fox"}, .skips_special = true},
                          .settings = {.sampling = {.logprobs = true}, .num_tokens = {}},
                          .system = {}});
  script("The quick brown fox jumps over");
  const Answer answer = chat.ask("A", all);
  EXPECT_EQ(answer.text, "The quick brown");
  EXPECT_EQ(tokenizer_.decode(answer.tokens), answer.text);
  EXPECT_GT(answer.timing.generated, answer.tokens.size());
  ASSERT_EQ(answer.logprobs.size(), answer.tokens.size());
  for (size_t i = 0; i < answer.tokens.size(); ++i)
    EXPECT_EQ(answer.logprobs[i], static_cast<float>(-answer.tokens[i]));
}

TEST_F(SessionTest, SaysHowAnAnswerWasCut) {
  Session chat = session();
  chat.set("predict", "2");
  script("The quick brown fox", false);
  EXPECT_EQ(chat.ask("A", all).end, AnswerEnd::kNumTokens);
  EXPECT_EQ(script_.max_tokens.back(), 2);
  chat.set("predict", "-1");
  script(std::string(1000, 'z'), false);
  const Answer answer = chat.ask("B", all);
  EXPECT_EQ(answer.end, AnswerEnd::kContext);
  EXPECT_EQ(script_.max_tokens.back(), kContext - std::ssize(script_.prompts.back()) + 1);
  EXPECT_EQ(answer.timing.generated, static_cast<size_t>(script_.max_tokens.back()));
  EXPECT_EQ(chat.conversation().turns.size(), 4u);
}

TEST_F(SessionTest, RefusesAMessageThatDoesNotFit) {
  Session chat = session();
  script("one");
  chat.ask("A", all);
  const Conversation before = chat.conversation();
  try {
    chat.ask(std::string(100, '?'), all);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kOutOfMemory);
    EXPECT_THAT(error.what(),
                HasSubstr("context: expected a conversation of at most 60 tokens (see -c), got "));
  }
  EXPECT_EQ(chat.conversation(), before);
  script("two");
  EXPECT_EQ(chat.ask("B", all).end, AnswerEnd::kDone);
}

TEST_F(SessionTest, KeepsAnInterruptedAnswerIfThereIsOne) {
  Session chat = session();
  script("The quick brown fox");
  std::string shown;
  const Answer answer = chat.ask("A", [&](std::string_view text) {
    shown += text;
    return shown.size() < 4;
  });
  EXPECT_EQ(answer.end, AnswerEnd::kInterrupted);
  EXPECT_EQ(answer.text, shown);
  EXPECT_EQ(chat.conversation().turns, (std::vector<std::string>{"A", shown}));

  script("never");
  EXPECT_EQ(chat.ask("B", [](std::string_view) { return false; }).end, AnswerEnd::kNothing);
  EXPECT_EQ(chat.conversation().turns.size(), 2u);
}

TEST_F(SessionTest, AnEmptyAnswerIsOne) {
  Session chat = session();
  script("");
  EXPECT_EQ(chat.ask("A", all).end, AnswerEnd::kDone);
  EXPECT_EQ(chat.conversation().turns, (std::vector<std::string>{"A", ""}));
}

TEST_F(SessionTest, ErrorsLeaveItAsItWas) {
  Session chat = session();
  script("one");
  chat.ask("A", all);
  const Conversation before = chat.conversation();
  EXPECT_THROW(chat.ask("refuse me", all), Error);
  EXPECT_THROW(chat.set_system("refuse me"), Error);
  EXPECT_THROW(chat.set_system(std::string(100, '?')), Error);
  EXPECT_THROW(chat.set("drafts", "4"), Error);
  EXPECT_THROW(chat.load(folder_.path() / "absent.json"), Error);
  EXPECT_THROW(chat.load(folder_.write("bad.json", "[")), Error);
  EXPECT_THROW(chat.load(folder_.write("refused.json", R"([{"role": "user", "content": "refuse me"},
                                                           {"role": "assistant", "content": "x"}])")),
               Error);
  Conversation too_long = before;
  too_long.turns.back() = std::string(100, '?');
  save_conversation(too_long, folder_.path() / "long.json");
  EXPECT_THROW(chat.load(folder_.path() / "long.json"), Error);
  script_.fails = true;
  EXPECT_THROW(chat.ask("B", all), Error);
  EXPECT_EQ(chat.conversation(), before);
  EXPECT_EQ(chat.settings().sampling.num_drafts, 0);
}

TEST_F(SessionTest, GoesOnWithASavedConversation) {
  Session chat = session({.style = {}, .settings = {}, .system = "S"});
  script("one");
  chat.ask("A", all);
  chat.save(folder_.path() / "chat.json");
  Session other = session();
  other.load(folder_.path() / "chat.json");
  EXPECT_EQ(other.conversation(), chat.conversation());
  script("two");
  other.ask("B", all);
  EXPECT_EQ(last_prompt(), "system=S;user=A;assistant=one;user=B;assistant=");
}

TEST_F(SessionTest, TheSystemPromptCanGo) {
  Session chat = session();
  chat.set_system("S");
  chat.set_system("");
  EXPECT_EQ(chat.conversation(), Conversation{});
  const Prompter completing(tokenizer_, std::nullopt, {});
  Session completion(tokenizer_, completing, script_, {});
  EXPECT_THROW(completion.set_system("S"), Error);
}

TEST_F(SessionTest, SpecialTokensAreNotShownIfUnwanted) {
  Session chat = session(
      {.style = {.stop_tokens = {}, .stops = {}, .skips_special = true}, .settings = {}, .system = {}});
  Tokens tokens = tokenizer_.encode("<|end_of_text|>text", true);
  tokens.push_back(stop_);
  script_.answers.push_back(tokens);
  EXPECT_EQ(chat.ask("A", all).text, "text");
}

TEST_F(SessionTest, StatisticsCountTurns) {
  Session chat = session();
  EXPECT_THAT(chat.statistics_lines(), testing::ElementsAre("conversation: 0 questions and answers"));
  script("one");
  chat.ask("A", all);
  const std::vector<std::string> lines = chat.statistics_lines();
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_EQ(lines[0], "conversation: 1 question and answer");
  EXPECT_THAT(lines[1], HasSubstr(" of 60 tokens"));
  EXPECT_THAT(lines[2], HasSubstr("last answer: prompt of "));
}

}  // namespace
}  // namespace soliton
