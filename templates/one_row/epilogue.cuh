// The epilogue warp: sums the parts of a tile in fixed order, finishes the operation and publishes the outputs.
#pragma once

#include "machine/ring.cuh"
#include "machine/timeline.cuh"
#include "one_row/choose.cuh"
#include "one_row/context.cuh"
#include "one_row/experts.cuh"
#include "one_row/input.cuh"
#include "one_row/merge.cuh"
#include "one_row/new_token.cuh"
#include "one_row/tile_bias.cuh"
#include "ops/rotations.cuh"
#include "ops/row_factors.cuh"
#include "ops/sampling.cuh"

namespace soliton::one_row {

template <const KernelPlan& kPlan>
class Epilogue {
 public:
  SOLITON_DEVICE explicit Epilogue(Context<kPlan>& context) : context_(context) {}

  SOLITON_DEVICE bool begin_step() {
    context_.wait(context_.barrier(BarrierId::kTokenReady), context_.step & 1, WaitKind::kTokenReady, 0);
    token_ = load_shared(&context_.decision(0).token);
    const bool stop = load_shared(&context_.decision(0).stop) != 0;
    const int output = context_.step - context_.params.num_input_tokens;
    if (output >= 0 && context_.is_first_cta() && context_.lane == 0) {
      const SamplingView& sampling = context_.params.sampling;
      if (sampling.logprobs != nullptr) record_logprob<kPlan>(context_.params, 0, token_, output);
      store_system(context_.params.records + output,
                   static_cast<uint64_t>(time_ns()) << 32 | static_cast<uint32_t>(token_));
    }
    if (!stop && !kPlan.model.head_norm) load_rotations();
    return !stop;
  }
  SOLITON_DEVICE void end_step() { context_.end_step(); }

  SOLITON_DEVICE void matrix(const MatrixInstance& at, const MatrixInstance& /*next*/) {
    const auto& [phase, layer] = at;
    begin_phase(context_.use(phase.output_vector, layer));
    const TileRun run = context_.tiles(phase);
    float* to = output(phase.output_vector);
    begin_choice();
    load_bias(phase.output, layer, run.first);
    if constexpr (kMixes<kPlan>) choose(phase, layer);
    tile_bias_.load(context_, phase, layer, run.first);
    load_factors(phase, layer);
    const float scale = wait_input(norms_input<kPlan>(phase));
    sign(phase.output_vector);
    with_output<kPlan>(phase.output, [&]<OutputKind kKind>() {
      SOLITON_NO_UNROLL
      for (int i = 0; i < run.count; ++i) {
        const int tile = run.first + i * run.stride;
        if constexpr (kKind == OutputKind::kRotary) {
          rotary(phase, to, tile, scale, layer, tile + run.stride);
        } else if constexpr (kKind == OutputKind::kSwiglu) {
          swiglu(phase, to, tile, scale, layer, tile + run.stride);
        } else if constexpr (kKind == OutputKind::kResidual) {
          if constexpr (holds_blocks(kPlan.model.norms)) {
            put_block(phase, to, tile, layer, tile + run.stride);
          } else {
            residual(phase, to, tile, i, layer, tile + run.stride);
          }
        } else if constexpr (kKind == OutputKind::kRouter) {
          route(to, tile, scale);
        } else {
          logits(phase, tile, scale, tile + run.stride);
        }
      }
    });
    if (phase.output == OutputKind::kLogits) {
      if (context_.params.sampling.rows != nullptr && context_.chooses()) draw(phase);
      end_choice();
      // This CTA has seen words of every CTA from behind its fence_layer(). Pairs with the producer's wait in attention().
      fence();
      warp_arrive(&context_.barrier(BarrierId::kStepRead));
    }
    if (phase.appends) {
      append_tokens(layer);
      renew_partial(layer);
      fence_layer(layer);
    }
    end_phase();
  }

  template <int kIndex>
  SOLITON_DEVICE void attend(int layer) {
    constexpr Phase kPhase = kPlan.phases[kIndex];
    constexpr Vector kOutput = kPlan.vector(kPhase.writes);
    begin_phase(context_.use(layer));
    take_input(wait_all_input());
    const AttentionShare share = context_.attention_share(layer);
    sign(kOutput);
    if (share.num_splits > 1) partials_expected_ += share.num_splits * kPlan.consumer_warps;
    SOLITON_NO_UNROLL
    for (int unit = 0; unit < share.count; ++unit) {
      // Pairs with the consumers' arrival: q, k and v are there.
      context_.wait(context_.barrier(BarrierId::kQueryFull), units_ & 1, WaitKind::kQueryFull, units_);
      if (share.split == share.num_splits - 1) {
        const HeadBlock<kPlan> heads(share.first_block + unit * kPlan.num_ctas, context_.card());
        add_token(context_, unit, layer, heads.first_head);
      }
      warp_arrive(&context_.barrier(BarrierId::kAttentionFull));
      // Pairs with the consumers' arrival: what they merged is published.
      waits_.begin();
      context_.wait(context_.barrier(BarrierId::kAttentionEmpty), units_ & 1, WaitKind::kAttentionEmpty,
                    units_);
      end_wait();
      ++units_;
    }
    if (share.num_splits > 1 && share.first_block < context_.card_blocks()) {
      merge_waits_.begin();
      wait_for_partials(share.first_block);
      merge_splits(context_, HeadBlock<kPlan>(share.first_block, context_.card()), share, layer,
                   output(kOutput));
      merge_waits_.end();
    }
    end_phase();
  }

