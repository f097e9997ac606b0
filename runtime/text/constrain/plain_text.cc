#include "runtime/text/constrain/plain_text.h"

#include <algorithm>
#include <bitset>
#include <limits>
#include <utility>

#include "runtime/text/constrain/vocabulary.h"

namespace soliton::constrain {
namespace {

constexpr size_t kBetween = 0;          // characters
constexpr size_t kMostPlaces = 20'000;  // for one frame; then all are forgotten before the next one's
constexpr size_t kBytesOfPlace = 160;   // with an entry of a hash map, about
constexpr size_t kBytesOfFrame = 64;    // of an entry of a hash map, about

uint64_t key_of(int32_t state, size_t need) {
  return static_cast<uint64_t>(static_cast<uint32_t>(state)) << 32 | need;
}

bool meet(const ByteRange& a, const ByteEdge& b) {
  return a.first <= b.last && b.first <= a.last;
}

}  // namespace

PlainText::PlainText(StackMachine& machine, Budget& budget) : machine_(machine), budget_(budget), needs_(1) {
  static const std::vector<ByteSequence> sequences = utf8_sequences(Vocabulary::plain_text());
  for (const ByteSequence& bytes : sequences) {
    const size_t next = need_of(std::span(bytes).subspan(1));  // may move needs_
    needs_[kBetween].push_back({bytes[0], next});
  }
}

/// Of the bytes that are left of a character.
size_t PlainText::need_of(std::span<const ByteRange> bytes) {
  if (bytes.empty()) return kBetween;
  const Need first{bytes[0], need_of(bytes.subspan(1))};
  for (size_t i = 1; i < needs_.size(); ++i) {
    if (needs_[i][0].bytes == first.bytes && needs_[i][0].next == first.next) return i;
  }
  needs_.push_back({first});
  return needs_.size() - 1;
}

const std::optional<PlainText::Room>& PlainText::of(FrameIndex frame) {
  const auto known = found_.find(frame);
  if (known != found_.end()) return known->second;
  budget_.charge_bytes(kBytesOfFrame);
  return found_.emplace(frame, find(frame)).first->second;
}

/// The place of the frame, and those that plain text leads to and no frame before has.
std::optional<PlainText::Room> PlainText::find(FrameIndex frame) {
  if (!machine_.is_plain(frame) || !takes_ascii(frame)) return std::nullopt;
  if (places_.size() > kMostPlaces) forget_from(0);
  const size_t first = places_.size();
  const std::span<const int32_t> states = machine_.states(frame);
  try {
    places_.push_back({.states = {states.begin(), states.end()}, .need = kBetween});
    explore(first);
  } catch (...) {
    forget_from(first);
    throw;
  }
  if (places_.size() - first > kMostPlaces) {
    forget_from(first);
    return std::nullopt;
  }
  if (!places_[first].is_good) return std::nullopt;
  return room_behind(first);
}

void PlainText::explore(size_t first) {
  for (size_t i = first; i < places_.size(); ++i) {  // grows
    if (places_.size() - first > kMostPlaces) return;
    expand(i);
  }
  settle(first);
  for (size_t i = first; i < places_.size(); ++i) num_bytes_ += bytes_of(places_[i]);
  if (num_bytes_ > num_bytes_charged_)
    budget_.charge_bytes(num_bytes_ - std::exchange(num_bytes_charged_, num_bytes_));
}

size_t PlainText::bytes_of(const Place& place) {
  return kBytesOfPlace + place.states.size() * sizeof(int32_t) + place.next.size() * sizeof(size_t);
}

void PlainText::forget_from(size_t first) {
  for (size_t i = first; i < places_.size(); ++i) {
    const Place& place = places_[i];
    const auto known = known_.find(key_of(place.states.front(), place.need));
    if (known != known_.end() && known->second == i) known_.erase(known);
  }
  places_.resize(first);
  num_bytes_ = 0;
  for (const Place& place : places_) num_bytes_ += bytes_of(place);
}

/// Most classes of characters do not.
bool PlainText::takes_ascii(FrameIndex frame) {
  machine_.find_steps(frame);
  for (uint8_t byte = ' '; byte < 0x7f; ++byte) {
    if (byte != '"' && byte != '\\' && machine_.step(frame, byte) == StackMachine::kNone) return false;
  }
  return true;
}

/// Finds the places behind a byte.
void PlainText::expand(size_t index) {
  if (places_[index].leaves) return;
  const Automaton& automaton = machine_.automaton();
  const size_t need_index = places_[index].need;
  for (size_t k = 0; k < places_[index].states.size(); ++k) {
    const auto state = static_cast<size_t>(places_[index].states[k]);
    budget_.charge(std::ssize(automaton.states[state].bytes));
    for (const Need& need : needs_[need_index]) {
      for (const ByteEdge& edge : automaton.states[state].bytes) {
        if (!meet(need.bytes, edge)) continue;
        const size_t next = place_of(edge.target, need.next);  // may move places_
        Place& place = places_[index];
        if (need_index == kBetween) place.are_counted = place.are_counted && edge.counts;
        if (place.next.empty() || place.next.back() != next) place.next.push_back(next);
      }
    }
  }
}

size_t PlainText::place_of(int32_t state, size_t need) {
  const auto [known, is_new] = known_.emplace(key_of(state, need), places_.size());
  if (is_new) {
    Place place{.states = {}, .need = need};
    place.leaves = !close(state, place.states);
    place.is_good = !place.leaves;
    places_.push_back(std::move(place));
  }
  return known->second;
}

/// Of new places takes all as good, and strikes out those from which some text does not lead to a good one, until none is left
/// to strike. Of the others that is known: they lead to no new ones.
void PlainText::settle(size_t first) {
  for (bool changes = true; changes;) {
    changes = false;
    for (size_t i = places_.size(); i-- > first;) {
      Place& place = places_[i];
      const bool leaves = place.leaves || std::any_of(place.next.begin(), place.next.end(),
                                                      [&](size_t next) { return places_[next].leaves; });
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
    budget_.charge(1 + std::ssize(place.next));
    room.are_counted = room.are_counted && place.are_counted;
    for (const size_t next : place.next) {
      if (seen[next]) continue;
      seen[next] = true;
      reached.push_back(next);
      const auto state = static_cast<size_t>(places_[next].states.front());
      room.height = std::max(room.height, automaton.heights[state]);
      if (automaton.characters.empty()) continue;
      room.characters = std::max(room.characters, automaton.characters[state]);
      room.least_characters = std::min(room.least_characters, automaton.characters[state]);
    }
  }
  return room;
}

/// The states that are reached without a byte, as StackMachine has them. False if the rule may end there, or call another
/// one.
bool PlainText::close(int32_t state, std::vector<int32_t>& states) const {
  const Automaton& automaton = machine_.automaton();
  const auto take = [&](int32_t taken) {
    if (std::find(states.begin(), states.end(), taken) == states.end()) states.push_back(taken);
  };
  take(state);
  for (size_t i = 0; i < states.size(); ++i) {  // grows
    const Automaton::State& at = automaton.states[static_cast<size_t>(states[i])];
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

/// Whether each byte that a character may have there leads to a good place.
bool PlainText::goes_on(const Place& place) const {
  const Automaton& automaton = machine_.automaton();
  for (const Need& need : needs_[place.need]) {
    std::bitset<256> led;
    for (const int32_t state : place.states) {
      for (const ByteEdge& edge : automaton.states[static_cast<size_t>(state)].bytes) {
        if (!meet(need.bytes, edge)) continue;
        if (!places_[known_.at(key_of(edge.target, need.next))].is_good) continue;
        for (int byte = std::max(need.bytes.first, edge.first); byte <= std::min(need.bytes.last, edge.last);
             ++byte)
          led.set(static_cast<size_t>(byte));
      }
    }
    budget_.charge(1);
    for (int byte = need.bytes.first; byte <= need.bytes.last; ++byte) {
      if (!led[static_cast<size_t>(byte)]) return false;
    }
  }
  return true;
}

}  // namespace soliton::constrain
