// Answers of grammars beside others: nobody waits long for another one's mask, and what a grammar costs or may not say ends
// its own answer alone.
#include <gmock/gmock.h>

#include <future>

#include "runtime/answer/forest/forest.h"
#include "runtime/text/constrain/ebnf.h"
#include "server/repetitive_model.h"
#include "server/scheduler_fixture.h"

namespace soliton {
namespace {

using testing::HasSubstr;

constexpr int kMaskContext = 320;

/// Masks wait until it is opened.
class Gate {
 public:
  explicit Gate(bool is_open = true) {
    if (is_open) open();
  }
  void open() { opens_.set_value(); }
  /// For those who wait: it may go before they do.
  std::shared_future<void> opened() const { return opened_; }

 private:
  std::promise<void> opens_;
  std::shared_future<void> opened_ = opens_.get_future().share();
};

class SchedulerMasks : public testing::Test {
 protected:
  explicit SchedulerMasks(int num_drafts = 0)
      : kernel_("micro-2-all", kMaskContext, 60 * kKvPageTokens),
        test_(kernel_.engine(), options(num_drafts)) {}

  static SchedulerOptions options(int num_drafts = 0) {
    return {.context = kMaskContext, .max_rows = 8, .launch_tokens = 4, .num_drafts = num_drafts};
  }

  /// Of a model whose tokens are letters and signs from '0' on.
  std::shared_ptr<RequestGrammar> grammar(const std::string& text, const Gate* gate = nullptr) const {
    const int size = kernel_.facts().vocabulary;
    const std::shared_future<void> opened = gate != nullptr ? gate->opened() : Gate().opened();
    return std::make_shared<RequestGrammar>(
        constrain::parse_ebnf(text, "g"), std::make_shared<LazyVocabulary>([size, opened] {
          opened.wait();
          std::vector<std::string> pieces;
          for (int token = 0; token < size - 1; ++token)
            pieces.emplace_back(1, static_cast<char>('0' + token));
          return std::make_shared<const constrain::Vocabulary>(pieces, size);
        }));
  }
  Generation plain(int max_tokens) const { return {.prompt = kernel_.prompt(20), .max_tokens = max_tokens}; }
  Generation following(std::shared_ptr<RequestGrammar> grammar, int max_tokens) const {
    return {.prompt = kernel_.prompt(9), .max_tokens = max_tokens, .grammar = std::move(grammar)};
  }
  std::string text(size_t index) const {
    std::string text;
    for (const int32_t token : test_.heard(index).tokens) text += static_cast<char>('0' + token);
    return text;
  }

  KernelUnderTest kernel_;
  SchedulerUnderTest test_;
};

TEST_F(SchedulerMasks, AnswersAreOfTheGrammar) {
  Generation three = following(grammar("root ::= [1-3]{4} \"9\" | \"8\"* \"7\""), 40);
  three.num_samples = 3;
  three.sampling = {.temperature = 2, .seed = 4};
  const size_t index = test_.ask(three);
  test_.run_to_end();
  for (size_t i = index; i < index + 3; ++i) {
    EXPECT_THAT(text(i), testing::MatchesRegex("[123][123][123][123]9|8*7"));
    EXPECT_EQ(test_.heard(i).end->end, SampleEnd::kEnough);
  }
}

/// Opens behind so many tokens, or never does.
class CountingGate : public GrammarGate {
 public:
  CountingGate(int num_tokens, State state, std::string begun)
      : num_left_(num_tokens), state_(state), begun_(std::move(begun)) {}
  State push(int32_t) override { return --num_left_ > 0 ? State::kClosed : state_; }
  std::string begun() override { return begun_; }

