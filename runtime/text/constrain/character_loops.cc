#include "runtime/text/constrain/character_loops.h"

#include <algorithm>
#include <utility>

namespace soliton::constrain {
namespace {

constexpr size_t kBytesOfLoop = 64;  // of an entry of a hash map, about

}  // namespace

const CharacterLoop& CharacterLoops::of(FrameIndex frame, bool is_even) {
  std::unordered_map<FrameIndex, const CharacterLoop*>& known_loops = of_frame_[is_even ? 1 : 0];
  const auto known = known_loops.find(frame);
  if (known != known_loops.end()) return *known->second;
  Search search{.stay = reading_of(frame).taken};
  if (is_even) {
    int32_t characters = 0;
    for (char32_t code = 0; code < Characters::kNumCodes; ++code) {
      if (search.stay.has(code)) characters = std::max(characters, machine_.characters(behind(frame, code)));
    }
    search.characters = characters;
    search.stay = taken_by(frame, search);
  }
  while (!search.stay.empty() && !find(frame, search)) continue;
  if (search.stay.empty()) search.loop = {};
  budget_.charge_bytes(sizeof(CharacterLoop) + kBytesOfLoop);
  loops_.push_back(search.loop);
  known_loops.emplace(frame, &loops_.back());
  return loops_.back();
}

// ---- What a frame takes

const CharacterLoops::Reading& CharacterLoops::reading_of(FrameIndex frame) {
  constexpr size_t kMostStates = 128;  // of frames of more, a step costs more than is saved
  const auto known = readings_.find(frame);
  if (known != readings_.end()) return known->second;
  Reading reading;
  if (machine_.is_plain(frame) && machine_.num_states(frame) <= kMostStates) {
    reading.is_known = true;
    machine_.find_steps(frame);
    for (uint8_t byte = ' '; byte < 0x7f; ++byte) {
      const FrameIndex next = machine_.step(frame, byte);
      if (next == StackMachine::kNone) continue;
      const bool is_taken = machine_.is_plain(next);
      (is_taken ? reading.taken : reading.other).add(byte);
      if (is_taken) reading.are_counted = reading.are_counted && machine_.counts(frame, byte);
    }
    read_far(frame, reading);
  }
  budget_.charge_bytes(sizeof(Reading) + kBytesOfLoop);
  return readings_.emplace(frame, reading).first->second;
}

/// What is not ASCII's, and bytes that cannot be printed.
void CharacterLoops::read_far(FrameIndex frame, Reading& reading) {
  bool takes_any = false;
  bool are_counted = true;
  for (int i = 0; i <= 0xff; ++i) {
    const auto byte = static_cast<uint8_t>(i);
    if (Characters::is_printed(byte) || machine_.step(frame, byte) == StackMachine::kNone) continue;
    if (Characters::is_control(byte)) {
      reading.other.add(Characters::kControls);
      continue;
    }
    takes_any = true;
    are_counted = are_counted && machine_.counts(frame, byte);
  }
  if (!takes_any) return;
  reading.other.add(Characters::kOdd);
  const uint8_t alike = machine_.alike_far(frame);
  for (char32_t i = 0; i < Characters::kNumFar; ++i) {
    const char32_t code = Characters::kFar + i;
    const FrameIndex next = (alike >> i & 1) != 0 ? machine_.step_far(frame, i) : StackMachine::kNone;
    reading.far[i] = next;
    if (next != StackMachine::kNone) {
      (machine_.is_plain(next) ? reading.taken : reading.other).add(code);
    } else if ((alike >> i & 1) == 0) {
      reading.other.add(code);
    }
  }
  if (reading.taken.has_far()) reading.are_counted = reading.are_counted && are_counted;
}

// ---- Loops

/// False if so few characters lead elsewhere that the others are worth another try: these are `stay` then.
bool CharacterLoops::find(FrameIndex start, Search& search) {
  constexpr int32_t kMost = 40;  // there are few tokens of more
  constexpr size_t kMostFrames = 100;
  search.frames = {start};
  search.seen = {start};
  search.loop = {.stay = search.stay};
  std::vector<FrameIndex> level = {start};  // that so many characters lead to, and no fewer
  std::vector<FrameIndex> last_level;
  bool comes_back = false;
  bool reaches_start = false;
  size_t num_read = 0;  // frames that take all of `stay`
  for (int32_t& most = search.loop.most; most < kMost && num_read < kMostFrames; ++most) {
    if (!are_known(level)) break;
    const Characters staying = staying_with(level, last_level, search);
    if (staying != search.stay) {
      if (2 * staying.size() >= search.stay.size()) {
        search.stay = staying;
        return false;
      }
      search.loop.is_exact = !comes_back && take_none(level, search.stay);
      if (search.loop.is_exact) num_read = search.frames.size();
      break;
    }
    num_read = search.frames.size();
    last_level = std::exchange(level, next_level(level, search.stay));
    reaches_start = reaches_start || std::binary_search(level.begin(), level.end(), start);
    comes_back =
        std::erase_if(level, [&](FrameIndex frame) { return !search.seen.insert(frame).second; }) > 0 ||
        comes_back;
    search.frames.insert(search.frames.end(), level.begin(), level.end());
    if (level.empty()) {
      search.loop.most = CharacterLoop::kEndless;
      search.loop.is_exact = true;
      break;
    }
  }
  const std::span<const FrameIndex> frames = search.frames;
  describe(frames.first(num_read), reaches_start ? frames : frames.subspan(1), search.loop);
  return true;
}

/// What a frame makes of one of the characters that it takes.
FrameIndex CharacterLoops::behind(FrameIndex frame, char32_t code) {
  return code < ' ' ? reading_of(frame).far[code - Characters::kFar]
                    : machine_.step(frame, static_cast<uint8_t>(code));
}

/// The characters that a frame takes and that may be of the loop.
Characters CharacterLoops::taken_by(FrameIndex frame, const Search& search) {
  const Characters taken = reading_of(frame).taken;
  if (!search.characters) return taken;
  Characters even;
  for (char32_t code = 0; code < Characters::kNumCodes; ++code) {
    if (taken.has(code) && machine_.characters(behind(frame, code)) == *search.characters) even.add(code);
  }
  return even;
}

/// Of `stay` those that all frames of a level take, but for frames that take few of them: of these, those that do not lead
/// there from the level before.
Characters CharacterLoops::staying_with(std::span<const FrameIndex> level,
                                        std::span<const FrameIndex> last_level, const Search& search) {
  const Characters& characters = search.stay;
  Characters staying = characters;
  for (const FrameIndex frame : level) {
    Characters taken = taken_by(frame, search);
    taken &= characters;
    if (taken == characters) continue;
    if (2 * taken.size() >= characters.size()) {
      staying &= taken;
    } else {
      staying.remove(leading_to(frame, last_level, characters));
    }
  }
  return staying;
}

Characters CharacterLoops::leading_to(FrameIndex to, std::span<const FrameIndex> level,
                                      const Characters& characters) {
  Characters leading;
  for (const FrameIndex frame : level) {
    for (uint8_t byte = ' '; byte < 0x7f; ++byte) {
      if (characters.has(byte) && machine_.step(frame, byte) == to) leading.add(byte);
    }
    const Reading& reading = reading_of(frame);
    for (char32_t i = 0; i < Characters::kNumFar; ++i) {
      const char32_t code = Characters::kFar + i;
      if (characters.has(code) && reading.taken.has(code) && reading.far[i] == to) leading.add(code);
    }
  }
  return leading;
}

bool CharacterLoops::are_known(std::span<const FrameIndex> level) {
  return std::all_of(level.begin(), level.end(),
                     [&](FrameIndex frame) { return reading_of(frame).is_known; });
}

bool CharacterLoops::take_none(std::span<const FrameIndex> level, const Characters& characters) {
  return std::none_of(level.begin(), level.end(), [&](FrameIndex frame) {
    const Reading& reading = reading_of(frame);
    return reading.taken.meet(characters) || reading.other.meet(characters);
  });
}

std::vector<FrameIndex> CharacterLoops::next_level(std::span<const FrameIndex> level,
                                                   const Characters& characters) {
  std::vector<FrameIndex> next;
  for (const FrameIndex frame : level) {
    FrameIndex last = StackMachine::kNone;
    for (uint8_t byte = ' '; byte < 0x7f; ++byte) {
      if (!characters.has(byte)) continue;
      const FrameIndex to = machine_.step(frame, byte);
      if (to != last) next.push_back(to);
      last = to;
    }
    const Reading& reading = reading_of(frame);
    for (char32_t i = 0; i < Characters::kNumFar; ++i) {
      if (characters.has(Characters::kFar + i)) next.push_back(reading.far[i]);
    }
  }
  budget_.charge(std::ssize(next) + std::ssize(level) * 8);
  std::sort(next.begin(), next.end());
  next.erase(std::unique(next.begin(), next.end()), next.end());
  return next;
}

/// `read` are the frames that take all of `stay`, `reached` those that it leads to.
void CharacterLoops::describe(std::span<const FrameIndex> read, std::span<const FrameIndex> reached,
                              CharacterLoop& loop) {
  for (const FrameIndex frame : read) {
    const Reading& reading = reading_of(frame);
    loop.leave |= reading.taken;
    loop.leave |= reading.other;
    loop.are_counted = loop.are_counted && reading.are_counted;
  }
  loop.leave.remove(loop.stay);
  for (const FrameIndex frame : reached) {
    const int32_t characters = machine_.characters(frame);
    loop.is_even = loop.is_even && (frame == reached.front() || characters == loop.characters);
    loop.characters = std::max(loop.characters, characters);
    loop.height = std::max(loop.height, machine_.height(frame));
  }
}

}  // namespace soliton::constrain
