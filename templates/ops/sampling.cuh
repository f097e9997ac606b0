// Drawing a token: repetition penalty, truncation (top-k, top-p, min-p) and Gumbel noise over the logits of a
// row; what they mean stands in layout/sampling.h. One warp of every CTA takes a row: it reads the logits of
// the tiles that its CTA has computed, agrees with the others on a limit (ops/exchange.cuh), and returns the
// CTA's best candidate among the tokens within it.
//
// Only what is asked for is exchanged: penalty and temperature need nothing, truncation the best logit of all
// CTAs, and top-k and top-p a search over the digits of the limit, of two or three rounds most often: it ends
// when the bin that holds the limit has one token, or goes in as a whole.
#pragma once

#include "layout/kernel_plan.h"
#include "ops/choice.cuh"
#include "ops/exchange.cuh"
#include "ops/kept_logits.cuh"
#include "ops/quotient.cuh"

namespace soliton {

/// A histogram of one CTA in shared memory, of one warp. A block's sums fit two words a bin: the lower bits
/// of its masses and, above them, its count; the upper bits of its masses.
struct SharedHistogram {
  static constexpr int kLowBits = 11;
  static constexpr int kCountShift = 21;
  static constexpr int kMaxTokens = 1 << (32 - kCountShift - 1);  // of a block
  static constexpr int kBytes = kSharedHistogramBytes;
  static_assert(kLowBits + 10 <= kCountShift && kMassBits - kLowBits + 10 < 32, "sums of a block fit");

  uint32_t* low;   // [kHistogramBins], 16-byte aligned
  uint32_t* high;  // the same

  SOLITON_DEVICE explicit SharedHistogram(void* memory)
      : low(static_cast<uint32_t*>(memory)), high(low + kHistogramBins) {}

  SOLITON_DEVICE void clear(int lane) const {
    store_shared(reinterpret_cast<uint4*>(low) + lane, make_uint4(0, 0, 0, 0));
    store_shared(reinterpret_cast<uint4*>(high) + lane, make_uint4(0, 0, 0, 0));
  }
  SOLITON_DEVICE void add(uint32_t bin, uint32_t mass) const {
    add_shared(low + bin, 1u << kCountShift | (mass & ((1u << kLowBits) - 1)));
    if (mass >> kLowBits != 0) add_shared(high + bin, mass >> kLowBits);
  }
  /// The bin as histograms of all CTAs have it.
  SOLITON_DEVICE uint64_t take(int bin) const {
    const uint32_t word = load_shared(low + bin);
    const uint64_t mass =
        (static_cast<uint64_t>(load_shared(high + bin)) << kLowBits) + (word & ((1u << kCountShift) - 1));
    return static_cast<uint64_t>(word >> kCountShift) << kBinMassBits | mass;
  }
};

/// Draws for one row after another, with kLoads loads of four logits in flight.
template <const KernelPlan& kPlan, class Context, int kLoads>
class RowSampler {
 public:
  /// `run` are the tiles of this CTA, whose logits stand in params.sampling.logits for all lanes to see;
  /// `shared` are SharedHistogram::kBytes of this warp.
  SOLITON_DEVICE RowSampler(const Context& context, const TileRun& run, void* shared, int warp)
      : context_(context), run_(run), histogram_(shared), exchange_(context, warp) {}

  /// Forgets the logits of tokens that a row may not choose, unless they are not finite.
  SOLITON_DEVICE void forbid(int row) const {
    const SamplingView& view = context_.params.sampling;
    if (view.allowed == nullptr) return;
    const int64_t line = sampling_line(view.vocabulary);
    const uint16_t* allowed = view.allowed + row * (line / kTileRows);
    SOLITON_NO_UNROLL
    for (int i = context_.lane; i < run_.count * kTileRows; i += kWarpLanes) {
      const int tile = run_.first + i / kTileRows * run_.stride;
      float* logit = view.logits + row * line + tile * kTileRows + i % kTileRows;
      const bool may = (load_constant(allowed + tile) >> i % kTileRows & 1) != 0;
      if (!may && is_finite(load_global(logit))) store_global(logit, float_from_bits(kCanonicalNan));
    }
    warp_sync();
  }

