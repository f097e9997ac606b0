#include "models/check.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <limits>
#include <set>
#include <span>
#include <string_view>

#include "layout/fact_list.h"
#include "layout/weight_format.h"
#include "models/check_layers.h"
#include "models/check_rope.h"
#include "models/limits.h"
#include "models/matrix_roles.h"

namespace soliton {
namespace {

bool always(const ModelFacts&) {
  return true;
}
bool has_integers(const ModelFacts& facts) {
  return traits_of(type_of_bits(facts.weight_bits)).has_scales;
}
bool scales_attention(const ModelFacts& facts) {
  return facts.attention_scale != 0;
}
bool caps_attention(const ModelFacts& facts) {
  return facts.attention_soft_cap != 0;
}
bool has_alibi(const ModelFacts& facts) {
  return facts.alibi != 0;
}
bool caps_logits(const ModelFacts& facts) {
  return facts.logit_soft_cap != 0;
}
bool rotates_some(const ModelFacts& facts) {
  return facts.rope_dims != 0;
}
bool has_original_context(const ModelFacts& facts) {
  return facts.rope_kind == RopeKind::kLlama3 || facts.rope_kind == RopeKind::kYarn ||
         facts.rope_kind == RopeKind::kLongrope;
}

/// What has no limit but its type.
struct AnyKind {
  constexpr bool contains(RopeKind) const { return true; }
  std::string describe() const { return "a kind of RoPE"; }
};

/// One that has a name.
struct AnyNamed {
  std::span<const char* const> names;  // by enumerator

