// Masks against a trial of every token where classes of characters beyond ASCII decide, and where text may go on for ever.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include "constrain_testing.h"

namespace soliton::constrain {
namespace {

/// Letters, marks, numbers, signs and symbols of several scripts, of the basic plane and others; spaces and parts of characters;
/// and so many tokens that begin alike that these are looked at together.
std::shared_ptr<const Vocabulary> many_scripts() {
  std::vector<std::string> texts = {"é",
                                    "日本",
                                    "Привет",
                                    "😀",
                                    "한국어",
                                    "a日",
                                    "日a",
                                    "日\"",
                                    "é\"",
                                    "٣",
                                    "½",
                                    "—",
                                    "e\u0301",
                                    "\u0301",
                                    "∑",
                                    "€x",
                                    "\u00a0",
                                    "\u3000",
                                    " \u3000a",
                                    "\u2028",
                                    "𝒳",
                                    "𝒳y",
                                    "日😀",
                                    "\xe6\x97",
                                    "\x97\xa5",
                                    "a\xe6",
                                    "\xf0\x9f",
                                    "日\xe6",
                                    "aws:",
                                    "aw",
                                    "s:b",
                                    "::",
                                    "a::b",
                                    "::MODULE",
                                    "\\u",
                                    "\\\"",
                                    "\\n",
                                    "\"}",
                                    "\",\"",
                                    "\":\"",
                                    "\n",
                                    "a\n",
                                    "\x7f",
                                    "\ue000",
                                    "\ufffd",
                                    "ab\u00a0",
                                    "日\u3000",
                                    "1日",
                                    "Ⅷ",
                                    "_日",
                                    "日本語",
                                    "abc日本",
                                    std::string(40, 'a'),
                                    std::string(34, 'a'),
                                    std::string(36, 'a'),
                                    std::string(37, 'a'),
                                    std::string(33, 'e') + "é"};
  for (const std::string first : {"a", "r", "日", "1"}) {
    for (char second = ' '; second < 0x7f; ++second) {
      texts.push_back(first + second);
      texts.push_back(first + "b" + second);
      texts.push_back(first + "é" + second);
    }
  }
  return byte_vocabulary(texts);
}

/// Random answers, at each token of which the mask is compared.
void expect_masks_by_trial(const Grammar& grammar, uint32_t seed) {
  static const std::shared_ptr<const Vocabulary> vocabulary = many_scripts();
  const int end = vocabulary->size() - 1;
  const std::vector<int32_t> ends = {end};
  TokenConstraint text(ready(grammar, vocabulary), ends);
  std::mt19937 random(seed);
  std::string written;
  for (int i = 0; i < 14 && !text.ended(); ++i) {
    const std::vector<int> tokens = tokens_of(text.allowed());
    ASSERT_EQ(tokens, tokens_by_trial(text, vocabulary->size())) << in_quotes(written);
    if (tokens.empty()) return;
    const int token = tokens[random() % tokens.size()];
    ASSERT_TRUE(text.accept(token));
    written += vocabulary->piece(token);
  }
}

class MaskClasses : public testing::TestWithParam<const char*> {};

TEST_P(MaskClasses, AreAsByTrial) {
  for (uint32_t seed = 1; seed <= 2; ++seed) expect_masks_by_trial(schema_grammar(GetParam()), seed);
}

INSTANTIATE_TEST_SUITE_P(
    All, MaskClasses,
    testing::Values(
        R"x({"type": "string", "pattern": "^([\\p{L}\\p{Z}\\p{N}_.:/=+\\-@]*)$", "minLength": 1, "maxLength": 40})x",
        R"x({"type": "string", "pattern": "^\\p{L}+$"})x", R"x({"type": "string", "pattern": "^\\P{L}*$"})x",
        R"x({"type": "string", "pattern": "^[\\p{L}\\p{M}\\p{S}\\p{N}\\p{P}]{2,5}$"})x",
        R"x({"type": "string", "pattern": "^[\\u0020-\\uD7FF\\uE000-\\uFFFD\\t]*$", "maxLength": 36})x",
        R"x({"type": "string", "pattern": "^[一-鿿]+$"})x",
        R"x({"type": "string", "pattern": "[a-z0-9]{2,4}::[a-z0-9]{2,4}(::MODULE)?"})x",
        R"x({"type": "string", "pattern": "[a-z0-9]{2,4}::[a-z0-9]{2,4}", "maxLength": 12})x",
        R"x({"type": "string", "pattern": "^(?!aws:)", "minLength": 3, "maxLength": 50})x",
        R"x({"type": "string", "pattern": "^([q-z]|[a-h]b{9})$", "maxLength": 5})x",
        R"x({"type": "string", "pattern": "a:.*:.+", "maxLength": 16})x",
        R"x({"type": "string", "pattern": "^(x.*|[a-r]b{9}.*)$", "maxLength": 5})x",
        R"x({"type": "string", "pattern": "^(?!aws:)[a-zA-Z0-9 _.:]*$", "maxLength": 50})x",
        R"x({"type": "string", "pattern": "\\S"})x", R"x({"type": "string", "pattern": "(ab|日)$"})x",
        R"x({"type": "string", "pattern": "^[^\\x00-\\x20]*$"})x", R"x({"type": "string", "minLength": 30})x",
        R"x({"type": "string", "maxLength": 35})x", R"x({"type": "string", "pattern": "^.*$"})x",
        R"x({"type": "array", "items": {"type": "string"}, "minItems": 1, "uniqueItems": true})x",
        R"x({"type": "array", "items": {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"],
             "additionalProperties": false}, "minItems": 1, "uniqueItems": true})x",
        R"x({"type": "string", "pattern": "^(a|b)*[a-r]{3}$", "maxLength": 6})x",
        R"x({"type": "string", "pattern": "^([a-p]{4})*$", "maxLength": 36})x",
        R"x({"type": "string", "pattern": "^[a-z]+(q[a-z]+)?é?$", "minLength": 2, "maxLength": 5})x",
        R"x({"type": "string", "pattern": "^[\\u0020-\\u00ff]*$"})x",
        R"x({"type": "string", "pattern": "^[a-zA-Z0-9]([a-m]|[N-Z]|[5-9]|-|é|日)*$"})x",
        R"x({"type": "string", "pattern": "^([a-z日]+::)+[^a-z]", "maxLength": 7})x",
        R"x({"type": "string", "pattern": "^[ -!#-~]*$", "maxLength": 4})x",
        R"x({"type": "string", "pattern": "^\\w[^\"\\\\]*$", "minLength": 2, "maxLength": 5})x",
        R"x({"type": "string", "pattern": "ar", "maxLength": 8})x",
        R"x({"type": "string", "pattern": "(ar|r.b)[a-c]", "maxLength": 9})x",
        R"x({"type": "object", "patternProperties": {"^a": {"type": "null"}, "日": {"type": "null"}}})x"));

