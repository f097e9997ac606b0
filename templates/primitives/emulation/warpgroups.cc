#include "primitives/emulation/warpgroups.h"

#include <algorithm>

#include "primitives/emulation/launch.h"
#include "primitives/emulation/report.h"

namespace soliton::emulation {

namespace {

constexpr uint32_t kNoFloat = 0x7fc5a5a5;  // NaN
constexpr uint32_t kNoInteger = 0x85a5a5a5;
constexpr ptrdiff_t kOperandAlignment = 16;  // of b
constexpr int kBlock = 8;                    // columns, of whose sums a lane holds 4

/// One of c: a float or an integer.
typedef uint32_t Word __attribute__((may_alias));

const WarpgroupMma& operand_of(void* const* operands, int lane) {
  return *static_cast<const WarpgroupMma*>(operands[lane]);
}

/// Visits what a lane holds: which of its c, the sum of which row and column.
template <class Visit>
void for_each_sum(int lane, int columns, const Visit& visit) {
  for (int i = 0; i < columns / 2; ++i)
    visit(i, lane / 4 + i / 2 % 2 * 8, i / 4 * kBlock + lane % 4 * 2 + i % 2);
}

uint32_t poison_of(bool bytes) {
  return bytes ? kNoInteger : kNoFloat;
}

bool is_poisoned(const Word* c, int count, uint32_t poison) {
  uint32_t differences = 0;
  for (int i = 0; i < count; ++i) differences |= c[i] ^ poison;
  return differences == 0;
}

}  // namespace

Warpgroups::Warpgroups(int num_warps, int warps_per_cta)
    : warps_per_cta_(warps_per_cta),
      groups_per_cta_((warps_per_cta + kWarpsPerWarpgroup - 1) / kWarpsPerWarpgroup),
      groups_(num_warps / warps_per_cta * groups_per_cta_),
      warps_(num_warps) {}

std::string Warpgroups::describe(const Call& call) {
  const std::string count = std::to_string(call.count);
  const std::string columns = "<" + count + "> of b at shared+" + std::to_string(call.b);
  switch (call.kind) {
    case CallKind::kMmaBf16:
      return "warpgroup_mma_bf16" + columns;
    case CallKind::kMmaU8:
      return "warpgroup_mma_u8_s8" + columns;
    case CallKind::kFence:
      return "warpgroup_fence";
    case CallKind::kCommit:
      return "warpgroup_commit";
    case CallKind::kWait:
      return "warpgroup_wait<" + count + ">";
    case CallKind::kRegisters:
      return "a call for " + count + " registers";
  }
  return {};
}

std::string Warpgroups::describe_warp(int warp) const {
  return "warp " + std::to_string(warp % warps_per_cta_) + " of CTA " + std::to_string(warp / warps_per_cta_);
}

/// Compares a call with the one that the other warps of the warpgroup have made at this place.
std::string Warpgroups::note(int warp, const Call& call) {
  const int in_cta = warp % warps_per_cta_;
  if (in_cta / kWarpsPerWarpgroup >= warps_per_cta_ / kWarpsPerWarpgroup) {
    return describe(call) +
           " in a warp of no warpgroup, which is four warps from a multiple of 4 on: " + describe_warp(warp) +
           ", which has " + std::to_string(warps_per_cta_) + " warps";
  }
  Group& group = groups_[warp / warps_per_cta_ * groups_per_cta_ + in_cta / kWarpsPerWarpgroup];
  uint64_t& made = group.made[in_cta % kWarpsPerWarpgroup];
  const uint64_t place = made - group.first;
  if (place == group.calls.size()) group.calls.push_back(call);
  const Call& expected = group.calls[place];
  if (call != expected) {
    return "warps of a warpgroup make different calls: call " + std::to_string(made) + " of " +
           describe_warp(warp) + " is " + describe(call) + ", of another warp " + describe(expected);
  }
  ++made;
  while (group.first < *std::min_element(group.made.begin(), group.made.end())) {
    group.calls.pop_front();
    ++group.first;
  }
  return {};
}

std::string Warpgroups::check_operands(void* const* operands, const unsigned char* shared, int shared_bytes) {
  const WarpgroupMma& first = operand_of(operands, 0);
  for (int lane = 1; lane < kLanes; ++lane) {
    const WarpgroupMma& other = operand_of(operands, lane);
    if (other.bytes != first.bytes || other.columns != first.columns || other.b != first.b)
      return "lanes of one warp hand over different b to warpgroup_mma";
  }
  const ptrdiff_t offset = first.b - shared;
  const int bytes = first.columns * kMmaDepthBytes;
  if (offset < 0 || offset + bytes > shared_bytes) {
    return "out of bounds: b of warpgroup_mma at shared+" + std::to_string(offset) + ", " +
           std::to_string(bytes) + " bytes of " + std::to_string(shared_bytes);
  }
  if (offset % kOperandAlignment != 0)
    return "b of warpgroup_mma is not aligned to 16 bytes: shared+" + std::to_string(offset);
  return {};
}

Warpgroups::Accumulators* Warpgroups::find_or_take(Warp& warp, void* const* operands, std::string* error) {
  const WarpgroupMma& first = operand_of(operands, 0);
  const int count = first.columns / 2;
  Accumulators* spare = nullptr;
  for (const auto& known : warp.accumulators) {
    if (known->pending == 0) {
      spare = known.get();
      continue;
    }
    bool same = known->bytes == first.bytes && known->columns == first.columns;
    bool apart = true;
    for (int lane = 0; lane < kLanes; ++lane) {
      const auto* c = static_cast<const Word*>(operand_of(operands, lane).c);
      const auto* other = static_cast<const Word*>(known->c[lane]);
      same &= c == other;
      apart &= c + count <= other || other + known->columns / 2 <= c;
    }
    if (apart) continue;
    if (same) return known.get();
    *error = "c of warpgroup_mma overlaps that of a pending one of another shape";
    return nullptr;
  }
  if (spare == nullptr) spare = warp.accumulators.emplace_back(std::make_unique<Accumulators>()).get();
  spare->bytes = first.bytes;
  spare->columns = first.columns;
  spare->sums.resize(first.columns);
  for (int lane = 0; lane < kLanes; ++lane) {
    auto* c = static_cast<Word*>(operand_of(operands, lane).c);
    spare->c[lane] = c;
    for_each_sum(lane, first.columns,
                 [&](int i, int row, int column) { spare->sums[column].rows[row] = c[i]; });
    std::fill_n(c, count, poison_of(first.bytes));
  }
  return spare;
}

/// Puts the sums where they belong; false if something else has been there meanwhile.
bool Warpgroups::hand_back(const Accumulators& done) {
  for (int lane = 0; lane < kLanes; ++lane) {
    auto* c = static_cast<Word*>(done.c[lane]);
    if (!is_poisoned(c, done.columns / 2, poison_of(done.bytes))) return false;
    for_each_sum(lane, done.columns, [&](int i, int row, int column) { c[i] = done.sums[column].rows[row]; });
  }
  return true;
}

std::string Warpgroups::issue(int index, void* const* operands, const unsigned char* shared,
                              int shared_bytes) {
  const WarpgroupMma& first = operand_of(operands, 0);
  std::string error = check_operands(operands, shared, shared_bytes);
  if (!error.empty()) return error;
  error = note(index, {first.bytes ? CallKind::kMmaU8 : CallKind::kMmaBf16, first.columns, first.b - shared});
  if (!error.empty()) return error;
  Warp& warp = warps_[index];
  if (!warp.fenced) return "warpgroup_mma without a warpgroup_fence since the last wait";
  Accumulators* c = find_or_take(warp, operands, &error);
  if (c == nullptr) return error;
  ++c->pending;
  ++warp.num_open;
  Pending& pending = warp.pending.emplace_back(Pending{{}, first.b, c, 0});
  for (int lane = 0; lane < kLanes; ++lane)
    std::copy_n(operand_of(operands, lane).a, pending.a[lane].size(), pending.a[lane].begin());
  return {};
}

std::string Warpgroups::fence(int warp) {
  warps_[warp].fenced = true;
  return note(warp, {CallKind::kFence, 0});
}

std::string Warpgroups::commit(int index) {
  Warp& warp = warps_[index];
  warp.sets.push_back(warp.num_open);
  warp.num_open = 0;
  return note(index, {CallKind::kCommit, 0});
}

std::string Warpgroups::set_registers(int warp, int count) {
  return note(warp, {CallKind::kRegisters, count});
}

std::string Warpgroups::wait(int index, int sets, Epoch* epoch) {
  *epoch = 0;
  if (std::string error = note(index, {CallKind::kWait, sets}); !error.empty()) return error;
  Warp& warp = warps_[index];
  warp.fenced = false;
  for (; warp.sets.size() > static_cast<size_t>(sets); warp.sets.pop_front()) {
    for (int i = 0; i < warp.sets.front(); ++i) {
      const Pending& done = warp.pending.front();
      Accumulators& c = *done.c;
      multiply_warp(c.bytes, done.a, done.b, c.columns, c.sums.data());
      *epoch = done.epoch;
      --c.pending;
      if (c.pending == 0 && !hand_back(c)) return "c of a pending warpgroup_mma has been changed";
      warp.pending.pop_front();
    }
  }
  return {};
}

std::string Warpgroups::finish(int cta) const {
  for (int in_cta = 0; in_cta < warps_per_cta_; ++in_cta) {
    const int warp = cta * warps_per_cta_ + in_cta;
    const Warp& own = warps_[warp];
    if (!own.pending.empty()) {
      return describe_warp(warp) + " has returned with " + std::to_string(own.pending.size()) +
             " warpgroup_mma pending, " + std::to_string(own.num_open) + " of them not committed";
    }
    const Group& group = groups_[cta * groups_per_cta_ + in_cta / kWarpsPerWarpgroup];
    const uint64_t made = group.made[in_cta % kWarpsPerWarpgroup];
    if (made == group.first + group.calls.size()) continue;
    return "warps of a warpgroup make different calls: " + describe_warp(warp) + " has returned after " +
           std::to_string(made) + ", of another warp the next is " +
           describe(group.calls[made - group.first]);
  }
  return {};
}

Warpgroups& Launch::warpgroups() {
  if (warpgroups_ == nullptr) {
    const int warps_per_cta = shape_.threads_per_cta / kLanes;
    warpgroups_ = std::make_unique<Warpgroups>(shape_.num_ctas * warps_per_cta, warps_per_cta);
  }
  return *warpgroups_;
}

void Launch::require_none(std::string error) {
  if (!error.empty()) fail(error + ", by " + describe_thread(first_lane()));
}

void Launch::issue_mma(void* const* operands) {
  const Fiber& first = first_lane();
  const int warp = first.id / kLanes;
  require_none(warpgroups().issue(warp, operands, first.shared, shape_.shared_bytes));
  if (!checking) return;
  const WarpgroupMma& mma = operand_of(operands, 0);
  Race race;
  Epoch epoch;
  if (!races_->multiply(first.id, mma.b, mma.columns * kMmaDepthBytes, &epoch, &race)) fail_race(race);
  warpgroups_->set_epoch(warp, epoch);
}

void Launch::fence_mma() {
  if (!holds(FaultKind::kNoWarpgroupFence)) require_none(warpgroups().fence(first_lane().id / kLanes));
}

void Launch::commit_mma() {
  if (!holds(FaultKind::kNoWarpgroupCommit)) require_none(warpgroups().commit(first_lane().id / kLanes));
}

void Launch::wait_for_mma(int sets) {
  if (holds(FaultKind::kNoWarpgroupWait)) return;
  const Fiber& first = first_lane();
  Epoch epoch;
  require_none(warpgroups().wait(first.id / kLanes, sets, &epoch));
  if (checking && epoch != 0) races_->see_multiplied(first.id, epoch);
}

void Launch::set_registers(int count) {
  require_none(warpgroups().set_registers(first_lane().id / kLanes, count));
}

}  // namespace soliton::emulation