  constexpr bool contains(int32_t value) const { return value >= 0 && value < std::ssize(names); }
  std::string describe() const { return fmt::format("\"{}\"", fmt::join(names, "\" or \"")); }
};

struct Rule {
  Fact fact;
  std::variant<IntegerRange, IntegerChoice, NumberRange, AnyKind, AnyNamed> limit;
  bool (*applies)(const ModelFacts& facts) = always;
};

/// Of every fact, in the order in which they are checked.
constexpr std::array kRules = {
    Rule{&ModelFacts::hidden, kHiddenLimit},
    Rule{&ModelFacts::ffn, kFfnLimit},
    Rule{&ModelFacts::num_layers, kLayersLimit},
    Rule{&ModelFacts::num_heads, kHeadsLimit},
    Rule{&ModelFacts::num_kv_heads, kHeadsLimit},
    Rule{&ModelFacts::head_dim, IntegerChoice{kHeadDims}},
    Rule{&ModelFacts::vocabulary, kVocabularyLimit},
    Rule{&ModelFacts::tied_lm_head, IntegerChoice{kNoOrYes}},
    Rule{&ModelFacts::qkv_bias, IntegerChoice{kNoOrYes}},
    Rule{&ModelFacts::o_bias, IntegerChoice{kNoOrYes}},
    Rule{&ModelFacts::head_norm, IntegerChoice{kNoOrYes}},
    Rule{&ModelFacts::joint_norm, IntegerChoice{kNoOrYes}},
    Rule{&ModelFacts::head_norm_last, IntegerChoice{kNoOrYes}},
    Rule{&ModelFacts::sinks, IntegerChoice{kNoOrYes}},
    Rule{&ModelFacts::norms, AnyNamed{kNormPlacementNames}},
    Rule{&ModelFacts::norm_offset, IntegerChoice{kNoOrYes}},
    Rule{&ModelFacts::norm_bias, IntegerChoice{kNoOrYes}},
    Rule{&ModelFacts::ffn_bias, IntegerChoice{kNoOrYes}},
    Rule{&ModelFacts::ungated, IntegerChoice{kNoOrYes}},
    Rule{&ModelFacts::activation, AnyNamed{kActivationNames}},
    Rule{&ModelFacts::kv_bits, IntegerChoice{kKvBits}},
    Rule{&ModelFacts::max_context, kContextLimit},
    Rule{&ModelFacts::num_experts, kExpertsLimit, has_experts},
    Rule{&ModelFacts::experts_per_token, kChosenExpertsLimit, has_experts},
    Rule{&ModelFacts::expert_ffn, kFfnLimit, has_experts},
    Rule{&ModelFacts::renormalised, IntegerChoice{kNoOrYes}},
    Rule{&ModelFacts::shared_experts, kSharedExpertsLimit},
    Rule{&ModelFacts::shared_gate, IntegerChoice{kNoOrYes}},
    Rule{&ModelFacts::router_scores, AnyNamed{kRouterScoresNames}},
    Rule{&ModelFacts::router_bias, IntegerChoice{kNoOrYes}},
    Rule{&ModelFacts::expert_bias, IntegerChoice{kNoOrYes}},
    Rule{&ModelFacts::router_scale, kRouterScaleLimit},
    Rule{&ModelFacts::norm_epsilon, kNormEpsilonLimit},
    Rule{&ModelFacts::embedding_scale, kScaleLimit},
    Rule{&ModelFacts::residual_scale, kScaleLimit},
    Rule{&ModelFacts::attention_scale, kScaleLimit, scales_attention},
    Rule{&ModelFacts::attention_soft_cap, kScaleLimit, caps_attention},
    Rule{&ModelFacts::alibi, kAlibiLimit, has_alibi},
    Rule{&ModelFacts::logit_scale, kScaleLimit},
    Rule{&ModelFacts::logit_soft_cap, kScaleLimit, caps_logits},
    Rule{&ModelFacts::weight_bits, IntegerChoice{kWeightBits}},
    Rule{&ModelFacts::weight_group, IntegerChoice{kWeightGroups}, has_integers},
    Rule{&ModelFacts::weight_zeros, IntegerChoice{kNoOrYes}},
    Rule{&ModelFacts::weight_order, IntegerChoice{kNoOrYes}},
    Rule{&ModelFacts::weight_minima, IntegerChoice{kNoOrYes}},
    Rule{&ModelFacts::weight_block, IntegerChoice{kWeightBlocks}},
    Rule{&ModelFacts::weight_e4m3, IntegerChoice{kNoOrYes}},
    Rule{&ModelFacts::further_bits, IntegerChoice{kFurtherBits}},
    Rule{&ModelFacts::further_group, IntegerChoice{kFurtherGroups}},
    Rule{&ModelFacts::further_minima, IntegerChoice{kNoOrYes}},
    Rule{&ModelFacts::further_block, IntegerChoice{kWeightBlocks}},
    Rule{&ModelFacts::further_e2m1, IntegerChoice{kNoOrYes}},
    Rule{&ModelFacts::lm_head_bits, IntegerChoice{kWeightBits}},
    Rule{&ModelFacts::rope_kind, AnyKind{}},
    Rule{&ModelFacts::rope_theta, kRopeThetaLimit},
    Rule{&ModelFacts::rope_dims, kRopeDimsLimit, rotates_some},
    Rule{&ModelFacts::rope_original_context, kContextLimit, has_original_context},
    Rule{&ModelFacts::rope_factor, kRopeFactorLimit},
    Rule{&ModelFacts::rope_low_freq_factor, kRopeFreqFactorLimit},
    Rule{&ModelFacts::rope_high_freq_factor, kRopeFreqFactorLimit},
    Rule{&ModelFacts::rope_truncate, IntegerChoice{kNoOrYes}},
    Rule{&ModelFacts::rope_beta_fast, kRopeBetaLimit},
    Rule{&ModelFacts::rope_beta_slow, kRopeBetaLimit},
    Rule{&ModelFacts::rope_attention_factor, kRopeAttentionFactorLimit},
    Rule{&ModelFacts::rope_local_theta, kRopeThetaLimit, has_local_rope},
    Rule{&ModelFacts::query_scale_beta, kQueryScaleLimit},
    Rule{&ModelFacts::query_scale_context, kContextLimit, scales_queries},
};

/// Whether a size may be some model's, if not one that kernels can be generated for.
bool is_possible(const IntegerRange& range, int value) {
  return value >= 1 && value <= range.max;
}
bool is_possible(const IntegerChoice&, int value) {
  return value >= 1;
}
bool is_possible(const NumberRange&, double) {
  return false;
}
bool is_possible(const AnyKind&, RopeKind) {
  return true;
}
bool is_possible(const AnyNamed&, int32_t) {
  return true;
}

/// The fact's value, of the type that its limit is for.
template <class Limit>
auto value_of(const ModelFacts& facts, const Fact& fact) {
  if constexpr (std::is_same_v<Limit, NumberRange>) {
    return facts.*std::get<double ModelFacts::*>(fact);
  } else if constexpr (std::is_same_v<Limit, AnyKind>) {
    return facts.*std::get<RopeKind ModelFacts::*>(fact);
  } else {
    return facts.*std::get<int32_t ModelFacts::*>(fact);
  }
}

void check_limit(const StatedFacts& stated, const Rule& rule) {
  if (!rule.applies(stated.facts)) return;
  std::visit(
      [&]<class Limit>(const Limit& limit) {
        const auto value = value_of<Limit>(stated.facts, rule.fact);
        if (limit.contains(value)) return;
        throw refusal(is_possible(limit, value) ? stated.unsupported : ExitCode::kBadFile,
                      stated.place(rule.fact), limit.describe());
      },
      rule.limit);
}

/// Where experts stand side by side they have whole blocks in bf16; of integers they are widened.
void check_experts(const StatedFacts& stated) {
  const ModelFacts& facts = stated.facts;
  if (!has_experts(facts)) {
    if (facts.expert_bias == 0) return;
    throw refusal(ExitCode::kBadFile, stated.place(&ModelFacts::expert_bias), "false without experts");
  }
  if (facts.experts_per_token > facts.num_experts) {
    throw refusal(ExitCode::kBadFile, stated.place(&ModelFacts::experts_per_token),
                  fmt::format("at most {} = {}", last_word(stated.place(&ModelFacts::num_experts).key),
                              facts.num_experts));
  }
  // Columns of which each of four consumer warps has some, or of eight.
  const int blocks = (facts.further_e2m1 != 0 ? 8 : 4) * kColumnBlock;
  if (!has_integers(facts) && used_experts(facts) * facts.expert_ffn % blocks != 0) {
    throw refusal(stated.unsupported, stated.place(&ModelFacts::expert_ffn),
                  fmt::format("a width of which {} are a multiple of {}", used_experts(facts), blocks));
  }
  const bool divides_groups =
      facts.shared_experts > 1 && facts.weight_group > 0 && facts.expert_ffn % facts.weight_group != 0;
  if (has_integers(facts) && divides_groups) {
    throw refusal(stated.unsupported, stated.place(&ModelFacts::expert_ffn),
                  fmt::format("a multiple of {}, the columns of a group", facts.weight_group));
  }
  if (facts.shared_gate != 0 && facts.shared_experts == 0) {
    throw refusal(ExitCode::kBadFile, stated.place(&ModelFacts::shared_gate), "false without shared experts");
  }
  if (facts.weight_order != 0) {
    throw refusal(stated.unsupported, stated.place(&ModelFacts::weight_order),
                  "inputs in natural order where there are experts");
  }
}

void check_head_norms(const StatedFacts& stated) {
  constexpr int kMostDims = 65536;  // of q and k, so that a lane polls at most 32 groups of sums
  const ModelFacts& facts = stated.facts;
  if (facts.head_norm_last != 0 && (facts.head_norm == 0 || facts.joint_norm != 0)) {
    throw refusal(ExitCode::kBadFile, stated.place(&ModelFacts::head_norm_last),
                  "false where heads are not normed each by itself");
  }
  if (facts.joint_norm == 0) return;
  if (facts.head_norm == 0)
    throw refusal(ExitCode::kBadFile, stated.place(&ModelFacts::joint_norm),
                  "false where heads are not normed");
  if (rotary_heads(facts) * facts.head_dim > kMostDims) {
    throw refusal(stated.unsupported, stated.place(&ModelFacts::num_heads),
                  fmt::format("heads of {} dims of q and k, where all are normed together", kMostDims));
  }
}

/// What does not go with norms behind blocks, or with a scale of what these give.
void check_blocks(const StatedFacts& stated) {
  const ModelFacts& facts = stated.facts;
  const auto refuse = [&](const Fact& fact, const std::string& expected) {
    throw refusal(stated.unsupported, stated.place(fact), expected);
  };
  const bool follows = holds_blocks(norm_placement(facts));
  if (follows && has_experts(facts)) refuse(&ModelFacts::num_experts, "no experts where norms follow blocks");
  if (follows && facts.weight_order != 0)
    refuse(&ModelFacts::weight_order, "inputs in natural order where norms follow blocks");
  if (facts.residual_scale == 1) return;
  if (follows) refuse(&ModelFacts::residual_scale, "1 where norms follow blocks");
  if (facts.o_bias != 0 || facts.expert_bias != 0 || facts.ffn_bias != 0)
    refuse(&ModelFacts::residual_scale, "1 where outputs of blocks have biases");
}

/// Biases of norms become those of matrices: of LayerNorms alone, and of matrices in floats, all layers' alike.
void check_norm_biases(const StatedFacts& stated) {
  const ModelFacts& facts = stated.facts;
  if (facts.norm_bias == 0) return;
  const auto refuse = [&](const Fact& fact, const std::string& expected) {
    throw refusal(stated.unsupported, stated.place(fact), expected);
  };
  if (!subtracts_means(norm_placement(facts)))
    refuse(&ModelFacts::norm_bias, "false where norms are no LayerNorms");
  if (has_integers(facts)) refuse(&ModelFacts::weight_bits, "16 where norms have biases");
  if (lists_layers(facts)) refuse(&ModelFacts::ffn, "one for all layers where norms have biases");
}

/// Biases of feed-forward networks are those of all layers alike.
void check_ffn_biases(const StatedFacts& stated) {
  const ModelFacts& facts = stated.facts;
  if (facts.ffn_bias == 0) return;
  const auto refuse = [&](const Fact& fact, const std::string& expected) {
    throw refusal(stated.unsupported, stated.place(fact), expected);
  };
  if (has_experts(facts))
    refuse(&ModelFacts::num_experts, "no experts where feed-forward networks have biases");
  if (lists_layers(facts))
    refuse(&ModelFacts::ffn, "one for all layers where feed-forward networks have biases");
}

/// What does not go without a gate.
void check_gates(const StatedFacts& stated) {
  const ModelFacts& facts = stated.facts;
  if (facts.ungated == 0) return;
  const auto refuse = [&](const Fact& fact, const std::string& expected) {
    throw refusal(stated.unsupported, stated.place(fact), expected);
  };
  if (has_experts(facts)) refuse(&ModelFacts::num_experts, "no experts without a gate");
  if (facts.activation == static_cast<int32_t>(Activation::kClampedSwiglu))
    refuse(&ModelFacts::activation, "a function of one number without a gate");
  if (facts.weight_order != 0) refuse(&ModelFacts::weight_order, "inputs in natural order without a gate");
}

/// E4M3 has one form.
void check_e4m3(const StatedFacts& stated) {
  const ModelFacts& facts = stated.facts;
  const auto refuse = [&](const Fact& fact, const std::string& expected) {
    throw refusal(stated.unsupported, stated.place(fact), expected);
  };
  if (facts.weight_bits != 8) refuse(&ModelFacts::weight_bits, "8 for E4M3");
  if (facts.weight_group != kE4m3Group)
    refuse(&ModelFacts::weight_group, fmt::format("{} for E4M3", kE4m3Group));
  if (facts.weight_zeros != 0) refuse(&ModelFacts::weight_zeros, "none of E4M3");
  if (facts.weight_order != 0) refuse(&ModelFacts::weight_order, "inputs in natural order of E4M3");
  if (facts.weight_minima != 0) refuse(&ModelFacts::weight_minima, "none of E4M3");
  if (facts.weight_block != 0) refuse(&ModelFacts::weight_block, "0 for E4M3");
  if (facts.further_bits != 0) refuse(&ModelFacts::further_bits, "no integers beside E4M3");
}

/// Integers that a kernel can be made for.
void check_weights(const StatedFacts& stated) {
  const ModelFacts& facts = stated.facts;
  const auto refuse = [&](const Fact& fact, const std::string& expected) {
    throw refusal(stated.unsupported, stated.place(fact), expected);
  };
  if (facts.weight_e4m3 != 0) check_e4m3(stated);
  const bool is_plain = facts.weight_bits == 4 && facts.weight_minima == 0 && facts.weight_block == 0;
  if (facts.weight_zeros != 0 && !is_plain && has_integers(facts))
    refuse(&ModelFacts::weight_zeros, fmt::format("symmetric weights of {} bits", facts.weight_bits));
  if (facts.weight_order != 0 && facts.further_bits != 0)
    refuse(&ModelFacts::weight_order, "inputs in natural order where matrices differ in bits");
  if (facts.weight_block != 0 && facts.weight_group < 0)
    refuse(&ModelFacts::weight_group, "groups where there are blocks");
  if (facts.further_e2m1 != 0) {
    if (facts.further_bits != 4 || facts.weight_bits == 4)
      refuse(&ModelFacts::further_bits, "4 for E2M1, and layers in other bits");
    if ((facts.further_group != 0 && facts.further_group != kNvfp4Group) || facts.further_minima != 0 ||
        facts.further_block != 0)
      refuse(&ModelFacts::further_group, fmt::format("{} for E2M1, or 0, which stands for 32", kNvfp4Group));
    if (facts.further_group != 0 && facts.expert_bias != 0)
      refuse(&ModelFacts::further_group, "no E2M1 in groups of 16 (NVFP4) where experts have biases");
    if (facts.further_group != 0 && facts.lm_head_bits != 16)
      refuse(&ModelFacts::lm_head_bits, "16 beside E2M1 in groups of 16 (NVFP4)");
  } else if (facts.further_bits != 0) {
    if ((facts.further_group == 0) != (facts.further_bits == 16))
      refuse(&ModelFacts::further_group, facts.further_bits == 16 ? "0 for bf16" : "one of 16, 32, 64, 128");
    if (facts.further_bits == facts.weight_bits || !has_integers(facts))
      refuse(&ModelFacts::further_bits, "other integers than the layers have");
  }
  if (facts.lm_head_bits != 16 && facts.lm_head_bits != facts.weight_bits &&
      facts.lm_head_bits != facts.further_bits) {
    refuse(&ModelFacts::lm_head_bits, fmt::format("16 or {}, as the layers have", facts.weight_bits));
  }
  std::set<std::pair<int32_t, int32_t>> kinds;
  for (int layer = 0; layer < facts.num_layers; ++layer)
    kinds.emplace(ffn_of_layer(facts, layer), further_of_layer(facts, layer));
  if (facts.further_bits != 0 && kinds.size() > kMostLayerKinds)
    refuse(&ModelFacts::further_bits, fmt::format("at most {} kinds of layers", kMostLayerKinds));
}

void check_together(const StatedFacts& stated) {
  const ModelFacts& facts = stated.facts;
  if (facts.num_heads % facts.num_kv_heads != 0) {
    throw refusal(ExitCode::kBadFile, stated.place(&ModelFacts::num_kv_heads),
                  fmt::format("a divisor of {} = {}", last_word(stated.place(&ModelFacts::num_heads).key),
                              facts.num_heads));
  }
  if (facts.head_norm != 0 && !can_norm_heads(facts.head_dim)) {
    throw refusal(stated.unsupported, stated.place(&ModelFacts::head_dim),
                  "64, 128 or 256 where heads are normed");
  }
  check_blocks(stated);
  check_norm_biases(stated);
  check_ffn_biases(stated);
  check_gates(stated);
  check_head_norms(stated);
  check_weights(stated);
  check_rope(stated);
  check_experts(stated);
}

/// The key that models/*.yaml have for it.
std::string key_of(const Fact& fact) {
  static const ModelFacts facts = {.o_bias = 1,  // so that all are visited
                                   .joint_norm = 1,
                                   .head_norm_last = 1,
                                   .sinks = 1,
                                   .norms = 1,
                                   .norm_offset = 1,
                                   .norm_bias = 1,
                                   .ffn_bias = 1,
                                   .ungated = 1,
                                   .rope_dims = 1,
                                   .weight_minima = 1,
                                   .weight_block = 1,
                                   .weight_e4m3 = 1,
                                   .further_bits = 1,
                                   .further_minima = 1,
                                   .further_block = 1,
                                   .further_e2m1 = 1,
                                   .num_experts = 1,
                                   .shared_experts = 1,
                                   .shared_gate = 1,
                                   .router_scores = 1,
                                   .router_bias = 1,
                                   .expert_bias = 1,
                                   .router_scale = 0,
                                   .embedding_scale = 0,
                                   .residual_scale = 0,
                                   .attention_scale = 1,
                                   .attention_soft_cap = 1,
                                   .alibi = 1,
                                   .logit_scale = 0,
                                   .logit_soft_cap = 1,
                                   .rope_local_theta = 1,
                                   .query_scale_beta = 1};
  const void* const wanted = std::visit([](auto member) -> const void* { return &(facts.*member); }, fact);
  std::string found;
  for_each_fact(facts, [&](const char* name, const auto& value) {
    if (&value == wanted) found = name;
  });
  constexpr std::string_view kRope = "rope_";
  return found.starts_with(kRope) ? "rope." + found.substr(kRope.size()) : found;
}

/// As files have it.
template <class Value>
std::string show(const Value& value) {
  if constexpr (std::is_same_v<Value, RopeKind>) {
    return rope_name(value);
  } else {
    return fmt::format("{}", value);
  }
}

/// The fact's value as files have it: of what is so or not so, a word.
std::string show_fact(const ModelFacts& facts, const Rule& rule) {
  if (const auto* const named = std::get_if<AnyNamed>(&rule.limit))
    return named->names[facts.*std::get<int32_t ModelFacts::*>(rule.fact)];
  const auto* const choice = std::get_if<IntegerChoice>(&rule.limit);
  const bool is_flag = choice != nullptr && choice->choices.data() == kNoOrYes.data();
  const std::string value = std::visit([&](auto member) { return show(facts.*member); }, rule.fact);
  return !is_flag ? value : value == "0" ? "false" : "true";
}

}  // namespace

void StatedFacts::state(int32_t ModelFacts::*fact, int64_t value, Place place) {
  using Limits = std::numeric_limits<int32_t>;
  facts.*fact = static_cast<int32_t>(std::clamp<int64_t>(value, Limits::min(), Limits::max()));
  places.emplace_back(fact, std::move(place));
}

void StatedFacts::state(double ModelFacts::*fact, double value, Place place) {
  facts.*fact = value;
  places.emplace_back(fact, std::move(place));
}

void StatedFacts::state(RopeKind ModelFacts::*fact, RopeKind value, Place place) {
  facts.*fact = value;
  places.emplace_back(fact, std::move(place));
}

void StatedFacts::state_mxfp4_experts(const Place& place) {
  constexpr int kE2m1Bits = 4;
  state(&ModelFacts::further_bits, kE2m1Bits, place);
  state(&ModelFacts::further_e2m1, 1, place);
  for (int layer = 0; layer < std::min<int>(facts.num_layers, kMostListedLayers); ++layer) {
    if (ffn_of_layer(facts, layer) == kMixture) facts.layer_further[layer] = kGateUpMatrix | kDownMatrix;
  }
}

Place StatedFacts::place(const Fact& fact) const {
  const auto stated =
      std::find_if(places.rbegin(), places.rend(), [&](const auto& each) { return each.first == fact; });
  if (stated != places.rend()) return stated->second;
  return {.file = file,
          .key = key_of(fact),
          .got = std::visit([&](auto member) { return show(facts.*member); }, fact)};
}

std::string describe_limit(const Fact& fact) {
  const auto rule =
      std::find_if(kRules.begin(), kRules.end(), [&](const Rule& each) { return each.fact == fact; });
  return std::visit([](const auto& limit) { return limit.describe(); }, rule->limit);
}

void check_same(const StatedFacts& stated, const ModelFacts& expected, const std::string& whose) {
  for (const Rule& rule : kRules) {
    if (rule.fact == Fact(&ModelFacts::kv_bits)) continue;
    const bool is_same =
        std::visit([&](auto member) { return stated.facts.*member == expected.*member; }, rule.fact);
    if (is_same) continue;
    throw refusal(ExitCode::kMismatch, stated.place(rule.fact),
                  fmt::format("{} ({})", show_fact(expected, rule), whose));
  }
  check_same_layers(stated, expected, whose);
  check_same_factors(stated, expected, whose);
}

void check(const StatedFacts& stated) {
  for (const Rule& rule : kRules) check_limit(stated, rule);
  check_layers(stated);
  check_together(stated);
}

}  // namespace soliton
