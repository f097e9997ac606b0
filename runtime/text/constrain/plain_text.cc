#include "runtime/text/constrain/plain_text.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <utility>

namespace soliton::constrain {
namespace {

constexpr size_t kBytesOfFrame = 64;  // of an entry of a hash map, about

}  // namespace

const std::optional<PlainText::Room>& PlainText::of(FrameIndex frame, size_t most_places) {
  const auto known = found_.find(frame);
  if (known != found_.end()) return known->second;
  budget_.charge_bytes(kBytesOfFrame);
  return found_.emplace(frame, find(frame, most_places)).first->second;
}

/// The place of the frame, and those that plain text leads to and no frame before has.
std::optional<PlainText::Room> PlainText::find(FrameIndex frame, size_t most_places) {
  if (!machine_.is_plain(frame) || !takes_ascii(frame)) return std::nullopt;
  if (places_.size() > kMostPlaces) forget_from(0);
  const size_t first = places_.size();
  const std::span<const int32_t> states = machine_.states(frame);
  try {
    places_.push_back({.state = states.front(),
                       .first_state = static_cast<Index>(states_.size()),
                       .first_edge = static_cast<Index>(edges_.size())});
    states_.insert(states_.end(), states.begin(), states.end());
    explore(first, most_places);
  } catch (...) {
    forget_from(first);
    throw;
  }
  if (places_.size() - first > most_places) {
    forget_from(first);
    return std::nullopt;
  }
  if (!places_[first].is_good) return std::nullopt;
  return room_behind(first);
}

void PlainText::explore(size_t first, size_t most_places) {
  for (size_t i = first; i < places_.size(); ++i) {  // grows
    if (places_.size() - first > most_places) return;
    expand(i);
  }
  settle(first);
  if (num_bytes() > num_bytes_charged_)
    budget_.charge_bytes(num_bytes() - std::exchange(num_bytes_charged_, num_bytes()));
}

size_t PlainText::num_bytes() const {
  constexpr size_t kKnown = 4 * sizeof(uint32_t);  // of a table that is half full
  return places_.size() * (sizeof(Place) + kKnown) + states_.size() * sizeof(int32_t) +
         edges_.size() * sizeof(Edge);
}

/// From the place of a frame on. Places are numbered, and their states and edges put down, as they are found.
void PlainText::forget_from(size_t first) {
  if (first < places_.size()) {
    states_.resize(places_[first].first_state);
    edges_.resize(places_[first].first_edge);
  }
  places_.resize(first);
  known_.clear();
  for (size_t i = 0; i < first; ++i) {
    const Place& place = places_[i];
    if (!place.is_frame) known_.find_or_add(place.state, static_cast<Index>(i));
  }
}

/// Most classes of characters do not.
bool PlainText::takes_ascii(FrameIndex frame) {
  machine_.find_steps(frame);
  for (uint8_t byte = ' '; byte < 0x7f; ++byte) {
    if (byte != '"' && byte != '\\' && machine_.step(frame, byte) == StackMachine::kNone) return false;
  }
  return true;
}

/// Finds the places behind a character.
void PlainText::expand(size_t index) {
  const auto first_edge = static_cast<Index>(edges_.size());
  places_[index].first_edge = first_edge;
  if (places_[index].leaves) return;
  const Automaton& automaton = machine_.automaton();
  const size_t behind = index + 1 < places_.size() ? places_[index + 1].first_state : states_.size();
  for (size_t k = places_[index].first_state; k < behind; ++k) {
    const Automaton::State& state = automaton.states[static_cast<size_t>(states_[k])];
    budget_.charge(std::ssize(state.bytes) + std::ssize(state.far));
    for (const ByteEdge& edge : state.bytes) add_edges(index, edge);
    for (const FarEdge& edge : state.far) add_edges(index, edge);
  }
  std::sort(edges_.begin() + first_edge, edges_.end());
  places_[index].num_edges = static_cast<Index>(edges_.size()) - first_edge;
}

void PlainText::add_edges(size_t index, const ByteEdge& edge) {
  for (const Range& plain : kPlain) {
    if (plain.first == kFar) continue;
    const uint8_t first = std::max(plain.first, edge.first);
    const uint8_t last = std::min(plain.last, edge.last);
    if (first > last) continue;
    places_[index].are_counted = places_[index].are_counted && edge.counts;
    const Index to = place_of(edge.target);
    edges_.push_back({first, last, true, to});
  }
}

void PlainText::add_edges(size_t index, const FarEdge& edge) {
  places_[index].are_counted = places_[index].are_counted && edge.counts;
  const Index to = place_of(edge.target);
  for (const bool is_whole : {true, false}) {
    const unsigned classes = is_whole ? edge.all : edge.some;
    for (unsigned first = 0; classes >> first != 0; ++first) {
      first += static_cast<unsigned>(std::countr_zero(classes >> first));
      const auto behind = first + static_cast<unsigned>(std::countr_one(classes >> first));
      edges_.push_back(
          {static_cast<uint8_t>(kFar + first), static_cast<uint8_t>(kFar + behind - 1), is_whole, to});
      first = behind;
    }
  }
}

PlainText::Index PlainText::place_of(int32_t state) {
  const auto next = static_cast<Index>(places_.size());
  const Index known = known_.find_or_add(state, next);
  if (known < next) return known;
  places_.push_back({.state = state, .first_state = static_cast<Index>(states_.size()), .is_frame = false});
  if (!close(state)) {
    places_[next].leaves = true;
    places_[next].is_good = false;
  }
  return next;
}

/// Of new places takes all as good, and strikes out those from which some text does not lead to a good one, until none is left
/// to strike. Of the others that is known: they lead to no new ones.
void PlainText::settle(size_t first) {
  for (bool changes = true; changes;) {
    changes = false;
    for (size_t i = places_.size(); i-- > first;) {
      Place& place = places_[i];
      const std::span<const Edge> next = edges(place);
      const bool leaves = place.leaves || std::any_of(next.begin(), next.end(), [&](const Edge& edge) {
                            return places_[edge.to].leaves;
                          });
      const bool is_good = place.is_good && !leaves && goes_on(place);
      changes = changes || leaves != place.leaves || is_good != place.is_good;
      place.leaves = leaves;
      place.is_good = is_good;
    }
  }
}

/// What holds in all places that text leads to.
PlainText::Room PlainText::room_behind(size_t start) const {
  const Automaton& automaton = machine_.automaton();
  Room room{.least_characters = automaton.characters.empty() ? 0 : std::numeric_limits<int32_t>::max()};
  std::vector<size_t> reached = {start};
  std::vector<bool> seen(places_.size());
  for (size_t i = 0; i < reached.size(); ++i) {  // grows
    const Place& place = places_[reached[i]];
    budget_.charge(1 + place.num_edges);
    room.are_counted = room.are_counted && place.are_counted;
    for (const Edge& edge : edges(place)) {
      if (seen[edge.to]) continue;
      seen[edge.to] = true;
      reached.push_back(edge.to);
      const auto state = static_cast<size_t>(places_[edge.to].state);
      room.height = std::max(room.height, automaton.heights[state]);
      if (automaton.characters.empty()) continue;
      room.characters = std::max(room.characters, automaton.characters[state]);
      room.least_characters = std::min(room.least_characters, automaton.characters[state]);
    }
  }
  return room;
}

/// Adds to states_ those that are reached without a byte, as StackMachine has them. False if the rule may end there, or call
/// another one.
bool PlainText::close(int32_t state) {
  const Automaton& automaton = machine_.automaton();
  const size_t first = states_.size();
  const auto take = [&](int32_t taken) {
    if (std::find(states_.begin() + static_cast<std::ptrdiff_t>(first), states_.end(), taken) ==
        states_.end())
      states_.push_back(taken);
  };
  take(state);
  for (size_t i = first; i < states_.size(); ++i) {  // grows
    const Automaton::State& at = automaton.states[static_cast<size_t>(states_[i])];
    budget_.charge(1 + std::ssize(at.empty) + std::ssize(at.calls));
    if (at.ends_rule) return false;
    for (const int32_t target : at.empty) take(target);
    for (const CallEdge& call : at.calls) {
      if (automaton.only_ends[static_cast<size_t>(call.target)] == 0) return false;
      take(automaton.starts[static_cast<size_t>(call.rule)]);
      if (automaton.may_be_empty[static_cast<size_t>(call.rule)] != 0) take(call.target);
    }
  }
  return true;
}

/// Whether each character of plain text leads to a good place.
bool PlainText::goes_on(const Place& place) const {
  std::span<const Edge> left = edges(place);
  budget_.charge(std::ssize(left));
  for (const Range& plain : kPlain) {
    int code = plain.first;  // all before have been led
    for (; !left.empty() && left.front().first <= plain.last; left = left.subspan(1)) {
      const Edge& edge = left.front();
      if (edge.is_whole && places_[edge.to].is_good && edge.first <= code)
        code = std::max(code, edge.last + 1);
    }
    if (code <= plain.last) return false;
  }
  return true;
}

// ---- Known places

PlainText::Index PlainText::KnownPlaces::find_or_add(int32_t state, Index index) {
  if (2 * (size_ + 1) > entries_.size()) grow();
  Entry& entry = entries_[slot_of(state)];
  if (entry.state == kNone) {
    entry = {state, index};
    ++size_;
  }
  return entry.index;
}

void PlainText::KnownPlaces::clear() {
  entries_.clear();
  size_ = 0;
}

/// Where a state is, or would be.
size_t PlainText::KnownPlaces::slot_of(int32_t state) const {
  const size_t last = entries_.size() - 1;
  size_t slot = static_cast<size_t>(static_cast<uint32_t>(state) * 0x9e3779b97f4a7c15 >> 32) & last;
  while (entries_[slot].state != kNone && entries_[slot].state != state) slot = (slot + 1) & last;
  return slot;
}

void PlainText::KnownPlaces::grow() {
  constexpr size_t kFew = 64;
  std::vector<Entry> before = std::exchange(entries_, {});
  entries_.assign(std::max(kFew, 2 * before.size()), {kNone, 0});
  for (const Entry& entry : before) {
    if (entry.state != kNone) entries_[slot_of(entry.state)] = entry;
  }
}

}  // namespace soliton::constrain
