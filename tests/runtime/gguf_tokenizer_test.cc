// Tokenizers and chat templates of GGUF files, but for what tests/tokenizer/ compares with the reference library.
#include "runtime/text/gguf_tokenizer.h"

#include <gtest/gtest.h>

#include "error_of.h"
#include "gguf_builder.h"
#include "runtime/text/chat_template/chat_template.h"
#include "runtime/text/tokenizer.h"
#include "temporary_folder.h"

namespace soliton {
namespace {

using Texts = std::vector<std::string>;
using Integers = std::vector<int32_t>;
using Floats = std::vector<float>;

GgufBuilder bpe(const char* pre = "llama-bpe") {
  GgufBuilder builder;
  builder.key("general.architecture", "llama")
      .key("tokenizer.ggml.model", "gpt2")
      .key("tokenizer.ggml.pre", pre);
  builder.key("tokenizer.ggml.tokens", Texts{"a", "b", "ab", "<|bos|>", "<|end|>", "<tool>", "[PAD6]"});
  builder.key("tokenizer.ggml.token_type", Integers{1, 1, 1, 3, 3, 4, 5});
  return builder.key("tokenizer.ggml.merges", Texts{"a b"}).key("tokenizer.ggml.bos_token_id", 3);
}

GgufBuilder sentence_piece(const char* architecture = "llama") {
  GgufBuilder builder;
  builder.key("general.architecture", architecture).key("tokenizer.ggml.model", "llama");
  builder.key("tokenizer.ggml.tokens",
              Texts{"<unk>", "<s>", "</s>", "\u2581", "a", "b", "\u2581a", "ab", "<|user|>"});
  return builder.key("tokenizer.ggml.token_type", Integers{2, 3, 3, 1, 1, 1, 1, 1, 3})
      .key("tokenizer.ggml.bos_token_id", 1)
      .key("tokenizer.ggml.eos_token_id", 2);
}

class GgufText : public testing::Test {
 protected:
  Tokenizer open(const GgufBuilder& builder) {
    builder.write(path_);
    return Tokenizer::open(path_);
  }
  /// Behind the file's name.
  std::string refusal(const GgufBuilder& builder) {
    const std::string error = error_of([&] { open(builder); });
    const size_t at = error.find(path_.string());
    return at == std::string::npos ? error
                                   : error.substr(0, at) + error.substr(at + path_.string().size() + 2);
  }

