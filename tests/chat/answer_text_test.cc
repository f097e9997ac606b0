// Tokens of an answer become text up to where it ends, and it is known why it ended there.
#include "runtime/answer/answer_text.h"

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

// Whatever the stop strings are, and at each moment: the tokens that count are the fewest that give the text, and none
// that counts is taken back.
TEST_F(AnswerTextTest, CountsTheTokensOfTheText) {
  const std::string said = "The quick 📏 brown\nfox jümps over 東京 the lazy dog";
  std::vector<int> tokens = tokenizer_.encode(said);
  tokens.push_back(stop_);
  int num_cut = 0;
  for (size_t begin = 0; begin < said.size(); ++begin) {
    for (const size_t length : {1, 3, 9}) {
      const std::string stop = said.substr(begin, length);
      SCOPED_TRACE(stop);
      AnswerText text = answer({stop, "never"});
      std::string by_tokens;
      size_t num_told = 0;
      const auto tell = [&] {
        ASSERT_GE(text.num_tokens(), num_told);
        for (; num_told < text.num_tokens(); ++num_told) by_tokens += text.text_of_token(num_told);
        ASSERT_TRUE(text.text().starts_with(by_tokens));
      };
      for (size_t i = 0; i < tokens.size() && !text.hit_stop(); ++i) {
        text.push(tokens[i]);
        tell();
      }
      text.finish();
      tell();
      EXPECT_EQ(by_tokens, text.text());
      if (!text.hit_stop()) {
        EXPECT_EQ(num_told, tokens.size());  // with the stop token
        continue;
      }
      ++num_cut;
      EXPECT_TRUE(tokenizer_.decode(std::span(tokens).first(num_told)).starts_with(text.text()));
      if (num_told > 0) {
        const std::string less = tokenizer_.decode(std::span(tokens).first(num_told - 1));
        EXPECT_FALSE(less.starts_with(text.text())) << num_told;
      }
    }
  }
  EXPECT_GT(num_cut, 50);
}

TEST_F(AnswerTextTest, NamesTheReasonsAsScriptsReadThem) {
  EXPECT_EQ(name_of(FinishReason::kStop), "stop");
  EXPECT_EQ(name_of(FinishReason::kStopText), "stop_text");
  EXPECT_EQ(name_of(FinishReason::kLength), "length");
  EXPECT_EQ(name_of(FinishReason::kInterrupted), "interrupted");
}

}  // namespace
}  // namespace soliton
