// Tokenizer: equality with the reference library on stored cases (data/make_tokenizer_fixture.py), what has
// no counterpart there, and every reason to refuse a tokenizer.json.
#include "runtime/text/tokenizer.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>

#include "long_tests.h"
#include "models/error.h"
#include "temporary_folder.h"

namespace soliton {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

const fs::path kData = fs::path(SOLITON_SOURCE_DIR) / "tests/runtime/data";

json read(const fs::path& path) {
  return json::parse(std::ifstream(path));
}

/// A folder of its own for each test, removed at the end.
class TokenizerTest : public testing::Test {
 protected:
  void write(const std::string& text) { std::ofstream(folder_ / "tokenizer.json") << text; }
  Tokenizer open(const json& document) {
    write(document.dump());
    return Tokenizer::open(folder_);
  }
  void expect_refused(ExitCode code, const std::string& fragment) {
    try {
      Tokenizer::open(folder_);
      ADD_FAILURE() << "accepted; expected: " << fragment;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), code) << error.what();
      EXPECT_NE(std::string(error.what()).find(fragment), std::string::npos) << error.what();
      EXPECT_EQ(std::string(error.what()).find((folder_ / "tokenizer.json").string()), 0u) << error.what();
    }
  }
  void expect_refused(const json& document, ExitCode code, const std::string& fragment) {
    write(document.dump());
    expect_refused(code, fragment);
  }
  /// The Llama-like fixture, or another, with the value at `pointer` replaced.
  static json with(const char* pointer, const json& value, const char* fixture = "llama") {
    json document = read(kData / fixture / "tokenizer.json");
    document[json::json_pointer(pointer)] = value;
    return document;
  }
  /// Gives the vocabulary a further token and returns its id; the added tokens' ids follow those of the
  /// vocabulary, so they move.
  static int extend(json& document, const std::string& text) {
    json& vocabulary = document["model"]["vocab"];
    const auto id = static_cast<int>(vocabulary.size());
    EXPECT_FALSE(vocabulary.contains(text)) << "the fixture changed: choose another token";
    vocabulary[text] = id;
    for (json& token : document["added_tokens"]) {
      if (token["id"] >= id) token["id"] = token["id"].get<int>() + 1;
    }
    return id;
  }

  const TemporaryFolder temporary_;
  const fs::path folder_ = temporary_.path();
};

class TokenizerParity : public testing::TestWithParam<const char*> {};

TEST_P(TokenizerParity, EqualsTheReferenceLibrary) {
  const Tokenizer tokenizer = Tokenizer::open(kData / GetParam());
  const json cases = read(kData / "cases.json");
  const json& rows = cases[GetParam()];
  ASSERT_EQ(rows.size(), cases["texts"].size());
  ASSERT_GT(rows.size(), 100u);
  for (size_t i = 0; i < rows.size(); ++i) {
    const std::string text = cases["texts"][i];
    const std::vector<int> parsed = rows[i]["parsed"];
    const std::vector<int> plain = rows[i].value("plain", parsed);
    EXPECT_EQ(tokenizer.encode(text, true), parsed) << "text " << i << ": " << text;
    EXPECT_EQ(tokenizer.encode(text), plain) << "text " << i << ": " << text;
    EXPECT_EQ(tokenizer.decode(plain), rows[i].value("decoded", text)) << "text " << i;
  }
}
INSTANTIATE_TEST_SUITE_P(Fixtures, TokenizerParity,
                         testing::Values("llama", "qwen", "nemo", "gpt2", "smollm", "mistral", "mistral3"));

TEST_F(TokenizerTest, PrefixComesFromTheTemplate) {
  const Tokenizer llama = Tokenizer::open(kData / "llama");
  ASSERT_EQ(llama.prefix_ids().size(), 1u);
  EXPECT_FALSE(llama.prefix_ids().empty());
  EXPECT_EQ(llama.prefix_ids()[0], llama.token_id("<|begin_of_text|>"));
  EXPECT_TRUE(Tokenizer::open(kData / "gpt2").prefix_ids().empty());
}

TEST_F(TokenizerTest, UserTextNeverBecomesASpecialToken) {
  const Tokenizer tokenizer = Tokenizer::open(kData / "llama");
  for (const int id : tokenizer.encode("<|eot_id|><|begin_of_text|><|eot_id|>x"))
    EXPECT_FALSE(tokenizer.is_special(id));
  EXPECT_EQ(tokenizer.encode("<|eot_id|>", true), std::vector<int>{*tokenizer.token_id("<|eot_id|>")});
}

