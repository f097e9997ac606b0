// Grammars made to cost much: each is made ready and followed in bounded time and memory, or refused by its name.
#include <gtest/gtest.h>

#include <ctime>
#include <functional>

#include "constrain_testing.h"
#include "error_of.h"
#include "long_tests.h"
#include "sanitized.h"

namespace soliton::constrain {
namespace {

using nlohmann::ordered_json;

/// `piece(i)` for each i below `count`.
std::string repeated(int count, const std::function<std::string(int)>& piece) {
  std::string text;
  for (int i = 0; i < count; ++i) text += piece(i);
  return text;
}
std::string repeated(int count, const std::string& piece) {
  return repeated(count, [&](int) { return piece; });
}

Grammar pattern(const std::string& of_strings) {
  return json_schema_grammar(ordered_json{{"type", "string"}, {"pattern", of_strings}}, "s");
}

/// A chain of rules behind `root`, each of which says what `rule` writes of its number, and a last one.
std::string chain(int count, const std::function<std::string(int)>& rule, const std::string& root = "\"x\"") {
  return "root ::= " + root + " r0\n" +
         repeated(count, [&](int i) { return fmt::format("r{} ::= {}\n", i, rule(i)); }) +
         fmt::format("r{} ::= \"z\"\n", count);
}
std::string next(int i) {
  return fmt::format("r{}", i + 1);
}

struct Nasty {
  const char* name;
  std::function<Grammar()> make;
};

const std::vector<Nasty>& nasty_grammars() {
  static const std::vector<Nasty> grammars = {
      {"ChainOfNullableRules", [] { return ebnf(chain(3900, [](int i) { return "\"a\"* " + next(i); })); }},
      {"ChainOfRulesThatMayEnd",
       [] { return ebnf(chain(3900, [](int i) { return "\"a\"* " + next(i) + "?"; })); }},
      {"ChainOfDifferentLetters",
       [] {
         return ebnf(chain(3900, [](int i) { return fmt::format("[{}]* ", char('a' + i % 26)) + next(i); }));
       }},
      {"ChainOfCalls",
       [] { return ebnf(chain(240, [](int i) { return "\"a\"* " + next(i) + " \"b\"*"; })); }},
      {"ChainOfCallsTwice",
       [] { return ebnf(chain(240, [](int i) { return "\"a\"* (" + next(i) + " " + next(i) + ")?"; })); }},
      {"NullableBesideOneAnother",
       [] {
         return ebnf("root ::= " + repeated(3900, [](int i) { return fmt::format("r{} ", i); }) + "\"z\"\n" +
                     repeated(3900, [](int i) { return fmt::format("r{} ::= \"a\"*\n", i); }));
       }},
      {"NullableBackwards",
       [] {
         return ebnf("root ::= r3899 \"z\"\nr0 ::= \"a\"*\n" +
                     repeated(3899, [](int i) { return fmt::format("r{} ::= \"b\"* | r{}\n", i + 1, i); }));
       }},
      {"WideChoiceOfCalls",
       [] { return ebnf("root ::= a" + repeated(200'000, "|a") + "\na ::= \"x\"* \"y\""); }},
      {"WideChoiceOfRules",
       [] {
         return ebnf("root ::= (r0" + repeated(3800, [](int i) { return fmt::format("|r{}", i); }) + ")*\n" +
                     repeated(3800, [](int i) { return fmt::format("r{} ::= [a-z]* \"{}\"\n", i, i % 10); }));
       }},
      {"WideChoiceOfNothing",
       [] { return ebnf("root ::= (\"\"" + repeated(200'000, "|\"\"") + "){4096} \"x\""); }},
      {"WideChoiceOfNothingCalled",
       [] {
         return ebnf("root ::= (" + repeated(200'000, "a ") + ") \"x\"\na ::= \"\"" +
                     repeated(100'000, "|\"\""));
       }},
      {"WideChoiceOfWords",
       [] {
         return ebnf("root ::= (\"a\"" +
                     repeated(20'000, [](int i) { return fmt::format("|\"{}\"", i * 7919); }) + ")*");
       }},
      {"LeftFactored",
       [] {
         return ebnf("root ::= \"a\"" +
                     repeated(600, [](int i) { return fmt::format("|\"{}\"", std::string(i % 300, 'a')); }));
       }},
      {"RepeatsInOneAnother", [] { return ebnf("root ::= (([a-z]{0,30} \"1\"?){0,30}){0,30}"); }},
      {"RepeatedTooOften", [] { return ebnf("root ::= ((\"a\"{0,4096}){0,4096}){0,4096}"); }},
      {"LongBound", [] { return ebnf("root ::= ([a-z]?){4096} \"a\"{0,4096}"); }},
      {"OptionalBoundTwice", [] { return ebnf("root ::= ([a-z]? [a-y]?){0,4096}"); }},
      {"UnboundedLoops",
       [] { return ebnf("root ::= (((\"a\"*)*)*)* (\"a\"* \"b\"*)* ((\"a\"? \"b\"?)*)*"); }},
      {"Subsets", [] { return ebnf("root ::= [ab]* \"a\" [ab]{300}"); }},
      {"AmbiguousLists",
       [] { return ebnf("root ::= s \".\"\ns ::= (\"a\" | \"a\" s \"b\" | \"a\" s \"c\" | \"a\" s s)"); }},
      {"AmbiguousWays",
       [] {
         return ebnf(chain(200, [](int i) {
           return fmt::format("\"a\" {0} \"b\" | \"a\" {0} \"c\" | \"a\" {0} \"d\"", next(i));
         }));
       }},
      {"AmbiguousPairs",
       [] { return ebnf("root ::= p*\np ::= \"(\" p* \")\" | \"(\"* q\nq ::= \")\"* p?"); }},
      {"WideClass",
       [] {
         return ebnf("root ::= [" +
                     repeated(20'000, [](int i) { return fmt::format("\\u{:04x}", 0x100 + 2 * i); }) +
                     "]{0,100}");
       }},
      {"NestedRepetitions",
       [] {
         return ebnf(chain(
             200, [](int i) { return std::string(60, '(') + next(i) + repeated(60, "?)?"); }, ""));
       }},
      {"DeepestRepetitions",
       [] {
         return ebnf(chain(
             300,
             [](int i) { return std::string(64, '(') + next(i) + repeated(64, std::string(8, '?') + ")"); },
             ""));
       }},
      {"LongestText", [] { return ebnf("root ::= \"" + std::string(1'000'000, 'a') + "\""); }},
      {"LongestSequence", [] { return ebnf("root ::= " + repeated(240'000, "\"a\" ")); }},
      {"LongestClass", [] { return ebnf("root ::= [" + repeated(100'000, "\\u4e00\u00e9") + "]"); }},
      {"MostNames",
       [] {
         return ebnf(repeated(3900,
                              [](int i) {
                                return fmt::format("r{} ::= \"a\" r{} {}\n", i, i / 2 + 1,
                                                   std::string(200, '\n'));
                              }) +
                     "root ::= \"x\"");
       }},
      {"NoNames",
       [] { return ebnf("root ::= " + repeated(100'000, [](int i) { return fmt::format("r{} ", i); })); }},
      {"LinesAndComments",
       [] {
         return ebnf(repeated(100'000, "# comment\n") + "root ::= \"x\"" + repeated(1000, "\n\r\t #\n"));
       }},
      {"LongestPattern", [] { return pattern(repeated(100'000, "[^a-z]é?")); }},
      {"PatternOfNestedGroups",
       [] { return pattern(repeated(2000, std::string(60, '(') + "a" + repeated(60, ")?"))); }},
      {"PatternOfCodes",
       [] {
         return pattern(
             "[" + repeated(20'000, [](int i) { return fmt::format("\\u{:04x}", 0x100 + i * 2); }) + "]");
       }},
      {"StepsOfUnicode",
       [] {
         return ebnf("root ::= (" + repeated(20, "[^\\u00e9\\u4e00-\\u4f00] | ") +
                     "[\\u0400-\\uffef]){0,2000}");
       }},
      {"PatternOfOptionalLetters", [] { return pattern(repeated(20'000, "[a-z]?")); }},
      {"PatternFoundAnywhere", [] { return pattern(repeated(300, "[a-z]*") + "$"); }},
      {"PatternOfAClass",
       [] {
         return pattern("^[" + repeated(40'000, [](int i) { return i % 2 == 0 ? "ab" : "xz"; }) + "]*$");
       }},
      {"PatternOfManyAlternatives",
       [] { return pattern("x" + repeated(2'000, [](int i) { return fmt::format("|{}", i); })); }},
      {"PatternOfStars", [] { return pattern("^" + repeated(2000, "(a|b)*") + "$"); }},
      {"PatternOfBounds", [] { return pattern("^(([a-z]{0,40} ?){0,40}){0,40}$"); }},
      {"SchemaOfOptionalMembers",
       [] {
         ordered_json schema = {{"type", "object"}};
         for (int i = 0; i < 1500; ++i) schema["properties"][fmt::format("m{}", i)] = {{"type", "integer"}};
         return json_schema_grammar(schema, "s");
       }},
      {"SchemaOfAlternatives",
       [] {
         ordered_json schema;
         for (int i = 0; i < 300; ++i)
           schema["anyOf"].push_back({{"properties", {{"a", {{"const", i}}}, {"b", {{"type", "string"}}}}}});
         return json_schema_grammar(schema, "s");
       }},
      {"SchemaOfLongStrings",
       [] {
         ordered_json schema;
         for (int i = 0; i < 8; ++i) schema["anyOf"].push_back({{"type", "string"}, {"maxLength", 4000 + i}});
         return json_schema_grammar(schema, "s");
       }},
      {"SchemaOfArrays",
       [] {
         return schema_grammar(
             R"({"type": "array", "maxItems": 300, "items": {"type": "array", "maxItems": 300, "items": {"maxLength": 9}}})");
       }},
  };
  return grammars;
}

/// Of this program on a processor, whoever else is at work.
double processor_seconds() {
  return static_cast<double>(std::clock()) / CLOCKS_PER_SEC;
}

/// Makes it ready and walks at random through masks of the vocabulary.
void follow(const std::function<Grammar()>& make, int num_tokens, double& slowest) {
  double began = processor_seconds();
  const auto note = [&] {
    slowest = std::max(slowest, processor_seconds() - began);
    began = processor_seconds();
  };
  std::mt19937 random(1);
  TokenConstraint constraint(ready(make(), tiny().vocabulary), tiny().end_tokens);
  note();
  for (int i = 0; i < num_tokens && !constraint.ended(); ++i) {
    const std::vector<int> tokens = tokens_of(constraint.allowed());
    note();
    ASSERT_FALSE(tokens.empty());
    ASSERT_TRUE(constraint.accept(tokens[random() % tokens.size()]));
  }
}

constexpr double kMostSeconds = kSanitized ? 60 : 10;

class NastyGrammars : public testing::TestWithParam<size_t> {};

TEST_P(NastyGrammars, CostLittleOrAreRefused) {
  const Nasty& nasty = nasty_grammars()[GetParam()];
  const double began = processor_seconds();
  double slowest = 0;
  const std::string error = error_of([&] { follow(nasty.make, long_tests() ? 100 : 5, slowest); });
  const double whole = processor_seconds() - began;
  fmt::print("{}: {:.3f} s, slowest step {:.3f} s: {}\n", nasty.name, whole, slowest, error);
  EXPECT_TRUE(error == "no error" || error.starts_with("7 ") || error.starts_with("4 ")) << error;
  EXPECT_LT(whole, kMostSeconds);
}

INSTANTIATE_TEST_SUITE_P(All, NastyGrammars, testing::Range<size_t>(0, nasty_grammars().size()),
                         [](const auto& info) { return std::string(nasty_grammars()[info.param].name); });

}  // namespace
}  // namespace soliton::constrain
