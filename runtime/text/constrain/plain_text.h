// Whether any text of Vocabulary::plain_text() may follow, as within most strings: then tokens of it need not be tried.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "runtime/text/constrain/stacks.h"
#include "runtime/text/constrain/vocabulary.h"

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
  PlainText(StackMachine& machine, Budget& budget) : machine_(machine), budget_(budget) {}

  /// Of text behind a frame. Nothing if some may not follow, or none is known to be possible for ever; if the rule may end or
  /// call another one behind some; and if so many sets of states are not enough to find out. What a frame is asked with first
  /// holds.
  const std::optional<Room>& of(FrameIndex frame, size_t most_places = kMostPlaces);

  static constexpr size_t kMostPlaces = 5'000;

 private:
  using Index = uint32_t;

  /// Characters, from the first to the last: ASCII's, and kFar and the next ones for all of Vocabulary::far_text().
  struct Range {
    uint8_t first;
    uint8_t last;
  };
  static constexpr uint8_t kFar = 0x80;
  /// Those that plain text has.
  static constexpr std::array<Range, 4> kPlain = {
      {{' ', '"' - 1}, {'"' + 1, '\\' - 1}, {'\\' + 1, '~'}, {kFar, kFar + Characters::kNumFar - 1}}};
  /// Where characters lead.
  struct Edge {
    uint8_t first;
    uint8_t last;
    bool is_whole;  // all characters of a class lead there, not perhaps some
    Index to;       // in places_

    auto operator<=>(const Edge&) const = default;
  };
  /// States that nothing has to be read between.
  struct Place {
    int32_t state;      // the one that the others are reached from; of a frame its first
    Index first_state;  // in states_, up to the next place's
    Index first_edge = 0;
    Index num_edges = 0;
    bool are_counted = true;  // the characters that begin there
    bool is_good = true;      // all text may follow
    bool leaves = false;      // behind some text the rule may end, or call another one
    bool is_frame = true;     // and not in known_
  };
  /// Numbers of places by their states, but for the frames' own: a table that is probed place by place.
  class KnownPlaces {
   public:
    /// The one that is known, or `index`, which is from now on.
    Index find_or_add(int32_t state, Index index);
    void clear();

   private:
    struct Entry {
      int32_t state;
      Index index;
    };
    static constexpr int32_t kNone = -1;

    size_t slot_of(int32_t state) const;
    void grow();

    std::vector<Entry> entries_;  // a power of two of them, at most half of which are taken
    size_t size_ = 0;
  };

  std::optional<Room> find(FrameIndex frame, size_t most_places);
  bool takes_ascii(FrameIndex frame);
  void explore(size_t first, size_t most_places);
  void expand(size_t index);
  void add_edges(size_t index, const ByteEdge& edge);
  void add_edges(size_t index, const FarEdge& edge);
  Index place_of(int32_t state);
  void settle(size_t first);
  bool goes_on(const Place& place) const;
  bool close(int32_t state);
  Room room_behind(size_t start) const;
  std::span<const Edge> edges(const Place& place) const {
    return std::span(edges_).subspan(place.first_edge, place.num_edges);
  }
  size_t num_bytes() const;
  void forget_from(size_t first);

  StackMachine& machine_;
  Budget& budget_;
  std::vector<Place> places_;    // of all frames, as most have some in common
  std::vector<int32_t> states_;  // of all places
  std::vector<Edge> edges_;      // of all places, sorted for each
  KnownPlaces known_;
  size_t num_bytes_charged_ = 0;
  std::unordered_map<FrameIndex, std::optional<Room>> found_;
};

}  // namespace soliton::constrain