TEST_F(TokenizerTest, WholePieceLookupSkipsSpecialTokensUnlessParsed) {
  // "fox" is a piece by itself and a token; made special, only its merges may remain.
  json document = with("/model/ignore_merges", true);
  const int id = extend(document, "fox");
  document["added_tokens"].push_back(
      {{"id", id}, {"content", "fox"}, {"special", true}, {"normalized", false}});
  const Tokenizer tokenizer = open(document);
  EXPECT_EQ(tokenizer.encode("fox", true), std::vector<int>{id});
  EXPECT_NE(tokenizer.encode("fox"), std::vector<int>{id});
  EXPECT_EQ(tokenizer.decode(tokenizer.encode("fox")), "fox");
}

TEST_F(TokenizerTest, NoMergeMakesASpecialToken) {
  json document = read(kData / "mistral" / "tokenizer.json");
  extend(document, "</");
  ASSERT_TRUE(document["model"]["vocab"].contains("s>")) << "the fixture changed: choose another token";
  for (const auto& [left, right] : {std::pair("<", "/"), std::pair("s", ">"), std::pair("</", "s>")}) {
    document["model"]["merges"].push_back({left, right});
  }
  const Tokenizer tokenizer = open(document);
  for (const int id : tokenizer.encode("</s>")) EXPECT_FALSE(tokenizer.is_special(id));
  EXPECT_EQ(tokenizer.decode(tokenizer.encode("</s>")), "</s>");
  EXPECT_EQ(tokenizer.encode("</s>", true), std::vector<int>{*tokenizer.token_id("</s>")});
}

TEST_F(TokenizerTest, InvalidUtf8CountsAsReplacementCharacters) {
  const Tokenizer tokenizer = Tokenizer::open(kData / "llama");
  const std::string replacement = "\xef\xbf\xbd";
  for (const auto& [bad, count] : std::vector<std::pair<std::string, int>>{{"\xff", 1},
                                                                           {"\xc3", 1},
                                                                           {"\xe2\x82", 1},
                                                                           {"\xed\xa0\x80", 3},
                                                                           {"\xc0\x80", 2},
                                                                           {"\xf4\x90\x80\x80", 4},
                                                                           {"\xf0\x9f\x98", 1},
                                                                           {"\xe0\x80", 2},
                                                                           {"\x80\x80", 2}}) {
    std::string expected = "a";
    for (int i = 0; i < count; ++i) expected += replacement;
    EXPECT_EQ(tokenizer.decode(tokenizer.encode("a" + bad + "b")), expected + "b");
    EXPECT_EQ(tokenizer.decode(tokenizer.encode("a" + bad)), expected);
  }
}

TEST_F(TokenizerTest, EveryByteHasAPiece) {
  const Tokenizer tokenizer = Tokenizer::open(kData / "gpt2");
  std::vector<bool> seen(256);
  for (int id = 0; id < tokenizer.vocabulary_size(); ++id) {
    const std::string& piece = tokenizer.piece(id);
    if (piece.size() == 1) seen[static_cast<unsigned char>(piece[0])] = true;
  }
  EXPECT_EQ(std::count(seen.begin(), seen.end(), true), 256);
}

TEST_F(TokenizerTest, IdsWithoutATokenGiveNothing) {
  const Tokenizer tokenizer = Tokenizer::open(kData / "llama");
  for (const int id : {-1, -1000000, tokenizer.vocabulary_size(), 2147483647}) {
    EXPECT_EQ(tokenizer.piece(id), "");
    EXPECT_FALSE(tokenizer.is_special(id));
  }
  EXPECT_EQ(tokenizer.decode(std::vector<int>{-1, 2147483647}), "");
  EXPECT_FALSE(tokenizer.token_id("no such token").has_value());
}

TEST_F(TokenizerTest, DecodeSkipsSpecialTokensOnRequest) {
  const Tokenizer tokenizer = Tokenizer::open(kData / "llama");
  const auto ids = tokenizer.encode("<|begin_of_text|>Hi <tool_call><|eot_id|>", true);
  EXPECT_EQ(tokenizer.decode(ids), "<|begin_of_text|>Hi <tool_call><|eot_id|>");
  EXPECT_EQ(tokenizer.decode(ids, true), "Hi <tool_call>");
}

