// With which characters a rule's automaton goes on and on: those of a class that is repeated, or of what stands before
// something that a pattern looks for. Most tokens consist of such characters, and need not be tried one by one.
//
//   frame --stay--> frames --stay--> frames ...  `most` times: all of these take all of `stay`
//     \--leave-->     \--leave-->                what any of them takes besides
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <limits>
#include <optional>
#include <span>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "runtime/text/constrain/stacks.h"
#include "runtime/text/constrain/vocabulary.h"

namespace soliton::constrain {

struct CharacterLoop {
  static constexpr int32_t kEndless = std::numeric_limits<int32_t>::max();

  int32_t most = 0;       // characters of `stay` that may follow one another for certain; 0: no loop
  bool is_exact = false;  // behind so many, none of `stay` may follow; or it is endless
  Characters stay = {};
  Characters leave = {};    // of all frames; where it is not exact, but those behind the last of so many
  bool are_counted = true;  // `stay`, in rules whose characters are
  // Of the frames that `stay` leads to:
  int32_t characters = 0;  // the most that one takes to the end of the rule
  bool is_even = true;     // all take as many
  int32_t height = 0;      // the greatest, see StackMachine::height()
};

/// Of one grammar, each found once. Not for several threads at once. Throws what the budget does, and is then as before.
class CharacterLoops {
 public:
  /// Both must outlive it.
  CharacterLoops(StackMachine& machine, Budget& budget) : machine_(machine), budget_(budget) {}

  /// The one that begins at a frame. The reference holds as long as this object.
  const CharacterLoop& of(FrameIndex frame) { return of(frame, false); }
  /// The same of those characters alone that lead to frames from which the end of the rule is equally far: how many of them a
  /// count allows is then known exactly.
  const CharacterLoop& even_of(FrameIndex frame) { return of(frame, true); }

 private:
  /// What a frame makes of characters.
  struct Reading {
    bool is_known = false;  // nothing is, of frames of very many states
    Characters taken = {};  // to plain frames
    Characters other = {};  // to others
    bool are_counted = true;
    std::array<FrameIndex, Characters::kNumFar> far =
        {};  // behind each of Vocabulary::far_text(), of those taken
  };
  /// The frames that are reached by `stay`.
  struct Search {
    std::optional<int32_t> characters =
        {};  // that these take to the end of the rule, where all have to take as many
    Characters stay = {};
    std::vector<FrameIndex> frames = {};
    std::unordered_set<FrameIndex> seen = {};  // the same
    CharacterLoop loop = {};
  };

  const CharacterLoop& of(FrameIndex frame, bool is_even);
  const Reading& reading_of(FrameIndex frame);
  void read_far(FrameIndex frame, Reading& reading);
  bool find(FrameIndex start, Search& search);
  bool are_known(std::span<const FrameIndex> level);
  FrameIndex behind(FrameIndex frame, char32_t code);
  Characters taken_by(FrameIndex frame, const Search& search);
  Characters staying_with(std::span<const FrameIndex> level, std::span<const FrameIndex> last_level,
                          const Search& search);
  Characters leading_to(FrameIndex to, std::span<const FrameIndex> level, const Characters& characters);
  bool take_none(std::span<const FrameIndex> level, const Characters& characters);
  std::vector<FrameIndex> next_level(std::span<const FrameIndex> level, const Characters& characters);
  void describe(std::span<const FrameIndex> read, std::span<const FrameIndex> reached, CharacterLoop& loop);

  StackMachine& machine_;
  Budget& budget_;
  std::deque<CharacterLoop> loops_;
  std::array<std::unordered_map<FrameIndex, const CharacterLoop*>, 2> of_frame_;  // [even]
  std::unordered_map<FrameIndex, Reading> readings_;
};

}  // namespace soliton::constrain
