// What becomes of a tile's sums in the kernel of one row: rotary, SwiGLU, the residual stream, logits and the choice of a token.
#pragma once

#include "one_row/epilogue.cuh"
#include "ops/activation.cuh"
#include "ops/final_logit.cuh"

namespace soliton::one_row {

/// Of row `lane` of a tile of q, k and v, if there is such a tile: a tile ahead, since device memory is slow to
/// answer while it streams.
template <const KernelPlan& kPlan>
SOLITON_DEVICE void Epilogue<kPlan>::load_bias(OutputKind output, int layer, int tile) {
  if constexpr (kPlan.model.qkv_bias) {
    const int row = tile * kTileRows + context_.lane % kTileRows;
    if (output != OutputKind::kRotary || row >= kPlan.model.qkv_rows()) return;
    bias_ = load_constant(context_.params.qkv_biases + static_cast<int64_t>(layer) * kPlan.model.qkv_rows() +
                          row);
  }
}

/// q, k: rotates each pair of dims d and d + head_dim / 2 by position * frequency(d), unless their heads are
/// normed first, by attention. v: as it is. `next_tile` is the run's, if there is one more.
template <const KernelPlan& kPlan>
SOLITON_DEVICE void Epilogue<kPlan>::rotary(const MatrixPhase& phase, float* output, int tile, float scale,
                                            int layer, int next_tile) {
  constexpr int kRotaryRows = (kPlan.model.num_heads + kPlan.model.num_kv_heads) * kPlan.model.head_dim;
  const int row = context_.lane % kTileRows;
  const int packed = tile * kTileRows;
  const bool rotates = packed < kRotaryRows;
  const int tile_in_head = packed % kPlan.model.head_dim / kTileRows;
  float2 rotation = make_float2(1.0f, 0.0f);
  if constexpr (kPlan.model.query_table != 0) {
    const bool is_query = packed < kPlan.model.num_heads * kPlan.model.head_dim;
    const int table = is_query ? kPlan.model.query_table * (kPlan.model.head_dim / 2) : 0;
    if (rotates && !kPlan.model.head_norm)
      rotation = load_shared(context_.rotations() + table + tile_in_head * 8 + row % 8);
  } else if constexpr (kPlan.model.rotates_alike()) {
    if (rotates && !kPlan.model.head_norm)
      rotation = load_shared(context_.rotations() + tile_in_head * 8 + row % 8);
  } else if (const int rope = rope_of<kPlan>(layer); rotates && !kPlan.model.head_norm && rope >= 0) {
    rotation =
        load_shared(context_.rotations() + rope * (kPlan.model.head_dim / 2) + tile_in_head * 8 + row % 8);
  }
  const float bias = bias_;
  load_bias(OutputKind::kRotary, layer, next_tile);
  float value = take_tile(phase, tile) * scale;
  if constexpr (kPlan.model.qkv_bias) value += bias;
  if constexpr (kPlan.model.joint_norm) publish_squares(output, tile, value);
  if constexpr (!kPlan.model.head_norm) {
    const float partner = shuffle_xor(value, 8);
    value = value * rotation.x + (row < 8 ? -partner : partner) * rotation.y;
  }
  const int index =
      rotates ? packed - packed % kPlan.model.head_dim + rotary_dim(tile_in_head, row, kPlan.model.head_dim)
              : packed + row;
  if (context_.lane < kTileRows) publish<kPlan>(context_, output + index, value, tag_);
}

/// Of a tile of q or k the sum of squares, behind q, k and v, or of one of a block's output, behind that, or its sum where it is
/// to lose its mean: whoever reads it adds up those of all tiles.
template <const KernelPlan& kPlan>
template <bool kOfBlock>
SOLITON_DEVICE void Epilogue<kPlan>::publish_squares(float* output, int tile, float value) {
  constexpr int kWords = kOfBlock ? kPlan.model.hidden : kPlan.model.qkv_rows();
  if (!kOfBlock && tile >= kPlan.model.rotary_heads() * kPlan.model.head_dim / kTileRows) return;
  float sum = kOfBlock && subtracts_means(kPlan.model.norms) ? value : value * value;
  SOLITON_UNROLL
  for (int mask = kTileRows / 2; mask > 0; mask /= 2) sum += shuffle_xor(sum, mask);
  if (context_.lane == 0) publish<kPlan>(context_, output + kWords + tile, sum, tag_);
}

/// Without a gate activation(up). Else activation(gate) * up, or what there is in its place: rows 0..7 of a tile are gate rows, 8..15 the up rows of the same elements. Of an expert times its
/// weight: so what comes next is one product with all of them.
template <const KernelPlan& kPlan>
SOLITON_DEVICE void Epilogue<kPlan>::swiglu(const MatrixPhase& phase, float* output, int tile, float scale,
                                            int layer, int next_tile) {
  float value = take_tile(phase, tile) * scale;
  if constexpr (RowFactors<kPlan>::kOfExperts) value *= expert_factor(tile, phase.number);
  if constexpr (kPlan.model.mixture.expert_bias || kPlan.model.up_biases > 0) {
    value += tile_bias_.of_row();
    tile_bias_.load(context_, phase, layer, next_tile);
  }
  if constexpr (kPlan.model.ungated) {
    if (context_.lane < kTileRows) {
      publish<kPlan>(context_, output + tile * kTileRows + context_.lane,
                     activate<kPlan.model.activation, false>(value), tag_);
    }
    return;
  }
  const float up = shuffle_down(value, 8);
  const float weight = expert_weight(tile, phase.number);
  if (context_.lane < 8) {
    constexpr Activation kActivation = kPlan.model.activation;
    float gated = activate<kActivation, false>(value) * multiplier<kActivation>(up);
    if constexpr (kMixes<kPlan>) gated *= weight;
    publish<kPlan>(context_, output + tile * 8 + context_.lane, gated, tag_);
  }
}

/// What a slice of the columns gives to the logits of experts.
template <const KernelPlan& kPlan>
SOLITON_DEVICE void Epilogue<kPlan>::route(float* output, int tile, float scale) {
  using Slices = RouterSlices<kPlan>;
  const float logit = take_tile() * scale;
  const int expert = tile / Slices::kCount * kTileRows + context_.lane;
  float* to = output + tile % Slices::kCount * Slices::kWords + expert;
  if (context_.lane < kTileRows && expert < Slices::kWords) publish<kPlan>(context_, to, logit, tag_);
}

/// Learns the layer's experts, in the phase that begins with them, and tells the producers.
template <const KernelPlan& kPlan>
SOLITON_DEVICE void Epilogue<kPlan>::choose(const MatrixPhase& phase, int layer) {
  const ExpertPhase& experts = kExpertTable<kPlan>.phases[phase.number];
  if (experts.axis != ExpertAxis::kRows) return;
  RouterBias<kPlan.model.mixture> bias;
  bias.load(context_.params.router_biases, layer, context_.lane);
  const auto logits = read_routes(context_, experts.routes, context_.use(experts.routes, layer));
  const ExpertChoice<kPlan.model.mixture> choice(logits, bias, context_.lane);
  if (choices_ > 0) {
    // Pairs with the producers' arrivals when they have issued all copies of the experts before.
    context_.wait(context_.barrier(BarrierId::kExpertsTaken), (choices_ - 1) & 1, WaitKind::kExpertsTaken,
                  choices_);
  }
  if (context_.lane < kPlan.model.mixture.used())
    store_shared(context_.experts() + context_.lane, static_cast<int32_t>(choice.expert()));
  warp_arrive(&context_.barrier(BarrierId::kExpertsChosen));
  ++choices_;
  expert_weight_ = choice.weight(context_.lane, kPlan.model.router_scale);
  if constexpr (RowFactors<kPlan>::kOfExperts) {
    if (context_.lane < kPlan.model.mixture.used()) {
      const float4 factors = RowFactors<kPlan>::of_expert(context_.params.layer_biases, layer,
                                                          static_cast<int>(choice.expert()));
      expert_factors_ = make_float2(factors.x, factors.y);
      expert_weight_ *= factors.z;
    }
  }
}

/// 1 where there are no experts.
template <const KernelPlan& kPlan>
SOLITON_DEVICE float Epilogue<kPlan>::expert_weight(int tile, int phase) const {
  if constexpr (kMixes<kPlan>) {
    const ExpertPhase& experts = kExpertTable<kPlan>.phases[phase];
    if (experts.axis == ExpertAxis::kRows) return shuffle(expert_weight_, tile / experts.tiles);
  }
  return 1.0f;
}

/// The same of what sums of this lane's row are multiplied with.
template <const KernelPlan& kPlan>
SOLITON_DEVICE float Epilogue<kPlan>::expert_factor(int tile, int phase) const {
  const ExpertPhase& experts = kExpertTable<kPlan>.phases[phase];
  if (experts.axis != ExpertAxis::kRows) return 1.0f;
  const float gate = shuffle(expert_factors_.x, tile / experts.tiles);
  const float up = shuffle(expert_factors_.y, tile / experts.tiles);
  return context_.lane % kTileRows < kTileRows / 2 ? gate : up;
}

/// Adds to the residual stream, whose rows stay with their CTA: phases that write it are dealt alike. It begins, behind
/// attention, with the token's embedding, whose columns are in the order of what the first norm scales.
template <const KernelPlan& kPlan>
SOLITON_DEVICE void Epilogue<kPlan>::residual(const MatrixPhase& phase, float* output, int tile, int own_tile,
                                              int layer, int next_tile) {
  const int row = tile * kTileRows + context_.lane % kTileRows;
  const bool begins = phase.appends && layer == 0;
  const int place = context_.normed_place(norm_row<kPlan>(phase, layer), row);
  float* own = context_.template region<float>(RegionId::kResidual) + own_tile * kTileRows + context_.lane;
  float before = 0.0f;
  if (context_.lane < kTileRows) {
    before = begins ? kPlan.model.embedding_scale *
                          bf16_to_float(load_constant(context_.params.embedding +
                                                      static_cast<int64_t>(token_) * kPlan.model.hidden +
                                                      context_.normed_place(0, row)))
                    : load_shared(own);
  }
  float value;
  if constexpr (kPlan.model.residual_scale == 1) {
    value = before + take_tile(phase, tile);
  } else {
    value = fmaf(take_tile(phase, tile), kPlan.model.residual_scale, before);
  }
  if constexpr (TileBias<kPlan>::kIsThere) {
    value += phase.appends || !kPlan.model.mixture.expert_bias
                 ? tile_bias_.of_row()
                 : tile_bias_.of_experts(context_.lane, expert_weight_);
    tile_bias_.load(context_, phase, layer, next_tile);
  }
  if (context_.lane >= kTileRows) return;
  store_shared(own, value);
  publish<kPlan>(context_, output + place, value, tag_);
}

/// What a block gives, as it is: who reads it norms it and adds it to the residual stream, see block_norm.cuh.
template <const KernelPlan& kPlan>
SOLITON_DEVICE void Epilogue<kPlan>::put_block(const MatrixPhase& phase, float* output, int tile, int layer,
                                               int next_tile) {
  float value = take_tile(phase, tile);
  if constexpr (TileBias<kPlan>::kIsThere) {
    value += tile_bias_.of_row();
    tile_bias_.load(context_, phase, layer, next_tile);
  }
  publish_squares<true>(output, tile, value);
  if (context_.lane < kTileRows)
    publish<kPlan>(context_, output + tile * kTileRows + context_.lane, value, tag_);
}

template <const KernelPlan& kPlan>
SOLITON_DEVICE void Epilogue<kPlan>::logits(const MatrixPhase& phase, int tile, float scale, int next_tile) {
  float sum = take_tile() * scale;
  if constexpr (kPlan.model.logit_biases) {
    sum += tile_bias_.of_row();
    tile_bias_.load(context_, phase, 0, next_tile);
  }
  const float logit = final_logit<kPlan>(sum);
  const int token = tile * kTileRows + context_.lane;
  if (context_.lane >= kTileRows) return;
  if (context_.params.sampling.rows != nullptr) keep_logit(context_.params.sampling, 0, token, logit);
  if (token >= phase.rows) return;
  if (context_.params.logits != nullptr) {
    const int64_t output = context_.step - (context_.params.num_input_tokens - 1);
    store_global(context_.params.logits + output * phase.rows + token, logit);
  }
  const uint64_t candidate = propose(logit, logit, token);
  if (candidate > best_) best_ = candidate;
}

/// In place of the best logit's candidate. Of what this warp kept of the step's token nothing is needed any more: the
/// histogram lies there.
template <const KernelPlan& kPlan>
SOLITON_DEVICE void Epilogue<kPlan>::draw(const MatrixPhase& phase) {
  warp_sync();  // all lanes' logits are there
  // Nothing of this is to be in registers during the layers.
  context_.cta = opaque(context_.cta);
  context_.lane = opaque(context_.lane);
  const TileRun run = context_.tiles(phase);
  constexpr int kLoads = 8;
  RowSampler<kPlan, Context<kPlan>, kLoads> sampler(context_, run, context_.region(RegionId::kToken), 0);
  best_ = sampler.draw(0, context_.position(), token_);
}

template <const KernelPlan& kPlan>
SOLITON_DEVICE void Epilogue<kPlan>::end_choice() {
  warp_sync();
  for (int mask = kWarpLanes / 2; mask > 0; mask /= 2) {
    const uint64_t other = shuffle_xor(best_, mask);
    if (other > best_) best_ = other;
  }
  if (context_.lane == 0) {
    uint64_t* candidates = context_.template workspace<uint64_t>(kPlan.candidates().offset);
    const uint32_t tag = tag_of(context_.step);
    publish<kPlan>(context_, candidates + context_.global_cta(), best_, tag);
    if (context_.is_first_cta()) {
      const uint64_t stop = load_system(context_.params.stop_request) != 0 ? kTagMask + 1 : 0;
      publish<kPlan>(context_, candidates + kPlan.all_ctas(), stop, tag);
    }
  }
}

}  // namespace soliton::one_row
