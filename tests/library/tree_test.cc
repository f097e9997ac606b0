// Trees through soliton.hpp, and what the library shows.
#include <gmock/gmock.h>

#include <cstdio>
#include <fstream>
#include <iterator>
#include <regex>
#include <set>

#include "library/library_fixture.h"

namespace soliton {
namespace {

using testing::StartsWith;

using LibraryTree = Library;

Tokens joined(Tokens first, const Tokens& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

TEST_F(LibraryTree, DecodesForksTogether) {
  Tree tree(model());
  const Tree::Branch root = tree.add(prompt());
  const std::vector<Tree::Branch> forks = tree.fork(root, 3);
  EXPECT_EQ(std::set<Tree::Branch>({root, forks[0], forks[1], forks[2]}).size(), 4u);
  Options options = up_to(4);
  options.temperature = 3;
  options.seed = 7;
  std::set<Tree::Branch> told;
  const std::vector<Answer> answers = tree.decode(forks, options, [&](const soliton_token& token) {
    told.insert(token.branch);
    return true;
  });
  EXPECT_EQ(told, std::set<Tree::Branch>(forks.begin(), forks.end()));
  std::set<Tokens> different;
  for (size_t i = 0; i < forks.size(); ++i) {
    EXPECT_EQ(answers[i].tokens.size(), 4u);
    EXPECT_EQ(answers[i].result.num_prompt, static_cast<int>(prompt().size()));
    EXPECT_EQ(answers[i].result.num_cached, static_cast<int>(prompt().size()) - 1) << "fed once";
    EXPECT_EQ(tree.tokens(forks[i]), joined(prompt(), answers[i].tokens));
    different.insert(answers[i].tokens);
  }
  EXPECT_EQ(different.size(), 3u) << "branch i draws with seed + i";
  EXPECT_EQ(tree.tokens(root), prompt()) << "stays";
  options.seed = 8;
  EXPECT_EQ(tree.decode({tree.fork(root, 1)[0]}, options)[0].tokens, answers[1].tokens);
}

TEST_F(LibraryTree, ARowEndsWithoutTheOthers) {
  Tree tree(model());
  const Tree::Branch plain = tree.add(prompt());
  const Tree::Branch other = tree.fork(plain, 1)[0];
  tree.append(other, model().tokenize(", a small"));
  Options options = up_to(5);
  options.stops = {"girl"};
  const std::vector<Answer> answers = tree.decode({other, plain}, options);
  EXPECT_EQ(answers[0].text, " ");
  EXPECT_EQ(answers[1].text, ", a small ");
  for (const Answer& answer : answers) EXPECT_EQ(answer.result.finish, SOLITON_STOP_TEXT);
  EXPECT_EQ(model().detokenize(tree.tokens(other), true), "Once upon a time, a small girl")
      << "with the stop";
  options.stops.clear();
  EXPECT_EQ(tree.decode({plain}, options)[0].text, " lived in the meadow.");
}

TEST_F(LibraryTree, ScoresContinuations) {
  Tree tree(model());
  const Tree::Branch branch = tree.add(prompt());
  Options options = up_to(9);
  options.logprobs = true;
  const Answer greedy = Session(model()).generate(prompt(), options);
  const std::vector<float> scores = tree.score(branch, greedy.tokens);
  ASSERT_EQ(scores.size(), 9u) << "more than a step has rows";
  constexpr float kRounding = 0.05f;  // of bf16 activations, in another kernel
  for (size_t i = 0; i < scores.size(); ++i) EXPECT_NEAR(scores[i], greedy.logprobs[i], kRounding) << i;
  const float unlikely = tree.score(branch, model().tokenize("?"))[0];
  EXPECT_LT(unlikely, scores[0] - 3);
  EXPECT_EQ(tree.tokens(branch), prompt()) << "stays";
  options.logprobs = false;
  options.max_tokens = 3;
  EXPECT_EQ(tree.decode({branch}, options)[0].tokens,
            Tokens(greedy.tokens.begin(), greedy.tokens.begin() + 3));
}

TEST_F(LibraryTree, RefusesWhatIsNoBranch) {
  Tree tree(model());
  const Tree::Branch branch = tree.add(prompt());
  EXPECT_EQ(failure_of([&] { tree.decode({}, up_to(1)); }), "2 branches: expected at least one, got none");
  EXPECT_EQ(failure_of([&] {
              tree.decode({branch, branch}, up_to(1));
            }),
            "2 branches: expected different ones, got one twice");
  EXPECT_EQ(failure_of([&] { tree.fork(branch, 0); }), "2 count: expected at least 1, got 0");
  EXPECT_EQ(failure_of([&] { tree.append(branch, {}); }), "2 tokens: expected at least one, got none");
  EXPECT_THAT(failure_of([&] { tree.append(branch, {-1}); }),
              StartsWith("5 tokens: expected ids from 0 to "));
  EXPECT_EQ(tree.tokens(branch), prompt());
  tree.prune(branch);
  EXPECT_EQ(failure_of([&] { tree.prune(branch); }), "2 branch: expected one of the tree, got 0");
  EXPECT_THAT(failure_of([&] { (void)tree.tokens(branch); }), StartsWith("2 branch: "));
  EXPECT_EQ(tree.add(prompt()), branch) << "given out again";
}

TEST_F(LibraryTree, BranchesKeepTheirRoomUntilTheyArePruned) {
  const auto num_branches = static_cast<size_t>(model().info().cache_tokens / 64);  // pages
  Tree tree(model());
  std::vector<Tree::Branch> branches = tree.fork(tree.add(prompt()), num_branches - 1);
  EXPECT_THAT(failure_of([&] { tree.fork(branches[0], 1); }), StartsWith("7 KV pool of "));
  const Tokens other = model().prompt("One day");
  EXPECT_THAT(failure_of([&] { Session(model()).generate(other, up_to(1)); }),
              StartsWith("7 cache_tokens: expected room for "));
  tree.prune(branches.back());
  EXPECT_EQ(Session(model()).generate(other, up_to(1)).tokens.size(), 1u);
}

/// Names of functions that the header declares.
std::set<std::string> declared() {
  std::ifstream file(SOLITON_SOURCE_DIR "/runtime/library/soliton.h");
  const std::string header{std::istreambuf_iterator<char>(file), {}};
  const std::regex declaration(R"((?:^|\n)[a-z][^\n(/]*?\*?(soliton_\w+)\()");
  std::set<std::string> names;
  for (std::sregex_iterator at(header.begin(), header.end(), declaration), end; at != end; ++at) {
    names.insert((*at)[1]);
  }
  return names;
}

TEST(LibrarySymbols, AreThoseOfTheHeader) {
  std::unique_ptr<FILE, int (*)(FILE*)> nm(
      ::popen("nm -D --defined-only " SOLITON_BINARY_DIR "/libsoliton.so", "r"), ::pclose);
  ASSERT_NE(nm, nullptr);
  std::set<std::string> shown;
  char address[64];
  char kind = 0;
  char name[4096];
  while (std::fscanf(nm.get(), "%63s %c %4095s", address, &kind, name) == 3) shown.insert(name);
  EXPECT_GE(shown.size(), 20u);
  EXPECT_EQ(shown, declared());
}

// Asked before the first launch: neither a prompt is fed nor a token chosen.
TEST_F(LibraryTree, CallsEndWhenTheirCallerSaysSo) {
  Tree tree(model());
  const Tree::Branch root = tree.add(prompt());
  int num_asked = 0;
  tree.ask([](void* data) { return ++*static_cast<int*>(data); }, &num_asked);
  const std::vector<Answer> answers = tree.decode({root}, up_to(4));
  EXPECT_EQ(answers[0].result.finish, SOLITON_CANCELLED);
  EXPECT_EQ(answers[0].tokens, Tokens{});
  EXPECT_EQ(tree.fork(root, 2).size(), 2u);
  EXPECT_THAT(failure_of([&] { tree.score(root, prompt()); }), StartsWith("2 score: expected to go on"));
  EXPECT_GE(num_asked, 3);
  tree.ask(nullptr, nullptr);
  EXPECT_EQ(tree.decode({root}, up_to(1))[0].tokens.size(), 1u);

  Session session(model());
  session.ask([](void* data) { return ++*static_cast<int*>(data) > 2 ? 1 : 0; }, &(num_asked = 0));
  const Answer answer = session.generate(prompt(), up_to(8));
  EXPECT_EQ(answer.result.finish, SOLITON_CANCELLED);
  EXPECT_LT(answer.tokens.size(), 8u);
  session.ask([](void*) -> int { throw 1; }, nullptr);
  EXPECT_EQ(session.generate(prompt(), up_to(8)).result.finish, SOLITON_CANCELLED);
}

}  // namespace
}  // namespace soliton
