// Tokens of an answer become text up to where it ends, and it is known why it ended there.
#include "runtime/chat/answer_text.h"

#include <gtest/gtest.h>

#include <span>

namespace soliton {
namespace {

class AnswerTextTest : public testing::Test {
 protected:
  AnswerTextTest() : stop_(*tokenizer_.token_id("<|eot_id|>")) {}

  AnswerText answer(const std::vector<std::string>& stops = {}) const {
    return AnswerText(tokenizer_, {.stop_tokens = {stop_}, .stops = stops, .skips_special = true});
  }

  Tokenizer tokenizer_ = Tokenizer::open(std::string(SOLITON_SOURCE_DIR) + "/tests/runtime/data/llama");
  int stop_;
};

/// Pushes the tokens until the answer ends, as those who decode do.
void push(AnswerText& answer, std::span<const int> tokens) {
  for (const int token : tokens) {
    answer.push(token);
    if (answer.hit_stop()) break;
  }
  answer.finish();
}

TEST_F(AnswerTextTest, KnowsWhyItEnded) {
  std::vector<int> tokens = tokenizer_.encode("The quick brown fox jumps");
  const int num_tokens = static_cast<int>(tokens.size());
  AnswerText full = answer();
  push(full, tokens);
  EXPECT_EQ(full.finish_reason(num_tokens), FinishReason::kLength);
  EXPECT_EQ(full.finish_reason(num_tokens + 1), FinishReason::kInterrupted);
  AnswerText cut = answer({"ick br"});
  push(cut, tokens);
  EXPECT_EQ(cut.finish_reason(num_tokens), FinishReason::kStopText);
  tokens.push_back(stop_);
  for (const int max_tokens : {num_tokens + 1, num_tokens + 2}) {
    AnswerText whole = answer();
    push(whole, tokens);
    EXPECT_EQ(whole.finish_reason(max_tokens), FinishReason::kStop);
  }
  AnswerText none = answer();
  EXPECT_EQ(none.finish_reason(1), FinishReason::kInterrupted);
}

TEST_F(AnswerTextTest, NamesTheReasonsAsScriptsReadThem) {
  EXPECT_EQ(name_of(FinishReason::kStop), "stop");
  EXPECT_EQ(name_of(FinishReason::kStopText), "stop_text");
  EXPECT_EQ(name_of(FinishReason::kLength), "length");
  EXPECT_EQ(name_of(FinishReason::kInterrupted), "interrupted");
}

}  // namespace
}  // namespace soliton
