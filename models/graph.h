// The step of a model as data: its matrices, norms and vectors, and the ops that take one vector to the next. The generator
// plans it, the runtime loads and packs weights by it, --verify computes it on the host. Knows no hardware, and no file.
#pragma once

#include <string>
#include <vector>

#include "layout/model_facts.h"
#include "layout/packed_matrix.h"
#include "layout/phase.h"
#include "layout/rows.h"
#include "layout/weight_format.h"

namespace soliton {

/// A vector that one op writes and the next reads.
struct GraphVector {
  std::string name;
  int elements = 0;
};

/// A weight matrix: rows x columns, once in every layer of a kind. Of experts those that a token goes through.
struct GraphMatrix {
  std::string name;
  int layer_kind = 0;
  int rows = 0;
  int columns = 0;
  RowOrder row_order = RowOrder::kPlain;
  WeightFormat format = {};
  bool has_bias = false;  // of each row
  ExpertParts experts = {};
};

/// One op. Indices into Graph's lists; kNone: none.
struct GraphOp {
  std::string name;
  PhaseKind kind = PhaseKind::kMatrix;
  int matrix = kNone;
  int reads = kNone;
  int writes = kNone;
  int routes = kNone;  // the vector of logits that choose the experts of this op and of those behind it
  InputKind input = InputKind::kVector;
  OutputKind output = OutputKind::kResidual;
  // Among the norms of its kind of layer: of what the op reads; of an op that writes the residual stream, that of its
  // reader. The one behind the last is the first of the next layer, of whatever kind. Where norms follow blocks, the one
  // before it is that of the block; and where none is before blocks, nothing but that is meant.
  int norm = kNone;
  bool appends = false;  // appends the step's keys and values to the cache
};

/// What layers may be.
struct LayerKind {
  std::vector<GraphOp> ops;  // in order
  int num_norms = 0;  // RMS norms of the residual stream, or of what is added to it: bf16 [hidden] each
};

struct Graph {
  std::vector<GraphVector> vectors;  // all kinds exchange the same, each as many elements of it as it has
  int squares =
      kNone;  // several rows: the vector of sums of squares of each CTA's columns of the residual stream
  int block = kNone;                  // several rows, where norms follow blocks: what these give,
  int block_squares = kNone;          // and its sums of squares
  std::vector<GraphMatrix> matrices;  // of one kind after another
  std::vector<LayerKind> kinds;       // the last: what stands once, behind the layers
  std::vector<int> layers;            // the kind of each, in order, and that of what stands once
  std::vector<int> windows;           // of each layer, see Layer::window; empty where none has one
  std::vector<int> chunks;            // of each layer, see Layer::chunk; empty where none has any
  std::vector<int> ropes;             // of each layer, see Layer::rope; empty where all have the first table

  int num_layers() const { return static_cast<int>(layers.size()) - 1; }
  int once() const { return layers.back(); }
  const LayerKind& kind_of(int layer) const { return kinds[layers[layer]]; }
  /// Of a layer, or of what stands once.
  int window(size_t layer) const { return layer < windows.size() ? windows[layer] : 0; }
  int chunk(size_t layer) const { return layer < chunks.size() ? chunks[layer] : 0; }
  int rope(size_t layer) const { return layer < ropes.size() ? ropes[layer] : 0; }
  /// Calls body(op, layer) for all ops of a step, in order.
  template <class Body>
  void for_each_op(const Body& body) const {
    for (int layer = 0; layer <= num_layers(); ++layer) {
      for (const GraphOp& op : kind_of(layer).ops) body(op, layer);
    }
  }
  /// Rows of LaunchParams::norms: those of layer after layer. The layer's first; of layers.size(): how many there are.
  int first_norm(size_t layer) const;
  int num_norms() const { return first_norm(layers.size()); }
  /// The matrix of the op that reads a vector in a layer.
  int reader(int layer, int vector) const;
};

/// Of a model's matrices whose weights have so many bits, as its facts say: those of the layers, or the further ones.
WeightFormat weight_format(const ModelFacts& facts, int bits);

/// The step of a model.
Graph build_graph(const ModelFacts& facts);

}  // namespace soliton
