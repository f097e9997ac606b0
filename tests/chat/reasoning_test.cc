// Reasoning apart from answers, in pieces of every length.
#include "runtime/answer/reasoning.h"

#include <gtest/gtest.h>

namespace soliton {
namespace {

const ReasoningTags kThinkTags = {"<think>", "</think>"};

struct Read {
  std::string reasoning;
  std::string content;

  bool operator==(const Read&) const = default;
};

Read read(const std::string& answer, size_t piece, ReasoningState state, bool keeps_tags) {
  ReasoningReader reader(kThinkTags, state, keeps_tags);
  Read all;
  const auto add = [&](const ReasoningReader::Piece& read) {
    all.reasoning += read.reasoning;
    all.content += read.content;
  };
  for (size_t at = 0; at < answer.size(); at += piece) add(reader.push(answer.substr(at, piece)));
  add(reader.finish());
  return all;
}

void expect_read(const std::string& answer, const Read& expected, ReasoningState state = ReasoningState::kMay,
                 bool keeps_tags = false) {
  for (const size_t piece : {size_t{1}, size_t{2}, size_t{5}, size_t{1000}})
    EXPECT_EQ(read(answer, piece, state, keeps_tags), expected) << answer << " in pieces of " << piece;
}

TEST(Reasoning, StandsBeforeTheAnswer) {
  expect_read("<think>\nSo. </thin <\n</think>\n\nYes.\n", {"So. </thin <", "Yes.\n"});
  expect_read("\n<think>\n\n</think>\n\nYes.", {"", "Yes."});
  expect_read("<think>So", {"So", ""});  // cut
  expect_read("<think>So </thi", {"So </thi", ""});
  for (const char* text : {"Yes. <think>no</think>", " Yes.", "<thin", "<thinking>", "", "\n"})
    expect_read(text, {"", text});
}

TEST(Reasoning, MayHaveBegunInThePrompt) {
  expect_read("\nSo.\n</think>\n\nYes.", {"So.", "Yes."}, ReasoningState::kInside);
  expect_read("</think>Yes.</think>", {"", "Yes.</think>"}, ReasoningState::kInside);
  expect_read("<think>So.</think>Yes.", {"", "<think>So.</think>Yes."}, ReasoningState::kNone);
}

TEST(Reasoning, StaysAsItIsWhereThatIsWanted) {
  expect_read("\n<think>\nSo.\n</think>\n\nYes.", {"\n<think>\nSo.\n</think>", "\n\nYes."},
              ReasoningState::kMay, true);
  expect_read("\nSo.\n", {"\nSo.\n", ""}, ReasoningState::kInside, true);
}

TEST(Reasoning, IsWherePromptsSay) {
  EXPECT_EQ(reasoning_state(kThinkTags, "user: x\nassistant:"), ReasoningState::kMay);
  EXPECT_EQ(reasoning_state(kThinkTags, "user: x\nassistant: <think>\n"), ReasoningState::kInside);
  EXPECT_EQ(reasoning_state(kThinkTags, "user: x\nassistant: <think>\n\n</think>\n\n"),
            ReasoningState::kNone);
  EXPECT_EQ(reasoning_state(kThinkTags, ""), ReasoningState::kMay);
}

}  // namespace
}  // namespace soliton
