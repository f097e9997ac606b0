// Reasoning apart from answers, in pieces of every length.
#include "runtime/answer/reasoning.h"

#include <gtest/gtest.h>

#include <filesystem>

namespace soliton {
namespace {

const ReasoningTags kThinkTags = {"<think>", "</think>"};

struct Read {
  std::string reasoning;
  std::string content;

  bool operator==(const Read&) const = default;
};

Read read(const std::string& answer, size_t piece, ReasoningState state, bool keeps_tags,
          const ReasoningTags& tags = kThinkTags) {
  ReasoningReader reader(tags, state, keeps_tags);
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

/// gpt-oss's, found in a template that speaks of it.
ReasoningTags channels() {
  static const Tokenizer tokenizer =
      Tokenizer::open(std::filesystem::path(SOLITON_SOURCE_DIR) / "models" / "tiny-stories");
  const Prompter prompter(tokenizer, ChatTemplate::parse("{{ '<|channel|>analysis<|message|>' }}", "t"),
                          ChatOptions());
  return find_reasoning_tags(prompter).value();
}

void expect_channels(const std::string& answer, const Read& expected) {
  for (const size_t piece : {size_t{1}, size_t{2}, size_t{5}, size_t{1000}})
    EXPECT_EQ(read(answer, piece, ReasoningState::kMay, false, channels()), expected)
        << answer << " in " << piece;
}

TEST(Reasoning, IsAChannelOfHarmony) {
  const std::string analysis = "<|channel|>analysis<|message|>";
  const std::string next = "<|end|><|start|>assistant";
  const std::string final = "<|channel|>final<|message|>";
  expect_channels(analysis + "So. <|end|>" + "<|start|>assistant" + final + "Yes.", {"So.", "Yes."});
  expect_channels(final + "Yes. <|e", {"", "Yes. <|e"});
  expect_channels(analysis + "So", {"So", ""});  // cut
  expect_channels(analysis + "So." + next + analysis + " Or." + next + final + "Yes.", {"So. Or.", "Yes."});
  expect_channels("", {"", ""});
  expect_channels("Yes.", {"", "Yes."});
}

TEST(Reasoning, LeavesCallsOfHarmonyAsTheyAreRead) {
  const std::string analysis = "<|channel|>analysis<|message|>So.<|end|><|start|>assistant";
  const std::string call = "<|channel|>commentary to=functions.add <|constrain|>json<|message|>{}";
  expect_channels(analysis + call, {"So.", call});
  expect_channels(call, {"", call});
  expect_channels(
      analysis + "<|channel|>commentary<|message|>I will add." + "<|end|><|start|>assistant" + call,
      {"So.", "I will add." + call});
  // As its template writes them.
  const std::string first = " to=functions.add<|channel|>commentary json<|message|>{}";
  expect_channels(analysis + first, {"So.", "<|channel|>commentary" + first});
  expect_channels(" to=functions", {"", " to=functions"});
}

TEST(Reasoning, IsNotToldAgainWhereAnswersHaveChannels) {
  const std::string answer =
      "<|channel|>analysis<|message|>So.<|end|><|start|>assistant<|channel|>final<|message|>Yes.";
  EXPECT_EQ(kept_answer(channels(), answer), "Yes.");
  EXPECT_EQ(kept_answer(kThinkTags, "<think>So.</think>Yes."), "<think>So.</think>Yes.");
  EXPECT_EQ(kept_answer(std::nullopt, answer), answer);
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
