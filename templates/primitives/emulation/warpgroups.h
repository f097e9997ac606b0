// Multiplications of warpgroups that are under way. From its call to the wait that completes it a multiplication's
// accumulators hold no numbers, and only then it reads b and computes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "primitives/emulation/emulator.h"
#include "primitives/emulation/fibers.h"
#include "primitives/emulation/vector_clock.h"

namespace soliton::emulation {

constexpr int kWarpsPerWarpgroup = 4;
constexpr int kMmaRows = 16;        // of one warp
constexpr int kMmaDepthBytes = 32;  // of a row of a, or a column of b: 16 bf16 or 32 bytes

/// One column of the sums of a warp: floats, or integers.
struct alignas(64) MmaColumn {
  uint32_t rows[kMmaRows];
};

/// The fragment of a that each lane of a warp hands over.
using MmaFragments = std::array<std::array<uint32_t, 4>, kLanes>;

/// sums += a b for the rows of one warp: element by element as `columns` / 8 calls of mma_bf16 or mma_u8_s8 would. `b`
/// lies as warpgroup_mma_bf16 and warpgroup_mma_u8_s8 want it.
void multiply_warp(bool bytes, const MmaFragments& a, const unsigned char* b, int columns, MmaColumn* sums);

/// Of a launch. Warps are counted over all CTAs. What a function returns is what the warp has done wrong; empty if nothing.
class Warpgroups {
 public:
  Warpgroups(int num_warps, int warps_per_cta);

  /// `operands` are WarpgroupMma of each lane. Begins it, and puts into the accumulators what is no number.
  std::string issue(int warp, void* const* operands, const unsigned char* shared, int shared_bytes);
  /// Of the multiplication that was issued last: what wait() returns once it is complete.
  void set_epoch(int warp, Epoch epoch) { warps_[warp].pending.back().epoch = epoch; }
  std::string fence(int warp);
  std::string commit(int warp);
  /// Completes all sets but the last `sets`. *epoch is that of the last multiplication completed, 0 if none was.
  std::string wait(int warp, int sets, Epoch* epoch);
  std::string set_registers(int warp, int count);
  /// All threads of the CTA have returned.
  std::string finish(int cta) const;

 private:
  enum class CallKind { kMmaBf16, kMmaU8, kFence, kCommit, kWait, kRegisters };
  struct Call {
    CallKind kind;
    int count;        // columns, sets or registers
    ptrdiff_t b = 0;  // in shared memory
    bool operator==(const Call&) const = default;
  };
  /// The calls that not all of the four warps have made yet.
  struct Group {
    std::deque<Call> calls;
    uint64_t first = 0;  // number of calls.front()
    std::array<uint64_t, kWarpsPerWarpgroup> made = {};
  };
  /// The c of one or several multiplications that follow each other.
  struct Accumulators {
    std::array<void*, kLanes> c;
    bool bytes;
    int columns;
    int pending;  // multiplications
    std::vector<MmaColumn> sums;
  };
  struct Pending {
    MmaFragments a;
    const unsigned char* b;
    Accumulators* c;
    Epoch epoch;
  };
  struct Warp {
    bool fenced = false;  // since the last wait
    std::deque<Pending> pending;
    std::deque<int> sets;  // committed: how many of `pending` each
    int num_open = 0;      // at the end of `pending`, not committed
    std::vector<std::unique_ptr<Accumulators>> accumulators;
  };

  static std::string describe(const Call& call);
  std::string describe_warp(int warp) const;
  std::string note(int warp, const Call& call);
  static std::string check_operands(void* const* operands, const unsigned char* shared, int shared_bytes);
  /// The accumulators that `operands` hand over; null, and *error, if they are not what they have to be.
  static Accumulators* find_or_take(Warp& warp, void* const* operands, std::string* error);
  static bool hand_back(const Accumulators& done);

  int warps_per_cta_;
  int groups_per_cta_;
  std::vector<Group> groups_;  // by CTA, the last one of a CTA may lack warps
  std::vector<Warp> warps_;
};

}  // namespace soliton::emulation