/// Stacks behind each byte of a text, and what a set of kept ones says of them.
void expect_sets_as_stacks(StackMachine& machine, StackSets& sets, const std::string& text) {
  Stacks stacks = machine.start();
  StackSets::Index set = sets.of(stacks);
  for (const char character : text) {
    for (int other = 0; other <= 0xff && set != StackSets::kNotKept; ++other) {
      const auto byte = static_cast<uint8_t>(other);
      const StackSets::Index next = sets.step(set, byte);
      if (next == StackSets::kNotKept) continue;
      const Stacks expected = machine.step(stacks, byte);
      ASSERT_EQ(next == StackSets::kNone, expected.empty()) << in_quotes(text) << other;
      if (next == StackSets::kNone) continue;
      EXPECT_EQ(sets.stacks(next), expected);
      EXPECT_EQ(sets.may_end(next), machine.may_end(expected));
      if (stacks.size() == 1) {
        EXPECT_EQ(sets.step(stacks[0], byte), next);
      }
    }
    stacks = machine.step(stacks, static_cast<uint8_t>(character));
    ASSERT_FALSE(stacks.empty()) << in_quotes(text);
    set = sets.of(stacks);
  }
}

constexpr const char* kSetsSchema = R"x({"type": "array", "items": {"type": "object", "properties":
    {"a": {"type": "string"}}, "required": ["a"]}, "uniqueItems": true})x";

