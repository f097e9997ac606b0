// How a consumer warp gets its slice of a phase's input: poll, scale by the norm's weights, put down as its format has it.
#pragma once

#include <type_traits>

#include "formats/formats.cuh"
#include "machine/peers.cuh"
#include "one_row/context.cuh"
#include "ops/tagged.cuh"

namespace soliton::one_row {

constexpr int kMaxLoadsInFlight = 8;  // 16-byte loads of one lane before the first is checked

/// Loads of one lane from words that other CTAs write: issue() starts them, retry() repeats those that have not come;
/// see wait_for_words(). Under kCounter the phase's wait has already covered them.
template <class T, int kCount, const KernelPlan& kPlan>
class PolledLoads {
  static_assert(kCount <= 32, "a bit for each");

 public:
  T value[kCount] = {};  // with their tags

  /// `address(i)` is the i-th word's address. Where present(i) is false, this lane has none and the value is
  /// zero.
  template <class Address, class Present>
  SOLITON_DEVICE void issue(const Address& address, const Present& present) {
    missing_ = 0;
    SOLITON_UNROLL
    for (int i = 0; i < kCount; ++i) {
      value[i] = T{};
      if (!present(i)) continue;
      value[i] = load(address(i));
      missing_ |= 1u << i;
    }
  }

  /// True if a word was missing. All are looked at before the first is loaded anew: no load waits for another.
  template <class Address>
  SOLITON_DEVICE bool retry(const Address& address, uint32_t tag) {
    SOLITON_UNROLL
    for (int i = 0; i < kCount; ++i) {
      if (has_tag(value[i], tag)) missing_ &= ~(1u << i);
    }
    if (missing_ == 0) return false;
    SOLITON_UNROLL
    for (int i = 0; i < kCount; ++i) {
      if (missing_ >> i & 1) value[i] = load(address(i));
    }
    return true;
  }

 private:
  uint32_t missing_ = 0;  // bit i: the i-th has not come yet

  static SOLITON_DEVICE T load(const T* pointer) {
    if constexpr (kPlan.sync == SyncMode::kSelfValidating) {
      return kPlan.num_cards == 1 ? load_relaxed(pointer) : load_relaxed_system(pointer);
    } else {
      return load_global(pointer);
    }
  }
};

/// What a retry returns that never misses a word.
using NothingToWaitFor = std::false_type;

/// Waits until nothing is missing of what carries `tag`. Each of `retries` repeats the loads of one PolledLoads; one after another,
/// so that the words that many CTAs want are polled last and little.
template <const KernelPlan& kPlan, class... Retries>
SOLITON_DEVICE void wait_for_words(const Context<kPlan>& context, WaitKind kind, uint32_t tag,
                                   const Retries&... retries) {
  if constexpr (kPlan.sync == SyncMode::kSelfValidating) {
    Spin spin(context.bound());
    const auto wait = [&](const auto& retry) {
      if constexpr (!std::is_same_v<decltype(retry()), NothingToWaitFor>) {
        while (warp_any(retry())) spin.pause(context.site(kind, 0, tag));
      }
    };
    (wait(retries), ...);
  }
}

/// Publishes a value to the CTAs of this card. Under kCounter too its tag takes the place of its lowest bits: so both give
/// the same results.
template <const KernelPlan& kPlan, class T>
SOLITON_DEVICE void publish_here(T* word, T value, uint32_t tag) {
  if constexpr (kPlan.sync == SyncMode::kSelfValidating) {
    store_relaxed(word, with_tag(value, tag));
  } else {
    store_global(word, with_tag(value, tag));
  }
}

/// Publishes a value of a vector: every card has a copy, and CTAs look at their own card's.
template <const KernelPlan& kPlan, class T>
SOLITON_DEVICE void publish(const Context<kPlan>& context, T* word, T value, uint32_t tag) {
  if constexpr (kPlan.num_cards == 1) {
    publish_here<kPlan>(word, value, tag);
  } else {
    store_to_all<kPlan>(context.params, &PeerOffsets::workspace, word, with_tag(value, tag));
  }
}

/// Does any vector have signatures?
template <const KernelPlan& kPlan>
constexpr bool kSigns = [] {
  for (int i = 0; i < kPlan.num_vectors; ++i) {
    if (kPlan.vectors[i].signatures > 0) return true;
  }
  return false;
}();

/// The signatures of a vector, which one warp waits for: CTAs without a tile have the writing phase's input too.
template <const KernelPlan& kPlan>
class Signatures {
 public:
  SOLITON_DEVICE Signatures(const Context<kPlan>& context, Vector vector, uint32_t use)
      : words_(context.vector(vector, use) + vector.elements + context.lane),
        count_(kPlan.sync == SyncMode::kSelfValidating ? vector.signatures - context.lane : 0) {}

