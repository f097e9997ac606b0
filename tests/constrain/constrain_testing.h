// Grammars tried out: texts fed by bytes, and answers drawn by allowed tokens.
#pragma once

#include <bit>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "runtime/text/constrain/ebnf.h"
#include "runtime/text/constrain/json_schema.h"
#include "runtime/text/constrain/token_constraint.h"
#include "runtime/text/tokenizer.h"

namespace soliton::constrain {

/// Every byte, and some texts.
inline std::shared_ptr<const Vocabulary> byte_vocabulary(const std::vector<std::string>& texts = {}) {
  std::vector<std::string> pieces;
  for (int byte = 0; byte < 256; ++byte) pieces.emplace_back(1, static_cast<char>(byte));
  pieces.insert(pieces.end(), texts.begin(), texts.end());
  const int size = static_cast<int>(pieces.size()) + 1;  // the last one is an end token
  return std::make_shared<Vocabulary>(pieces, size);
}

inline std::shared_ptr<TokenGrammar> ready(const Grammar& grammar,
                                           std::shared_ptr<const Vocabulary> vocabulary = byte_vocabulary()) {
  return std::make_shared<TokenGrammar>(grammar, std::move(vocabulary));
}

inline Grammar ebnf(const std::string& text) {
  return parse_ebnf(text, "g");
}
inline Grammar schema_grammar(const std::string& schema) {
  return json_schema_grammar(nlohmann::ordered_json::parse(schema), "s");
}

/// Whether the whole text is one of the grammar's.
inline bool takes(const Grammar& grammar, const std::string& text) {
  TokenConstraint constraint(ready(grammar), {});
  return constraint.accept_bytes(text) && constraint.may_end();
}
inline bool ebnf_takes(const std::string& grammar, const std::string& text) {
  return takes(ebnf(grammar), text);
}
inline bool schema_takes(const std::string& schema, const std::string& text) {
  return takes(schema_grammar(schema), text);
}

/// The tiny model's tokens.
struct TinyVocabulary {
  Tokenizer tokenizer = Tokenizer::open(SOLITON_SOURCE_DIR "/models/tiny-stories");
  std::vector<int32_t> end_tokens = {*tokenizer.token_id("<|end_of_text|>")};
  std::shared_ptr<const Vocabulary> vocabulary =
      std::make_shared<Vocabulary>(tokenizer, tokenizer.vocabulary_size());
};
inline const TinyVocabulary& tiny() {
  static const TinyVocabulary instance;
  return instance;
}

inline std::vector<int> tokens_of(std::span<const uint32_t> mask) {
  int count = 0;
  for (const uint32_t word : mask) count += std::popcount(word);
  std::vector<int> tokens(static_cast<size_t>(count));
  int* next = tokens.data();
  int first = 0;  // token of the word
  for (const uint32_t all : mask) {
    for (uint32_t word = all; word != 0; word &= word - 1) *next++ = first + __builtin_ctz(word);
    first += kMaskBits;
  }
  return tokens;
}

/// The tokens that may follow, each tried by itself.
inline std::vector<int> tokens_by_trial(const TokenConstraint& constraint, int size) {
  std::vector<int> tokens;
  for (int token = 0; token < size; ++token) {
    TokenConstraint copy = constraint;
    if (copy.accept(token)) tokens.push_back(token);
  }
  return tokens;
}

}  // namespace soliton::constrain