 private:
  int num_left_;
  State state_;
  std::string begun_;
};

Generation behind_gate(Generation generation, int num_tokens, const std::string& begun = {},
                       GrammarGate::State state = GrammarGate::State::kOpen) {
  generation.make_gate = [=] { return std::make_unique<CountingGate>(num_tokens, state, begun); };
  return generation;
}

// Wherever in a launch a gate opens: before it the answer is as without a grammar, and behind it as if what stands there had
// been the prompt.
TEST_F(SchedulerMasks, GrammarsHoldBehindTheirGates) {
  const auto digits = grammar("root ::= \"A\" [0-9]{5} \"=\"");
  const Tokens free = test_.alone(following(nullptr, 14)).tokens;
  for (const int num_free : {1, 2, 3, 6, 8}) {
    const size_t index = test_.ask(behind_gate(following(digits, 14), num_free, "A"));
    const size_t beside = test_.ask(plain(20));
    test_.run_to_end();
    const Tokens& tokens = test_.heard(index).tokens;
    ASSERT_EQ(tokens.size(), static_cast<size_t>(num_free) + 6) << num_free;
    EXPECT_TRUE(std::equal(tokens.begin(), tokens.begin() + num_free, free.begin())) << num_free;
    EXPECT_THAT(text(index).substr(static_cast<size_t>(num_free)), testing::MatchesRegex("[0-9]+="));
    EXPECT_EQ(test_.heard(index).end->end, SampleEnd::kEnough);
    EXPECT_EQ(test_.heard(beside).tokens, test_.alone(plain(20)).tokens);
    Generation at_once = following(grammar("root ::= [0-9]{5} \"=\""), 14);
    at_once.prompt.insert(at_once.prompt.end(), free.begin(), free.begin() + num_free);
    EXPECT_EQ(Tokens(tokens.begin() + num_free, tokens.end()), test_.alone(at_once).tokens) << num_free;
  }
}

class DraftedMasks : public SchedulerMasks {
 protected:
  DraftedMasks() : SchedulerMasks(3) { make_repetitive(kernel_.engine(), kernel_.facts()); }
};

// What a step has accepted of a draft ends with the token that opens the gate.
TEST_F(DraftedMasks, HoldBehindTheirGates) {
  Generation free = following(nullptr, 14);
  free.prompt = refrain(60);
  const Tokens said = test_.alone(free).tokens;
  const uint64_t num_accepted = test_.metrics().value(Metrics::Counter::kAcceptedTokens);
  EXPECT_GT(num_accepted, 2u);
  for (const int num_free : {1, 2, 3, 4, 5, 6, 8}) {
    Generation gated = behind_gate(free, num_free);
    gated.grammar = grammar("root ::= [0-9]{5} \"=\"");
    Generation at_once = gated;
    at_once.make_gate = {};
    at_once.prompt.insert(at_once.prompt.end(), said.begin(), said.begin() + num_free);
    Tokens expected(said.begin(), said.begin() + num_free);
    const Tokens behind = test_.alone(at_once).tokens;
    expected.insert(expected.end(), behind.begin(), behind.end());
    EXPECT_EQ(test_.alone(gated).tokens, expected) << num_free;
  }
  EXPECT_GT(test_.metrics().value(Metrics::Counter::kAcceptedTokens), num_accepted);
}

// What is other text, may not be found or costs too much goes on without a grammar.
TEST_F(SchedulerMasks, AnswersGoFreeWhereNoGrammarHolds) {
  const Tokens free = test_.alone(following(nullptr, 14)).tokens;
  const auto tokens = [&](const std::string& rules, const std::string& begun, GrammarGate::State state) {
    const Heard heard = test_.alone(behind_gate(following(grammar(rules), 14), 3, begun, state));
    EXPECT_EQ(heard.end->end, SampleEnd::kLength) << rules;
    return heard.tokens;
  };
  EXPECT_EQ(tokens("root ::= \"A\"", "B", GrammarGate::State::kOpen), free);
  EXPECT_EQ(tokens("root ::= \"AB\"", "AB", GrammarGate::State::kNever), free);
  EXPECT_EQ(tokens("root ::= \"\"", "B", GrammarGate::State::kOpen), free);
  EXPECT_EQ(tokens("root ::= root \"A\"", "A", GrammarGate::State::kOpen), free);
  // Also at the last token that there is room for.
  const Heard last = test_.alone(behind_gate(following(grammar("root ::= \"A\""), 3), 3, "B"));
  EXPECT_EQ(last.end->end, SampleEnd::kLength);
  EXPECT_EQ(last.tokens, Tokens(free.begin(), free.begin() + 3));
}

// Whose grammar takes nothing ends without a step: those who wait for a row come all the same.
TEST_F(SchedulerMasks, MoreThanThereAreRowsEndWithoutAStep) {
  constexpr size_t kMany = 20;
  for (size_t i = 0; i < kMany; ++i) test_.ask(following(grammar("root ::= \"\""), 4));
  test_.run_to_end();
  for (size_t i = 0; i < kMany; ++i) {
    ASSERT_TRUE(test_.heard(i).end) << i;
    EXPECT_EQ(test_.heard(i).end->end, SampleEnd::kEnough);
  }
}

// A text that is whole has ended so, also where its last token is the last there is room for.
TEST_F(SchedulerMasks, LastTokensAreLookedAt) {
  EXPECT_EQ(test_.alone(following(grammar("root ::= \"123\""), 3)).end->end, SampleEnd::kEnough);
  const Heard cut = test_.alone(following(grammar("root ::= \"1234\""), 3));
  EXPECT_EQ(cut.end->end, SampleEnd::kLength);
  EXPECT_EQ(cut.tokens.size(), 3u);
  const Heard none = test_.alone(following(grammar("root ::= \"\""), 3));
  EXPECT_EQ(none.end->end, SampleEnd::kEnough);
  EXPECT_TRUE(none.tokens.empty());
}

TEST_F(SchedulerMasks, OthersGoOnWhileOneIsFound) {
  const Heard alone = test_.alone(plain(40));
  const Heard numbers = test_.alone(following(grammar("root ::= [0-9]{6}"), 9));
  Gate gate(false);
  const size_t slow = test_.ask(following(grammar("root ::= [0-9]{6}", &gate), 9));
  const size_t other = test_.ask(plain(40));
  const size_t quick = test_.ask(following(grammar("root ::= [0-9]{6}"), 9));
  for (int i = 0; i < 200 && !(test_.heard(other).end && test_.heard(quick).end); ++i) test_.run(1);
  EXPECT_EQ(test_.heard(other).tokens, alone.tokens);
  EXPECT_EQ(test_.heard(quick).tokens, numbers.tokens);
  EXPECT_TRUE(test_.heard(slow).tokens.empty());
  EXPECT_FALSE(test_.heard(slow).end);
  gate.open();
  test_.run_to_end();
  EXPECT_EQ(test_.heard(slow).tokens, numbers.tokens);
}

// Who left is not waited for, nor does anything of him stay.
TEST_F(SchedulerMasks, CancelledWhileItIsFound) {
  Gate gate(false);
  const size_t slow = test_.ask(following(grammar("root ::= [0-9]{6}", &gate), 9));
  test_.run(3);
  EXPECT_FALSE(test_.heard(slow).end);
  test_.scheduler().cancel(test_.last_ticket());
  test_.run_to_end();
  EXPECT_EQ(test_.heard(slow).end->end, SampleEnd::kCancelled);
  EXPECT_TRUE(test_.scheduler().is_idle());
  EXPECT_EQ(test_.alone(plain(5)).tokens.size(), 5u);
  gate.open();
}

// The scheduler ends with masks under way.
TEST_F(SchedulerMasks, EndsWhileOneIsFound) {
  Gate gate(false);
  const size_t slow = test_.ask(following(grammar("root ::= ([A-Z]? [A-Y]?){0,4096}", &gate), 9));
  test_.run(3);
  std::thread opener([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    gate.open();
  });
  test_.scheduler().stop();
  EXPECT_EQ(test_.heard(slow).end->end, SampleEnd::kShutdown);
  opener.join();
}

TEST_F(SchedulerMasks, WhatIsTooMuchEndsItsAnswerAlone) {
  std::string ways = "root ::= s0\n";  // after each A three ways stay open
  for (int i = 0; i < 16; ++i)
    ways += fmt::format("s{0} ::= \"A\" s{1} \"B\" | \"A\" s{1} \"C\" | \"A\" s{1} \"D\"\n", i, i + 1);
  const size_t ambiguous = test_.ask(following(grammar(ways + "s16 ::= \"X\""), 40));
  const size_t large = test_.ask(following(grammar("root ::= (\"A\"{4096}){4096}"), 40));
  const size_t other = test_.ask(plain(12));
  test_.run_to_end();
  EXPECT_EQ(test_.heard(ambiguous).end->end, SampleEnd::kAmbiguous);
  EXPECT_THAT(test_.heard(ambiguous).end->failure, HasSubstr("g: expected at most 1000 stacks at once"));
  EXPECT_EQ(test_.heard(large).end->end, SampleEnd::kAmbiguous);
  EXPECT_THAT(test_.heard(large).end->failure, HasSubstr("g: expected at most 200000 states"));
  EXPECT_EQ(test_.heard(other).end->end, SampleEnd::kLength);
}

// Where pages run out while a mask is found, it is sent back and goes on.
TEST_F(SchedulerMasks, FollowsWhenItHasBeenSentBack) {
  KernelUnderTest kernel("micro-2-all", kMaskContext, 6 * kKvPageTokens);
  SchedulerUnderTest test(kernel.engine(), options());
  std::vector<size_t> asked;
  for (int i = 0; i < 3; ++i) {
    Tokens prompt = kernel.prompt(60);
    prompt[0] = i;
    asked.push_back(test.ask({.prompt = prompt, .max_tokens = 80, .grammar = grammar("root ::= [0-9]{70}")}));
  }
  test.run_to_end();
  for (const size_t index : asked) {
    EXPECT_EQ(test.heard(index).end->end, SampleEnd::kEnough);
    EXPECT_EQ(test.heard(index).tokens.size(), 70u);
  }
  EXPECT_GT(test.metrics().value(Metrics::Counter::kSentBack), 0u);
}

// The same where nobody schedules: whoever waits for texts of a forest may give up while masks are found.
TEST(ForestMasks, AreGivenUp) {
  KernelUnderTest kernel("micro-2-all", kMaskContext, 60 * kKvPageTokens);
  Forest forest(kernel.engine(), kMaskContext);
  std::vector<std::string> pieces;
  for (int token = 0; token < kernel.facts().vocabulary; ++token)
    pieces.emplace_back(1, static_cast<char>('A' + token));
  const auto grammar = std::make_shared<TokenGrammar>(
      constrain::parse_ebnf("root ::= ([A-Z]? [A-Y]?){0,4096}", "g"),
      std::make_shared<const constrain::Vocabulary>(pieces, kernel.facts().vocabulary));
  ForestText text{.tokens = kernel.prompt(20)};
  std::vector<ForestRow> rows(1);
  rows[0] = {.text = &text, .max_tokens = 30, .on_token = [](const ChosenToken&) { return true; }};
  rows[0].constraint.emplace(grammar, std::span<const int32_t>());
  int num_looks = 0;
  forest.decode({.rows = rows, .goes_on = [&] { return num_looks++ < 20; }});
  EXPECT_EQ(num_looks, 21);
  EXPECT_LT(text.tokens.size(), 50u);
  forest.release(text);
}

}  // namespace
}  // namespace soliton
