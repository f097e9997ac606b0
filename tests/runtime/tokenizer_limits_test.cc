// What rules of tokenizer.json may make of a text: chains that lengthen it without end are refused after the rule that
// goes beyond the limit, at every place where rules are applied.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "models/error.h"
#include "runtime/text/tokenizer.h"
#include "runtime/text/tokenizer/parts.h"
#include "runtime/text/tokenizer/text_limit.h"
#include "temporary_folder.h"

namespace soliton {
namespace {

using nlohmann::json;
using tokenization::TextLimit;

json sequence(const char* members, const std::vector<json>& parts) {
  return {{"type", "Sequence"}, {members, parts}};
}

json replace(const json& pattern, const std::string& content) {
  return {{"type", "Replace"}, {"pattern", pattern}, {"content", content}};
}

const json kEverywhere = {{"Regex", ""}};
const json kEach = {{"Regex", "a"}};
const json kByteLevelSplit = {
    {"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", false}, {"trim_offsets", false}};

class TokenizerLimits : public testing::Test {
 protected:
  /// A tokenizer of the letters a, b and é (which byte-level letters write as two) with these parts.
  Tokenizer open(const json& parts) {
    json document = {
        {"model",
         {{"type", "BPE"}, {"vocab", {{"a", 0}, {"b", 1}, {"\u00c3", 2}}}, {"merges", json::array()}}}};
    document.update(parts);
    temporary_.write("tokenizer.json", document.dump());
    return Tokenizer::open(temporary_.path());
  }
  template <class Call>
  void expect_refused(const Call& call, const std::string& fragment = "expected rules that make at most ") {
    try {
      call();
      ADD_FAILURE() << "expected: " << fragment;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::kOutOfMemory) << error.what();
      EXPECT_NE(std::string(error.what()).find("tokenizer.json: "), std::string::npos) << error.what();
      EXPECT_NE(std::string(error.what()).find(fragment), std::string::npos) << error.what();
    }
  }
  void expect_bomb(const json& parts, const std::string& text) {
    const Tokenizer tokenizer = open(parts);
    expect_refused([&] { tokenizer.encode(text); });
  }

