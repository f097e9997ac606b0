// A family of models: whose config.json is read, what its members mean, and where the tensors stand. Each family is one
// file of this folder and a line in families.cc. What families have in common, hf_config.cc reads.
#pragma once

#include <array>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string_view>

#include "models/check.h"
#include "models/checkpoint.h"
#include "models/strict_json.h"

namespace soliton {

/// When attention does not see all of the context.
enum class Window {
  kNone,      // it always does: sliding_window says nothing
  kStated,    // sliding_window is its width, in all layers
  kSwitched,  // the same where use_sliding_window is true, from layer max_window_layers on
  kLayers,  // likewise, of the layers that layer_types says; where that is absent, of all but every `window_period`-th
};

/// By what the layers' heads are rotated.
enum class Ropes {
  kAlike,      // all by rope_theta
  kOfWindows,  // those with a window by a theta of their own: of rope_parameters' sliding_attention
  kByWindows,  // those without a window by nothing, where others have one
  kListed,  // by nothing those for which no_rope_layers has a 0; where that is absent, every no_rope_layer_interval-th
};

/// Which members of config.json say what a mixture of experts is; nullptr: none does.
struct MixtureFamily {
  const char* count = "num_experts";
  const char* other_count = nullptr;  // its name in what transformers 5 saves
  const char* ffn = "moe_intermediate_size";
  const char* renormalised = nullptr;  // whether it is so; nullptr: it is
  bool absent_renormalised = false;
  const char* sparse_step = nullptr;   // every how manieth layer is a mixture, absent: all
  const char* dense_layers = nullptr;  // the list of those that are none all the same
  const char* shared_ffn = nullptr;    // the width of the shared experts together
  const char* shared_count = nullptr;  // or how many there are, as wide as the others
  bool shared_gate = false;            // they have one
  const char* first_sparse = nullptr;  // the first layer that is a mixture
  const char* num_groups = nullptr;    // of experts, of which a token's are in some only
  const char* scale = nullptr;         // of the weights of those that a token is routed to
  RouterScores scores = RouterScores::kSoftmax;
  bool bias = false;         // of the scores, for the choice alone; of logits, if they are scored by softmax
  bool expert_bias = false;  // of gate, up and down of each
  MixtureNames names = {};
};

struct Family {
  const char* architecture;  // of config.json's architectures
  const char* model_type;
  // What members mean that are absent.
  std::optional<int32_t> absent_kv_heads = {};    // num_key_value_heads; else as many as heads
  std::optional<int32_t> absent_heads = {};       // num_attention_heads; else it may not be absent,
  std::optional<int32_t> absent_vocabulary = {};  // nor vocab_size,
  std::optional<int32_t> absent_context = {};     // nor max_position_embeddings
  std::optional<int32_t> absent_head_dim = {};    // head_dim; else the heads share hidden_size
  std::optional<int32_t> absent_window = {};      // sliding_window, in tokens; else none
  const char* ffn_member = "intermediate_size";
  const char* norm_epsilon_member = "rms_norm_eps";
  double absent_norm_epsilon = 1e-6;   // of that
  double absent_rope_theta = 10000.0;  // rope_theta
  bool absent_tied = false;            // tie_word_embeddings
  Window window = Window::kNone;
  int window_period = 2;                       // see Window::kLayers; 0: all have one
  const char* window_period_member = nullptr;  // that says it
  Ropes ropes = Ropes::kAlike;
  const char* local_theta_member = nullptr;  // of layers with a window, beside rope_theta at the top,
  double absent_local_theta = 10000.0;       // and what it means that it is absent
  bool qkv_bias = false;                     // always: attention_bias says nothing
  const char* qkv_bias_member = nullptr;     // that says whether they are there; absent: as `qkv_bias` says
  bool o_bias = false;                       // where q, k and v have biases, so has o,
  const char* o_bias_member = nullptr;       // or this says so
  bool ffn_bias = false;                     // gate, up and down of feed-forward networks have biases
  const char* ffn_bias_member = nullptr;     // or this says so; absent: as `ffn_bias` says
  bool sinks = false;                        // heads have the score of a key without a value
  bool head_norm = false;                    // heads of q and k are normed
  const char* head_norm_member = nullptr;    // likewise
  bool joint_norm = false;                   // all heads of q together, and all of k
  bool head_norm_last = false;               // their weights come behind the rotation
  NormPlacement norms = NormPlacement::kBefore;
  bool norm_bias = false;                           // LayerNorms have biases
  bool norm_offset = false;                         // norms multiply with 1 + their weight
  std::array<const char*, 4> norm_names = {};       // of a layer, as they are applied; else as most call them
  std::array<const char*, 2> head_norm_names = {};  // of q and of k; else q_norm and k_norm
  bool ungated = false;                             // feed-forward networks have no gate
  const char* activation_member = "hidden_act";
  Activation absent_activation = Activation::kSilu;  // of that
  std::optional<Activation> activation = {};         // of silu, that hidden_act names
  bool states_rope = false;                          // what RoPE it is has to be stated
  bool rope_alpha = false;            // dynamic scaling may have an `alpha`: theta is another one
  bool scales_queries = false;        // llama_4_scaling_beta may scale them by position
  const char* unsupported = nullptr;  // a member that may only be null
  std::optional<double> absent_rotary_factor =
      {};  // partial_rotary_factor; if it has no value, it may only be 1
  const char* further_layers =
      nullptr;                        // how many tensors of layers there are behind the last, for other uses
  const char* text_member = nullptr;  // what has all members but architectures and model_type
  const char* tensors_prefix = nullptr;  // what all names of tensors begin with
  TensorNames tensors = {};              // what they are called
  Projections projections = Projections::kApart;
  bool pairs = false;                         // pairs of dims that are rotated together stand side by side
  std::optional<MixtureFamily> mixture = {};  // of experts, if layers are such
  /// Where it calls members otherwise: all of config.json, and its members under the names that most families give them.
  nlohmann::json (*translate)(const JsonView& config) = nullptr;
  /// What only this family says, behind all else but RoPE and the windows.
  void (*read_further)(const JsonView& config, StatedFacts& stated) = nullptr;
};

/// All that there are.
std::span<const Family* const> families();

/// Layers that kernels lack.
inline constexpr std::string_view kStateSpaces = "state space layers (Mamba)";

/// What a family that is none of these has and kernels lack, where that is known; else nothing.
std::optional<std::string_view> what_is_missing_for(std::string_view architecture);

}  // namespace soliton
