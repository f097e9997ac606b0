// MPT (7B, 7B-instruct, 7B-chat): ALiBi in the place of rotations, LayerNorm without biases, feed-forward networks without a
// gate. Members have names of their own; what transformers saves has another architecture than what was published.
#include "models/families/family.h"
#include "models/hf_members.h"
#include "models/limits.h"

namespace soliton {
namespace {

/// Refuses a member that is there, unless it is `expected`.
void expect_flag(const JsonView& view, bool expected) {
  if (view.is_null() || view.boolean() == expected) return;
  throw view.error(ExitCode::kMismatch, "expected {}, got {}: not supported", expected, !expected);
}
void expect_null(const JsonView& view) {
  if (!view.is_null())
    throw view.error(ExitCode::kMismatch, "expected null, got {}: not supported", view.describe());
}

/// What all networks' width is to that of the model.
constexpr int64_t kExpansion = 4;

nlohmann::json translate(const JsonView& config) {
  nlohmann::json members = config.object();
  members["hidden_size"] = config["d_model"].integer();
  members["num_attention_heads"] = config["n_heads"].integer();
  members["num_hidden_layers"] = config["n_layers"].integer();
  members["max_position_embeddings"] = config["max_seq_len"].integer();
  members["intermediate_size"] = kExpansion * config["d_model"].integer(1, kHiddenLimit.max);
  const JsonView attention = config["attn_config"];
  if (!attention.is_null() && !attention["softmax_scale"].is_null())
    members["softmax_scale"] = attention["softmax_scale"].number();
  return members;
}

void read_mpt(const JsonView& config, StatedFacts& stated) {
  if (const JsonView ratio = config["expansion_ratio"]; !ratio.is_null() && ratio.integer() != kExpansion)
    throw ratio.error(ExitCode::kMismatch, "expected {}, got {}: not supported", kExpansion,
                      ratio.describe());
  expect_flag(config["no_bias"], true);
  expect_null(config["logit_scale"]);
  if (const JsonView norm = config["norm_type"]; !norm.is_null()) {
    const std::string type = norm.string();
    if (type != "low_precision_layernorm" && type != "layernorm")
      throw norm.error(ExitCode::kMismatch, "expected \"low_precision_layernorm\" or \"layernorm\", got {}",
                       norm.describe());
  }
  stated.state(&ModelFacts::activation, static_cast<int32_t>(Activation::kGelu), config["d_model"].place());
  const JsonView attention = config["attn_config"];
  constexpr double kMostBias = 8;
  double most = kMostBias;
  Place place = attention.place();
  if (!attention.is_null()) {
    if (const JsonView type = attention["attn_type"];
        !type.is_null() && type.string() != "multihead_attention")
      throw type.error(ExitCode::kMismatch, "expected \"multihead_attention\", got {}: not supported",
                       type.describe());
    expect_flag(attention["alibi"], true);
    expect_flag(attention["qk_ln"], false);
    expect_flag(attention["prefix_lm"], false);
    expect_null(attention["clip_qkv"]);
    if (const JsonView bias = attention["alibi_bias_max"]; !bias.is_null()) {
      most = bias.number();
      place = bias.place();
    }
  }
  place.got = fmt::format("{}", most);
  stated.state(&ModelFacts::alibi, most, place);
  if (const JsonView scale = config["softmax_scale"]; !scale.is_null())
    read_fact(scale, &ModelFacts::attention_scale, stated);
  stated.state_ropes({kNoRope}, attention.place());
}

constexpr Family mpt(const char* architecture) {
  return {.architecture = architecture,
          .model_type = "mpt",
          .norm_epsilon_member = "layer_norm_epsilon",
          .absent_norm_epsilon = 1e-5,
          .absent_tied = true,
          .norms = NormPlacement::kCentred,
          .norm_names = {"norm_1", "norm_2"},
          .ungated = true,
          .tensors = {.embedding = "transformer.wte",
                      .layers = "transformer.blocks.",
                      .final_norm = "transformer.norm_f",
                      .qkv = "attn.Wqkv",
                      .o = "attn.out_proj",
                      .up = "ffn.up_proj",
                      .down = "ffn.down_proj"},
          .projections = Projections::kFused,
          .translate = translate,
          .read_further = read_mpt};
}

}  // namespace

extern const Family kMpt = mpt("MptForCausalLM");
extern const Family kMptOriginal = mpt("MPTForCausalLM");

}  // namespace soliton
