// Which tokens may follow, for stacks of a grammar.
#pragma once

#include <map>
#include <span>
#include <unordered_map>
#include <vector>

#include "runtime/text/constrain/stacks.h"
#include "runtime/text/constrain/utf8_ranges.h"
#include "runtime/text/constrain/vocabulary.h"

namespace soliton::constrain {

/// What a vocabulary's tokens make of stacks. Most tokens stay within the rule that stands at the top, whatever is below
/// it: what becomes of a frame by itself is kept, and so is the mask of stacks that were asked for before. Not for several
/// threads at once.
class TokenMasks {
 public:
  /// All must outlive it.
  TokenMasks(StackMachine& machine, const Vocabulary& vocabulary, Budget& budget)
      : machine_(machine),
        vocabulary_(vocabulary),
        budget_(budget),
        levels_(Vocabulary::kMaxTokenBytes + 1) {}

  /// The tokens whose bytes may follow. The reference holds until the next call. Throws what StackMachine does.
  const TokenMask& allowed(const Stacks& stacks);

 private:
  static constexpr int32_t kRoot = -1;  // of the vocabulary's nodes
  using Tree = Vocabulary::Tree;

  /// What becomes of a frame, with nothing below it.
  struct Walk {
    TokenMask mask;
    const Tree* tree = nullptr;      // that has been walked through
    std::vector<int32_t> ends = {};  // its nodes with whose byte the rule may have ended
    int reached = 0;                 // see StackMachine::take_reached()
  };
  /// Behind some bytes of a token.
  struct Level {
    Group lone = {StackMachine::kNone, kBottom};  // one that is plain; of kNone: see stacks
    Stacks stacks = {};
  };

  void allow(const Group& group, TokenMask& mask);
  void add_plain(size_t num_characters, TokenMask& mask);
  /// With which characters a frame stays as it is.
  struct Loops {
    bool is_known = false;
    bool others = false;  // with all of plain_text() that are not ASCII's
    bool any = false;
    std::array<uint64_t, 2> ascii = {};
  };

  const Loops& loops_of(FrameIndex frame);
  bool takes_plain_text(FrameIndex frame);
  bool takes_all_below(const Vocabulary::Node& node, const Group& group);
  bool comes_back(FrameIndex from, std::span<const ByteRange> bytes, FrameIndex to);
  const Walk& walk_from_root(FrameIndex frame, int max_depth);
  void walk(const Tree& tree, const Stacks& stacks, int32_t start, int max_depth, TokenMask& mask,
            std::vector<int32_t>* ends);
  bool step(const Level& level, uint8_t byte, int max_depth, Level& next);
  static void set_tokens(const Tree& tree, size_t first, size_t end, TokenMask& mask);
  void forget_if_too_much(size_t num_bytes);

  StackMachine& machine_;
  const Vocabulary& vocabulary_;
  Budget& budget_;
  std::vector<Level> levels_;                   // [bytes of a token]
  std::unordered_map<FrameIndex, Walk> walks_;  // from the root
  std::vector<Loops> loops_;                    // [frames]
  Walk deep_;                                   // one that a limit of the depth has cut
  std::map<Stacks, TokenMask> masks_;
  size_t num_bytes_ = 0;  // of walks_ and masks_, about
};

}  // namespace soliton::constrain
