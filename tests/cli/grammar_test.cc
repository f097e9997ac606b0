// soliton-chat with answers of a JSON schema or a grammar.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "cli/run_program.h"
#include "long_tests.h"

namespace soliton {
namespace {

class GrammarFlags : public testing::Test {
 protected:
  Outcome run(std::vector<std::string> more) const {
    std::vector<std::string> arguments{"-k", std::string(SOLITON_KERNELS) + "/tiny-stories-cpu.so",
                                       std::string(SOLITON_SOURCE_DIR) + "/models/tiny-stories"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return Process("soliton-chat", arguments, folder_.path(), {}, "/dev/null").wait();
  }
  void expect_refused(const std::vector<std::string>& more, int status, const std::string& line) const {
    const Outcome outcome = run(more);
    EXPECT_EQ(outcome.status, status);
    EXPECT_EQ(outcome.err, "soliton-chat: " + line + "\n");
  }

  TemporaryFolder folder_;
};

TEST_F(GrammarFlags, AnswersFitASchema) {
  const std::string schema = folder_.write("schema.json", R"({"type": "object", "properties":
      {"name": {"enum": ["Tom", "Lily"]}, "age": {"type": "integer", "minimum": 3, "maximum": 12}},
      "required": ["name", "age"]})");
  for (const char* temperature : long_tests() ? std::vector{"0", "1.5"} : std::vector{"1.5"}) {
    const Outcome outcome = run({"--json-schema", schema, "-p", "Once upon a time", "-n", "60", "--json",
                                 "--temp", temperature, "--seed", "4"});
    ASSERT_EQ(outcome.status, 0) << outcome.err;
    const nlohmann::json completion = nlohmann::json::parse(outcome.out);
    EXPECT_EQ(completion["finish_reason"], "stop");
    const nlohmann::json answer = nlohmann::json::parse(completion["content"].get<std::string>());
    EXPECT_TRUE(answer["name"] == "Tom" || answer["name"] == "Lily") << answer;
    EXPECT_GE(answer["age"], 3);
    EXPECT_LE(answer["age"], 12);
  }
}

TEST_F(GrammarFlags, AnswersAreOfAGrammar) {
  const std::string grammar =
      folder_.write("answer.gbnf", "root ::= \" \" [a-z]{3,8} (\" and \" [a-z]{3,8}){2}");
  const Outcome outcome = run({"--grammar", grammar, "-p", "Once upon a time", "-n", "60"});
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_THAT(outcome.out, testing::ContainsRegex(" [a-z]{3,8} and [a-z]{3,8} and [a-z]{3,8}\n$"));
}

TEST_F(GrammarFlags, RefusesWhatCannotBe) {
  const std::string schema = folder_.write("schema.json", R"({"properties": {"a": {"$dynamicRef": "#a"}}})");
  const std::string grammar = folder_.write("answer.gbnf", "root ::= \"a");
  expect_refused({"--json-schema", schema, "-p", "x"}, 5,
                 schema + ": properties.a.$dynamicRef: not supported");
  expect_refused({"--grammar", grammar, "-p", "x"}, 4,
                 grammar + ":1:12: expected a \" that ends the text, got the end");
  expect_refused({"--grammar", grammar, "-p", "x", "--parallel", "2"}, 2,
                 "--grammar: expected no --parallel, got both");
  expect_refused({"--json-schema", schema, "-p", "x", "--lookup", "2"}, 2,
                 "--json-schema: expected no --lookup, got both");
  const Outcome absent = run({"--grammar", "/nowhere/x", "-p", "x"});
  EXPECT_EQ(absent.status, 3) << absent.err;
}

}  // namespace
}  // namespace soliton