TEST(StackSets, StepAsStacksDo) {
  const auto vocabulary = byte_vocabulary();
  for (const size_t most_bytes : {StackSets::kMostBytes, size_t{20'000}, size_t{0}}) {
    Budget budget("s");
    const Grammar grammar = schema_grammar(kSetsSchema);
    StackMachine machine(grammar, make_automaton(grammar, vocabulary->bytes(), budget), budget);
    StackSets sets(machine, most_bytes);
    for (int i = 0; i < 2; ++i) {
      expect_sets_as_stacks(machine, sets, R"([ {"a":"x"}, {"a": "y1)");
      EXPECT_EQ(sets.of({{0, kBottom, 77}}) == StackSets::kNotKept, most_bytes < StackSets::kMostBytes);
      sets.forget_if_full();
    }
  }
}

// Whether sets are kept or not.
TEST(StackSets, MasksAreAlikeWithoutSets) {
  const auto vocabulary = byte_vocabulary({"{\"", "\":", "a\":\"", "\"}", "\"},{\"", "ab", "  ", " {", "[{"});
  Budget budget("s");
  const Grammar grammar = schema_grammar(kSetsSchema);
  StackMachine machine(grammar, make_automaton(grammar, vocabulary->bytes(), budget), budget);
  TokenMasks kept(machine, *vocabulary, budget);
  TokenMasks not_kept(machine, *vocabulary, budget, 0);
  Stacks stacks = machine.start();
  for (const char byte : std::string(R"([ {"a":"x"},{"a":"y"}])")) {
    EXPECT_EQ(kept.allowed(stacks), not_kept.allowed(stacks)) << byte;
    stacks = machine.step(stacks, static_cast<uint8_t>(byte));
    ASSERT_FALSE(stacks.empty()) << byte;
  }
}

/// The least memory with which a grammar comes to the begin of its string, with and without looking ahead before that and
/// asking for the mask there.
size_t least_bytes(const Grammar& grammar, bool looks, bool asks) {
  const auto vocabulary = byte_vocabulary({"ab", "a1", "1é", "日本", "Ab ", "12"});
  const auto are_enough = [&](size_t bytes) {
    try {
      Budget budget("s", {.bytes = bytes});
      StackMachine machine(grammar, make_automaton(grammar, vocabulary->bytes(), budget), budget);
      TokenMasks masks(machine, *vocabulary, budget);
      const Stacks stacks = machine.step(machine.start(), '"');
      if (looks) masks.look_ahead(std::chrono::hours(1));
      if (asks) masks.allowed(stacks);
      return true;
    } catch (const Error&) {
      return false;
    }
  };
  size_t few = 0;
  size_t enough = BudgetLimits{}.bytes;
  while (enough - few > 1) {
    const size_t bytes = (few + enough) / 2;
    (are_enough(bytes) ? enough : few) = bytes;
  }
  return enough;
}

// All frames, steps and loops that are found are charged.
TEST(TokenMasks, LookingAheadLeavesNothingToFindWhereTextsBegin) {
  for (const char* const pattern : {"[0-9]{3}x", "^[a-z0-9é]{5,8}$", "^(?!aws:).{4}"}) {
    const Grammar grammar =
        schema_grammar(fmt::format(R"x({{"type": "string", "pattern": "{}"}})x", pattern));
    EXPECT_EQ(least_bytes(grammar, true, true), least_bytes(grammar, true, false)) << pattern;
    EXPECT_GT(least_bytes(grammar, false, true), least_bytes(grammar, false, false)) << pattern;
  }
}

// Rules that end behind plain text, or call others there.
TEST(MaskClassesOfGrammars, AreAsByTrial) {
  for (const char* const grammar :
       {R"x(root ::= (a "1" | b "2" | c "3" | d "4" | e "5" | f "6" | g "7")+
a ::= "ab"+
b ::= "aq"+
c ::= "rb" "x"*
d ::= "rz"+
e ::= "日"+
f ::= "1a" | "1b" "c"*
g ::= "awx"+)x",
        R"x(root ::= [^"\\]*)x", R"x(root ::= [^x]* "x" [^y]*)x", R"x(root ::= text "日" text
text ::= [^日\n]*)x",
        R"x(root ::= (word | "ab" ending)*
word ::= [a-z]+ | [A-Z日] [a-z]*
ending ::= [0-9] | "b" word | [é-ÿ])x",
        R"x(root ::= ([a-z\n日] | "ar" [a-q\n]){0,5} "r"?)x",
        R"x(root ::= [a-z\n]{0,4} "ar" [a-z\n]{0,4})x"}) {
    for (uint32_t seed = 1; seed <= 2; ++seed) expect_masks_by_trial(ebnf(grammar), seed);
  }
}

}  // namespace
}  // namespace soliton::constrain
