#include "runtime/text/constrain/token_characters.h"

namespace soliton::constrain {

Characters Characters::plain_text() {
  Characters characters;
  for (uint8_t byte = ' '; byte < 0x7f; ++byte) {
    if (byte != '"' && byte != '\\') characters.add(byte);
  }
  for (char32_t i = 0; i < kNumFar; ++i) characters.add(kFar + i);
  return characters;
}

void TokensOfCharacters::resize(size_t num_tokens) {
  num_words_ = (num_tokens / (kTokensOfWord * kWords) + 1) * kWords;
}

void TokensOfCharacters::add(size_t token, const Characters& characters) {
  for (char32_t code = 0; code < Characters::kNumCodes; ++code) {
    if (!characters.has(code)) continue;
    std::vector<uint64_t>& list = lists_[kFirst + code];
    list.resize(num_words_);
    list[token / kTokensOfWord] |= uint64_t{1} << (token % kTokensOfWord);
    characters_[kFirst + code].add(code);
  }
}

void TokensOfCharacters::unite() {
  for (size_t i = kFirst - 1; i > 0; --i) {
    for (const size_t below : {2 * i, 2 * i + 1}) {
      characters_[i] |= characters_[below];
      if (lists_[below].empty()) continue;
      lists_[i].resize(num_words_);
      for (size_t k = 0; k < num_words_; ++k) lists_[i][k] |= lists_[below][k];
    }
  }
}

Characters TokensOfCharacters::of(size_t token) const {
  Characters characters;
  for (char32_t code = 0; code < Characters::kNumCodes; ++code) {
    const std::vector<uint64_t>& list = lists_[kFirst + code];
    if (!list.empty() && (list[token / kTokensOfWord] >> (token % kTokensOfWord) & 1) != 0)
      characters.add(code);
  }
  return characters;
}

TokensOfCharacters::Lists TokensOfCharacters::lists_of(const Characters& characters) const {
  Lists lists;
  add_lists(1, characters, lists);
  return lists;
}

void TokensOfCharacters::add_lists(size_t list, const Characters& characters, Lists& lists) const {
  if (!characters_[list].meet(characters)) return;
  if (characters_[list].are_in(characters)) {
    lists.push_back(lists_[list].data());
  } else {
    add_lists(2 * list, characters, lists);
    add_lists(2 * list + 1, characters, lists);
  }
}

TokensOfCharacters::Words TokensOfCharacters::having(const Lists& lists, size_t first) {
  Words having = {};
  for (const uint64_t* const list : lists) {
    for (size_t i = 0; i < kWords; ++i) having[i] |= list[first + i];
  }
  return having;
}

TokensOfCharacters::Words TokensOfCharacters::having_none(const Lists& lists, size_t first) {
  Words words = having(lists, first);
  for (uint64_t& word : words) word = ~word;
  return words;
}

}  // namespace soliton::constrain
