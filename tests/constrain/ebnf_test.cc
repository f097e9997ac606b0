// Grammars as llama.cpp writes them: what they take, and what is refused where.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "constrain_testing.h"
#include "error_of.h"
#include "runtime/text/constrain/string_pattern.h"
#include "runtime/text/constrain/text_until.h"

namespace soliton::constrain {
namespace {

using testing::HasSubstr;

std::string complaint(const std::string& text) {
  try {
    ready(ebnf(text));
  } catch (const Error& error) {
    return error.what();
  }
  return "nothing";
}

TEST(Ebnf, TakesTextsClassesAndAlternatives) {
  const std::string grammar = "root ::= \"yes\" | [nN] \"o\" | # a remark\n  \"\"\n";
  for (const char* text : {"yes", "no", "No", ""}) EXPECT_TRUE(ebnf_takes(grammar, text)) << text;
  for (const char* text : {"ye", "yesno", "o", "NO", " yes"}) EXPECT_FALSE(ebnf_takes(grammar, text)) << text;
}

TEST(Ebnf, RepeatsWithinBounds) {
  const std::string grammar = "root ::= \"a\"{2,3} \"b\"{2} \"c\"{1,} \"d\"? [e]* (\"f\" \"g\")+";
  for (const char* text : {"aabbcfg", "aaabbcccdeeefgfg"}) EXPECT_TRUE(ebnf_takes(grammar, text)) << text;
  for (const char* text : {"abbcfg", "aaaabbcfg", "aabcfg", "aabbfg", "aabbcddfg", "aabbcf"})
    EXPECT_FALSE(ebnf_takes(grammar, text)) << text;
}

TEST(Ebnf, CountsCharactersNotBytes) {
  const std::string grammar = "root ::= [^a-c]{2} . [\\u00e4-\\u00f6\\U0001F600] \"\\x41\\\"\\n\"";
  EXPECT_TRUE(ebnf_takes(grammar, "dé€öA\"\n"));
  EXPECT_TRUE(ebnf_takes(grammar, "\n𝄞x😀A\"\n"));
  EXPECT_FALSE(ebnf_takes(grammar, "aé€öA\"\n"));
  EXPECT_FALSE(ebnf_takes(grammar, "dé€üA\"\n"));
  EXPECT_FALSE(ebnf_takes(grammar, "d\xc3\xc3€öA\"\n"));
}

// Every boundary between lengths of UTF-8, with its neighbours; surrogates are no characters.
TEST(Ebnf, ClassesEndWhereTheySay) {
  for (const char32_t code : {0x7fu, 0x80u, 0x7ffu, 0x800u, 0xd7ffu, 0xe000u, 0xffffu, 0x10000u, 0x10ffffu}) {
    const Grammar grammar{.name = "g", .rules = {{"root", codes({{code, code}})}}};
    for (const char32_t other :
         {0x7eu, 0x7fu, 0x80u, 0x81u, 0x7feu, 0x7ffu, 0x800u, 0x801u, 0xd7feu, 0xd7ffu, 0xe000u, 0xe001u,
          0xfffeu, 0xffffu, 0x10000u, 0x10001u, 0x10fffeu, 0x10ffffu}) {
      const std::string text = nlohmann::json::parse(
          other < 0x10000 ? fmt::format("\"\\u{:04x}\"", static_cast<uint32_t>(other))
                          : fmt::format("\"\\u{:04x}\\u{:04x}\"", 0xd800 + ((other - 0x10000) >> 10),
                                        0xdc00 + ((other - 0x10000) & 0x3ff)));
      EXPECT_EQ(takes(grammar, text), code == other) << std::hex << uint32_t{code} << " " << uint32_t{other};
    }
  }
  EXPECT_FALSE(ebnf_takes("root ::= .", "\xed\xa0\x80"));
}

TEST(Ebnf, RulesNest) {
  const std::string grammar =
      "root ::= expression\nexpression ::= term (\"+\" term)*\nterm ::= [0-9]+ | \"(\" expression \")\"";
  for (const char* text : {"1", "12+(3+(4))+5", "((((7))))"}) EXPECT_TRUE(ebnf_takes(grammar, text)) << text;
  for (const char* text : {"", "1+", "(1", "1)", "()"}) EXPECT_FALSE(ebnf_takes(grammar, text)) << text;
}

TEST(Ebnf, TakesWhatLlamaCppWrites) {
  const std::string grammar = R"(root   ::= object
value  ::= object | array | string | number | ("true" | "false" | "null") ws

object ::=
  "{" ws (
            string ":" ws value
    ("," ws string ":" ws value)*
  )? "}" ws

array  ::=
  "[" ws (
            value
    ("," ws value)*
  )? "]" ws

string ::=
  "\"" (
    [^"\\\x7F\x00-\x1F] |
    "\\" (["\\bfnrt] | "u" [0-9a-fA-F]{4}) # escapes
  )* "\"" ws

number ::= ("-"? ([0-9] | [1-9] [0-9]{0,15})) ("." [0-9]+)? ([eE] [-+]? [0-9] [1-9]{0,15})? ws

# Optional space: by convention, applied in this grammar after literal chars when allowed
ws ::= | " " | "\n" [ \t]{0,20}
)";
  EXPECT_TRUE(ebnf_takes(grammar, "{\"a\": [1, -2.5e3, {}], \"ü\\n\":\n  {\"b\": true} }"));
  EXPECT_FALSE(ebnf_takes(grammar, "{\"a\": [1, ]}"));
  EXPECT_FALSE(ebnf_takes(grammar, "{\"a\": \"\n\"}"));
}

TEST(Ebnf, SaysWhereWhatIsWrong) {
  EXPECT_EQ(complaint("root = \"a\""), "g:1:6: expected ::=, got \"=\"");
  EXPECT_EQ(complaint("root ::= \"a"), "g:1:12: expected a \" that ends the text, got the end");
  EXPECT_EQ(complaint("\nroot ::= [a-"), "g:2:13: expected a ] that ends the class, got the end");
  EXPECT_EQ(complaint("root ::= \"ä\" x"), "g:1:14: expected a rule, got \"x\", which is none");
  EXPECT_EQ(complaint("root ::= (\"a\""), "g:1:14: expected a ), got the end");
  EXPECT_EQ(complaint("root ::= \"a\"{3,2}"), "g:1:14: expected at least 3 as the second bound, got 2");
  EXPECT_EQ(complaint("root ::= \"a\"{9999}"), "g:1:14: expected at most 4096 repetitions, got more");
  EXPECT_EQ(complaint("root ::= \"\\q\""),
            "g:1:11: expected an escape such as \\n, \\\" or \\x41, got \"\\q\"");
  EXPECT_EQ(complaint("root ::= \"\\ud800\""), "g:1:11: expected a character, got \"\\ud800\"");
  EXPECT_EQ(complaint("root ::= [b-a]"), "g:1:11: expected a range that ascends, got \"b-a\"");
  EXPECT_EQ(complaint("root ::= \"a\"\nroot ::= \"b\""),
            "g:2:1: expected one rule of a name, got a second \"root\"");
  EXPECT_EQ(complaint("a ::= \"a\""), "g: expected a rule root, got none");
  EXPECT_EQ(complaint("root ::= *"), "g:1:10: expected the end of the rule, got \"*\"");
  EXPECT_EQ(complaint("root ::= \"\xff\""), "g: expected UTF-8, got bytes that are none");
  EXPECT_THAT(complaint("root ::= \"a\"" + std::string(1000, '*')), HasSubstr("fewer repetitions"));
  EXPECT_THAT(complaint("root ::= " + std::string(1000, '(')), HasSubstr("at most 64 groups"));
  EXPECT_THAT(complaint("root ::= ((\"a\"{4096}){4096}){4096}"), HasSubstr("at most 200000 states"));
}

TEST(Ebnf, RefusesRulesThatBeginWithThemselves) {
  EXPECT_EQ(complaint("root ::= a\na ::= b \"x\"\nb ::= \"\" a | \"y\""),
            "g:2: a: expected a rule that does not begin with itself (left recursion), got a -> b -> a");
  // Behind what may be empty too.
  EXPECT_THAT(complaint("root ::= e root \"x\" | \"y\"\ne ::= \"z\"*"), HasSubstr("root -> root"));
  EXPECT_EQ(complaint("root ::= \"x\" root \"y\" | \"\""), "nothing");
}

TEST(Ebnf, RefusesWhatNeverEnds) {
  EXPECT_EQ(complaint("root ::= \"x\" root"),
            "g:1: root: expected some text that it can be, got none that ends");
  EXPECT_EQ(complaint("root ::= []"), "g:1: root: expected some text that it can be, got none that ends");
  // An alternative that never ends is left out.
  TokenConstraint constraint(ready(ebnf("root ::= \"ab\" | \"ac\" loop\nloop ::= \"d\" loop")), {});
  EXPECT_TRUE(constraint.accept_byte('a'));
  EXPECT_FALSE(constraint.accept_byte('c'));
}

// Patterns by themselves: no text of JSON, and all of the answer.
TEST(Patterns, AreWholeTexts) {
  const auto takes_text = [](const char* pattern, const char* text) {
    return takes(parse_pattern(pattern, "p"), text);
  };
  EXPECT_TRUE(takes_text("a|b\"\\n", "b\"\n"));
  EXPECT_TRUE(takes_text("^a{2}$", "aa"));
  EXPECT_FALSE(takes_text("a", "ba"));
  EXPECT_FALSE(takes_text("a", "ab"));
  EXPECT_FALSE(takes_text("\"", "\\\""));
  EXPECT_TRUE(takes_text("(?!ab)\\w+\\b!", "ac!"));
  EXPECT_FALSE(takes_text("(?!ab)\\w+\\b!", "ab!"));
  EXPECT_THAT(error_of([] { parse_pattern("(?i)a", "p"); }),
              HasSubstr("p: a group of the kind (? is not supported"));
}

// Each character of the mark may begin it anew.
TEST(TextUntil, EndsWithTheFirstMark) {
  for (const std::string mark : {"</think>", "aab", "ü", "abab!"}) {
    Grammar grammar{.name = "g", .rules = {}};
    grammar.root = text_until(grammar, mark);
    for (const std::string& text :
         std::vector<std::string>{"", "x", "<", "</thin", "</</", "aa", "aaa", "ab", "ababa", "é\n"})
      EXPECT_EQ(takes(grammar, text + mark), (text + mark).find(mark) == text.size()) << text << mark;
    EXPECT_FALSE(takes(grammar, "x"));
    EXPECT_FALSE(takes(grammar, mark + "x"));
    EXPECT_FALSE(takes(grammar, mark + mark));
  }
}

}  // namespace
}  // namespace soliton::constrain
