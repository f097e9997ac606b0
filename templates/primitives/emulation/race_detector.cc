#include "primitives/emulation/race_detector.h"

#include <algorithm>
#include <cstdio>

#include "primitives/emulation/race_cells.h"

namespace soliton::emulation {

namespace {

constexpr size_t kFewReads = 4;  // of a cell

bool is_write(Access access) {
  return access == Access::kStore || access == Access::kCopyWrite || is_relaxed_store(access) ||
         is_add(access);
}

/// The clocks of a thread as they are.
struct OwnClocks {
  const ClockPair& pair;

  Epoch writes(int thread) const { return pair.writes[thread]; }
  Epoch reads(int thread) const { return pair.reads[thread]; }
};

}  // namespace

/// Atomic accesses never race: of one card, or where both are of system scope.
bool RaceDetector::are_atomic(int thread, Access access, int other, Access other_access) const {
  if (!is_atomic(access) || !is_atomic(other_access)) return false;
  return (is_wide(access) && is_wide(other_access)) || card_of(thread) == card_of(other);
}

void RaceDetector::Cell::split() {
  if (halves != nullptr) return;
  auto both = std::make_unique<std::array<Cell, 2>>();
  for (Cell& half : *both) {
    half.writer = writer;
    half.write_epoch = write_epoch;
    half.write_access = write_access;
    half.reads = reads;
    half.pruned = pruned;
    half.first_atomic = first_atomic;
    half.message = message;
  }
  halves = std::move(both);
}

RaceDetector::RaceDetector(const RaceShape& shape, std::vector<Region> regions)
    : shape_(shape), num_threads_(shape.num_ctas * shape.threads_per_cta) {
  const int num_engines = shape.num_ctas * kEnginesPerCta;
  const size_t width = (num_threads_ + num_engines + kClockChunk - 1) / kClockChunk * kClockChunk;
  threads_.resize(num_threads_);
  warps_.resize(num_threads_ / kLaneCount);
  for (int id = 0; id < num_threads_; ++id) {
    threads_[id].clocks.writes.resize(width);
    threads_[id].clocks.reads.resize(width);
    tick(id);
  }
  engine_epochs_.resize(num_engines);
  for (int cta = 0; cta < shape.num_ctas; ++cta) {
    const size_t bytes = shape.shared_bytes;
    const auto begin =
        reinterpret_cast<uintptr_t>(shape.shared) + static_cast<size_t>(cta) * shape.shared_stride;
    shared_.push_back({begin, bytes, "shared of CTA " + std::to_string(cta), -1,
                       std::vector<Block>((bytes + kBlockBytes - 1) / kBlockBytes)});
  }
  for (const Region& region : regions) {
    global_.push_back({region.begin, region.bytes, "global #" + std::to_string(region.ordinal), region.card,
                       std::vector<Block>((region.bytes + kBlockBytes - 1) / kBlockBytes)});
  }
}

RaceDetector::~RaceDetector() = default;

Epoch RaceDetector::epoch(int thread) const {
  return threads_[thread].clocks.reads[thread];
}

void RaceDetector::tick(int thread) {
  ++threads_[thread].clocks.writes[thread];
  ++threads_[thread].clocks.reads[thread];
}

RaceDetector::Shadow* RaceDetector::find(Space space, int cta, uintptr_t address) {
  const auto holds = [address](const Shadow& s) { return address >= s.begin && address - s.begin < s.bytes; };
  if (space == Space::kShared) return holds(shared_[cta]) ? &shared_[cta] : nullptr;
  if (last_global_ != nullptr && holds(*last_global_)) return last_global_;
  auto after = std::upper_bound(global_.begin(), global_.end(), address,
                                [](uintptr_t value, const Shadow& s) { return value < s.begin; });
  if (after == global_.begin() || !holds(*std::prev(after))) return nullptr;
  return last_global_ = &*std::prev(after);
}

std::string RaceDetector::check_bounds(Space space, int cta, const void* address, size_t bytes) {
  const auto begin = reinterpret_cast<uintptr_t>(address);
  const Shadow* shadow = find(space, cta, begin);
  if (shadow != nullptr && bytes <= shadow->bytes - (begin - shadow->begin)) return {};
  char text[160];
  if (space == Space::kShared) {
    std::snprintf(text, sizeof text, "out of bounds: shared%+lld of CTA %d, which has %d bytes",
                  static_cast<long long>(begin - shared_[cta].begin), cta, shape_.shared_bytes);
  } else if (shadow != nullptr) {
    std::snprintf(text, sizeof text, "out of bounds: %s+%zu, which has %zu bytes", shadow->name.c_str(),
                  static_cast<size_t>(begin - shadow->begin), shadow->bytes);
  } else {
    std::snprintf(text, sizeof text, "out of bounds: %p lies in no allocation", address);
  }
  return text;
}

RaceDetector::Block& RaceDetector::block(Shadow& shadow, size_t offset, bool with_cells) {
  Block& block = shadow.blocks[offset / kBlockBytes];
  if (with_cells && block.cells == nullptr) {
    block.cells = std::make_unique<Cell[]>(kBlockCells);
    for (const CopyReads& copy : block.copies) {
      for (size_t i = copy.begin / kCellBytes; i < copy.end / kCellBytes; ++i) {
        block.cells[i].reads.push_back({copy.engine, copy.epoch, Access::kCopyRead});
      }
    }
    block.copies = {};
  }
  return block;
}

bool RaceDetector::read(int thread, Access access, Cell& cell, const VectorClock& writes, Race* race) {
  const bool atomic = is_atomic(access);
  if (cell.writer >= 0) {
    const bool exempt = are_atomic(thread, access, cell.writer, cell.write_access);
    const auto last_known = [&](int other) {
      return other < static_cast<int>(writes.size()) ? writes[other] : Epoch{0};
    };
    if (!exempt && cell.write_epoch > last_known(cell.writer)) {
      race->before = {cell.writer, cell.write_access};
      return false;
    }
    const Write* addition =
        exempt || cell.message == nullptr ? nullptr : cell.message->unknown_addition(last_known);
    if (addition != nullptr) {
      race->before = {addition->thread, addition->access};
      return false;
    }
  }
  if (access == Access::kBarrier) return true;
  if (access == Access::kConstantLoad && cell.writer >= 0) {
    race->before = {cell.writer, cell.write_access};
    race->reason = "promises memory that is not written during the launch, in spite of";
    return false;
  }
  const bool engine = thread >= num_threads_;
  // Others only say sooner what those say that are ordered after them. Where many threads read a cell none is: so that each
  // does not look at all, plain reads are pruned once they have doubled.
  if (atomic || cell.reads.size() >= 2 * cell.pruned + kFewReads) {
    const VectorClock* reads = engine ? nullptr : &threads_[thread].clocks.reads;
    std::erase_if(cell.reads, [&](const Read& other) {
      const bool before = other.thread == thread || (!engine && other.epoch <= (*reads)[other.thread]);
      return before && is_atomic(other.access) == atomic && is_wide(other.access) == is_wide(access);
    });
    cell.pruned = cell.reads.size();
  }
  cell.reads.push_back({thread, engine ? engine_epochs_[thread - num_threads_] : epoch(thread), access});
  if (is_atomic(access) && cell.first_atomic.thread < 0) cell.first_atomic = cell.reads.back();
  return true;
}

bool RaceDetector::is_fenced(const Cell& cell, Race* race) const {
  if (cell.writer < 0 || cell.write_access == Access::kCopyWrite) return true;
  if (threads_[cell.writer].fenced_operands >= cell.write_epoch) return true;
  race->before = {cell.writer, cell.write_access};
  race->reason = "reads what no fence_async_shared of its thread followed:";
  return false;
}

template <class Clocks>
bool RaceDetector::write(const Write& now, Cell& cell, const Clocks& clocks, Race* race) {
  // An ordered atomic read has seen the last write: coherence puts this one after it.
  const Read& first = cell.first_atomic;
  bool observed = first.thread >= 0 && first.epoch <= clocks.reads(first.thread);
  for (const Read& other : cell.reads) {
    const bool ordered = other.epoch <= clocks.reads(other.thread);
    observed |= ordered && is_atomic(other.access);
    if (ordered || are_atomic(now.thread, now.access, other.thread, other.access)) continue;
    race->before = {other.thread, other.access};
    return false;
  }
  const bool atomic = cell.writer >= 0 && are_atomic(now.thread, now.access, cell.writer, cell.write_access);
  const bool both_add = atomic && is_add(now.access) && is_add(cell.write_access);
  const bool coherent = observed && atomic;
  if (cell.writer >= 0 && !coherent) {
    Write last = {cell.writer, cell.write_epoch, cell.write_access};
    if (both_add) last = cell.message->base;
    if (last.thread >= 0 && last.epoch > clocks.writes(last.thread)) {
      race->before = {last.thread, last.access};
      return false;
    }
    const Write* addition =
        both_add || cell.message == nullptr
            ? nullptr
            : cell.message->unknown_addition([&](int other) { return clocks.writes(other); });
    if (addition != nullptr) {
      race->before = {addition->thread, addition->access};
      return false;
    }
  }
  cell.reads.clear();
  cell.pruned = 0;
  cell.first_atomic.thread = -1;
  cell.writer = now.thread;
  cell.write_epoch = now.epoch;
  cell.write_access = now.access;
  return true;
}

template bool RaceDetector::write(const Write& now, Cell& cell, const SharedClocks& clocks, Race* race);

bool RaceDetector::access(int thread, Access access, Space space, const void* address, size_t bytes,
                          Race* race) {
  const auto begin = reinterpret_cast<uintptr_t>(address);
  Shadow& shadow = *find(space, thread / shape_.threads_per_cta, begin);
  const size_t offset = begin - shadow.begin;
  if (access == Access::kConstantLoad && block(shadow, offset, false).cells == nullptr) return true;
  race->now = {thread, access};
  race->region = &shadow.name;
  race->offset = offset;

  if (!is_write(access)) {
    std::shared_ptr<Message> received;
    return for_each_cell(shadow, offset, bytes, [&](Cell& cell) {
      if (cell.message != nullptr && cell.message != received &&
          are_atomic(thread, access, cell.writer, cell.write_access)) {
        received = cell.message;
        receive(thread, *received);
      }
      return read(thread, access, cell, threads_[thread].clocks.writes, race) &&
             (access != Access::kProductRead || is_fenced(cell, race));
    });
  }

  std::shared_ptr<Message> message;
  if (is_relaxed_store(access)) message = make_message(thread, access);
  const Write now = {thread, epoch(thread), access};
  const OwnClocks clocks{threads_[thread].clocks};
  const ClockPair passed = is_add(access) ? released(thread, access) : ClockPair{};
  const bool clean = for_each_cell(shadow, offset, bytes, [&](Cell& cell) {
    const Write last = {cell.writer, cell.write_epoch, cell.write_access};
    if (!write(now, cell, clocks, race)) return false;
    cell.message = is_add(access) ? add_to(cell, last, now, passed) : message;
    return true;
  });
  if (is_atomic(access)) tick(thread);
  return clean;
}

/// What the cell passes on after an addition to what it held after `last`.
std::shared_ptr<RaceDetector::Message> RaceDetector::add_to(const Cell& cell, const Write& last,
                                                            const Write& addition,
                                                            const ClockPair& released) {
  auto sum = std::make_shared<Message>();
  sum->id = next_id();
  if (cell.message != nullptr && !cell.message->additions.empty()) {
    sum->base = cell.message->base;
    sum->additions = cell.message->additions;
    std::erase_if(sum->additions, [&](const Write& write) { return write.thread == addition.thread; });
  } else {
    sum->base = last;
  }
  sum->additions.push_back(addition);
  const bool releases = is_release_add(addition.access);
  if (releases) sum->sum = std::make_unique<ClockPair>(released);
  if (cell.message == nullptr) return sum;
  const Message& earlier = *cell.message;
  if (!releases) {
    sum->writes = earlier.writes;
    sum->made = earlier.made;
    if (earlier.sum != nullptr) sum->sum = std::make_unique<ClockPair>(*earlier.sum);
    return sum;
  }
  if (earlier.sum != nullptr) sum->sum->merge_pair(*earlier.sum);
  if (earlier.writes != nullptr) merge(sum->sum->writes, earlier.writes->clock);
  if (earlier.made.clocks != nullptr) {
    VectorClock& reads = sum->sum->reads;
    merge(reads, earlier.made.clocks->reads);
    reads[earlier.made.owner] = std::max(reads[earlier.made.owner], earlier.made.epoch);
  }
  return sum;
}

bool RaceDetector::copy(int thread, int barrier_ordinal, void* shared, const void* global, size_t bytes,
                        int* engine, Epoch* epoch, Race* race) {
  const int cta = thread / shape_.threads_per_cta;
  const bool in_bulk = barrier_ordinal >= 0;
  const int local = thread % shape_.threads_per_cta;
  const int piece_engine = local / kLaneCount % 4 * 4 + local % 4;
  const int index = cta * kEnginesPerCta + (in_bulk ? barrier_ordinal % kEnginesPerCta : piece_engine);
  *engine = num_threads_ + index;
  *epoch = ++engine_epochs_[index];
  static const VectorClock kNothing;
  const VectorClock& async = threads_[thread].async != nullptr ? threads_[thread].async->clock : kNothing;
  const VectorClock& seen = in_bulk ? async : threads_[thread].clocks.writes;

  const auto source = reinterpret_cast<uintptr_t>(global);
  Shadow& from = *find(Space::kGlobal, cta, source);
  race->now = {*engine, Access::kCopyRead};
  for (size_t offset = source - from.begin, end = offset + bytes; offset < end;) {
    const size_t stop = std::min(end, (offset / kBlockBytes + 1) * kBlockBytes);
    race->region = &from.name;
    race->offset = offset;
    race->reason = in_bulk ? "reads what no fence_async_global of the issuing thread ordered after"
                           : "reads what the issuing thread is not ordered after";
    Block& part = block(from, offset, false);
    if (part.cells == nullptr) {
      const size_t low = offset % kBlockBytes;
      std::erase_if(part.copies, [&](const CopyReads& c) { return c.engine == *engine && c.begin == low; });
      part.copies.push_back({low, low + stop - offset, *engine, *epoch});
    } else if (!for_each_cell(from, offset, stop - offset, [&](Cell& cell) {
                 return read(*engine, Access::kCopyRead, cell, seen, race);
               })) {
      return false;
    }
    offset = stop;
  }

  const auto target = reinterpret_cast<uintptr_t>(shared);
  Shadow& to = shared_[cta];
  race->now = {*engine, Access::kCopyWrite};
  race->reason = "is not ordered after";
  race->region = &to.name;
  race->offset = target - to.begin;
  return for_each_cell(to, target - to.begin, bytes, [&](Cell& cell) {
    const OwnClocks clocks{threads_[thread].clocks};
    if (!write({*engine, *epoch, Access::kCopyWrite}, cell, clocks, race)) return false;
    cell.message = nullptr;
    return true;
  });
}

}  // namespace soliton::emulation
