// Whether any text of Vocabulary::plain_text() may follow, as within most strings: then tokens of it need not be tried.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "runtime/text/constrain/stacks.h"
#include "runtime/text/constrain/utf8_ranges.h"

namespace soliton::constrain {

/// Of one grammar; what is found is kept. Not for several threads at once. Throws what the budget does, and is then as
/// before.
class PlainText {
 public:
  /// What holds behind any plain text.
  struct Room {
    int32_t height = 0;            // StackMachine::height() is no more
    int32_t characters = 0;        // nor is StackMachine::characters()
    int32_t least_characters = 0;  // nor is that less
    bool are_counted = true;       // each character, in rules whose characters are
  };

  /// Both must outlive it.
  PlainText(StackMachine& machine, Budget& budget);

  /// Of text behind a frame. Nothing if some may not follow, or none is known to be possible for ever; and if the rule may
  /// end or call another one behind some.
  const std::optional<Room>& of(FrameIndex frame);

 private:
  /// Part of a character that has to be possible: bytes, and where in needs_ its next byte is.
  struct Need {
    ByteRange bytes;
    size_t next;
  };
  /// States that nothing has to be read between, and a part of needs_ that is read from there on.
  struct Place {
    std::vector<int32_t> states;  // the first is the one that the others are reached from
    size_t need;
    std::vector<size_t> next = {};  // places behind a byte
    bool are_counted = true;        // the characters that begin there
    bool is_good = true;            // all text may follow
    bool leaves = false;            // behind some text the rule may end, or call another one
  };

  size_t need_of(std::span<const ByteRange> bytes);
  std::optional<Room> find(FrameIndex frame);
  bool takes_ascii(FrameIndex frame);
  void explore(size_t first);
  void expand(size_t index);
  size_t place_of(int32_t state, size_t need);
  void settle(size_t first);
  bool goes_on(const Place& place) const;
  bool close(int32_t state, std::vector<int32_t>& states) const;
  Room room_behind(size_t start) const;
  static size_t bytes_of(const Place& place);
  void forget_from(size_t first);

  StackMachine& machine_;
  Budget& budget_;
  std::vector<std::vector<Need>> needs_;  // the first of a character, the others of what is left of some
  std::vector<Place> places_;             // of all frames, as most have some in common
  std::unordered_map<uint64_t, size_t> known_;  // of a state and a need, but for the frames' own
  size_t num_bytes_ = 0;                        // of both
  size_t num_bytes_charged_ = 0;
  std::unordered_map<FrameIndex, std::optional<Room>> found_;
};

}  // namespace soliton::constrain
