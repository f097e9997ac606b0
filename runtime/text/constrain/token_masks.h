// Which tokens may follow, for stacks of a grammar.
#pragma once

#include <array>
#include <chrono>
#include <map>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "runtime/text/constrain/character_loops.h"
#include "runtime/text/constrain/plain_text.h"
#include "runtime/text/constrain/stack_sets.h"
#include "runtime/text/constrain/stacks.h"
#include "runtime/text/constrain/vocabulary.h"

namespace soliton::constrain {

/// What a vocabulary's tokens make of stacks. Most tokens stay within the rule that stands at the top, whatever is below
/// it: what becomes of a frame by itself is kept, and so is the mask of stacks that were asked for before. Not for several
/// threads at once.
class TokenMasks {
 public:
  /// All must outlive it. `bytes_of_sets`: see StackSets.
  TokenMasks(StackMachine& machine, const Vocabulary& vocabulary, Budget& budget,
             size_t bytes_of_sets = StackSets::kMostBytes)
      : machine_(machine),
        vocabulary_(vocabulary),
        budget_(budget),
        levels_(Vocabulary::kMaxTokenBytes + 1),
        levels_within_(Vocabulary::kMaxTokenBytes + 1),
        sets_(machine, bytes_of_sets),
        plain_text_(machine, budget),
        loops_(machine, budget) {}

  /// Finds what masks where texts begin will ask for, for about so long (of this thread): of long patterns that is most of the
  /// first mask's work. Throws what StackMachine does.
  void look_ahead(std::chrono::nanoseconds most);
  /// The tokens whose bytes may follow. The reference holds until the next call. Throws what StackMachine does.
  const TokenMask& allowed(const Stacks& stacks);

 private:
  static constexpr int32_t kRoot = -1;  // of the vocabulary's nodes
  using Tree = Vocabulary::Tree;

  /// Where the rule may have ended with the last byte.
  struct Ends {
    std::vector<int32_t> nodes = {};   // of the tree
    std::vector<int32_t> shapes = {};  // nodes of Vocabulary::shapes()
  };
  /// What becomes of a frame, with nothing below it.
  struct Walk {
    TokenMask mask;
    const Tree* tree = nullptr;  // that has been walked through
    Ends ends = {};
    int reached = 0;  // see StackMachine::take_reached()
  };
  /// Which tokens have to be looked at one by one where a loop takes others: those with any of `leave`; and of more than
  /// `most` characters, those with any that is not of `stay`, and those of no more than `longest` that are not all `counted`.
  /// The first character is looked at only if `has_first` says so.
  struct Rest {
    Characters stay;
    Characters leave;
    int64_t most;
    int64_t longest;
    bool has_first;
    Characters counted = {};
  };
  enum class ShapeStep { kGoesOn, kFails, kDiffers };  // the last: from character to character
  /// Behind some bytes of a token.
  struct Level {
    Group lone = {StackMachine::kNone, kBottom};  // one that is plain; of kNone: see set
    StackSets::Index set = StackSets::kNotKept;   // of kNotKept: see stacks
    Stacks stacks = {};
  };
  static bool is_lone(const Level& level) { return level.lone.frame != StackMachine::kNone; }

  void allow(const Group& group, TokenMask& mask);
  void add_plain(size_t num_characters, TokenMask& mask);
  const std::optional<PlainText::Room>& plain_text_of(FrameIndex frame);
  std::optional<int32_t> plain_room(const Group& group);
  bool take_loop(const Tree& tree, int32_t node, int32_t end, int max_depth, const Level& level,
                 TokenMask& mask, std::vector<int32_t>* ends);
  bool take_loops(const Tree& tree, int32_t node, int32_t end, int max_depth, Level& level, TokenMask& mask,
                  std::vector<int32_t>* ends);
  const CharacterLoop& loop_of(const Group& group);
  const CharacterLoop& longest_loop_of(FrameIndex frame);
  int32_t room(const Group& group, const CharacterLoop& loop) const;
  int32_t longest_in(const Group& group, const CharacterLoop& loop) const;
  const Walk& walk_from_root(FrameIndex frame, int max_depth);
  void walk(const Tree& tree, const Level& from, int32_t start, int max_depth, TokenMask& mask,
            std::vector<int32_t>* ends);
  void walk_all(const Level& from, int max_depth, TokenMask& mask, Ends* ends);
  std::span<const Group> groups_of(const Level& level) const;
  uint16_t likeness(FrameIndex frame);
  uint16_t likeness_of(const Level& level);
  const Characters& staying(FrameIndex frame);
  bool stays(const Group& group, int32_t node);
  bool tells_letters_apart(const Level& level);
  void walk_shapes(const Level& from, int32_t start, int max_depth, TokenMask& mask, Ends* ends);
  ShapeStep step_shape(const Level& level, ShapeTree::Symbol symbol, int max_depth, Level& next);
  ShapeStep step_far(const Level& level, size_t index, int max_depth, Level& next);
  void walk_shape(const Level& from, int32_t node, int max_depth, TokenMask& mask, Ends* ends);
  void walk_rest(const Tree& tree, size_t first, size_t last, size_t depth, int max_depth, TokenMask& mask,
                 std::vector<int32_t>* ends);
  Level level_of(const Stacks& stacks);
  bool may_end(const Level& level) const;
  bool step(const Level& level, uint8_t byte, int max_depth, Level& next);
  bool takes_few(const Group& group) const;
  void allow_together(std::span<const Group> groups, TokenMask& mask);
  static void set_tokens(const Tree& tree, size_t first, size_t end, TokenMask& mask);
  static void set_tokens_going_on_with(const Tree& tree, const Characters& characters, size_t first,
                                       size_t last, int64_t most, TokenMask& mask);
  void find_rest(const Tree& tree, const Rest& rest, size_t first, size_t last);
  std::optional<std::bitset<256>> behind_many(const Group& group, const Characters& stay,
                                              int64_t num_characters);
  void leave_out_what_ends(const Tree& tree, const Rest& rest, const Group& group);
  void forget_if_too_much(size_t num_bytes);

  StackMachine& machine_;
  const Vocabulary& vocabulary_;
  Budget& budget_;
  std::vector<Level> levels_;         // [bytes of a token, or symbols of a shape]
  std::vector<Level> levels_within_;  // [bytes of a token]: of a shape
  std::array<Level, 3> levels_far_;   // [bytes of a character]
  std::vector<uint16_t> likeness_;    // [frames]: what bytes it does not tell apart; 0: not known
  std::vector<std::optional<Characters>> staying_;  // [frames]: symbols that lead there again
  StackSets sets_;
  std::vector<uint64_t> rest_;                  // a bit for each place in a tree that has to be looked at
  std::unordered_map<FrameIndex, Walk> walks_;  // from the root
  PlainText plain_text_;
  std::unordered_map<FrameIndex, CharacterLoop> plain_loops_;
  CharacterLoops loops_;
  Walk deep_;  // one that a limit of the depth has cut
  std::map<Stacks, TokenMask> masks_;
  size_t num_bytes_ = 0;  // of walks_ and masks_, about
};

}  // namespace soliton::constrain