  SOLITON_DEVICE void issue() {
    if constexpr (kSigns<kPlan>)
      loads_.issue([&](int i) { return word(i); }, [&](int i) { return i * kWarpLanes < count_; });
  }
  /// False if nothing was issued.
  SOLITON_DEVICE auto retry(uint32_t tag) {
    if constexpr (kSigns<kPlan>) {
      return loads_.retry([&](int i) { return word(i); }, tag);
    } else {
      return NothingToWaitFor{};
    }
  }

 private:
  SOLITON_DEVICE const float* word(int i) const { return words_ + i * kWarpLanes; }

  const float* words_;
  int count_;  // of signatures from this lane's first on
  PolledLoads<float, ceil_divide(kPlan.all_ctas(), kWarpLanes), kPlan> loads_;
};

/// Under kCounter: waits until every CTA has ended every phase before this one.
template <const KernelPlan& kPlan>
SOLITON_DEVICE void wait_for_grid(const Context<kPlan>& context) {
  if constexpr (kPlan.sync == SyncMode::kCounter) {
    const uint32_t target = context.phases_done * kPlan.all_ctas();
    Spin spin(context.bound());
    // Every lane observes the counter itself, so that its own later loads are ordered.
    for (;;) {
      const uint32_t seen = load_arrivals<kPlan>(context.counter(kGridCounterWord));
      if (!warp_any(seen < target)) return;
      spin.pause(context.site(WaitKind::kCounter, kGridCounterWord, target, seen));
    }
  }
}

/// The slice of x that consumer warp `warp` owns: of every page the same fixed columns. Walked in groups of 4
/// columns. Of a wide input shared memory holds one chunk of columns at a time.
template <const KernelPlan& kPlan, Width kWidth>
struct InputSlice {
  static constexpr int kWarps = kPlan.consumer_warps;
  using Format = Gemv<kWidth.format>;
  static constexpr int kPageWidth = kWidth.format.page_columns();
  static constexpr int kFullPages = kWidth.padded / kPageWidth;
  static constexpr int kRest = kWidth.padded % kPageWidth;  // columns in short pages
  static constexpr int kGroupsPerPage = kPageWidth / kWarps / 4;
  static constexpr int kLastColumns = kRest / kWarps;  // of this warp in short pages
  static constexpr int kGroups = kFullPages * kGroupsPerPage + kLastColumns / 4;
  static constexpr int kChunks = ceil_divide(kWidth.padded, kPlan.chunk_columns);
  static constexpr int kChunkPages = kPlan.chunk_columns / kPageWidth;  // of all chunks but the last
  static constexpr int kChunkGroups = kChunks == 1 ? kGroups : kChunkPages * kGroupsPerPage;
  static constexpr int kLoads = ceil_divide(kChunkGroups, kWarpLanes);  // of a lane for a chunk
  static constexpr int kBatches = ceil_divide(kLoads, kMaxLoadsInFlight);
  static constexpr int kBatchLoads = ceil_divide(kLoads, kBatches);
  static constexpr bool kExact =
      kGroups == kChunks * kBatches * kBatchLoads * kWarpLanes;  // every lane has every load
  /// Are a chunk's columns as far behind the chunk before as all are? Short pages are not.
  static constexpr bool kLinear = kRest == 0;
  static_assert(!kWidth.format.takes_digits() || kBatches == 1,
                "one scale for a chunk of x: its values are in registers at once");
  static_assert(kPlan.chunk_columns % kPageWidth == 0, "chunks are whole pages");

  /// First of the 4 columns of group `group` of chunk `chunk`.
  static SOLITON_DEVICE int column(int warp, int chunk, int group) {
    if constexpr (kLinear) return chunk * kPlan.chunk_columns + column(warp, group);
    return column(warp, chunk * kChunkGroups + group);
  }
  /// The same of group `group` of all (0 .. kGroups - 1).
  static SOLITON_DEVICE int column(int warp, int group) {
    int column = 0;
    with_page(group, [&]<int kColumns>(int begin, int within) {
      if constexpr (kWidth.format.least_columns() == 0) {
        column = begin + warp * (kColumns / kWarps) + within * 4;
      } else {
        column = Format::template column<kWarps, kColumns>(begin, warp, within);
      }
    });
    return column;
  }

