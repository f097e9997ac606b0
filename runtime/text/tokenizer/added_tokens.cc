#include "runtime/text/tokenizer/added_tokens.h"

#include <algorithm>

#include "runtime/text/tokenizer/parts.h"
#include "runtime/text/tokenizer/utf8.h"

namespace soliton::tokenization {
namespace {

/// Bytes of a text.
struct Span {
  size_t begin;
  size_t end;
};

AddedToken read_token(const JsonView& token, const Normalizer& normalizer, TextLimit& limit) {
  const bool special = read_flag(token["special"], false);
  AddedToken result{.content = token["content"].string(),
                    .normalized_content = {},
                    .id = read_id(token["id"]),
                    .special = special,
                    .normalized = read_flag(token["normalized"], !special),
                    .single_word = read_flag(token["single_word"], false),
                    .lstrip = read_flag(token["lstrip"], false),
                    .rstrip = read_flag(token["rstrip"], false)};
  if (result.content.empty()) throw token.error("expected content, got an empty string");
  Section section{.text = result.content, .origin_bytes = 0};
  limit.extend(section.text.size());
  if (result.normalized) normalizer.apply(section, limit);
  limit.end_part();
  result.normalized_content = std::move(section.text);
  if (result.normalized_content.empty()) {
    throw token.error("{}: expected content, but the normalizer leaves none", in_quotes(result.content));
  }
  return result;
}

}  // namespace

// ---- searching ----

LongestMatch::LongestMatch(std::vector<Entry> entries) : entries_(std::move(entries)) {
  std::sort(entries_.begin(), entries_.end(), [](const Entry& a, const Entry& b) { return a.text < b.text; });
  for (const Entry& entry : entries_) starts_[static_cast<unsigned char>(entry.text[0])] = true;
}

const LongestMatch::Entry* LongestMatch::at(std::string_view text) const {
  // Entries that share the first `length` bytes of the text are neighbours; the shortest is their first.
  const Entry* longest = nullptr;
  auto begin = entries_.begin();
  auto end = entries_.end();
  for (size_t length = 0; begin != end; ++length) {
    if (begin->text.size() == length) {
      longest = &*begin;
      if (++begin == end) break;
    }
    if (length == text.size()) break;
    const auto byte = static_cast<unsigned char>(text[length]);
    const auto byte_of = [length](const Entry& entry) {
      return static_cast<unsigned char>(entry.text[length]);
    };
    begin = std::partition_point(begin, end, [&](const Entry& entry) { return byte_of(entry) < byte; });
    end = std::partition_point(begin, end, [&](const Entry& entry) { return byte_of(entry) == byte; });
  }
  return longest;
}

size_t LongestMatch::next_start(std::string_view text, size_t from) const {
  while (from < text.size() && !starts_[static_cast<unsigned char>(text[from])]) ++from;
  return from;
}

// ---- reading ----

AddedTokens AddedTokens::read(const JsonView& list, const Bpe& bpe, const Normalizer& normalizer,
                              TextLimit limit) {
  AddedTokens result;
  if (list.is_null()) return result;
  // The reference numbers tokens that the vocabulary lacks by itself.
  auto next_id = static_cast<int>(bpe.vocabulary().size());
  std::array<std::vector<LongestMatch::Entry>, 2> entries;
  std::array<ByText<bool>, 2> searched;
  for (size_t i = 0; i < list.array_size(); ++i) {
    const JsonView view = list[i];
    AddedToken token = read_token(view, normalizer, limit);
    const std::string name = in_quotes(token.content);
    if (result.by_content_.contains(token.content)) throw view.error("{} is listed twice", name);
    const auto known = bpe.vocabulary().find(token.content);
    const int expected = known != bpe.vocabulary().end() ? known->second : next_id++;
    if (token.id != expected) {
      throw view.error("{}: id {} disagrees with the rest of the file, which gives {}", name, token.id,
                       expected);
    }
    if (!searched[token.normalized].emplace(token.normalized_content, true).second) {
      throw view.error("{}: the normalizer makes it equal to another added token", name);
    }
    entries[token.normalized].push_back({token.normalized_content, i});
    result.by_content_.emplace(token.content, i);
    result.tokens_.push_back(std::move(token));
  }
  for (size_t k = 0; k < entries.size(); ++k) result.search_[k] = LongestMatch(std::move(entries[k]));
  return result;
}

std::optional<int> AddedTokens::id_of(std::string_view content) const {
  const auto found = by_content_.find(content);
  return found == by_content_.end() ? std::nullopt : std::optional(tokens_[found->second].id);
}

// ---- cutting ----

std::vector<AddedTokens::Part> AddedTokens::cut(std::string_view text, bool normalized,
                                                bool parse_special) const {
  const LongestMatch& search = search_[normalized];
  std::vector<Part> parts;
  size_t text_begin = 0;  // of what no token has taken
  Span space{0, 0};       // the white space that a token stripped last, so that none is read twice
  for (size_t from = 0; (from = search.next_start(text, from)) < text.size();) {
    const LongestMatch::Entry* const found = search.at(text.substr(from));
    if (found == nullptr) {
      ++from;
      continue;
    }
    const AddedToken& token = tokens_[found->value];
    size_t begin = from;
    size_t end = from + found->text.size();
    from = end;  // even if the token does not count: what lies inside it is not searched
    const std::string_view before = text.substr(0, begin);
    const std::string_view after = text.substr(end);
    if (token.special && !parse_special) continue;
    if (token.single_word && ((!before.empty() && is_word(last_character(before).code)) ||
                              (!after.empty() && is_word(first_character(after).code)))) {
      continue;
    }
    // Where the token before took the white space after it, less is left, and a match may even begin there.
    if (token.lstrip) begin -= trailing_space(before.substr(std::min(text_begin, begin)));
    if (token.lstrip) begin = std::max(begin, text_begin);
    if (token.rstrip) {
      if (end < space.begin || end > space.end) space = {end, end + leading_space(after)};
      end = space.end;
    }
    if (text_begin < begin) parts.push_back({text_begin, begin, nullptr});
    if (begin < end) parts.push_back({begin, end, &token});  // else the token before has taken all of it
    text_begin = end;
  }
  if (text_begin != text.size()) parts.push_back({text_begin, text.size(), nullptr});
  return parts;
}

}  // namespace soliton::tokenization