  const TemporaryFolder temporary_;
};

TEST_F(TokenizerLimits, NormalizersTogetherLengthenWithinBounds) {
  const json thousandfold = replace(kEverywhere, std::string(1000, 'a'));
  const json normalizer = sequence("normalizers", {thousandfold, thousandfold});
  expect_bomb({{"normalizer", normalizer}}, "b");
  const json prefix = {{"type", "Prepend"}, {"prepend", std::string(40'000, 'a')}};
  expect_bomb({{"normalizer", sequence("normalizers", {prefix, prefix})}}, "b");
  const json letters = {{"type", "ByteLevel"}};
  expect_bomb({{"normalizer", sequence("normalizers", std::vector<json>(12, letters))}},
              std::string(40, '\n'));
}

TEST_F(TokenizerLimits, EveryTextBetweenRulesCounts) {
  // What a later rule takes away again has been made all the same.
  const json grow = replace(kEach, std::string(1000, 'b'));
  const json shrink = replace({{"Regex", "b+"}}, "a");
  const std::string text(100, 'a');
  expect_bomb({{"normalizer", sequence("normalizers", {grow, shrink})}}, text);
  // And so it has in the parts of a text.
  const json separator = {{"id", 3}, {"content", "|"}, {"normalized", false}};
  std::string parts;
  for (int i = 0; i < 100; ++i) parts += "a|";
  expect_bomb({{"normalizer", sequence("normalizers", {grow, shrink})}, {"added_tokens", {separator}}},
              parts);
}

TEST_F(TokenizerLimits, ANormalFormStaysWithinItsBound) {
  std::string text;
  for (int i = 0; i < 1000; ++i) text += "\ufdfa";  // 3 bytes become 33, of all characters the most
  const Tokenizer tokenizer = open({{"normalizer", {{"type", "NFKD"}}}});
  EXPECT_NO_THROW(tokenizer.encode(text));
  // After a rule that has used up the bound.
  const json grow = replace(kEach, text);
  expect_bomb({{"normalizer", sequence("normalizers", {grow, {{"type", "NFKD"}}})}}, "aaaaa");
}

TEST_F(TokenizerLimits, PreTokenizersTogetherLengthenWithinBounds) {
  const json chain = sequence("pretokenizers", std::vector<json>(12, kByteLevelSplit));
  expect_bomb({{"pre_tokenizer", chain}}, std::string(40, '\n'));
}

TEST_F(TokenizerLimits, TokensAreDecodedWithinBoundsWhenTheFileIsRead) {
  const json decoder = sequence("decoders", std::vector<json>(2, replace(kEach, std::string(1000, 'a'))));
  expect_refused([&] { open({{"decoder", decoder}}); });
  const json prefix = {{"type", "Prepend"}, {"prepend", std::string(70'000, 'a')}};
  const json token = {{"id", 3}, {"content", "<x>"}, {"normalized", true}};
  expect_refused([&] { open({{"normalizer", prefix}, {"added_tokens", {token}}}); });
}

TEST_F(TokenizerLimits, DecodersTogetherLengthenWithinBounds) {
  // No token by itself has the pattern, the fused text has.
  const json fused = sequence("decoders", {{{"type", "Fuse"}},
                                           replace({{"Regex", "aa"}}, std::string(1000, 'b')),
                                           replace({{"Regex", "bb"}}, std::string(1000, 'a'))});
  const Tokenizer tokenizer = open({{"decoder", fused}});
  const std::vector<int> ids(20, 0);
  expect_refused([&] { tokenizer.decode(ids); });
  StreamDecoder stream(tokenizer);
  for (const int id : ids) EXPECT_EQ(stream.push(id), "");
  expect_refused([&] { stream.finish(); });
}

TEST_F(TokenizerLimits, ATextOfManyTokensHasTheBoundOfAll) {
  const Tokenizer tokenizer = open({{"decoder", replace(kEach, std::string(1000, 'b'))}});
  EXPECT_EQ(tokenizer.decode(std::vector<int>(60, 0)).size(), 60'000u);
  expect_refused([&] { tokenizer.decode(std::vector<int>(80, 0)); });
  const Tokenizer modest = open({{"decoder", replace(kEach, std::string(TextLimit::kMaxGrowth, 'b'))}});
  EXPECT_EQ(modest.decode(std::vector<int>(1 << 14, 0)).size(), TextLimit::kMaxGrowth << 14);
}

TEST_F(TokenizerLimits, RulesThatAddLittleHoldForAnyText) {
  const json normalizer = sequence(
      "normalizers", {{{"type", "Prepend"}, {"prepend", "\u2581"}}, replace({{"String", " "}}, "\u2581")});
  const Tokenizer tokenizer = open({{"normalizer", normalizer}, {"pre_tokenizer", kByteLevelSplit}});
  EXPECT_NO_THROW(tokenizer.encode(std::string(1 << 20, ' ')));
}

TEST_F(TokenizerLimits, ChainsAndTemplatesAreShort) {
  const json parts(std::vector<json>(tokenization::kMaxParts, {{"type", "NFC"}}));
  EXPECT_NO_THROW(open({{"normalizer", sequence("normalizers", {parts.begin() + 1, parts.end()})}}));
  expect_refused(
      [&] {
        open({{"normalizer", sequence("normalizers", {parts.begin(), parts.end()})}});
      },
      "expected at most 100 parts, got more");
  const json item = {{"SpecialToken", {{"id", "a"}, {"type_id", 0}}}};
  const json many = {{"type", "TemplateProcessing"},
                     {"single", std::vector<json>(10, item)},
                     {"special_tokens", {{"a", {{"ids", std::vector<int>(10, 0)}}}}}};
  expect_refused(
      [&] {
        open({{"post_processor", many}});
      },
      "expected at most 64 tokens before the text, got more");
}

}  // namespace
}  // namespace soliton
