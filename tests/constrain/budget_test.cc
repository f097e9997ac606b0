// What a grammar may cost: steps, time and memory that run out, and those who give up; what is left goes on.
#include "runtime/text/constrain/budget.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "constrain_testing.h"
#include "error_of.h"

namespace soliton::constrain {
namespace {

/// Much work for each byte, and another set of states behind each.
const std::string kSlow = "root ::= ([a-z]? [a-y]?){0,4096}";

TEST(Budget, EndsWithItsSteps) {
  Budget budget("g", {.steps = 100'000, .steps_of_task = 40'000});
  budget.charge(90'000);
  EXPECT_EQ(error_of([&] { budget.charge(90'000); }),
            "7 g: expected at most 100000 steps of work, got more: make it smaller or less ambiguous");
  budget.begin_task();
  EXPECT_EQ(error_of([&] { budget.charge(30'000); }), "no error");
  EXPECT_NE(error_of([&] { budget.charge(100'000); }), "no error");
}

TEST(Budget, EndsWithItsTimeAndMemory) {
  Budget slow("g", {.steps = int64_t{1} << 60, .time = std::chrono::milliseconds(5)});
  EXPECT_EQ(error_of([&] {
              for (;;) slow.charge(1);
            }),
            "7 g: expected at most 5 ms of work, got more: make it smaller or less ambiguous");
  Budget large("g", {.bytes = size_t{2} << 20});
  large.charge_bytes(2'000'000);
  EXPECT_EQ(error_of([&] { large.charge_bytes(2'000'000); }),
            "7 g: expected at most 2 MB of sets of states, got more: make it smaller or less ambiguous");
}

TEST(Budget, OfAllGrammarsMemoryIsBounded) {
  std::vector<std::unique_ptr<Budget>> budgets;
  const auto add = [&] {
    budgets.push_back(std::make_unique<Budget>("g"));
    budgets.back()->charge_bytes(size_t{60} << 20);
  };
  EXPECT_EQ(error_of([&] {
              while (budgets.size() < 100) add();
            }),
            "7 g: expected at most 2048 MB of sets of states of all grammars, got more: try again later");
  budgets.resize(budgets.size() - 2);  // what goes leaves room
  EXPECT_EQ(error_of(add), "no error");
}

// What masks will ask for is looked at before they do, as far as the budget goes.
TEST(Budget, IsNotExceededByLookingAhead) {
  std::string root = "root ::= \"!\" slow";
  std::string rules = "\nslow ::= ([a-z]? [a-y]?){0,4096}";
  for (int i = 0; i < 40; ++i) {
    root += fmt::format(" | text-{}", i);
    rules += fmt::format("\ntext-{} ::= [ -~]{{{}}} \"!\"", i, 5 + i);
  }
  const Grammar grammar = ebnf(root + rules);
  const auto& vocabulary = tiny().vocabulary;
  const auto steps_are_enough = [&](int64_t steps) {
    return error_of([&] {
             Budget budget("s", {.steps = steps, .steps_of_task = 0});
             make_automaton(grammar, vocabulary->bytes(), budget);
           }) == "no error";
  };
  int64_t few = 0;
  int64_t enough = int64_t{1} << 30;
  while (enough - few > 1) {
    const int64_t steps = (few + enough) / 2;
    (steps_are_enough(steps) ? enough : few) = steps;
  }
  ASSERT_GT(few, 0);
  EXPECT_EQ(error_of([&] { TokenGrammar(grammar, vocabulary, {.steps = enough, .steps_of_task = 0}); }),
            "no error");
}

TEST(Budget, OfAGrammarIsChargedWhereWorkIsDone) {
  EXPECT_EQ(error_of([&] {
              TokenGrammar(ebnf(kSlow), byte_vocabulary(), {.steps = 70'000, .steps_of_task = 0});
            }).substr(0, 14),
            "7 g: expected ");  // while it is made ready
  const auto grammar = std::make_shared<TokenGrammar>(ebnf(kSlow), byte_vocabulary(),
                                                      BudgetLimits{.steps = 1'000'000, .steps_of_task = 0});
  EXPECT_EQ(error_of([&] {
              TokenConstraint constraint(grammar, {});
              for (int i = 0; i < 4000; ++i) constraint.accept('a');
            }).substr(0, 38),
            "7 g: expected at most 1000000 steps of");
  const auto large =
      std::make_shared<TokenGrammar>(ebnf(kSlow), byte_vocabulary(), BudgetLimits{.bytes = size_t{4} << 20});
  EXPECT_EQ(error_of([&] {
              TokenConstraint constraint(large, {});
              for (int i = 0; i < 4000; ++i) constraint.accept('a');
            }),
            "7 g: expected at most 4 MB of sets of states, got more: make it smaller or less ambiguous");
}

// Wherever it is given up, what was found until then is right, and nothing is known that was not found.
TEST(Budget, WhatWasGivenUpCanBeDoneAgain) {
  const Grammar grammar = ebnf("root ::= ([a-z]? [a-y]?){0,600} list\nlist ::= \"z\" list \"b\" | \"c\"*");
  TokenConstraint whole(ready(grammar), {});
  int looks_left = 1 << 20;
  const auto is_cancelled = [&] { return --looks_left < 0; };
  int num_cancelled = 0;
  const auto interrupted =
      std::make_shared<TokenGrammar>(grammar, byte_vocabulary(), BudgetLimits{}, is_cancelled);
  TokenConstraint again(interrupted, {});
  for (int i = 0; i < 30; ++i) {
    const int token = "abcazy"[i % 6];
    for (int most_looks = 0;; ++most_looks) {
      looks_left = most_looks;
      try {
        again.allowed();
        break;
      } catch (const Cancelled&) {
        ++num_cancelled;
      }
    }
    looks_left = 1 << 20;
    EXPECT_EQ(tokens_of(again.allowed()), tokens_of(whole.allowed()));
    EXPECT_EQ(again.accept(token), whole.accept(token));
  }
  EXPECT_GT(num_cancelled, 10);
  looks_left = 0;
  EXPECT_THROW(TokenGrammar(ebnf(kSlow), byte_vocabulary(), BudgetLimits{}, is_cancelled), Cancelled);
}

}  // namespace
}  // namespace soliton::constrain