TEST(StreamDecoder, EmitsWholeCharactersOnly) {
  const Tokenizer tokenizer = Tokenizer::open(kData / "gpt2");
  const std::string text = "a👍🏽é東 b";
  StreamDecoder decoder(tokenizer);
  std::string all;
  for (const int id : tokenizer.encode(text)) {
    const std::string part = decoder.push(id);
    EXPECT_TRUE(part.empty() || (static_cast<unsigned char>(part[0]) & 0xc0) != 0x80) << "inside a character";
    EXPECT_EQ(part.find("\xef\xbf\xbd"), std::string::npos);
    all += part;
  }
  EXPECT_EQ(decoder.finish(), "");
  EXPECT_EQ(all, text);
}

TEST(StreamDecoder, ReplacesWhatCannotBecomeACharacter) {
  const Tokenizer tokenizer = Tokenizer::open(kData / "gpt2");
  StreamDecoder decoder(tokenizer);
  const auto ids = tokenizer.encode("👍");  // four tokens of a byte each
  ASSERT_EQ(ids.size(), 4u);
  EXPECT_EQ(decoder.push(ids[0]), "");
  EXPECT_EQ(decoder.push(ids[1]), "");
  EXPECT_EQ(decoder.push(*tokenizer.token_id("a")),
            "\xef\xbf\xbd"
            "a");
  EXPECT_EQ(decoder.push(ids[0]), "");
  EXPECT_EQ(decoder.finish(), "\xef\xbf\xbd");
  EXPECT_EQ(decoder.finish(), "");
}

TEST(StreamDecoder, HoldsByteTokensUntilTheirRunEnds) {
  const Tokenizer tokenizer = Tokenizer::open(kData / "mistral");
  StreamDecoder decoder(tokenizer);
  const auto push = [&](const char* token) { return decoder.push(tokenizer.token_id(token).value()); };
  EXPECT_EQ(push("\u2581the"), "the");  // the first space is stripped
  EXPECT_EQ(push("\u2581the"), " the");
  for (const char* byte : {"<0xE6>", "<0x9D>", "<0xB1>"}) EXPECT_EQ(push(byte), "");
  EXPECT_EQ(push("e"), "東e");
  for (const char* byte : {"<0xE6>", "<0x9D>", "<0xB1>", "<0xFF>"}) EXPECT_EQ(push(byte), "");
  EXPECT_EQ(decoder.finish(), "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd")
      << "one bad byte spoils all";
  EXPECT_EQ(push("\u2581the"), "the") << "a new text";
  EXPECT_EQ(tokenizer.piece(*tokenizer.token_id("<0xE6>")), "\xe6");
  EXPECT_EQ(tokenizer.piece(*tokenizer.token_id("\u2581the")), " the");
}

TEST_F(TokenizerTest, LongRunsTakeNoQuadraticTime) {
  const size_t repeats = long_tests() ? 1 << 18 : 1 << 16;  // at n^2 this would take hours, or many minutes
  for (const char* fixture : {"llama", "qwen", "gpt2", "mistral", "mistral3"}) {
    const Tokenizer tokenizer = Tokenizer::open(kData / fixture);
    for (const char* unit : {"a", " ", "e", "\n", "1", "'", "\u0301\u0316", "東", "<tool", "s>", "\xff"}) {
      std::string text;
      for (size_t i = 0; i < repeats; ++i) text += unit;
      EXPECT_FALSE(tokenizer.encode(text).empty());
    }
  }
}

TEST_F(TokenizerTest, RefusesPatternsThatExplode) {
  const json document = with("/pre_tokenizer/pretokenizers/0/pattern/Regex", "(a|a?)+$|(a+)+b");
  const Tokenizer tokenizer = open(document);
  try {
    tokenizer.encode(std::string(5000, 'a') + "c");
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kOutOfMemory);
    EXPECT_NE(std::string(error.what()).find("pattern.Regex: at byte "), std::string::npos) << error.what();
  }
}

