// What the race detector makes of fences, and of the messages that they give their meaning to; stores to other cards.
#include "primitives/emulation/race_cells.h"

namespace soliton::emulation {

SnapshotPointer RaceDetector::snapshot(int thread, const VectorClock& clock) const {
  return std::make_shared<const Snapshot>(Snapshot{thread, epoch(thread), clock});
}

std::shared_ptr<RaceDetector::Message> RaceDetector::make_message(int thread, Access access) {
  auto message = std::make_shared<Message>();
  message->id = next_id();
  message->writes = threads_[thread].fenced;
  if (is_wide(access)) message->writes_wide = threads_[thread].fenced_wide;
  message->card = card_of(thread);
  message->made = shared_clocks(thread);
  return message;
}

void RaceDetector::receive(int thread, const Message& message) {
  if (!note_acquired(thread, message.id)) return;
  Thread& self = threads_[thread];
  if (message.sum != nullptr) self.clocks.merge_pair(*message.sum);
  const auto merge_new = [](VectorClock& into, const Snapshot* from) {
    if (from != nullptr && into[from->owner] < from->epoch) merge(into, from->clock);
  };
  const bool here = message.card == card_of(thread);
  merge_new(self.clocks.writes, here ? message.writes.get() : message.writes_wide.get());
  const SharedClocks& made = message.made;
  if (made.clocks == nullptr || self.clocks.reads[made.owner] >= made.epoch) return;
  merge(self.clocks.reads, made.clocks->reads);
  self.clocks.reads[made.owner] = made.epoch;
}

void RaceDetector::fence_device(int thread) {
  threads_[thread].fenced = snapshot(thread, threads_[thread].clocks.writes);
  tick(thread);
}

void RaceDetector::fence_system(int thread) {
  threads_[thread].fenced = snapshot(thread, threads_[thread].clocks.writes);
  threads_[thread].fenced_wide = threads_[thread].fenced;
  tick(thread);
}

void RaceDetector::fence_async_global(int thread) {
  threads_[thread].async = snapshot(thread, threads_[thread].clocks.writes);
  tick(thread);
}

void RaceDetector::fence_async_shared(int thread) {
  threads_[thread].fenced_operands = epoch(thread);
  tick(thread);
}

/// What an addition passes on, if it releases.
ClockPair RaceDetector::released(int thread, Access access) const {
  ClockPair clocks = threads_[thread].clocks;
  if (access != Access::kSystemFencedAdd) return clocks;
  const SnapshotPointer& fenced = threads_[thread].fenced_wide;
  clocks.writes.assign(clocks.writes.size(), 0);
  if (fenced != nullptr) merge(clocks.writes, fenced->clock);
  return clocks;
}

RaceDetector::Remote RaceDetector::begin_remote(int thread, Access access) {
  Remote remote{.thread = thread, .epoch = epoch(thread), .access = access, .clocks = shared_clocks(thread)};
  if (is_relaxed_store(access)) remote.message = make_message(thread, access);
  if (is_add(access)) remote.released = released(thread, access);
  tick(thread);
  return remote;
}

bool RaceDetector::land_remote(const Remote& remote, void* address, size_t bytes, Race* race) {
  const auto begin = reinterpret_cast<uintptr_t>(address);
  Shadow& shadow = *find(Space::kGlobal, 0, begin);
  race->now = {remote.thread, remote.access};
  race->region = &shadow.name;
  race->offset = begin - shadow.begin;
  const Write now = {remote.thread, remote.epoch, remote.access};
  return for_each_cell(shadow, race->offset, bytes, [&](Cell& cell) {
    const Write last = {cell.writer, cell.write_epoch, cell.write_access};
    if (!write(now, cell, remote.clocks, race)) return false;
    cell.message = is_add(remote.access) ? add_to(cell, last, now, remote.released) : remote.message;
    return true;
  });
}

int RaceDetector::card_of_address(const void* address) {
  const Shadow* shadow = find(Space::kGlobal, 0, reinterpret_cast<uintptr_t>(address));
  return shadow == nullptr ? -1 : shadow->card;
}

}  // namespace soliton::emulation
