// SentencePiece merges what gives the token of the highest score; as ranked merges that is every way to cut a token in two
// tokens, in the order of the scores.
#include "runtime/text/gguf_tokenizer.h"

#include <algorithm>
#include <cmath>
#include <string_view>
#include <tuple>
#include <unordered_map>

#include "runtime/text/gguf_pre_tokenizer.h"
#include "runtime/text/tokenizer/utf8.h"

namespace soliton {
namespace {

using nlohmann::json;

constexpr const char* kMark = "\u2581";  // stands for a space
constexpr size_t kMaxPieceBytes = 1024;  // of a token that is merged: how it can be cut is quadratic in it
constexpr size_t kMaxMerges = 2'000'000;

/// tokenizer.ggml.token_type.
enum class TokenType { kNormal = 1, kUnknown, kControl, kUser, kUnused, kByte };

struct Token {
  std::string_view text;
  int id;
  TokenType type;
};

std::vector<Token> read_tokens(const JsonView& metadata) {
  const JsonView texts = metadata["tokenizer.ggml.tokens"];
  const JsonView types = metadata["tokenizer.ggml.token_type"];
  const size_t count = texts.array_size();
  if (count == 0) throw texts.error("expected at least one token, got none");
  if (!types.is_null() && types.array_size() != count)
    throw types.error("expected {} types, one a token, got {}", count, types.array_size());
  std::vector<Token> tokens;
  tokens.reserve(count);
  for (size_t i = 0; i < count; ++i) {
    const int64_t type = types.is_null() ? 1 : types[i].integer(0, 6);
    tokens.push_back({.text = texts[i].string(),
                      .id = static_cast<int>(i),
                      .type = static_cast<TokenType>(type == 0 ? 1 : type)});  // 0: not said
  }
  return tokens;
}

bool is_added(const Token& token) {
  return token.type == TokenType::kUnknown || token.type == TokenType::kControl ||
         token.type == TokenType::kUser;
}

/// Of Phi-3 nearly all special tokens take the space behind them along, which no key says.
bool strips_right(const JsonView& metadata, const Token& token) {
  if (metadata["general.architecture"].string() != "phi3" || token.type == TokenType::kUnknown) return false;
  return token.text != "<s>" && token.text != "<|endoftext|>" && token.type == TokenType::kControl;
}

json added_tokens(const JsonView& metadata, const std::vector<Token>& tokens, bool is_sentence_piece) {
  json added = json::array();
  for (const Token& token : tokens) {
    if (!is_added(token) || token.text.empty()) continue;
    added.push_back({{"id", token.id},
                     {"content", token.text},
                     {"single_word", false},
                     {"lstrip", false},
                     {"rstrip", is_sentence_piece && strips_right(metadata, token)},
                     {"normalized", false},
                     {"special", token.type != TokenType::kUser}});
  }
  return added;
}

/// By text.
json vocabulary(const JsonView& metadata, const std::vector<Token>& tokens) {
  json vocab = json::object();
  for (const Token& token : tokens) {
    if (token.type == TokenType::kUnused || token.text.empty()) continue;
    if (!vocab.emplace(std::string(token.text), token.id).second)
      throw metadata["tokenizer.ggml.tokens"].error("{}: expected one token of that text, got two",
                                                    in_quotes(token.text));
  }
  return vocab;
}

/// What begins a text that stands alone.
json post_processor(const JsonView& metadata, const std::vector<Token>& tokens, bool adds_bos) {
  const auto flag = [&](const char* key, bool absent) {
    return metadata[key].is_null() ? absent : metadata[key].boolean();
  };
  const JsonView eos = metadata["tokenizer.ggml.add_eos_token"];
  if (flag("tokenizer.ggml.add_eos_token", false))
    throw eos.error(ExitCode::kMismatch, "expected false, got true: not supported");
  const JsonView id = metadata["tokenizer.ggml.bos_token_id"];
  if (!flag("tokenizer.ggml.add_bos_token", adds_bos && !id.is_null())) return nullptr;
  const auto bos = static_cast<size_t>(id.integer(0, std::ssize(tokens) - 1));
  const std::string text(tokens[bos].text);
  return {
      {"type", "TemplateProcessing"},
      {"single",
       {{{"SpecialToken", {{"id", text}, {"type_id", 0}}}}, {{"Sequence", {{"id", "A"}, {"type_id", 0}}}}}},
      {"special_tokens", {{text, {{"id", text}, {"ids", {bos}}, {"tokens", {text}}}}}}};
}

// ---- byte-level ----

json byte_level(const GgufFile& file) {
  const JsonView metadata = file.view();
  const std::vector<Token> tokens = read_tokens(metadata);
  const GgufPreTokenizer pre = gguf_pre_tokenizer(metadata["tokenizer.ggml.pre"]);
  const JsonView merges = metadata["tokenizer.ggml.merges"];
  merges.array_size();  // throws
  return {{"added_tokens", added_tokens(metadata, tokens, false)},
          {"normalizer", pre.normalizer},
          {"pre_tokenizer", pre.pre_tokenizer},
          {"post_processor", post_processor(metadata, tokens, pre.adds_bos)},
          {"decoder",
           {{"type", "ByteLevel"}, {"add_prefix_space", true}, {"trim_offsets", true}, {"use_regex", true}}},
          {"model",
           {{"type", "BPE"},
            {"ignore_merges", pre.ignore_merges},
            {"vocab", vocabulary(metadata, tokens)},
            {"merges", file.metadata()["tokenizer.ggml.merges"]}}}};
}

// ---- SentencePiece ----

struct Merge {
  double score;
  int characters;  // of the left part
  int id;
  std::string_view left;
  std::string_view right;
};

/// Every way to cut a token in two.
void cut(const Token& token, double score, const std::unordered_map<std::string_view, int>& ids,
         std::vector<Merge>& merges) {
  int characters = 0;
  for (size_t at = 0; at < token.text.size();) {
    at += tokenization::first_character(token.text.substr(at)).length;
    ++characters;
    const std::string_view left = token.text.substr(0, at);
    const std::string_view right = token.text.substr(at);
    if (!right.empty() && ids.contains(left) && ids.contains(right))
      merges.push_back({score, characters, token.id, left, right});
  }
}

json merges_of(const JsonView& metadata, const std::vector<Token>& tokens) {
  const JsonView scores = metadata["tokenizer.ggml.scores"];
  if (scores.array_size() != tokens.size())
    throw scores.error("expected {} scores, one a token, got {}", tokens.size(), scores.array_size());
  std::unordered_map<std::string_view, int> ids;
  for (const Token& token : tokens) {
    if (token.type != TokenType::kUnused) ids.emplace(token.text, token.id);
  }
  std::vector<Merge> merges;
  for (const Token& token : tokens) {
    if (token.type != TokenType::kNormal && token.type != TokenType::kUser) continue;
    const double score = scores[static_cast<size_t>(token.id)].number();
    if (!std::isfinite(score)) throw scores.error("[{}]: expected a finite number, got another", token.id);
    if (token.text.size() > kMaxPieceBytes)
      throw metadata["tokenizer.ggml.tokens"].error("[{}]: expected a token of at most {} bytes, got {}",
                                                    token.id, kMaxPieceBytes, token.text.size());
    cut(token, score, ids, merges);
    if (merges.size() > kMaxMerges) {
      throw scores.error(ExitCode::kOutOfMemory, "expected tokens with at most {} merges, got more",
                         kMaxMerges);
    }
  }
  std::ranges::stable_sort(merges, [](const Merge& a, const Merge& b) {
    return std::tuple(-a.score, -a.characters) < std::tuple(-b.score, -b.characters);
  });
  json pairs = json::array();
  for (const Merge& merge : merges) pairs.push_back({merge.left, merge.right});
  return pairs;
}

json replace(const char* what, const char* by) {
  return {{"type", "Replace"}, {"pattern", {{"String", what}}}, {"content", by}};
}

json sentence_piece(const GgufFile& file) {
  const JsonView metadata = file.view();
  const std::vector<Token> tokens = read_tokens(metadata);
  const JsonView prefix = metadata["tokenizer.ggml.add_space_prefix"];
  const bool has_prefix = prefix.is_null() || prefix.boolean();
  const JsonView unknown_id = metadata["tokenizer.ggml.unknown_token_id"];
  const int64_t unknown = integer_or(unknown_id, 0, 0, std::ssize(tokens) - 1);
  json normalizers = json::array();
  if (has_prefix) normalizers.push_back({{"type", "Prepend"}, {"prepend", kMark}});
  normalizers.push_back(replace(" ", kMark));
  json decoders = {replace(kMark, " "), {{"type", "ByteFallback"}}, {{"type", "Fuse"}}};
  if (has_prefix) decoders.push_back({{"type", "Strip"}, {"content", " "}, {"start", 1}, {"stop", 0}});
  return {{"added_tokens", added_tokens(metadata, tokens, true)},
          {"normalizer", {{"type", "Sequence"}, {"normalizers", std::move(normalizers)}}},
          {"pre_tokenizer", nullptr},
          {"post_processor", post_processor(metadata, tokens, true)},
          {"decoder", {{"type", "Sequence"}, {"decoders", std::move(decoders)}}},
          {"model",
           {{"type", "BPE"},
            {"unk_token", tokens[static_cast<size_t>(unknown)].text},
            {"fuse_unk", true},
            {"byte_fallback", true},
            {"vocab", vocabulary(metadata, tokens)},
            {"merges", merges_of(metadata, tokens)}}}};
}

}  // namespace

json gguf_tokenizer(const GgufFile& file) {
  const JsonView model = file.view()["tokenizer.ggml.model"];
  if (model.string() == "gpt2") return byte_level(file);
  if (model.string() == "llama") return sentence_piece(file);
  throw model.error(ExitCode::kMismatch, "expected gpt2 or llama, got {}: not supported", model.describe());
}

}  // namespace soliton
