#include "runtime/text/tokenizer/bpe.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "runtime/text/tokenizer/parts.h"
#include "runtime/text/tokenizer/utf8.h"

namespace soliton::tokenization {
namespace {

constexpr size_t kShortWord = 32;      // bytes; shorter ones are not cut
constexpr size_t kMaxKnownWord = 128;  // bytes of the words we remember
constexpr size_t kMaxKnownWords = 1 << 16;

constexpr uint64_t pair_key(uint32_t left, uint32_t right) {
  return static_cast<uint64_t>(left) << 32 | right;
}

constexpr uint64_t pair_key(int left, int right) {
  return pair_key(static_cast<uint32_t>(left), static_cast<uint32_t>(right));
}

std::optional<int> find(const ByText<int>& ids, std::string_view text) {
  const auto found = ids.find(text);
  return found == ids.end() ? std::nullopt : std::optional(found->second);
}

/// The two tokens of a merge: ["a", "b"], or the older "a b".
std::pair<std::string, std::string> read_merge(const JsonView& merge) {
  if (merge.is_array()) {
    if (merge.array_size() != 2) throw merge.error("expected two tokens, got {}", merge.array_size());
    return {merge[0].string(), merge[1].string()};
  }
  const std::string& both = merge.string();
  const size_t space = both.find(' ');
  if (space == std::string::npos || both.find(' ', space + 1) != std::string::npos) {
    throw merge.error("expected two tokens with a space between, got {}", merge.describe());
  }
  return {both.substr(0, space), both.substr(space + 1)};
}

}  // namespace

int read_id(const JsonView& id) {
  return static_cast<int>(id.integer(0, kMaxTokenId));
}

// ---- reading ----

Bpe Bpe::read(const JsonView& model) {
  const JsonView type = model["type"];  // the oldest files do not say
  if (!type.is_null() && type.string() != "BPE") {
    throw model.error(ExitCode::kMismatch, "expected type BPE, got {}", type.describe());
  }
  const JsonView dropout = model["dropout"];
  if (!dropout.is_null() && dropout.number(0, 1) != 0) {
    throw dropout.error(ExitCode::kMismatch, "expected none, got {}: not supported", dropout.describe());
  }
  expect_empty(model["continuing_subword_prefix"]);
  expect_empty(model["end_of_word_suffix"]);
  Bpe bpe;
  bpe.ignore_merges_ = read_flag(model["ignore_merges"], false);
  bpe.byte_fallback_ = read_flag(model["byte_fallback"], false);
  bpe.fuse_unknown_ = read_flag(model["fuse_unk"], false);
  bpe.read_vocabulary(model["vocab"]);
  bpe.read_fallbacks(model);
  bpe.read_merges(model["merges"]);
  return bpe;
}

void Bpe::read_vocabulary(const JsonView& vocab) {
  const nlohmann::json& entries = vocab.object();
  if (entries.empty()) throw vocab.error("expected at least one token, got none");
  vocabulary_.reserve(entries.size());
  for (const auto& [text, value] : entries.items()) {
    if (text.empty()) throw vocab.error("expected tokens of at least one character, got an empty one");
    const int id = read_id(vocab[text]);
    vocabulary_.emplace(text, id);
    const Character first = first_character(text);
    if (first.length == text.size()) character_ids_.emplace(first.code, id);
  }
}

void Bpe::read_fallbacks(const JsonView& model) {
  bool has_every_letter = true;
  has_every_byte_ = byte_fallback_;
  for (size_t byte = 0; byte < kNumBytes; ++byte) {
    byte_ids_[byte] = find(vocabulary_, fmt::format("<0x{:02X}>", byte)).value_or(-1);
    has_every_byte_ = has_every_byte_ && byte_ids_[byte] >= 0;
    has_every_letter = has_every_letter && vocabulary_.contains(byte_letters()[byte]);
  }
  const JsonView unknown = model["unk_token"];
  if (unknown.is_null()) return;
  unknown_ = find(vocabulary_, unknown.string());
  if (!unknown_ && !has_every_byte_ && !has_every_letter) {
    throw unknown.error("expected a token of the vocabulary, got {}", unknown.describe());
  }
}

void Bpe::read_merges(const JsonView& list) {
  const size_t num_merges = list.array_size();
  merges_.reserve(num_merges);
  for (size_t i = 0; i < num_merges; ++i) {
    const JsonView merge = list[i];
    const auto id_of = [&](const std::string& text) {
      const std::optional<int> id = find(vocabulary_, text);
      if (!id) throw merge.error("{} is not in the vocabulary", in_quotes(text));
      return *id;
    };
    const auto [left, right] = read_merge(merge);
    const int left_id = id_of(left);
    const int right_id = id_of(right);
    // Of equal pairs the last counts, as in the reference.
    merges_.insert_or_assign(pair_key(left_id, right_id),
                             Merge{.rank = static_cast<int>(i), .id = id_of(left + right)});
    junctions_.insert(pair_key(last_character(left).code, first_character(right).code));
    for (const int part : {left_id, right_id}) {
      // Such a symbol stands for other text than its own, so that its characters tell nothing.
      const bool is_fallback =
          (byte_fallback_ && std::find(byte_ids_.begin(), byte_ids_.end(), part) != byte_ids_.end()) ||
          part == unknown_;
      if (is_fallback) can_cut_ = false;
    }
  }
}

// ---- encoding ----

/// Whether the characters' symbols stay apart whatever surrounds them. A character that the vocabulary lacks
/// may vanish or fuse with its neighbours, so there is no cut beside it.
bool Bpe::may_cut(char32_t left, char32_t right) const {
  if (!can_cut_ || junctions_.contains(pair_key(left, right))) return false;
  return has_every_byte_ || (character_ids_.contains(left) && character_ids_.contains(right));
}

void Bpe::encode(std::string_view piece, const std::vector<bool>& forbidden, BpeScratch& scratch,
                 std::vector<int>& ids) const {
  if (ignore_merges_) {
    const std::optional<int> whole = find(vocabulary_, piece);
    if (whole && !forbidden[static_cast<size_t>(*whole)]) {
      ids.push_back(*whole);
      return;
    }
  }
  if (piece.size() <= kShortWord) return encode_word(piece, forbidden, scratch, ids);
  size_t begin = 0;
  char32_t previous = 0;
  for (size_t i = 0; i < piece.size();) {
    const Character next = first_character(piece.substr(i));
    if (i > begin && may_cut(previous, next.code)) {
      encode_word(piece.substr(begin, i - begin), forbidden, scratch, ids);
      begin = i;
    }
    previous = next.code;
    i += next.length;
  }
  encode_word(piece.substr(begin), forbidden, scratch, ids);
}

void Bpe::encode_word(std::string_view word, const std::vector<bool>& forbidden, BpeScratch& scratch,
                      std::vector<int>& ids) const {
  if (const auto known = scratch.words_.find(word); known != scratch.words_.end()) {
    const auto begin = scratch.word_ids_.begin() + static_cast<std::ptrdiff_t>(known->second.begin);
    ids.insert(ids.end(), begin, begin + static_cast<std::ptrdiff_t>(known->second.count));
    return;
  }
  append_symbols(word, scratch);
  const size_t start = ids.size();
  scratch.merge(*this, forbidden, ids);
  if (word.size() > kMaxKnownWord || scratch.words_.size() >= kMaxKnownWords) return;
  scratch.words_.emplace(word, BpeScratch::Word{scratch.word_ids_.size(), ids.size() - start});
  scratch.word_ids_.insert(scratch.word_ids_.end(), ids.begin() + static_cast<std::ptrdiff_t>(start),
                           ids.end());
}

/// One symbol a character; what the vocabulary lacks is its bytes, or unknown, or nothing. As in the
/// reference, an unknown one waits for the next character that the vocabulary has.
void Bpe::append_symbols(std::string_view word, BpeScratch& scratch) const {
  bool has_unknown = false;
  const auto flush_unknown = [&] {
    if (has_unknown) scratch.append(*unknown_);
    has_unknown = false;
  };
  for (size_t i = 0; i < word.size();) {
    const Character character = first_character(word.substr(i));
    const std::string_view bytes = word.substr(i, character.length);
    i += character.length;
    const auto byte_id = [this](char byte) { return byte_ids_[static_cast<unsigned char>(byte)]; };
    if (const auto known = character_ids_.find(character.code); known != character_ids_.end()) {
      flush_unknown();
      scratch.append(known->second);
    } else if (byte_fallback_ &&
               std::all_of(bytes.begin(), bytes.end(), [&](char byte) { return byte_id(byte) >= 0; })) {
      for (const char byte : bytes) scratch.append(byte_id(byte));
    } else if (unknown_) {
      if (!fuse_unknown_) flush_unknown();
      has_unknown = true;
    }
  }
  flush_unknown();
}

void BpeScratch::append(int id) {
  const int position = static_cast<int>(symbols_.size());
  if (position > 0) symbols_.back().next = position;
  symbols_.push_back({.id = id, .previous = position - 1, .next = -1});
}

/// Queues the merge of the symbol with its right neighbour, if there is one.
void BpeScratch::consider(int position, const Bpe& bpe, const std::vector<bool>& forbidden) {
  if (position < 0 || at(position).next < 0) return;
  const int left = at(position).id;
  const int right = at(at(position).next).id;
  const auto merge = bpe.merges_.find(pair_key(left, right));
  if (merge == bpe.merges_.end() || forbidden[static_cast<size_t>(merge->second.id)]) return;
  queue_.push_back({merge->second.rank, position, left, right, merge->second.id});
  std::push_heap(queue_.begin(), queue_.end(), std::greater<>());
}

void BpeScratch::apply(const Candidate& candidate, const Bpe& bpe, const std::vector<bool>& forbidden) {
  Symbol& left = at(candidate.position);
  if (left.id != candidate.left || left.next < 0 || at(left.next).id != candidate.right) return;
  Symbol& right = at(left.next);
  left.id = candidate.merged;
  left.next = right.next;
  right.id = -1;
  if (left.next >= 0) at(left.next).previous = candidate.position;
  consider(left.previous, bpe, forbidden);
  consider(candidate.position, bpe, forbidden);
}

/// Merges the lowest rank first and the leftmost among equals, in n log n; appends what is left to `ids`.
void BpeScratch::merge(const Bpe& bpe, const std::vector<bool>& forbidden, std::vector<int>& ids) {
  for (int i = 0; i < static_cast<int>(symbols_.size()); ++i) consider(i, bpe, forbidden);
  while (!queue_.empty()) {
    std::pop_heap(queue_.begin(), queue_.end(), std::greater<>());
    const Candidate best = queue_.back();
    queue_.pop_back();
    apply(best, bpe, forbidden);
  }
  if (!symbols_.empty()) {
    for (int i = 0; i >= 0; i = at(i).next) ids.push_back(at(i).id);
  }
  symbols_.clear();
}

}  // namespace soliton::tokenization
