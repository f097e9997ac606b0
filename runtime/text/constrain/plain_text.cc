#include "runtime/text/constrain/plain_text.h"

#include <algorithm>
#include <bitset>
#include <limits>

#include "runtime/text/constrain/vocabulary.h"

namespace soliton::constrain {
namespace {

constexpr size_t kBetween = 0;  // characters
constexpr size_t kMostPlaces = 20'000;
constexpr size_t kBytesOfFrame = 64;  // of an entry of a hash map, about

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

/// Takes all places that plain text leads to as good, and strikes out those from which some of it does not lead to a good
/// one, until none is left to strike.
std::optional<PlainText::Room> PlainText::find(FrameIndex frame) {
  if (!machine_.is_plain(frame) || !takes_ascii(frame)) return std::nullopt;
  Search search;
  search.room.least_characters = std::numeric_limits<int32_t>::max();
  const std::span<const int32_t> states = machine_.states(frame);
  search.places.push_back({.states = {states.begin(), states.end()}, .need = kBetween});
  for (size_t i = 0; i < search.places.size(); ++i) {  // grows
    if (!expand(i, search) || search.places.size() > kMostPlaces) return std::nullopt;
  }
  for (bool changes = true; changes;) {
    changes = false;
    for (size_t i = search.places.size(); i-- > 0;) {
      Place& place = search.places[i];
      if (!place.is_good || goes_on(place, search)) continue;
      place.is_good = false;
      changes = true;
    }
    if (!search.places[0].is_good) return std::nullopt;
  }
  return search.room;
}

/// Most classes of characters do not.
bool PlainText::takes_ascii(FrameIndex frame) {
  machine_.find_steps(frame);
  for (uint8_t byte = ' '; byte < 0x7f; ++byte) {
    if (byte != '"' && byte != '\\' && machine_.step(frame, byte) == StackMachine::kNone) return false;
  }
  return true;
}

/// Adds the places behind a byte. False if the rule may end at one of them, or call another one.
bool PlainText::expand(size_t place, Search& search) {
  const Automaton& automaton = machine_.automaton();
  const size_t need_index = search.places[place].need;
  for (size_t k = 0; k < search.places[place].states.size(); ++k) {
    const auto state = static_cast<size_t>(search.places[place].states[k]);
    budget_.charge(std::ssize(automaton.states[state].bytes));
    for (const Need& need : needs_[need_index]) {
      for (const ByteEdge& edge : automaton.states[state].bytes) {
        if (!meet(need.bytes, edge)) continue;
        if (need_index == kBetween) search.room.are_counted = search.room.are_counted && edge.counts;
        if (!add(edge.target, need.next, search)) return false;
      }
    }
  }
  return true;
}

bool PlainText::add(int32_t state, size_t need, Search& search) {
  if (!search.known.emplace(key_of(state, need), search.places.size()).second) return true;
  Place place{.states = {}, .need = need};
  if (!close(state, place.states)) return false;
  const Automaton& automaton = machine_.automaton();
  Room& room = search.room;
  room.height = std::max(room.height, automaton.heights[static_cast<size_t>(state)]);
  if (!automaton.characters.empty()) {
    const int32_t characters = automaton.characters[static_cast<size_t>(state)];
    room.characters = std::max(room.characters, characters);
    room.least_characters = std::min(room.least_characters, characters);
  }
  search.places.push_back(std::move(place));
  return true;
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
bool PlainText::goes_on(const Place& place, const Search& search) const {
  const Automaton& automaton = machine_.automaton();
  for (const Need& need : needs_[place.need]) {
    std::bitset<256> led;
    for (const int32_t state : place.states) {
      for (const ByteEdge& edge : automaton.states[static_cast<size_t>(state)].bytes) {
        if (!meet(need.bytes, edge)) continue;
        if (!search.places[search.known.at(key_of(edge.target, need.next))].is_good) continue;
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