TEST_F(TokenizerTest, WhiteSpaceIsUnicodesInsideAndOutsideClasses) {
  // U+180E, which PCRE2 counts as \\s, stays with its neighbours: a piece that is a token shows it.
  for (const char* pattern : {"\\s", "[\\s]", "[[:digit:]\\s]", "[]\\s]", "(?!\\S)\\s", "[^\\S\\n]"}) {
    json document = with("/pre_tokenizer/pretokenizers/0/pattern/Regex", pattern);
    const int id = extend(document, "f\u00e1\u0142\u0130");  // the byte-level letters of U+180E
    const Tokenizer tokenizer = open(document);
    EXPECT_EQ(tokenizer.encode("f\u180e"), std::vector<int>{id}) << pattern;
    EXPECT_GT(tokenizer.encode("f\u00a0").size(), 1u) << pattern;
  }
}

TEST_F(TokenizerTest, MatchesOfNothingCutNothing) {
  const Tokenizer tokenizer = open(with("/pre_tokenizer/pretokenizers/0/pattern/Regex", "x*|(?=é)"));
  EXPECT_EQ(tokenizer.decode(tokenizer.encode("aéxxéb")), "aéxxéb");
}

TEST_F(TokenizerTest, RefusesUnsupportedParts) {
  const auto refused = [&](const char* pointer, const json& value, const std::string& fragment) {
    expect_refused(with(pointer, value), ExitCode::kMismatch, fragment);
  };
  refused("/normalizer", {{"type", "BertNormalizer"}},
          "Replace, ByteLevel, got \"BertNormalizer\": not supported");
  refused("/normalizer", {{"type", "Precompiled"}, {"precompiled_charsmap", ""}}, "got \"Precompiled\"");
  refused("/model/type", "WordPiece", "model: expected type BPE, got \"WordPiece\"");
  refused("/model/dropout", 0.1, "model.dropout: expected none, got 0.1");
  refused("/model/continuing_subword_prefix", "##",
          "model.continuing_subword_prefix: expected none, got \"##\"");
  refused("/model/end_of_word_suffix", "</w>", "model.end_of_word_suffix: expected none");
  refused("/decoder/type", "WordPiece", "decoder: expected a type of Sequence, ByteLevel, Metaspace");
  refused("/pre_tokenizer/type", "Whitespace",
          "pre_tokenizer: expected a type of Sequence, ByteLevel, Split");
  refused("/pre_tokenizer/pretokenizers/0/type", "Punctuation", "pretokenizers[0]: expected a type of");
  refused("/post_processor", {{"type", "BertProcessing"}}, "post_processor: expected a type of Sequence");
  refused("/post_processor/processors/1/single/2", {{"SpecialToken", {{"id", "<|eot_id|>"}, {"type_id", 0}}}},
          "single[2]: \"<|eot_id|>\" after the text is not supported");
}

