// Where a model's tensors stand in a checkpoint, as data: what they are called, and which of their rows make up which
// matrix of the step. Families differ in it; whoever reads a checkpoint follows it and knows no name.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "models/graph.h"

namespace soliton {

/// How the tensor of several linear layers has their weights.
enum class TensorForm {
  kRows,     // row by row
  kColumns,  // column by column: of each layer [tensor_columns][rows of each]
  kMxfp4,    // row by row, in MXFP4: two tensors, of values and of scales
};

/// Neighbouring rows of one linear layer's weights, [tensor_rows][tensor_columns], and of its bias if there is one: all their
/// columns, or as many as the matrix has, neighbours too.
struct LinearRows {
  std::string name = {};  // of the layer, without ".weight"; of a tensor of several layers all of it
  int64_t first = 0;
  int64_t rows = 0;
  int64_t tensor_rows = 0;
  int64_t first_column = 0;
  int64_t tensor_columns = 0;
  int64_t num_layers =
      0;  // if not 0, the tensor is one of several linear layers: [num_layers][rows of each][tensor_columns]
  int64_t step = 1;  // from one row to the next
  TensorForm form = TensorForm::kRows;
  bool has_dots = false;    // its tensors are called as a single layer's are, although they have several
  int64_t paired_rows = 0;  // see stored_row(), likewise
  int64_t paired_dims = 0;

  /// What stands behind the name in that of the weights' tensor, and in that of the biases'.
  const char* suffix() const {
    return form == TensorForm::kMxfp4 ? "_blocks" : num_layers == 0 || has_dots ? ".weight" : "";
  }
  const char* bias_suffix() const { return num_layers == 0 || has_dots ? ".bias" : "_bias"; }
  std::vector<int64_t> tensor_shape() const {
    if (num_layers == 0) return {tensor_rows, tensor_columns};
    if (form == TensorForm::kColumns) return {num_layers, tensor_columns, tensor_rows / num_layers};
    return {num_layers, tensor_rows / num_layers, tensor_columns};
  }
  std::vector<int64_t> bias_shape() const {
    if (num_layers == 0) return {tensor_rows};
    return {num_layers, tensor_rows / num_layers};
  }
};

/// Where a row of q or k stands in the tensor. Of every `paired_rows` rows, those of a head, the tensor has the two of a
/// rotated pair side by side; they are half a head apart otherwise. 0: all stand as they are meant. `paired_dims`: so many of a
/// head are rotated, the first, and the others stand as they are meant; 0: all are.
constexpr int64_t stored_row(int64_t row, int64_t paired_rows, int64_t paired_dims = 0) {
  if (paired_rows == 0) return row;
  const int64_t half = (paired_dims == 0 ? paired_rows : paired_dims) / 2;
  const int64_t in_head = row % paired_rows;
  if (in_head >= 2 * half) return row;
  return row - in_head + in_head % half * 2 + in_head / half;
}

/// A matrix of the step: rows of linear layers, stacked in this order; of experts those of one after another.
struct LinearStack {
  std::vector<LinearRows> parts;
  int64_t columns = 0;  // of each part

  int64_t rows() const;
};

/// What the names of all layers' tensors begin with; the layer's number follows, and a dot.
inline constexpr const char* kLayersPrefix = "model.layers.";

/// Names of a layer's tensors are behind its prefix, see in_layer().
struct Checkpoint {
  std::string embedding;            // [vocabulary][hidden], as all that is no linear layer with ".weight"
  std::vector<LinearStack> stacks;  // of Graph::matrices
  /// Likewise, where they may also stand elsewhere; else without parts. They do if the first part's tensor is there.
  std::vector<LinearStack> other_stacks;
  std::vector<std::vector<std::string>> norms;  // of Graph::kinds
  std::array<std::string, 2>
      head_norms;           // of a layer: of q's heads and of k's, [head_dim], or of all of them
  std::string router_bias;  // [num_experts], of a layer, all of its name
  std::string sinks = {};   // [num_heads], likewise
  int further_layers = 0;   // behind the model's own: what predicts tokens beyond the next, which is not read
  std::string layers_prefix = kLayersPrefix;

  /// The name of a layer's tensor.
  std::string in_layer(int layer, const std::string& name) const;
};

/// The name of a layer's tensor in a checkpoint of make_checkpoint().
std::string in_layer(int layer, const std::string& name);

/// Whether each of q, k, v, gate and up is a linear layer of its own, or q, k, v and gate, up stand in one each, or gate and up
/// alone do.
enum class Projections { kApart, kFused, kFusedGateUp };

/// What a mixture's linear layers are called, within a layer of the model; of experts, within an expert.
struct MixtureNames {
  const char* router = "mlp.gate";
  const char* experts = "mlp.experts";                 // the expert's number follows, between dots
  const char* shared = "mlp.shared_expert";            // all shared ones together, if there are any
  const char* shared_gate = "mlp.shared_expert_gate";  // of one row
  const char* gate = "gate_proj";
  const char* up = "up_proj";
  const char* down = "down_proj";
  const char* router_bias = "mlp.gate.e_score_correction_bias";  // all of its name
  /// Do all experts stand in one tensor, gate and up row by row in turn, and weights column by column?
  bool is_interleaved = false;
};

/// What tensors are called of a model without experts; of a layer, within it.
struct TensorNames {
  const char* embedding = "model.embed_tokens";
  const char* layers = kLayersPrefix;
  const char* final_norm = "model.norm";
  const char* q = "self_attn.q_proj";
  const char* k = "self_attn.k_proj";
  const char* v = "self_attn.v_proj";
  const char* qkv = "self_attn.qkv_proj";  // of all three
  const char* o = "self_attn.o_proj";
  const char* gate = "mlp.gate_proj";
  const char* up = "mlp.up_proj";
  const char* gate_up = "mlp.gate_up_proj";  // of both
  const char* down = "mlp.down_proj";
};

/// What a family calls otherwise of a layer.
struct LayerNames {
  std::vector<std::string> norms = {};  // in the order in which they are applied; empty: as most call them
  std::array<std::string, 2> head_norms = {"self_attn.q_norm", "self_attn.k_norm"};
  std::string prefix = {};  // of all names
  TensorNames tensors = {};
  bool pairs = false;  // rows of q and k stand as pairs that are rotated, see stored_row()
};

/// Named as transformers names the tensors of Llama, and those who followed it. Experts may also be named as version 5 holds
/// those of all families in memory: gate and up of all experts in one tensor, and down in another.
Checkpoint make_checkpoint(const ModelFacts& facts, Projections projections, const MixtureNames& mixture = {},
                           const LayerNames& names = {});

}  // namespace soliton