  const TemporaryFolder folder_;
  const std::filesystem::path path_ = folder_.path() / "m.gguf";
};

TEST_F(GgufText, SpecialTokensAreThoseOfTheFile) {
  const Tokenizer tokenizer = open(bpe());
  EXPECT_EQ(tokenizer.encode("ab<|end|><tool>", true), (std::vector<int>{2, 4, 5}));
  EXPECT_EQ(tokenizer.encode("<|end|><tool>"), std::vector<int>{5});  // other characters have no tokens here
  EXPECT_TRUE(tokenizer.is_special(3));
  EXPECT_FALSE(tokenizer.is_special(5));
  EXPECT_EQ(tokenizer.token_id("[PAD6]"), std::nullopt);
  EXPECT_EQ(tokenizer.vocabulary_size(), 6);
}

TEST_F(GgufText, TextsBeginAsTheFileSays) {
  const auto prefix = [&](const GgufBuilder& builder) {
    const Tokenizer tokenizer = open(builder);
    return std::vector<int>(tokenizer.prefix_ids().begin(), tokenizer.prefix_ids().end());
  };
  EXPECT_EQ(prefix(bpe("llama-bpe")), std::vector<int>{3});
  EXPECT_EQ(prefix(bpe("qwen2")), std::vector<int>{});
  EXPECT_EQ(prefix(bpe("qwen2").key("tokenizer.ggml.add_bos_token", true)), std::vector<int>{3});
  EXPECT_EQ(prefix(bpe().key("tokenizer.ggml.add_bos_token", false)), std::vector<int>{});
  const Floats scores = {0, 0, 0, -3, -4, -5, -2, -1, 0};
  EXPECT_EQ(prefix(sentence_piece().key("tokenizer.ggml.scores", scores)), std::vector<int>{1});
  EXPECT_EQ(refusal(bpe().key("tokenizer.ggml.add_eos_token", true)),
            "5 tokenizer.ggml.add_eos_token: expected false, got true: not supported");
}

TEST_F(GgufText, TheHighestScoreIsMergedFirst) {
  const Tokenizer first =
      open(sentence_piece().key("tokenizer.ggml.scores", Floats{0, 0, 0, -3, -4, -5, -2, -1, 0}));
  EXPECT_EQ(first.encode("ab"), (std::vector<int>{3, 7}));
  const Tokenizer second =
      open(sentence_piece().key("tokenizer.ggml.scores", Floats{0, 0, 0, -3, -4, -5, -1, -2, 0}));
  EXPECT_EQ(second.encode("ab"), (std::vector<int>{6, 5}));
  EXPECT_EQ(second.decode(second.encode("ab a")), "ab a");
}

TEST_F(GgufText, OfGemmaRunsOfSpacesAreTokens) {
  GgufBuilder builder;
  builder.key("general.architecture", "gemma3").key("tokenizer.ggml.model", "llama");
  builder
      .key("tokenizer.ggml.tokens", Texts{"<unk>", "<bos>", "\u2581", "a", "  ", "   ", "\u2581a", "<0x0A>"})
      .key("tokenizer.ggml.token_type", Integers{2, 3, 1, 1, 4, 4, 1, 6})
      .key("tokenizer.ggml.scores", Floats{0, 0, -1000, -1, -1000, -1000, -2, 0})
      .key("tokenizer.ggml.add_space_prefix", false);
  const Tokenizer tokenizer = open(builder);
  EXPECT_EQ(tokenizer.encode("a a   a  \n"), (std::vector<int>{3, 6, 5, 3, 4, 7}));
  EXPECT_EQ(tokenizer.decode(tokenizer.encode("a a   a  \n")), "a a   a  \n");
}

TEST_F(GgufText, OfPhi3TakesSpacesAlong) {
  const Floats scores = {0, 0, 0, -3, -4, -5, -2, -1, 0};
  EXPECT_NE(open(sentence_piece().key("tokenizer.ggml.scores", scores)).encode("<|user|>  a", true),
            open(sentence_piece("phi3").key("tokenizer.ggml.scores", scores)).encode("<|user|>  a", true));
  EXPECT_EQ(open(sentence_piece("phi3").key("tokenizer.ggml.scores", scores)).encode("<|user|>  a", true),
            (std::vector<int>{8, 6}));
}

TEST_F(GgufText, RefusesWhatItCannotDo) {
  EXPECT_NE(refusal(bpe("tiktoken")).find("5 tokenizer.ggml.pre: expected one of llama-bpe, llama3, "),
            std::string::npos);
  EXPECT_NE(refusal(bpe("tiktoken")).find("got \"tiktoken\": not supported"), std::string::npos);
  const auto of_model = [](const char* model) { return GgufBuilder().key("tokenizer.ggml.model", model); };
  EXPECT_EQ(refusal(of_model("bert")),
            "5 tokenizer.ggml.model: expected gpt2 or llama, got \"bert\": not supported");
  EXPECT_EQ(refusal(GgufBuilder()), "4 tokenizer.ggml.model: expected a string, got nothing");
  EXPECT_EQ(refusal(of_model("gpt2")), "4 tokenizer.ggml.tokens: expected an array, got nothing");
  EXPECT_EQ(refusal(of_model("gpt2").key("tokenizer.ggml.tokens", Texts{})),
            "4 tokenizer.ggml.tokens: expected at least one token, got none");
  EXPECT_EQ(refusal(of_model("gpt2")
                        .key("tokenizer.ggml.tokens", Texts{"a"})
                        .key("tokenizer.ggml.token_type", Integers{1, 1})),
            "4 tokenizer.ggml.token_type: expected 1 types, one a token, got 2");
  EXPECT_EQ(refusal(of_model("gpt2")
                        .key("tokenizer.ggml.tokens", Texts{"a", "a"})
                        .key("tokenizer.ggml.merges", Texts{})),
            "4 tokenizer.ggml.tokens: \"a\": expected one token of that text, got two");
  const auto with_scores = [](const Floats& scores) {
    return sentence_piece().key("tokenizer.ggml.scores", scores);
  };
  EXPECT_EQ(refusal(with_scores({1})), "4 tokenizer.ggml.scores: expected 9 scores, one a token, got 1");
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(refusal(with_scores({0, 0, 0, nan, 0, 0, 0, 0, 0})),
            "4 tokenizer.ggml.scores: [3]: expected a finite number, got another");
  EXPECT_NE(refusal(of_model("llama")
                        .key("tokenizer.ggml.tokens", Texts{std::string(2000, 'a')})
                        .key("tokenizer.ggml.scores", Floats{0}))
                .find("expected a token of at most 1024 bytes, got 2000"),
            std::string::npos);
}

TEST_F(GgufText, HasTheChatTemplate) {
  const auto rendered = [&](const GgufBuilder& builder, const ChatOptions& options = {}) {
    builder.write(path_);
    return ChatTemplate::open(path_).render({{{"role", "user"}, {"content", "x"}}}, options).text();
  };
  GgufBuilder builder = bpe().key("tokenizer.chat_template", "{{ bos_token }}{{ messages[0].content }}");
  EXPECT_EQ(rendered(builder), "<|bos|>x");
  builder.key("tokenizer.chat_template.tool_use", "tools");
  ChatOptions with_tools;
  with_tools.tools = nlohmann::ordered_json::array({"f"});
  EXPECT_EQ(rendered(builder, with_tools), "tools");
  EXPECT_EQ(rendered(builder), "<|bos|>x");
  EXPECT_EQ(error_of([&] { rendered(bpe()); }),
            "3 " + path_.string() + ": expected tokenizer.chat_template, got nothing");
}

}  // namespace
}  // namespace soliton
