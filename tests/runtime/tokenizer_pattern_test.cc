// Patterns of tokenizer.json: what the reference library finds in stored cases (data/make_pattern_cases.py), and what is
// refused because PCRE2 would find something else.
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "models/error.h"
#include "models/strict_json.h"
#include "runtime/text/tokenizer/pattern.h"

namespace soliton::tokenization {
namespace {

using nlohmann::json;

const std::string kFile = "tokenizer.json";

Pattern regex(const std::string& pattern) {
  const json document = {{"Regex", pattern}};
  return Pattern::read(JsonView(document, kFile));
}

std::string replaced(const Pattern& pattern, const std::string& text) {
  TextLimit limit(kFile, text.size());
  return pattern.replace(text, "|", limit);
}

void expect_refused(const std::string& pattern, ExitCode code, const std::string& message) {
  try {
    regex(pattern);
    ADD_FAILURE() << pattern << ": expected: " << message;
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << error.what();
    EXPECT_EQ(error.what(), "tokenizer.json: Regex: " + message) << pattern;
  }
}

TEST(PatternParity, FindsWhatTheReferenceLibraryFinds) {
  const json cases = json::parse(std::ifstream(SOLITON_SOURCE_DIR "/tests/runtime/data/patterns.json"));
  const std::vector<std::string> texts = cases["texts"];
  int num_equal = 0;
  int num_refused = 0;
  for (const auto& [pattern, made] : cases["patterns"].items()) {
    ASSERT_EQ(made.size(), texts.size());
    try {
      const Pattern compiled = regex(pattern);
      for (size_t i = 0; i < texts.size(); ++i) {
        const std::string expected = made[i].is_null() ? texts[i] : made[i].get<std::string>();
        EXPECT_EQ(replaced(compiled, texts[i]), expected) << pattern << " in " << texts[i];
      }
      ++num_equal;
    } catch (const Error& error) {  // some random ones, such as lookbehinds of any length
      EXPECT_EQ(std::string(error.what()).find("tokenizer.json: Regex: "), 0u) << error.what();
      ++num_refused;
    }
  }
  EXPECT_GT(num_equal, 200);
  EXPECT_LT(num_refused, num_equal / 8);
}

TEST(PatternSyntax, RefusesByNameWhatPcre2ReadsDifferently) {
  const std::vector<std::pair<std::string, std::string>> refused = {{"(*UTF)a", "(*UTF)"},
                                                                    {"(*LIMIT_MATCH=1)", "(*LIMIT_MATCH=1)"},
                                                                    {"a(*FAIL)", "(*FAIL)"},
                                                                    {"\\K", "\\K"},
                                                                    {"\\G", "\\G"},
                                                                    {"\\X", "\\X"},
                                                                    {"\\N", "\\N"},
                                                                    {"\\O", "\\O"},
                                                                    {"(a)\\1", "\\1"},
                                                                    {"\\k<a>", "\\k"},
                                                                    {"\\g<a>", "\\g"},
                                                                    {"\\Qa\\E", "\\Q"},
                                                                    {"[a&&b]", "&&"},
                                                                    {"[a[^b]]", "[^"},
                                                                    {"[a[]b]]", "[]"},
                                                                    {"[a[b", "[b"},
                                                                    {std::string(1 << 20, '['), "[["},
                                                                    {"[[:cntrl:]]", "[:cntrl:]"},
                                                                    {"(?x)a", "(?x"},
                                                                    {"(?s:.)", "(?s"},
                                                                    {"(?i-s)", "(?i-s"},
                                                                    {"(?P<n>a)", "(?P"},
                                                                    {"(?~a)", "(?~"},
                                                                    {"(?(1)a)", "(?("},
                                                                    {"(?R)", "(?R"},
                                                                    {"\\pL", "\\pL"},
                                                                    {"\\xe9", "\\x"},
                                                                    {"\\p{sc=Han}", "\\p{sc=Han}"},
                                                                    {"a**", "**"},
                                                                    {"a+?*", "?*"},
                                                                    {"[\\X]", "\\X"},
                                                                    {"[a-\\d]", "-\\d"},
                                                                    {"[\\H]", "\\H"}};
  for (const auto& [pattern, construct] : refused) {
    expect_refused(pattern, ExitCode::kMismatch,
                   in_quotes(construct) + " means something else to PCRE2: not supported");
  }
}

TEST(PatternSyntax, RefusesCharactersThatWithoutCaseAreSeveral) {
  const std::string end = ", but not to PCRE2: not supported";
  expect_refused("(?i)ss", ExitCode::kMismatch, "without case \"ss\" may be \"ß\"" + end);
  expect_refused("x|(?i:Strasse)", ExitCode::kMismatch, "without case \"st\" may be \"\ufb05\"" + end);
  expect_refused("(?i)ß", ExitCode::kMismatch, "without case \"ss\" may be \"ß\"" + end);
  expect_refused("(?i)[À-ÿ]", ExitCode::kMismatch, "without case \"ß\" may be \"ss\"" + end);
  for (const char* fine : {"ss", "(?i:a)ss", "(?i)s(?-i)s", "(?i)sas", "(?i)s+s", "(?i)[а-я]"})
    EXPECT_NO_THROW(regex(fine)) << fine;
}

TEST(PatternSyntax, RefusesClassesThatCaseWouldWiden) {
  for (const char* pattern : {"(?i)[\\w]", "(?i)[\\p{L}]", "(?i)[[:alpha:]]"}) {
    try {
      regex(pattern);
      ADD_FAILURE() << pattern;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::kMismatch) << error.what();
    }
  }
}

TEST(PatternSyntax, ErrorsAreOfWholeCharacters) {
  for (const char* pattern : {"[a-z-東]", "[東-\\東\\pé]", "(?é", "(*é", "\\pé", "[[é"}) {
    try {
      regex(pattern);
    } catch (const Error& error) {
      EXPECT_EQ(json(error.what()).dump().find("\ufffd"), std::string::npos) << error.what();
    }
  }
}

TEST(PatternSyntax, TheLimitOnBacktrackingNamesThePattern) {
  const Pattern pattern = regex("(a+)+$");
  std::vector<Match> matches;
  TextLimit limit(kFile);
  try {
    pattern.find(std::string(5000, 'a') + "c", limit, matches);
    ADD_FAILURE() << "expected the match limit";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kOutOfMemory);
    EXPECT_EQ(std::string(error.what()).find("tokenizer.json: Regex: at byte 0 of the text: "), 0u)
        << error.what();
  }
}

