// How a consumer warp gets its slice of a phase's input: poll, scale by the norm's weights, split into bf16
// pairs.
//
// Activations travel as floats. A float x becomes two bf16 values, high = bf16(x) and low = bf16(x - high),
// which are two columns of the mma's B operand: one row of activations leaves seven of eight columns idle, so
// 16 bits of mantissa cost no more than 8. The sum of the two columns is the product at nearly float
// accuracy.
//
// In shared memory a warp's slice of x lies in blocks of 32 columns: 64 bytes of high parts, then 64 bytes of
// low parts.
#pragma once

#include "kernel.cuh"

namespace soliton {

constexpr int kXBlockBytes = 2 * kColumnBlock * 2;
constexpr int kXLowOffset = kColumnBlock * 2;
constexpr int kMaxLoadsInFlight = 8;  // 16-byte loads of one lane before the first is checked

SOLITON_DEVICE bool is_missing(float value) {
  return float_bits(value) == kMissing;
}
SOLITON_DEVICE bool is_missing(float4 v) {
  return is_missing(v.x) || is_missing(v.y) || is_missing(v.z) || is_missing(v.w);
}
SOLITON_DEVICE bool is_missing(uint64_t value) {
  return value == ~0ull;
}

/// A value that may be published: never the pattern that means "missing".
SOLITON_DEVICE float publishable(float value) {
  return is_missing(value) ? float_from_bits(kCanonicalNan) : value;
}

/// Loads of one lane from words that other CTAs write: issue() starts them, retry() repeats those still
/// missing; see wait_for_words(). Under kCounter the phase's wait has already covered them.
template <class T, int kCount, SyncMode kSync>
class PolledLoads {
 public:
  T value[kCount] = {};

  /// `address(i)` is the i-th word's address. Where present(i) is false, this lane has none and the value is
  /// zero.
  template <class Address, class Present>
  SOLITON_DEVICE void issue(const Address& address, const Present& present) {
    SOLITON_UNROLL
    for (int i = 0; i < kCount; ++i) {
      value[i] = T{};
      if (present(i)) value[i] = load(address(i));
    }
  }

  /// True if a word was missing and is loaded anew.
  template <class Address>
  SOLITON_DEVICE bool retry(const Address& address) {
    bool missing = false;
    SOLITON_UNROLL
    for (int i = 0; i < kCount; ++i) {
      if (is_missing(value[i])) {
        missing = true;
        value[i] = load(address(i));
      }
    }
    return missing;
  }

 private:
  static SOLITON_DEVICE T load(const T* pointer) {
    if constexpr (kSync == SyncMode::kSelfValidating) {
      return load_relaxed(pointer);
    } else {
      return load_global(pointer);
    }
  }
};

/// Waits until nothing is missing. Each of `retries` repeats the loads of one PolledLoads; one after another,
/// so that the words that many CTAs want are polled last and little.
template <class Plan, class... Retries>
SOLITON_DEVICE void wait_for_words(const Context<Plan>& context, WaitKind kind, const Retries&... retries) {
  if constexpr (Plan::kSync == SyncMode::kSelfValidating) {
    Spin spin(context.bound);
    const auto wait = [&](const auto& retry) {
      while (warp_any(retry())) spin.pause(context.site(kind, 0, 0, kMissing));
    };
    (wait(retries), ...);
  }
}

/// Publishes one word of a vector.
template <class Plan, class T>
SOLITON_DEVICE void publish(T* word, T value) {
  if constexpr (Plan::kSync == SyncMode::kSelfValidating) {
    store_relaxed(word, value);
  } else {
    store_global(word, value);
  }
}

/// The signatures of a vector, which one warp waits for: CTAs without a tile have seen everything before this
/// phase too.
template <class Plan>
class Signatures {
 public:
  SOLITON_DEVICE Signatures(const Context<Plan>& context, Vector vector)
      : words_(context.template workspace<float>(vector.offset) + vector.elements + context.lane),
        count_(Plan::kSync == SyncMode::kSelfValidating ? vector.signatures - context.lane : 0) {}

  SOLITON_DEVICE void issue() {
    loads_.issue([&](int i) { return word(i); }, [&](int i) { return i * kWarpLanes < count_; });
  }
  SOLITON_DEVICE bool retry() {
    return loads_.retry([&](int i) { return word(i); });
  }

 private:
  SOLITON_DEVICE const float* word(int i) const { return words_ + i * kWarpLanes; }