  /// The best candidate of this CTA's tokens for a row that has been fed `token` at `position`; all lanes return it.
  SOLITON_DEVICE uint64_t draw(int row, int position, int token) {
    const SamplingView& view = context_.params.sampling;
    const int64_t line = sampling_line(view.vocabulary);
    logits_ = view.logits + row * line;
    penalty_ = load_constant(&view.rows[row].penalty);
    seen_ = penalty_ == 1.0f || view.seen == nullptr ? nullptr : view.seen + row * (line / kTileRows);
    if (seen_ != nullptr) note_seen(token);
    inverse_temperature_ = load_constant(&view.rows[row].inverse_temperature);
    const uint32_t limit = find_limit(row);
    const uint32_t seed = load_constant(&view.rows[row].seed);
    uint64_t best = kNoCandidate;
    for_each_logit([&](int candidate, float, float logit) {
      if (limit < kMaxKey && key(distance(logit)) > limit) return;
      float score = logit;
      if (inverse_temperature_ != 0.0f) {
        score = logit * inverse_temperature_ + gumbel_noise(sampling_uniform(seed, position, candidate));
      }
      const uint64_t proposed = propose(logit, score, candidate);
      if (proposed > best) best = proposed;
    });
    for (int mask = kWarpLanes / 2; mask > 0; mask /= 2) {
      const uint64_t other = shuffle_xor(best, mask);
      if (other > best) best = other;
    }
    return best;
  }

 private:
  static constexpr float kLn2 = 0.693147181f;
  static constexpr float kLog2E = 1.44269504f;
  static constexpr int kBlockGroups = kLoads * kWarpLanes;
  static constexpr int kTileGroups = kTileRows / 4;
  static_assert(kBlockGroups * 4 <= SharedHistogram::kMaxTokens, "a block's sums fit");

  /// -ln(-ln(1 - u)); exact where it is large, which decides.
  static SOLITON_DEVICE float gumbel_noise(float u) {
    constexpr float kSmall = 0.01f;
    const float exponential =
        u < kSmall ? u * (1.0f + u * (0.5f + u * (1.0f / 3.0f + u * 0.25f))) : -log2_fast(1.0f - u) * kLn2;
    return -log2_fast(exponential) * kLn2;
  }

  /// In this CTA's part of the row's bitmap, which nobody else reads or writes.
  SOLITON_DEVICE void note_seen(int token) const {
    const int tile = token / kTileRows;
    const int ahead = tile - run_.first;
    if (context_.lane == 0 && ahead >= 0 && ahead % run_.stride == 0 && ahead < run_.count * run_.stride) {
      store_global(seen_ + tile, static_cast<uint16_t>(load_global(seen_ + tile) | 1u << token % kTileRows));
    }
    warp_sync();
  }

  SOLITON_DEVICE float distance(float logit) const {
    return logit == best_ ? 0.0f : (best_ - logit) * inverse_temperature_;
  }
  /// Larger is worse.
  static SOLITON_DEVICE uint32_t key(float distance) {
    return distance < kMaxKeyDistance ? static_cast<uint32_t>(distance * kKeysPerUnit) : kMaxKey;
  }
  static SOLITON_DEVICE uint32_t mass(float distance) {
    constexpr uint32_t kWhole = 1u << kMassBits;
    const auto mass = static_cast<uint32_t>(exp2_fast(-distance * kLog2E) * kWhole + 0.5f);
    return mass < kWhole ? mass : kWhole - 1;
  }