  /// Puts group `group` of chunk `chunk` into the warp's part of x.
  static SOLITON_DEVICE void store(unsigned char* x, int chunk, int group, float4 v) {
    with_page(of_all(chunk, group), [&]<int kColumns>(int, int within) {
      Format::template store<kWarps, kColumns>(x, group, within, v);
    });
  }
  /// The same of digits of what is scaled by `down`, if it is there. Returns the lane's part of their sum.
  static SOLITON_DEVICE auto store_digits(unsigned char* x, int chunk, int group, float4 v, float down,
                                          bool is_there) {
    typename Format::InputSum own = {};
    if (kLinear || is_there) {  // of whole pages what is not there is worked out in vain: no branch
      with_page(of_all(chunk, group), [&]<int kColumns>(int, int within) {
        own = Format::template store<kWarps, kColumns>(x, group, within, v, down, is_there);
      });
    }
    return own;
  }
  /// Do all lanes share a scale, and so the sum of what they put down at once?
  static SOLITON_HOST_DEVICE constexpr bool sum_is_whole() {
    return kLinear && Format::template kSharingLanes<kPageWidth> == kWarpLanes;
  }

 private:
  /// A group's number, or one that stands at the same place of a page.
  static SOLITON_DEVICE int of_all(int chunk, int group) {
    return kLinear ? group : chunk * kChunkGroups + group;
  }
  /// Calls body<columns of the page>(its first column, the group's number in it) for a group's page.
  template <class Body>
  static SOLITON_DEVICE void with_page(int group, const Body& body) {
    if (kRest == 0 || group < kFullPages * kGroupsPerPage) {
      body.template operator()<kPageWidth>(group / kGroupsPerPage * kPageWidth, group % kGroupsPerPage);
    } else if constexpr (kRest > 0) {
      with_short_page<kFullPages * kPageWidth>(group - kFullPages * kGroupsPerPage, body);
    }
  }
  template <int kBegin, class Body>
  static SOLITON_DEVICE void with_short_page(int within, const Body& body) {
    constexpr int kColumns = page_columns(kWidth.format, kWidth.padded - kBegin);
    constexpr int kPageGroups = kColumns / kWarps / 4;
    if constexpr (kBegin + kColumns < kWidth.padded) {
      if (within >= kPageGroups) return with_short_page<kBegin + kColumns>(within - kPageGroups, body);
    }
    body.template operator()<kColumns>(kBegin, within);
  }
};

/// The loads of one lane for a batch of a chunk of the slice.
template <const KernelPlan& kPlan, Width kWidth>
struct InputLoads {
  using Slice = InputSlice<kPlan, kWidth>;
  using Values = PolledLoads<float4, Slice::kBatchLoads, kPlan>;

  int warp;
  int lane;
  int chunk;
  int batch;
  const float* vector;

  /// Of load `i`, within the chunk.
  SOLITON_DEVICE int group(int i) const { return (batch * Slice::kBatchLoads + i) * kWarpLanes + lane; }
  SOLITON_DEVICE int column(int i) const { return Slice::column(warp, chunk, group(i)); }
  SOLITON_DEVICE bool present(int i) const {
    if constexpr (Slice::kExact) return true;
    // Where the last group is a warp's last lane's, all lanes or none have one.
    constexpr bool kAlike = Slice::kGroups % kWarpLanes == 0 && Slice::kChunkGroups % kWarpLanes == 0;
    const int any = kAlike ? group(i) - lane : group(i);
    return any < Slice::kChunkGroups && chunk * Slice::kChunkGroups + any < Slice::kGroups;
  }
  /// Has x room for it? Where chunks are whole pages, also for what is not there behind the last chunk's.
  SOLITON_DEVICE bool fits(int i) const {
    if constexpr (!Slice::kLinear) return present(i);
    return Slice::kBatches * Slice::kBatchLoads * kWarpLanes == Slice::kChunkGroups ||
           group(i) < Slice::kChunkGroups;
  }
  SOLITON_DEVICE bool padding(int i) const {
    return kWidth.columns != kWidth.padded && column(i) >= kWidth.columns;
  }

  SOLITON_DEVICE void issue(Values& values) const {
    values.issue([&](int i) { return address(i); }, [&](int i) { return present(i); });
  }
  SOLITON_DEVICE bool retry(Values& values, uint32_t tag) const {
    return values.retry([&](int i) { return address(i); }, tag);
  }

 private:
  /// A warp whose slice is padding still looks at the vector: that is how it learns that the phase has begun.
  SOLITON_DEVICE const float4* address(int i) const {
    return reinterpret_cast<const float4*>(vector + (padding(i) ? 0 : column(i)));
  }
};

}  // namespace soliton::one_row
