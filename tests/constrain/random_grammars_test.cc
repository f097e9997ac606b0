// Random grammars of rules that call one another, end early and may be empty: what the stacks take is what a search through
// the rules finds, and masks are what trying every token says.
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "constrain_testing.h"
#include "error_of.h"
#include "long_tests.h"

namespace soliton::constrain {
namespace {

/// Where an expression may end that begins at a place of a text, by trying all.
class Search {
 public:
  Search(const Grammar& grammar, std::string text) : grammar_(grammar), text_(std::move(text)) {}

  bool takes() { return of_rule(grammar_.root, 0).contains(text_.size()); }

 private:
  using Places = std::set<size_t>;

  const Places& of_rule(int rule, size_t at) {
    const auto known = known_.find({rule, at});
    if (known != known_.end()) return known->second;
    const Places places = of(grammar_.rules[static_cast<size_t>(rule)].expression, at);
    return known_.emplace(std::pair(rule, at), places).first->second;
  }

  Places of_all(const Expression& expression, const Places& from) {
    Places places;
    for (const size_t at : from) places.merge(of(expression, at));
    return places;
  }

  Places of(const Expression& expression, size_t at) {
    Places places;
    switch (expression.kind) {
      case Expression::kText:
        if (std::string_view(text_).substr(at).starts_with(expression.text))
          places.insert(at + expression.text.size());
        return places;
      case Expression::kCodes:
        for (const CodeRange& range : expression.codes) {
          if (at < text_.size() && range.first <= static_cast<unsigned char>(text_[at]) &&
              static_cast<unsigned char>(text_[at]) <= range.last)
            places.insert(at + 1);
        }
        return places;
      case Expression::kRule:
        return of_rule(expression.rule, at);
      case Expression::kSequence:
        places = {at};
        for (const Expression& part : expression.parts) places = of_all(part, places);
        return places;
      case Expression::kChoice:
        for (const Expression& part : expression.parts) places.merge(of(part, at));
        return places;
      case Expression::kRepeat:
        return of_repeat(expression, at);
      default:  // of schemas and patterns
        break;
    }
    return places;
  }

  Places of_repeat(const Expression& expression, size_t at) {
    Places here = {at};
    for (int i = 0; i < expression.min; ++i) here = of_all(expression.parts[0], here);
    Places places = here;
    for (int i = expression.min; expression.max < 0 ? !here.empty() : i < expression.max; ++i) {
      Places next = of_all(expression.parts[0], here);
      here.clear();
      for (const size_t place : next) {
        if (places.insert(place).second) here.insert(place);
      }
    }
    return places;
  }

  const Grammar& grammar_;
  std::string text_;
  std::map<std::pair<int, size_t>, Places> known_;
};

constexpr int kNumRules = 5;

/// Rules call those behind them, and all of them behind a letter.
std::string random_part(std::mt19937& random, int rule, int depth) {
  const auto inner = [&] { return random_part(random, rule, depth + 1); };
  switch (random() % (depth > 3 ? 4 : 9)) {
    case 0:
      return "\"a\"";
    case 1:
      return random() % 4 == 0 ? "\"\"" : "\"b\"";
    case 2:
      return "[ab]";
    case 3:
      if (random() % 2 == 0) return fmt::format("\"a\" r{}", random() % kNumRules);
      return rule + 1 < kNumRules ? fmt::format("r{}", rule + 1 + random() % (kNumRules - rule - 1))
                                  : "\"c\"";
    case 4:
      return "(" + inner() + ")" + std::string(1, "*+??"[random() % 4]);
    case 5:
      return fmt::format("({}){{{},{}}}", inner(), random() % 2, 1 + random() % 3);
    case 6:
      return "(" + inner() + " | " + inner() + ")";
    default:
      return inner() + " " + inner();
  }
}

std::string random_grammar(std::mt19937& random) {
  std::string text = "root ::= r0\n";
  for (int rule = 0; rule < kNumRules; ++rule) {
    text += fmt::format("r{} ::= {}{}\n", rule, random_part(random, rule, 0),
                        random() % 2 == 0 ? " | " + random_part(random, rule, 0) : "");
  }
  return text;
}

std::vector<std::string> short_texts(size_t max_length) {
  std::vector<std::string> texts = {""};
  for (size_t i = 0; i < texts.size() && texts[i].size() < max_length; ++i) {
    for (const char c : {'a', 'b', 'c'}) texts.push_back(texts[i] + c);
  }
  return texts;
}

/// Compares what may be read with what a search finds. Returns how many texts are taken.
int compare(const Grammar& grammar, const TokenConstraint& start, const std::vector<std::string>& texts) {
  int num_taken = 0;
  for (const std::string& text : texts) {
    TokenConstraint constraint = start;
    const bool takes = constraint.accept_bytes(text) && constraint.may_end();
    EXPECT_EQ(takes, Search(grammar, text).takes()) << text;
    num_taken += takes ? 1 : 0;
  }
  return num_taken;
}

void compare_masks(TokenConstraint walk, int size, std::mt19937& random) {
  for (int i = 0; i < 8 && !walk.ended(); ++i) {
    const std::vector<int> tokens = tokens_of(walk.allowed());
    EXPECT_EQ(tokens, tokens_by_trial(walk, size));
    ASSERT_FALSE(tokens.empty());
    walk.accept(tokens[random() % tokens.size()]);
  }
}

TEST(RandomGrammars, TakeWhatASearchFinds) {
  const std::vector<std::string> texts = short_texts(6);
  const auto vocabulary = byte_vocabulary({"aa", "ab", "ba", "abc", "bab", "aaaa", "ca", "bb"});
  const int num_grammars = long_tests() ? 20'000 : 120;
  int num_compared = 0;
  int num_taken = 0;
  for (int seed = 0; seed < num_grammars && !testing::Test::HasFailure(); ++seed) {
    std::mt19937 random(static_cast<uint32_t>(seed));
    const std::string text = random_grammar(random);
    const std::string error = error_of([&] {
      const TokenConstraint start(ready(ebnf(text), vocabulary), {});
      num_taken += compare(ebnf(text), start, texts);
      compare_masks(start, vocabulary->size(), random);
      ++num_compared;
    });
    // Left recursion, nothing that ends; too many ways to read a text.
    EXPECT_TRUE(error == "no error" || error.starts_with("4 ") || error.ends_with("less ambiguous")) << error;
    if (testing::Test::HasFailure()) fmt::print("of\n{}", text);
  }
  EXPECT_GT(num_compared, num_grammars / 3);
  EXPECT_GT(num_taken, num_compared * 5);
}

}  // namespace
}  // namespace soliton::constrain
