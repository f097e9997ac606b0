// Byte-pair encoding: the vocabulary, its merges, and what happens to characters that it lacks.
#pragma once

#include <array>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "models/strict_json.h"
#include "runtime/text/tokenizer/byte_letters.h"

namespace soliton::tokenization {

inline constexpr int kMaxTokenId = (1 << 22) - 1;  // bounds what one id can make us allocate

struct TextHash {
  using is_transparent = void;
  size_t operator()(std::string_view text) const { return std::hash<std::string_view>{}(text); }
};
/// Something by text, to be looked up by views.
template <class T>
using ByText = std::unordered_map<std::string, T, TextHash, std::equal_to<>>;

/// An id of tokenizer.json. Throws kBadFile.
int read_id(const JsonView& id);

/// Which merge a pair of neighbours has, and its place among all merges: the lowest goes first.
struct Merge {
  int rank;
  int id;  // of the pair's concatenation
};

/// What merging works in, for one text: the symbols of a word, and the words seen so far.
class BpeScratch;

/// The model of tokenizer.json. Immutable.
class Bpe {
 public:
  /// Reads tokenizer.json's model. Throws kBadFile, or kMismatch if it asks for dropout, affixes or another
  /// kind of model.
  static Bpe read(const JsonView& model);

  /// Ids by the text that the file has for them.
  const ByText<int>& vocabulary() const { return vocabulary_; }

  /// Appends the ids of a piece. Tokens marked in `forbidden`, by id, are made by no merge and no look-up.
  /// A scratch serves one text and one `forbidden`.
  void encode(std::string_view piece, const std::vector<bool>& forbidden, BpeScratch& scratch,
              std::vector<int>& ids) const;

 private:
  friend class BpeScratch;

  void read_vocabulary(const JsonView& vocab);
  void read_merges(const JsonView& list);
  void read_fallbacks(const JsonView& model);
  bool may_cut(char32_t left, char32_t right) const;
  void encode_word(std::string_view word, const std::vector<bool>& forbidden, BpeScratch& scratch,
                   std::vector<int>& ids) const;
  void append_symbols(std::string_view word, BpeScratch& scratch) const;

  ByText<int> vocabulary_;
  std::unordered_map<char32_t, int> character_ids_;
  std::unordered_map<uint64_t, Merge> merges_;  // by the pair's ids
  std::array<int, kNumBytes> byte_ids_{};       // of "<0x0A>" and the like; -1: none
  std::optional<int> unknown_;
  bool ignore_merges_ = false;
  bool byte_fallback_ = false;
  bool fuse_unknown_ = false;
  bool has_every_byte_ = false;

  // Where a word can be cut without a change: between characters that no merge ever brings together.
  std::unordered_set<uint64_t> junctions_;  // last character of a merge's left part, first of its right
  bool can_cut_ = true;
};

class BpeScratch {
 public:
  BpeScratch() = default;

 private:
  friend class Bpe;

  /// A node of a linked list.
  struct Symbol {
    int id;  // -1: merged into its left neighbour
    int previous;
    int next;
  };
  struct Candidate {
    int rank;
    int position;
    int left;  // ids when queued: if either symbol has changed since, the candidate is stale
    int right;
    int merged;
    bool operator>(const Candidate& other) const {
      return rank != other.rank ? rank > other.rank : position > other.position;
    }
  };
  struct Word {
    size_t begin;  // of its ids in word_ids_
    size_t count;
  };

  Symbol& at(int position) { return symbols_[static_cast<size_t>(position)]; }
  void append(int id);
  void consider(int position, const Bpe& bpe, const std::vector<bool>& forbidden);
  void apply(const Candidate& candidate, const Bpe& bpe, const std::vector<bool>& forbidden);
  void merge(const Bpe& bpe, const std::vector<bool>& forbidden, std::vector<int>& ids);

  std::vector<Symbol> symbols_;
  std::vector<Candidate> queue_;  // a heap
  ByText<Word> words_;
  std::vector<int> word_ids_;
};

}  // namespace soliton::tokenization