TEST(PatternSyntax, PatternsTakeLongAtFewPlaces) {
  // At each place half a million steps, far from the limit for one.
  const Pattern pattern = regex("(?:a|a){18}[bc]");
  std::vector<Match> matches;
  TextLimit limit(kFile);
  pattern.find(std::string(24, 'a') + "dd", limit, matches);
  EXPECT_EQ(matches.size(), 1u);
  try {
    pattern.find(std::string(1 << 16, 'a'), limit, matches);
    ADD_FAILURE() << "expected a limit on places";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kOutOfMemory);
    EXPECT_NE(std::string(error.what()).find("of the text: expected a pattern that takes long at few places"),
              std::string::npos)
        << error.what();
  }
}

TEST(PatternSyntax, LongPatternsTakeNoQuadraticTime) {
  std::string stacked = "a";
  std::string nested;
  for (int i = 0; i < 1 << 18; ++i) stacked += "{2}";
  for (int i = 0; i < 1 << 18; ++i) nested += "(b";
  for (int i = 0; i < 1 << 18; ++i) nested += "){2}{2}";
  for (const std::string& pattern : {stacked, nested}) EXPECT_THROW(regex(pattern), Error);
}

TEST(PatternSyntax, SlowPlacesMatchAsOthers) {
  const Pattern pattern = regex("(?:a|a){14}[bc]|d");
  std::vector<Match> matches;
  TextLimit limit(kFile);
  const std::string text = "d" + std::string(16, 'a') + "bd" + std::string(16, 'a') + "d";
  pattern.find(text, limit, matches);
  std::string shown;
  for (const Match& match : matches)
    shown += fmt::format("{}-{}{} ", match.begin, match.end, match.matched ? "" : "!");
  EXPECT_EQ(shown, "0-1 1-3! 3-18 18-19 19-35! 35-36 ");
}

}  // namespace
}  // namespace soliton::tokenization