 private:
  /// Once a step, for all its layers: device memory is slow to answer while it streams.
  SOLITON_DEVICE void load_rotations() {
    constexpr int kPairs = kPlan.model.rope_tables * kPlan.model.head_dim / 2;
    const float2* rotations = reinterpret_cast<const float2*>(context_.params.rotary) +
                              static_cast<int64_t>(context_.position()) * kPairs;
    for (int pair = context_.lane; pair < kPairs; pair += kWarpLanes) {
      store_shared(context_.rotations() + pair, load_constant(rotations + pair));
    }
    warp_sync();
  }

  /// Waits until this CTA has the phase's input; pairs with the consumers' arrival in report_input(). Returns the
  /// generation.
  SOLITON_DEVICE uint32_t wait_all_input() {
    const uint32_t generation = context_.phases_done % kInputGenerations;
    context_.wait(context_.barrier(BarrierId::kInputRead, generation),
                  context_.phases_done / kInputGenerations & 1, WaitKind::kInputRead, 0);
    mark(context_, &PhaseRecord::input);
    return generation;
  }

  /// Says that all of what the consumers reported has been read. Pairs with their wait in begin_phase().
  SOLITON_DEVICE void take_input(uint32_t generation) {
    warp_arrive(&context_.barrier(BarrierId::kInputTaken, generation));
  }

  /// The same, and returns the RMS norm's factor, 1 if the input is not normed.
  SOLITON_DEVICE float wait_input(bool normed) {
    const uint32_t generation = wait_all_input();
    float squares = 0.0f;
    for (int warp = 0; warp < kPlan.consumer_warps; ++warp) {
      squares += load_shared(context_.squares(generation, warp));
    }
    take_input(generation);
    return !normed ? 1.0f : rsqrt_fast(squares / kPlan.model.hidden + kPlan.model.norm_epsilon);
  }

  /// Says that this CTA has all of the phase's input, whether or not it has a tile.
  SOLITON_DEVICE void sign(const Vector& vector) {
    if constexpr (kPlan.sync == SyncMode::kSelfValidating) {
      if (vector.signatures == 0) return;
      if (context_.lane == 0)
        publish<kPlan>(context_, output(vector) + vector.elements + context_.global_cta(), 0.0f, tag_);
    }
  }

  SOLITON_DEVICE float* output(const Vector& vector) const { return context_.vector(vector, use_); }

  /// Sum of the parts of the next tile, row `lane`; 0 in lanes 16 and up.
  SOLITON_DEVICE float take_tile() {
    waits_.begin();
    context_.wait(context_.barrier(BarrierId::kTileFull, tile_.slot()), tile_.parity(), WaitKind::kTileFull,
                  tiles_);
    end_wait();
    float sum = 0.0f;
    if (context_.lane < kTileRows) {
      SOLITON_UNROLL
      for (int warp = 0; warp < kPlan.consumer_warps; ++warp) {
        sum += load_shared(context_.tile_parts(tile_.slot(), warp) + context_.lane);
      }
    }
    warp_release(&context_.barrier(BarrierId::kTileEmpty, tile_.slot()));
    ++tiles_;
    tile_.advance();
    return sum;
  }

  /// With the layer's first phase, once for all of them.
  SOLITON_DEVICE void load_factors(const MatrixPhase& phase, int layer) {
    if constexpr (RowFactors<kPlan>::kIsThere) {
      if (phase.output != OutputKind::kRotary) return;
      const float* factors = RowFactors<kPlan>::of_layer(context_.params.layer_biases, layer);
      factor_ = load_constant(factors + context_.lane % kNumFactors);
    }
  }
  /// The same sum of a layer's matrix times its factor.
  SOLITON_DEVICE float take_tile(const MatrixPhase& phase, int tile) {
    const float sum = take_tile();
    if constexpr (!RowFactors<kPlan>::kIsThere) return sum;
    const bool upper = context_.lane % kTileRows >= kTileRows / 2;
    return sum * shuffle(factor_, RowFactors<kPlan>::number(phase, tile, upper));
  }

