// Where a model's tensors stand in a checkpoint, as data: what they are called, and which of their rows make up which
// matrix of the step. Families differ in it; whoever reads a checkpoint follows it and knows no name.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "models/graph.h"

namespace soliton {

/// Neighbouring rows of one linear layer's weights, [tensor_rows][columns], and of its bias if there is one.
struct LinearRows {
  std::string name = {};  // of the layer, without ".weight"
  int64_t first = 0;
  int64_t rows = 0;
  int64_t tensor_rows = 0;
};

/// A matrix of the step: rows of linear layers, stacked in this order; of experts those of one after another.
struct LinearStack {
  std::vector<LinearRows> parts;
  int64_t columns = 0;

  int64_t rows() const;
};

/// Names of a layer's tensors are behind its prefix, see in_layer().
struct Checkpoint {
  std::string embedding;            // [vocabulary][hidden], as all that is no linear layer with ".weight"
  std::vector<LinearStack> stacks;  // of Graph::matrices
  std::vector<std::vector<std::string>> norms;  // of Graph::kinds
  std::array<std::string, 2> head_norms;        // [head_dim], of a layer: of q's heads and of k's
};

/// What the names of all layers' tensors begin with; the layer's number follows, and a dot.
inline constexpr const char* kLayersPrefix = "model.layers.";
/// The name of a layer's tensor.
std::string in_layer(int layer, const std::string& name);

/// Whether each of q, k, v, gate and up is a linear layer of its own, or q, k, v and gate, up stand in one each.
enum class Projections { kApart, kFused };

/// What a mixture's linear layers are called, within a layer of the model; of experts, within an expert.
struct MixtureNames {
  const char* router = "mlp.gate";
  const char* experts = "mlp.experts";  // the expert's number follows, between dots
  const char* gate = "gate_proj";
  const char* up = "up_proj";
  const char* down = "down_proj";
};

/// Named as transformers names the tensors of Llama, and those who followed it.
Checkpoint make_checkpoint(const ModelFacts& facts, Projections projections,
                           const MixtureNames& mixture = {});

}  // namespace soliton