TEST_F(TokenizerTest, RefusesMalformedParts) {
  const auto refused = [&](const char* pointer, const json& value, const std::string& fragment) {
    expect_refused(with(pointer, value), ExitCode::kBadFile, fragment);
  };
  refused("/model", nullptr, "model: expected an object, got null");
  refused("/model/vocab", json::array(), "model.vocab: expected an object, got an array");
  refused("/model/vocab/a", -1, "model.vocab.a: expected an integer in [0, 4194303], got -1");
  refused("/model/vocab/a", 4194304, "got 4194304");
  refused("/model/vocab/a", 1e30, "model.vocab.a: expected an integer, got 1e+30");
  refused("/model/vocab/a", 0, "which another token has");
  refused("/model/vocab", {{"", 0}}, "got an empty one");
  refused("/model/merges", 1, "model.merges: expected an array, got 1");
  refused("/model/merges/0", "a", "model.merges[0]: expected two tokens with a space between, got \"a\"");
  refused("/model/merges/0", "a b c", "model.merges[0]: expected two tokens with a space between");
  refused("/model/merges/0", {"a"}, "model.merges[0]: expected two tokens, got 1");
  refused("/model/merges/0", {"a", 1}, "model.merges[0][1]: expected a string, got 1");
  refused("/model/merges/0", {"a", "東"}, "model.merges[0]: \"東\" is not in the vocabulary");
  refused("/model/merges/0", {"z", "z"}, "model.merges[0]: \"zz\" is not in the vocabulary");
  refused("/model/ignore_merges", 1, "model.ignore_merges: expected true or false, got 1");
  const json first_id = read(kData / "llama" / "tokenizer.json")["added_tokens"][0]["id"];
  refused("/added_tokens/1/id", first_id, "added_tokens[1]: \"<|end_of_text|>\": id ");
  refused("/added_tokens/1/content", "a", "added_tokens[1]: \"a\": id ");
  refused("/added_tokens/1/content", "", "added_tokens[1]: expected content, got an empty string");
  refused("/added_tokens/1/content", nullptr, "added_tokens[1].content: expected a string, got null");
  refused("/added_tokens/1/content", "<|eot_id|>", "\"<|eot_id|>\" is listed twice");
  refused("/added_tokens/1/lstrip", 1, "added_tokens[1].lstrip: expected true or false, got 1");
  refused("/pre_tokenizer/pretokenizers/0/behavior", "removed", "[0].behavior: expected Isolated, Removed");
  refused("/pre_tokenizer/pretokenizers/0/pattern", json::object(),
          "pattern.Regex: expected a string, got nothing");
  refused("/pre_tokenizer", {{"type", "Metaspace"}, {"replacement", "ab"}},
          "replacement: expected one character");
  refused("/pre_tokenizer", {{"type", "Metaspace"}, {"replacement", "_"}, {"add_prefix_space", false}},
          "pre_tokenizer.add_prefix_space: expected true, as prepend_scheme is \"always\"");
  refused("/pre_tokenizer", {{"type", "Metaspace"}, {"replacement", "_"}, {"prepend_scheme", "last"}},
          "prepend_scheme: expected always, first or never");
  refused("/normalizer", {{"type", "Strip"}}, "normalizer.strip_left: expected true or false, got nothing");
  refused("/normalizer", {{"type", "Replace"}, {"pattern", {{"String", "<tool>"}}}, {"content", ""}},
          "\"<tool>\": expected content, but the normalizer leaves none");
  refused("/decoder", {{"type", "Strip"}, {"content", " "}, {"start", -1}, {"stop", 0}},
          "decoder.start: expected");
  refused("/pre_tokenizer/pretokenizers/0/pattern/Regex", "(",
          "pattern.Regex: at byte 1 of the pattern: missing");
  refused("/pre_tokenizer/pretokenizers/0/pattern/Regex", "\\C", "pattern.Regex: at byte");
  refused("/pre_tokenizer/pretokenizers/0/pattern/Regex", std::string(1000, '('), "pattern.Regex: at byte");
  refused("/post_processor/processors/1/special_tokens", json::object(),
          "special_tokens.<|begin_of_text|>: expected an object, got nothing");
  refused("/post_processor/processors/1/special_tokens/<|begin_of_text|>/ids/0", 99999, "got 99999");
  refused("/post_processor/processors/1/single/0", json::object(),
          "single[0].SpecialToken: expected an object, got nothing");
}

TEST_F(TokenizerTest, RefusesWhatIsNoJson) {
  expect_refused(ExitCode::kNotFound, "no such file");
  write("");
  expect_refused(ExitCode::kBadFile, "the file is empty");
  write("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n");
  expect_refused(ExitCode::kBadFile, "git-LFS pointer");
  write("{\"model\": ");
  expect_refused(ExitCode::kBadFile, "not valid JSON");
  write("{\"model\": {\"vocab\": {\"a\": 1, \"a\": 2}}}");
  expect_refused(ExitCode::kBadFile, "model.vocab.a: duplicate key");
  write(std::string(100000, '['));
  expect_refused(ExitCode::kBadFile, "expected JSON nested at most 64 deep");
  write("[1]");
  expect_refused(ExitCode::kBadFile, "expected an object, got an array");
  fs::remove(folder_ / "tokenizer.json");
  fs::create_directory(folder_ / "tokenizer.json");
  expect_refused(ExitCode::kNotFound, "expected a file, got a directory");
}

TEST_F(TokenizerTest, MissingByteIsDroppedOrUnknown) {
  json document = read(kData / "llama" / "tokenizer.json");
  json& vocabulary = document["model"]["vocab"];
  vocabulary["\u00ff\u00ff"] = vocabulary["q"];
  vocabulary.erase("q");
  json& merges = document["model"]["merges"];
  for (size_t i = merges.size(); i-- > 0;) {
    if (merges[i].dump().find('q') != std::string::npos) merges.erase(i);
  }
  EXPECT_EQ(open(document).decode(open(document).encode("aqb")), "ab");
  document["model"]["unk_token"] = "a";
  EXPECT_EQ(open(document).decode(open(document).encode("bqqb")), "baab");
  document["model"]["unk_token"] = "no such token";
  expect_refused(document, ExitCode::kBadFile, "model.unk_token: expected a token of the vocabulary");
}

}  // namespace
}  // namespace soliton