  // What becomes of a tile's sums, and the choice of a token: epilogue_outputs.cuh.
  SOLITON_DEVICE void load_bias(OutputKind output, int layer, int tile);
  SOLITON_DEVICE void rotary(const MatrixPhase& phase, float* output, int tile, float scale, int layer,
                             int next_tile);
  template <bool kOfBlock = false>
  SOLITON_DEVICE void publish_squares(float* output, int tile, float value);
  SOLITON_DEVICE void swiglu(const MatrixPhase& phase, float* output, int tile, float scale, int layer,
                             int next_tile);
  SOLITON_DEVICE void route(float* output, int tile, float scale);
  SOLITON_DEVICE void residual(const MatrixPhase& phase, float* output, int tile, int own_tile, int layer,
                               int next_tile);
  SOLITON_DEVICE void put_block(const MatrixPhase& phase, float* output, int tile, int layer, int next_tile);
  SOLITON_DEVICE void logits(const MatrixPhase& phase, int tile, float scale, int next_tile);
  SOLITON_DEVICE void choose(const MatrixPhase& phase, int layer);
  SOLITON_DEVICE float expert_weight(int tile, int phase) const;
  SOLITON_DEVICE float expert_factor(int tile, int phase) const;
  SOLITON_DEVICE void draw(const MatrixPhase& phase);
  SOLITON_DEVICE void end_choice();
  SOLITON_DEVICE void begin_choice() { best_ = kNoCandidate; }

  /// In the phase after attention, see append_token().
  SOLITON_DEVICE void append_tokens(int layer) {
    const AttentionShare share = context_.attention_share(layer);
    if (share.split != share.num_splits - 1) return;
    SOLITON_NO_UNROLL
    for (int unit = 0; unit < share.count; ++unit) {
      const HeadBlock<kPlan> heads(share.first_block + unit * kPlan.num_ctas, context_.card());
      if (heads.appends()) append_token(context_, layer, heads.kv_slot, unit);
    }
  }

  /// Once a step, behind the last that it appends: whoever sees a word of this CTA from a later phase, and fences, sees all
  /// that was before. If layers differ in who reads what, in every layer.
  SOLITON_DEVICE void fence_layer(int layer) const {
    if (!Variant<kPlan>::kHidesKeys && layer != kPlan.model.num_layers - 1) return;
    warp_sync();
    fence();
  }

  SOLITON_DEVICE void wait_for_partials(int block) {
    if constexpr (kPlan.sync == SyncMode::kCounter) {
      Spin spin(context_.bound());
      for (;;) {
        const uint32_t seen =
            load_acquire(context_.counter(kPartialCounterWords + block * kCounterLineWords));
        if (!warp_any(seen < partials_expected_)) return;
        spin.pause(context_.site(WaitKind::kPartial, block, partials_expected_, seen));
      }
    }
  }

  /// Where layers differ in their windows, a partial that this one had no use for gets its tag all the same: so no word is
  /// ever older than the use before.
  SOLITON_DEVICE void renew_partial(int layer) {
    if constexpr (kPlan.sync == SyncMode::kSelfValidating && Variant<kPlan>::kHidesKeys) {
      const AttentionShare share = context_.attention_share(layer);
      if (share.num_splits > 1 && share.count > 0) return;
      for (int i = context_.lane; i < kPlan.partial_words(); i += kWarpLanes)
        publish_here<kPlan>(context_.partial(context_.cta) + i, 0.0f, tag_);
    }
  }

  /// What this CTA has seen and stored comes before all that it publishes from here on.
  SOLITON_DEVICE void fence() const {
    if constexpr (kPlan.sync == SyncMode::kSelfValidating) fence_cards<kPlan>();
  }

  /// `use`: of what the phase puts out.
  SOLITON_DEVICE void begin_phase(uint32_t use) {
    context_.begin_phase();
    mark(context_, &PhaseRecord::begin);
    tag_ = tag_of(use);
    use_ = use;
    first_ = true;
  }
  SOLITON_DEVICE void end_wait() {
    waits_.end();
    if (kTimeline && first_) mark(context_, &PhaseRecord::first);
    first_ = false;
  }

  /// Under kCounter: says that this CTA has ended the phase.
  SOLITON_DEVICE void end_phase() {
    mark(context_, &PhaseRecord::last);
    note(context_, &PhaseRecord::waited, waits_.take());
    note(context_, &PhaseRecord::limited, merge_waits_.take());
    if constexpr (kPlan.sync == SyncMode::kCounter) {
      warp_sync();
      if (context_.lane == 0)
        arrive_on_all<kPlan>(context_.params, &PeerOffsets::workspace, context_.counter(kGridCounterWord));
    }
    mark(context_, &PhaseRecord::end);
    context_.end_phase();
  }

  Context<kPlan>& context_;
  int token_ = 0;
  uint32_t use_ = 0;  // of its place, by what the phase publishes
  uint32_t tag_ = 0;
  uint64_t best_ = kNoCandidate;
  float bias_ = 0.0f;  // of the next tile of q, k and v
  TileBias<kPlan> tile_bias_;
  float factor_ = 1.0f;  // lane i has number i % kNumFactors of the layer
  uint32_t tiles_ = 0;
  RingPosition<kPlan.tile_slots> tile_;
  uint32_t units_ = 0;
  uint32_t partials_expected_ = 0;
  float expert_weight_ = 0;     // lane i has that of the layer's i-th expert
  float2 expert_factors_ = {};  // likewise, of gate and up, see RowFactors
  uint32_t choices_ = 0;        // of experts, since the launch began
  bool first_ = true;           // no tile or unit of the phase yet
  WaitClock waits_;
  WaitClock merge_waits_;
};

}  // namespace soliton::one_row