  const float* words_;
  int count_;  // of signatures from this lane's first on
  PolledLoads<float, ceil_divide(Plan::kNumCtas, kWarpLanes), Plan::kSync> loads_;
};

/// Under kCounter: waits until every CTA has ended every phase before this one.
template <class Plan>
SOLITON_DEVICE void wait_for_grid(const Context<Plan>& context) {
  if constexpr (Plan::kSync == SyncMode::kCounter) {
    const uint32_t target = context.phases_done * Plan::kNumCtas;
    Spin spin(context.bound);
    // Every lane observes the counter itself, so that its own later loads are ordered.
    for (;;) {
      const uint32_t seen = load_acquire(context.counter(kGridCounterWord));
      if (!warp_any(seen < target)) return;
      spin.pause(context.site(WaitKind::kCounter, kGridCounterWord, target, seen));
    }
  }
}

/// The slice of x that consumer warp `warp` owns: of every page the same fixed columns. Walked in groups of 4
/// columns. Of a wide input shared memory holds one chunk of columns at a time.
template <class Plan, Width kWidth>
struct InputSlice {
  static constexpr int kWarps = Plan::kConsumerWarps;
  static constexpr int kFullPages = kWidth.padded / kPageColumns;
  static constexpr int kGroupsPerPage = kPageColumns / kWarps / 4;
  static constexpr int kLastColumns =
      kWidth.padded % kPageColumns / kWarps;  // of this warp in the short last page
  static constexpr int kGroups = kFullPages * kGroupsPerPage + kLastColumns / 4;
  static constexpr int kChunks = ceil_divide(kWidth.padded, Plan::kChunkColumns);
  static constexpr int kChunkPages = Plan::kChunkColumns / kPageColumns;  // of all chunks but the last
  static constexpr int kChunkGroups = kChunks == 1 ? kGroups : kChunkPages * kGroupsPerPage;
  static constexpr int kLoads = ceil_divide(kChunkGroups, kWarpLanes);  // of a lane for a chunk
  static constexpr int kBatches = ceil_divide(kLoads, kMaxLoadsInFlight);
  static constexpr int kBatchLoads = ceil_divide(kLoads, kBatches);
  static constexpr bool kExact =
      kGroups == kChunks * kBatches * kBatchLoads * kWarpLanes;  // every lane has every load
  static_assert(kPageColumns / kWarps % kColumnBlock == 0 && kLastColumns % kColumnBlock == 0,
                "a warp owns whole column blocks of every page");
  static_assert(Plan::kChunkColumns % kPageColumns == 0, "chunks are whole pages");

  /// First of the 4 columns of group `group` (0 .. kGroups - 1).
  static SOLITON_DEVICE int column(int warp, int group) {
    if (kLastColumns != 0 && group >= kFullPages * kGroupsPerPage) {
      return kFullPages * kPageColumns + warp * kLastColumns + (group - kFullPages * kGroupsPerPage) * 4;
    }
    return group / kGroupsPerPage * kPageColumns + warp * (kPageColumns / kWarps) +
           group % kGroupsPerPage * 4;
  }
};

SOLITON_DEVICE float4 unpack_bf16(uint2 packed) {
  return make_float4(
      bf16_to_float(static_cast<uint16_t>(packed.x)), bf16_to_float(static_cast<uint16_t>(packed.x >> 16)),
      bf16_to_float(static_cast<uint16_t>(packed.y)), bf16_to_float(static_cast<uint16_t>(packed.y >> 16)));
}

/// Low-order part of a float whose high-order part is its rounding to bf16.
SOLITON_DEVICE float low_part(float value) {
  return value - bf16_to_float(float_to_bf16(value));
}

SOLITON_DEVICE uint2 pack_high(float4 v) {
  return make_uint2(pack_bf16(v.x, v.y), pack_bf16(v.z, v.w));
}
SOLITON_DEVICE uint2 pack_low(float4 v) {
  return make_uint2(pack_bf16(low_part(v.x), low_part(v.y)), pack_bf16(low_part(v.z), low_part(v.w)));
}

/// The same with f16 as the operand type.
SOLITON_DEVICE float low_part_f16(float value) {
  return value - f16_to_float(float_to_f16(value));
}
SOLITON_DEVICE uint2 pack_high_f16(float4 v) {
  return make_uint2(pack_f16(v.x, v.y), pack_f16(v.z, v.w));
}
SOLITON_DEVICE uint2 pack_low_f16(float4 v) {
  return make_uint2(pack_f16(low_part_f16(v.x), low_part_f16(v.y)),
                    pack_f16(low_part_f16(v.z), low_part_f16(v.w)));
}

/// Stores the split of 4 neighbouring columns; `column` counts the warp's own columns.
SOLITON_DEVICE void store_split(unsigned char* x, int column, float4 v) {
  unsigned char* block = x + column / kColumnBlock * kXBlockBytes + column % kColumnBlock * 2;
  store_shared(reinterpret_cast<uint2*>(block), pack_high(v));
  store_shared(reinterpret_cast<uint2*>(block + kXLowOffset), pack_low(v));
}

}  // namespace soliton
