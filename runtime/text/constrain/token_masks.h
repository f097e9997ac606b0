// Which tokens may follow, for stacks of a grammar.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "runtime/text/constrain/character_loops.h"
#include "runtime/text/constrain/plain_text.h"
#include "runtime/text/constrain/stacks.h"
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
        levels_(Vocabulary::kMaxTokenBytes + 1),
        plain_text_(machine, budget),
        loops_(machine, budget) {}

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
    // What lone is in, if there is one: tokens of its characters, before a node, are in the mask already.
    const CharacterLoop* loop = nullptr;
    int32_t loop_end = 0;          // that node
    int32_t loop_deepest = 0;      // but for tokens of more bytes
    bool is_in_character = false;  // behind the first of its bytes, or perhaps all
  };
  static bool is_lone(const Level& level) { return level.lone.frame != StackMachine::kNone; }

  void allow(const Group& group, TokenMask& mask);
  void add_plain(size_t num_characters, TokenMask& mask);
  std::optional<int32_t> plain_room(const Group& group);
  static bool skips(const Level& level, int32_t index, const Vocabulary::Node& node);
  static bool stays(const Level& before, int32_t index, uint8_t byte, Level& level);
  bool take_loop(const Tree& tree, int32_t node, int32_t end, int max_depth, Level& level, TokenMask& mask);
  const CharacterLoop& loop_of(const Group& group);
  const CharacterLoop& longest_loop_of(FrameIndex frame);
  int32_t room(const Group& group, const CharacterLoop& loop) const;
  const Walk& walk_from_root(FrameIndex frame, int max_depth);
  void walk(const Tree& tree, const Stacks& stacks, int32_t start, int max_depth, TokenMask& mask,
            std::vector<int32_t>* ends);
  void begin_walk(Level& level, const Stacks& stacks);
  bool step(const Level& level, uint8_t byte, int max_depth, Level& next);
  static void set_tokens(const Tree& tree, size_t first, size_t end, TokenMask& mask);
  static void set_tokens_going_on_with(const Tree& tree, const Characters& characters, size_t first,
                                       size_t last, int64_t most, TokenMask& mask);
  void forget_if_too_much(size_t num_bytes);

  StackMachine& machine_;
  const Vocabulary& vocabulary_;
  Budget& budget_;
  std::vector<Level> levels_;                   // [bytes of a token]
  std::unordered_map<FrameIndex, Walk> walks_;  // from the root
  PlainText plain_text_;
  std::unordered_map<FrameIndex, CharacterLoop> plain_loops_;
  CharacterLoops loops_;
  Walk deep_;  // one that a limit of the depth has cut
  std::map<Stacks, TokenMask> masks_;
  size_t num_bytes_ = 0;  // of walks_ and masks_, about
};

}  // namespace soliton::constrain