  /// Calls visit(token, logit, penalised logit) for each logit of this CTA that is a number. `end_block` is
  /// called by all lanes after at most SharedHistogram::kMaxTokens of them.
  template <class Visit, class EndBlock>
  SOLITON_DEVICE void for_each_logit(const Visit& visit, const EndBlock& end_block) const {
    const int num_groups = run_.count * kTileGroups;
    SOLITON_NO_UNROLL
    for (int block = 0; block < num_groups; block += kBlockGroups) {
      const float nan = float_from_bits(kCanonicalNan);
      float4 values[kLoads];
      uint32_t seen = 0;
      SOLITON_UNROLL
      for (int i = 0; i < kLoads; ++i) {
        const int group = block + i * kWarpLanes + context_.lane;
        values[i] = make_float4(nan, nan, nan, nan);
        if (group >= num_groups) continue;
        const int tile = run_.first + group / kTileGroups * run_.stride;
        values[i] =
            load_global(reinterpret_cast<const float4*>(logits_) + tile * kTileGroups + group % kTileGroups);
        if (seen_ != nullptr) {
          seen |= (static_cast<uint32_t>(load_global(seen_ + tile)) >> group % kTileGroups * 4 & 0xf)
                  << i * 4;
        }
      }
      SOLITON_NO_UNROLL
      for (int i = 0; i < kLoads; ++i) {
        const int group = block + i * kWarpLanes + context_.lane;
        const int tile = run_.first + group / kTileGroups * run_.stride;
        const int token = tile * kTileRows + group % kTileGroups * 4;
        const auto take = [&](int which, float logit) {
          if (logit != logit) return;
          float changed = logit;
          if ((seen >> which & 1) != 0)
            changed = logit > 0.0f ? quotient<kPlan>(logit, penalty_) : logit * penalty_;
          visit(token + which, logit, changed);
        };
        take(0, values[0].x);
        take(1, values[0].y);
        take(2, values[0].z);
        take(3, values[0].w);
        // Registers cannot be indexed: the next group's come to the front.
        seen >>= 4;
        SOLITON_UNROLL
        for (int j = 0; j + 1 < kLoads; ++j) values[j] = values[j + 1];
      }
      end_block();
    }
  }
  template <class Visit>
  SOLITON_DEVICE void for_each_logit(const Visit& visit) const {
    for_each_logit(visit, [] {});
  }

  /// The largest key of a token that stays. Also finds the row's normaliser if logprobs are wanted.
  SOLITON_DEVICE uint32_t find_limit(int row) {
    const SamplingView& view = context_.params.sampling;
    const int32_t top_k = load_constant(&view.rows[row].top_k);
    const float top_p = load_constant(&view.rows[row].top_p);
    const float max_distance = load_constant(&view.rows[row].max_distance);
    const bool truncates = RowSampling{.inverse_temperature = inverse_temperature_,
                                       .top_k = top_k,
                                       .top_p = top_p,
                                       .max_distance = max_distance}
                               .truncates();
    if (!truncates && view.logprobs == nullptr) return kMaxKey;
    exchange_.begin();
    const float best_raw = find_best();
    if (view.logprobs != nullptr) normalise(row, best_raw);
    if (!truncates) return kMaxKey;
    uint32_t limit = kMaxKey;
    if (top_k > 0) limit = search(limit, top_k, 1.0f);
    if (top_p < 1.0f) limit = search(limit, 0, top_p);
    const uint32_t furthest = key(max_distance);
    return furthest < limit ? furthest : limit;
  }

  /// Finds the best penalised logit of all CTAs; returns the best logit.
  SOLITON_DEVICE float find_best() {
    uint32_t best = 0;
    uint32_t best_raw = 0;
    const auto take = [&](uint32_t logit, uint32_t raw) {
      best = logit > best ? logit : best;
      best_raw = raw > best_raw ? raw : best_raw;
    };
    for_each_logit([&](int, float raw, float logit) { take(sortable(logit), sortable(raw)); });
    best = warp_max(best);
    best_raw = warp_max(best_raw);
    exchange_.swap_words(static_cast<uint64_t>(best) << 32 | best_raw, [&](uint64_t word) {
      take(static_cast<uint32_t>(word >> 32), static_cast<uint32_t>(word));
    });
    best_ = from_sortable(warp_max(best));
    return from_sortable(warp_max(best_raw));
  }

  /// Leaves what a token's logprob is made of for record_logprob().
  SOLITON_DEVICE void normalise(int row, float best_raw) {
    const SamplingView& view = context_.params.sampling;
    constexpr float kWhole = 1099511627776.0f;  // 2^40: masses of 2^18 tokens add up to less than 2^64
    uint64_t sum = 0;
    for_each_logit([&](int, float raw, float) {
      const float share = raw == best_raw ? 1.0f : exp2_fast((raw - best_raw) * kLog2E);
      sum += static_cast<uint64_t>(share * kWhole);
    });
    sum = warp_sum(sum);
    uint64_t all = 0;
    exchange_.swap_words(sum, [&](uint64_t word) { all += word; });
    all = warp_sum(all);
    if (context_.cta == 0 && context_.lane == 0) {
      const float log_sum = log2_fast(static_cast<float>(all) * (1.0f / kWhole)) * kLn2;
      store_global(normaliser(view, row), make_float2(best_raw, log_sum));
    }
  }

