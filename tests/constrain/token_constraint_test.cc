// Masks of allowed tokens: equal to a trial of every token, never empty before the end, in little time.
#include "runtime/text/constrain/token_constraint.h"

#include <gtest/gtest.h>

#include <chrono>

#include "constrain_testing.h"
#include "error_of.h"

namespace soliton::constrain {
namespace {

const char* const kExpressions =
    "root ::= expression\nexpression ::= term (\"+\" term)*\nterm ::= [0-9]+ | \"(\" expression \")\"";

/// Walks at random; at each state the mask has to be what trying every token says. Returns the text.
std::string walk(TokenConstraint constraint, const Vocabulary& vocabulary, std::mt19937& random,
                 int max_tokens, bool compares) {
  std::string text;
  for (int i = 0; i < max_tokens; ++i) {
    const std::vector<int> tokens = tokens_of(constraint.allowed());
    EXPECT_FALSE(tokens.empty()) << "dead end behind " << text;
    if (compares) {
      EXPECT_EQ(tokens, tokens_by_trial(constraint, vocabulary.size())) << "behind " << text;
    }
    if (tokens.empty() || testing::Test::HasFailure()) break;
    const int token = tokens[random() % tokens.size()];
    EXPECT_TRUE(constraint.accept(token)) << token << " behind " << text;
    if (constraint.ended()) break;
    text += vocabulary.piece(token);
  }
  return text;
}

TEST(TokenConstraint, MasksAreWhatTryingSays) {
  std::mt19937 random(7);
  const std::vector<Grammar> grammars = {
      ebnf(kExpressions),
      ebnf("root ::= (\"a\" | \"ab\" | \"b\" root \"b\")* \".\""),
      ebnf("root ::= x y z\nx ::= \"a\"* \nz ::= \"a\"*\ny ::= (\"é\" | \"€\" x)?"),
      json_object_grammar(),
      schema_grammar(
          R"({"properties": {"s": {"maxLength": 5}, "n": {"type": "number"}}, "additionalProperties": true})"),
      schema_grammar(R"({"type": "string", "pattern": "^[a-z]+( [a-z]+){2}$"})"),
  };
  for (const Grammar& grammar : grammars) {
    const auto shared = ready(grammar, tiny().vocabulary);
    for (int i = 0; i < 2; ++i)
      walk(TokenConstraint(shared, tiny().end_tokens), *tiny().vocabulary, random, 24, true);
  }
}

/// Tokens of all kinds that loops of characters tell apart: long ones, odd ones, parts of characters.
std::shared_ptr<const Vocabulary> mixed_vocabulary() {
  const std::vector<std::string> parts = {
      "a",    "b",  "ar",  "arn:",     "z",    "9",    "-",  "/",    "\"",           ":",    " ", "é",
      "日本", "\\", "\\n", "\xe6\x97", "\xa5", "\xc3", "\n", "\x7f", "\xe3\x80\x80", "\", ", "}"};
  std::mt19937 random(11);
  std::vector<std::string> tokens;
  for (int i = 0; i < 2500; ++i) {
    std::string token;
    // Of few kinds of parts, as tokens are, and now and then very long.
    const size_t first = random() % parts.size();
    for (size_t left = 1 + random() % (i % 50 == 0 ? 60 : 8); left > 0; --left)
      token += parts[random() % 3 == 0 ? random() % parts.size() : (first + random() % 2) % 4];
    tokens.push_back(token.substr(0, Vocabulary::kMaxTokenBytes));
  }
  return byte_vocabulary(tokens);
}

TEST(TokenConstraint, MasksOfLoopsAreWhatTryingSays) {
  const auto vocabulary = mixed_vocabulary();
  std::mt19937 random(5);
  for (const char* schema :
       {R"({"type": "string", "pattern": "^[a-z]+$"})", R"({"type": "string", "pattern": "arn:[a-z]+/"})",
        R"({"type": "string", "pattern": "arn:", "maxLength": 20})",
        R"({"type": "string", "pattern": "^[a-z-]{3,20}:[a-z]{2}(-[a-z]+)*$"})",
        R"({"type": "string", "pattern": "^[^/:]{1,9}$"})", R"({"type": "string", "pattern": "\\S"})",
        R"({"type": "string", "pattern": "^[ -~]*b$", "minLength": 9})",
        R"({"type": "string", "pattern": "^[\\p{L}:]*$"})",
        R"({"type": "string", "pattern": "^(?!ab)[a-z](-*[a-z9]){0,30}$"})",
        R"({"type": "string", "pattern": "^[^é]*$", "maxLength": 12})",
        R"({"anyOf": [{"type": "string", "pattern": "^[ab]+$"}, {"type": "string", "maxLength": 30}]})"}) {
    SCOPED_TRACE(schema);
    const auto shared = ready(schema_grammar(schema), vocabulary);
    for (int i = 0; i < 3; ++i) walk(TokenConstraint(shared, {}), *vocabulary, random, 12, true);
  }
  const auto choice = ready(ebnf("root ::= [a-z]+ | [a-z9]* \"é\" [^é]{2,40} | \"a\" root"), vocabulary);
  for (int i = 0; i < 3; ++i) walk(TokenConstraint(choice, {}), *vocabulary, random, 12, true);
}

// Tokens that end rules, begin others and cross characters' boundaries.
TEST(TokenConstraint, TokensMayCrossRulesAndCharacters) {
  const auto vocabulary = byte_vocabulary({"(1", "1)+(", ")))", "\xc3", "\xa9\xc3", "\xa9x", "1+1+1", "é"});
  std::mt19937 random(3);
  for (int i = 0; i < 10; ++i) {
    walk(TokenConstraint(ready(ebnf(kExpressions), vocabulary), {}), *vocabulary, random, 40, true);
    walk(TokenConstraint(ready(ebnf("root ::= (\"é\" | \"è\" | \"éx\"){3}"), vocabulary), {}), *vocabulary,
         random, 40, true);
  }
}

TEST(TokenConstraint, EndsWhereTheGrammarDoes) {
  const int end = tiny().end_tokens[0];
  TokenConstraint constraint(ready(ebnf("root ::= \"a\" \"b\"?"), tiny().vocabulary), tiny().end_tokens);
  EXPECT_FALSE(is_in(constraint.allowed(), end));
  EXPECT_FALSE(constraint.accept(end));
  EXPECT_TRUE(constraint.accept(*tiny().tokenizer.token_id("a")));
  EXPECT_TRUE(is_in(constraint.allowed(), end));
  EXPECT_TRUE(constraint.may_end());
  EXPECT_FALSE(constraint.ended());
  TokenConstraint copy = constraint;
  EXPECT_TRUE(copy.accept(end));
  EXPECT_TRUE(copy.ended());
  EXPECT_TRUE(tokens_of(copy.allowed()).empty());
  EXPECT_FALSE(copy.accept(end));
  EXPECT_TRUE(constraint.accept(*tiny().tokenizer.token_id("b")));
  EXPECT_TRUE(constraint.ended());  // nothing else may follow
  EXPECT_EQ(tokens_of(constraint.allowed()), tiny().end_tokens);
}

TEST(TokenConstraint, SpecialTokensAreNoText) {
  TokenConstraint constraint(ready(ebnf("root ::= .*"), tiny().vocabulary), tiny().end_tokens);
  const std::vector<int> tokens = tokens_of(constraint.allowed());
  for (int token = 0; token < tiny().tokenizer.vocabulary_size(); ++token) {
    if (!tiny().tokenizer.is_special(token)) continue;
    EXPECT_EQ(std::count(tokens.begin(), tokens.end(), token), token == tiny().end_tokens[0]) << token;
  }
  EXPECT_GT(tokens.size(), 1500u);
}

TEST(TokenConstraint, RollsBackAndForks) {
  std::mt19937 random(5);
  const auto grammar = ready(json_object_grammar(), tiny().vocabulary);
  TokenConstraint constraint(grammar, tiny().end_tokens);
  std::vector<std::vector<int>> masks;
  std::vector<int> taken;
  for (int i = 0; i < 40; ++i) {
    masks.push_back(tokens_of(constraint.allowed()));
    std::vector<int> tokens = masks.back();
    std::erase(tokens, tiny().end_tokens[0]);
    if (tokens.empty()) break;
    taken.push_back(tokens[random() % tokens.size()]);
    ASSERT_TRUE(constraint.accept(taken.back()));
  }
  masks.resize(taken.size());
  TokenConstraint fork = constraint;
  const size_t half = taken.size() / 2;
  fork.roll_back(taken.size() - half);
  EXPECT_EQ(tokens_of(fork.allowed()), masks[half]);
  for (size_t i = half; i < taken.size(); ++i) EXPECT_TRUE(fork.accept(taken[i]));
  EXPECT_EQ(tokens_of(fork.allowed()), tokens_of(constraint.allowed()));
  constraint.roll_back(taken.size());
  EXPECT_EQ(tokens_of(constraint.allowed()), masks[0]);
  EXPECT_EQ(error_of([&] { constraint.roll_back(1); }),
            "70 constraint: expected at most 0 tokens to roll back, got 1");
}

// Where the depth ends, what is open can still be closed.
TEST(TokenConstraint, DepthIsBounded) {
  const auto vocabulary = byte_vocabulary({"[[", "[[[", "{\"a\":[", "]]", "]}"});
  TokenConstraint constraint(ready(schema_grammar("{}"), vocabulary), {});
  std::string closing;
  while (constraint.accept_byte('[')) closing += ']';
  EXPECT_GT(closing.size(), 200u);
  EXPECT_LT(closing.size(), 260u);
  EXPECT_EQ(tokens_of(constraint.allowed()), tokens_by_trial(constraint, vocabulary->size()));
  EXPECT_TRUE(constraint.accept_bytes(closing));
  EXPECT_TRUE(constraint.ended());
}

TEST(TokenConstraint, RightRecursionNeedsNoDepth) {
  TokenConstraint constraint(ready(ebnf("root ::= \"x\" root | \".\"")), {});
  EXPECT_TRUE(constraint.accept_bytes(std::string(100000, 'x') + "."));
  EXPECT_TRUE(constraint.ended());
}

// All the ways to read a text are followed; what has too many is refused when it has.
TEST(TokenConstraint, FollowsAmbiguousGrammars) {
  TokenConstraint constraint(
      ready(ebnf("root ::= (\"a\" | \"a\" \"a\" | root2)* \"b\"\nroot2 ::= \"a\" root2 \"c\" | \"a\"")), {});
  EXPECT_TRUE(constraint.accept_bytes(std::string(100, 'a') + "ccccccb"));
  std::string grammar = "root ::= s0\n";  // after each a three ways stay open
  for (int i = 0; i < 16; ++i)
    grammar += fmt::format("s{0} ::= \"a\" s{1} \"b\" | \"a\" s{1} \"c\" | \"a\" s{1} \"d\"\n", i, i + 1);
  TokenConstraint many(ready(ebnf(grammar + "s16 ::= \"x\"")), {});
  EXPECT_EQ(error_of([&] { many.accept_bytes(std::string(16, 'a')); }),
            "7 g: expected at most 1000 stacks at once, got more: make it less ambiguous");
}

TEST(TokenConstraint, LeavesOutWhatNoTokenCanWrite) {
  std::vector<std::string> pieces = {"a", "b", "xb"};
  const auto vocabulary = std::make_shared<Vocabulary>(pieces, 40);
  TokenConstraint constraint(ready(ebnf("root ::= \"a\" \"x\" \"b\" | \"b\" [a-z]"), vocabulary), {});
  EXPECT_EQ(tokens_of(constraint.allowed()),
            std::vector<int>{1});  // behind an a would be an x, which is no token
  EXPECT_EQ(error_of([&] { ready(ebnf("root ::= \"c\""), vocabulary); }),
            "4 g:1: root: expected some text that it can be, got none that ends");
  EXPECT_EQ(vocabulary->num_words(), 2u);
}

// Characters are counted without states of their own: near their bounds, and far from them, masks are what trials say.
TEST(TokenConstraint, CountsCharacters) {
  const auto vocabulary =
      byte_vocabulary({"ab", "abc", "é", "éé", "日本語", "a\"", "\"}", "ab\",", "\\n", "\\n\\n", "\\",
                       "\\u00", "é\"", "\xc3", "\xa9x", "  ", "cab", std::string(40, 'a')});
  std::mt19937 random(3);
  for (const char* string :
       {R"({"minLength": 2, "maxLength": 3})", R"({"maxLength": 45})", R"({"minLength": 4})",
        R"({"pattern": "^(ab)*c?é*$", "maxLength": 4})", R"({"pattern": "b", "maxLength": 3})",
        R"({"pattern": "^[a-c]+$", "not": {"pattern": "ab"}, "maxLength": 5})",
        R"({"anyOf": [{"maxLength": 2}, {"minLength": 4, "maxLength": 5}]})"}) {
    const std::string schema = fmt::format(
        R"({{"properties": {{"a": {{"type": "string", "allOf": [{}]}}}}, "required": ["a"]}})", string);
    for (int i = 0; i < 4; ++i) {
      TokenConstraint constraint(ready(schema_grammar(schema), vocabulary), {});
      walk(std::move(constraint), *vocabulary, random, 30, true);
    }
  }
}

// A hundred thousand characters, and many such texts, have no states of their own.
TEST(TokenConstraint, CountsWithoutStates) {
  std::string members;
  for (int i = 0; i < 40; ++i)
    members += fmt::format(R"({}"m{}": {{"type": "string", "minLength": {}, "maxLength": {}}})",
                           i > 0 ? "," : "", i, i, i == 0 ? 100'000 : 255);
  const Grammar grammar = schema_grammar("{\"properties\": {" + members + "}, \"required\": [\"m0\"]}");
  Budget budget("s");
  EXPECT_LT(make_automaton(grammar, byte_vocabulary()->bytes(), budget).states.size(), 4000u);
  TokenConstraint constraint(ready(grammar), {});
  EXPECT_TRUE(constraint.accept_bytes("{\"m0\":\"" + std::string(100'000, 'x')));
  EXPECT_FALSE(constraint.accept_byte('x'));
  EXPECT_TRUE(constraint.accept_bytes("\",\"m3\":\"é\\u00e9"));
  EXPECT_FALSE(constraint.accept_byte('"'));
  EXPECT_TRUE(constraint.accept_bytes("x\"}"));
}

// Not asserted but for orders of magnitude: how long masks of a large vocabulary take.
TEST(TokenConstraint, MasksOfLargeVocabulariesTakeLittleTime) {
  std::mt19937 random(11);
  std::vector<std::string> texts;
  const std::string letters = "etaoinshrdlu ETAOINSHRDLU0123456789\"{}[],:.\n\\";
  while (texts.size() < 128'000) {
    std::string word = texts.size() % 2 == 0 ? " " : "";
    for (size_t i = 0; i < 2 + random() % 7; ++i) {
      const size_t common = random() % 8 == 0 ? letters.size() : 13;
      word += letters[random() % common];
    }
    texts.push_back(word);
  }
  const auto vocabulary = byte_vocabulary(texts);
  const auto grammar = ready(
      schema_grammar(
          R"({"properties": {"a": {"type": "string"}, "b": {"maxLength": 40}}, "required": ["a", "b"]})"),
      vocabulary);
  TokenConstraint constraint(grammar, {});
  const auto milliseconds = [&](const std::string& bytes) {
    constraint.accept_bytes(bytes);
    const auto began = std::chrono::steady_clock::now();
    constraint.allowed();
    const std::chrono::duration<double, std::milli> time = std::chrono::steady_clock::now() - began;
    return time.count();
  };
  const std::vector<std::pair<const char*, std::string>> places = {{"start", ""},
                                                                   {"string", "{\"a\":\"x"},
                                                                   {"string again", "y"},
                                                                   {"bounded string", "\",\"b\":\"x"},
                                                                   {"bounded string on", "y"}};
  for (const auto& [place, bytes] : places) {
    const double time = milliseconds(bytes);
    RecordProperty(place, fmt::format("{:.3f} ms", time));
    fmt::print("{}: {:.3f} ms\n", place, time);
    EXPECT_LT(time, 2000) << place;
  }
}

}  // namespace
}  // namespace soliton::constrain
