// Answers with reasoning before them.
#include <gmock/gmock.h>

#include "server/service_fixture.h"

namespace soliton {
namespace {

using nlohmann::json;

constexpr const char* kThinkingTemplate =
    "{% for message in messages %}{{ message.content }}{% endfor %}{% if add_generation_prompt %}<think>"
    "{% if enable_thinking is defined and not enable_thinking %}</think>{% endif %}{% endif %}";

const json kBody = {{"max_tokens", 12}, {"ignore_eos", true}};

/// A model whose fourth token becomes the one that ends its reasoning, and what it writes.
class ReasoningService : public testing::Test {
 protected:
  ReasoningService() {
    const json tokenizer = small_tokenizer(kSmallSigns, {"<think>", "</s>", "</think>"});
    {
      SmallService plain(tokenizer, kThinkingTemplate);
      const json message = plain.chat(kBody, "hi")["choices"][0]["message"];
      EXPECT_EQ(message["content"], "");  // it never ends
      text_ = message["reasoning_content"];
    }
    at_ = 3;
    while (text_.find(text_[at_]) < at_ || std::string("hi \n").find(text_[at_]) != std::string::npos) ++at_;
    service_.emplace(exchanged(tokenizer, std::string(1, text_[at_]), "</think>"), kThinkingTemplate);
  }

  json message(json more) {
    more.update(kBody);
    return service_->chat(more, "hi")["choices"][0]["message"];
  }
  std::string thoughts() const { return text_.substr(0, at_); }
  std::string answer() const { return text_.substr(at_ + 1, text_.find(text_[at_], at_ + 1) - at_ - 1); }

  std::string text_;
  size_t at_ = 0;
  std::optional<SmallService> service_;
};

TEST_F(ReasoningService, IsApart) {
  const json whole = service_->chat(kBody, "hi");
  const json message = whole["choices"][0]["message"];
  EXPECT_EQ(message["reasoning_content"], thoughts());
  EXPECT_EQ(message["reasoning"], thoughts());
  EXPECT_TRUE(message["content"].get<std::string>().starts_with(answer())) << message << text_;
  EXPECT_EQ(whole["usage"]["completion_tokens_details"]["reasoning_tokens"], at_ + 1);
  json body = kBody;
  body["messages"] = json::array({{{"role", "user"}, {"content", "hi"}}});
  std::string reasoning;
  std::string content;
  for (const json& chunk : service_->stream("/v1/chat/completions", body)) {
    const json& delta = chunk["choices"][0]["delta"];
    if (delta.contains("reasoning_content")) {
      EXPECT_TRUE(content.empty());
    }
    EXPECT_EQ(delta.value("reasoning_content", ""), delta.value("reasoning", ""));
    reasoning += delta.value("reasoning_content", "");
    content += delta.value("content", "");
  }
  EXPECT_EQ(reasoning, thoughts());
  EXPECT_EQ(content, message["content"]);
}

TEST_F(ReasoningService, IsWhereTheRequestWantsIt) {
  for (const json& in_text : {json{{"reasoning_format", "none"}}, json{{"separate_reasoning", false}}}) {
    const json raw = message(in_text);
    EXPECT_FALSE(raw.contains("reasoning_content"));
    EXPECT_TRUE(raw["content"].get<std::string>().starts_with(thoughts() + "</think>" + answer())) << raw;
  }
  const json left_out = message({{"include_reasoning", false}});
  EXPECT_FALSE(left_out.contains("reasoning_content"));
  EXPECT_TRUE(left_out["content"].get<std::string>().starts_with(answer()));
  const json none = message({{"chat_template_kwargs", {{"enable_thinking", false}}}});
  EXPECT_FALSE(none.contains("reasoning_content"));
  EXPECT_NE(none["content"], "");
}

TEST_F(ReasoningService, StandsBeforeWhatGrammarsSay) {
  const json message = this->message({{"grammar", "root ::= [0-9]{3}"}});
  EXPECT_FALSE(message["reasoning_content"].get<std::string>().empty());
  EXPECT_THAT(message["content"].get<std::string>(), testing::MatchesRegex("[0-9][0-9][0-9]"));
  const json at_once = this->message(
      {{"grammar", "root ::= [0-9]{3}"}, {"chat_template_kwargs", {{"enable_thinking", false}}}});
  EXPECT_THAT(at_once["content"].get<std::string>(), testing::MatchesRegex("[0-9][0-9][0-9]"));
}

// Answers that are made of messages in channels, of which one is reasoning.
TEST(HarmonyService, HasReasoningApartAndGrammarsInTheLastMessage) {
  const json tokenizer =
      small_tokenizer(kSmallSigns, {"<|start|>", "</s>", "<|channel|>", "<|message|>", "<|end|>"});
  SmallService service(
      tokenizer,
      "{# <|channel|>analysis<|message|> #}{% for message in messages %}{{ message.content }}"
      "{% endfor %}{% if add_generation_prompt %}<|start|>assistant{% endif %}");
  const auto message_with = [&](const char* letter) {
    // It begins at once, and goes on with the letter wherever it may.
    const std::string token = std::to_string(tokenizer["model"]["vocab"][letter].get<int>());
    const std::string channel = std::to_string(tokenizer["model"]["vocab"]["<|channel|>"].get<int>());
    const json body = {{"max_tokens", 30},
                       {"grammar", "root ::= [0-9]{3}"},
                       {"logit_bias", {{token, 90}, {channel, 45}}},
                       {"ignore_eos", true}};
    return service.chat(body, "hi")["choices"][0]["message"];
  };
  const json answer = message_with("f");  // of "final"
  EXPECT_FALSE(answer.contains("reasoning_content")) << answer;
  EXPECT_THAT(answer["content"].get<std::string>(), testing::MatchesRegex("[0-9][0-9][0-9]"));
  const json thinks = message_with("a");  // of "analysis", and then of all that it thinks
  EXPECT_THAT(thinks["reasoning_content"].get<std::string>(), testing::MatchesRegex("a+")) << thinks;
  EXPECT_EQ(thinks["content"], "");
}

}  // namespace
}  // namespace soliton