  static SOLITON_DEVICE uint64_t warp_sum(uint64_t value) {
    for (int mask = kWarpLanes / 2; mask > 0; mask /= 2) value += shuffle_xor(value, mask);
    return value;
  }

  /// Of the tokens with keys up to `limit`, the key of the last one that is taken when they are taken from the
  /// best on until there are `top_k`, or with top_k = 0, until their share of the mass is `top_p`.
  SOLITON_DEVICE uint32_t search(uint32_t limit, int32_t top_k, float top_p) {
    const auto measure = [&](uint64_t bins) { return top_k > 0 ? bin_count(bins) : bin_mass(bins); };
    uint64_t needed = static_cast<uint64_t>(top_k);
    uint32_t prefix = 0;
    for (int shift = kKeyBits - kKeyDigitBits;; shift -= kKeyDigitBits) {
      const LaneBins bins = count_digits(limit, prefix, shift);
      constexpr int kLaneBins = kHistogramBins / kWarpLanes;
      uint64_t end = 0;
      SOLITON_UNROLL
      for (int i = 0; i < kLaneBins; ++i) end += bins.bin[i];
      const uint64_t own = end;
      for (int delta = 1; delta < kWarpLanes; delta *= 2) {
        const uint64_t before = shuffle(end, context_.lane - delta);
        if (context_.lane >= delta) end += before;
      }
      const uint64_t total = shuffle(end, kWarpLanes - 1);
      if (shift == kKeyBits - kKeyDigitBits) {
        if (top_k == 0) {
          const auto share = static_cast<uint64_t>(static_cast<float>(bin_mass(total)) * top_p);
          needed = share < 1 ? 1 : share < bin_mass(total) ? share : bin_mass(total);
        }
        if (measure(total) < needed) return limit;
      }
      // The bin in which the limit lies, what comes before it and what it holds.
      uint64_t before = end - own;
      uint64_t held = 0;
      int digit = -1;
      SOLITON_UNROLL
      for (int i = 0; i < kLaneBins; ++i) {
        if (digit >= 0) continue;
        if (measure(before) < needed && measure(before + bins.bin[i]) >= needed) {
          digit = context_.lane * kLaneBins + i;
          held = bins.bin[i];
        } else {
          before += bins.bin[i];
        }
      }
      const int found = static_cast<int>(warp_max(static_cast<uint32_t>(digit + 1))) - 1;
      before = shuffle(before, found / kLaneBins);
      held = shuffle(held, found / kLaneBins);
      needed -= measure(before);
      prefix = prefix << kKeyDigitBits | static_cast<uint32_t>(found);
      const bool whole = bin_count(held) == 1 || (top_k > 0 && bin_count(held) == needed);
      if (whole || shift == 0) {
        const uint32_t last = ((prefix + 1) << shift) - 1;
        return last < limit ? last : limit;
      }
    }
  }

  /// The histogram over a digit of the keys, up to `limit`, that begin with `prefix`.
  SOLITON_DEVICE LaneBins count_digits(uint32_t limit, uint32_t prefix, int shift) {
    constexpr int kLaneBins = kHistogramBins / kWarpLanes;
    histogram_.clear(context_.lane);
    warp_sync();
    for_each_logit(
        [&](int, float, float logit) {
          const float away = distance(logit);
          const uint32_t of_token = key(away);
          if (of_token > limit || of_token >> shift >> kKeyDigitBits != prefix) return;
          histogram_.add(of_token >> shift & (kHistogramBins - 1), mass(away));
        },
        [&] {
          warp_sync();
          SOLITON_UNROLL
          for (int i = 0; i < kLaneBins; ++i) {
            const int bin = context_.lane * kLaneBins + i;
            const uint64_t sum = histogram_.take(bin);
            if (sum != 0) exchange_.add(bin, sum);
          }
          histogram_.clear(context_.lane);
          warp_sync();
        });
    return exchange_.end_histogram();
  }

  const Context& context_;
  TileRun run_;
  SharedHistogram histogram_;
  Exchange<kPlan, Context> exchange_;
  const float* logits_ = nullptr;
  uint16_t* seen_ = nullptr;
  float penalty_ = 1.0f;
  float inverse_temperature_ = 0.0f;
  float best_ = 0.0f;
};

}  // namespace soliton
