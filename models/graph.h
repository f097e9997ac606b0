// The step of a model as data: its matrices, norms and vectors, and the ops that take one vector to the next. The generator
// plans it, the runtime loads and packs weights by it, --verify computes it on the host. Knows no hardware, and no file.
#pragma once

#include <string>
#include <vector>

#include "layout/model_facts.h"
#include "layout/phase.h"
#include "layout/rows.h"
#include "layout/weight_format.h"

namespace soliton {

/// A vector that one op writes and the next reads.
struct GraphVector {
  std::string name;
  int elements = 0;
};

/// A weight matrix: rows x columns, once per layer or once.
struct GraphMatrix {
  std::string name;
  int rows = 0;
  int columns = 0;
  RowOrder row_order = RowOrder::kPlain;
  WeightFormat format = {};
  bool has_bias = false;  // of each row
  bool per_layer = true;  // or once
};

/// An RMS norm of the residual stream: bf16 [hidden], once per layer or once.
struct GraphNorm {
  std::string name;
  bool per_layer = true;
};

/// One op. Indices into Graph's lists; kNone: none.
struct GraphOp {
  std::string name;
  PhaseKind kind = PhaseKind::kMatrix;
  bool per_layer = true;
  int matrix = kNone;
  int reads = kNone;
  int writes = kNone;
  InputKind input = InputKind::kVector;
  OutputKind output = OutputKind::kResidual;
  int norm = kNone;  // of what the op reads; of an op that writes the residual stream, that of its reader,
  bool next_layers_norm = false;  // who may be in the next layer
  bool appends = false;           // appends the step's keys and values to the cache
};

struct Graph {
  std::vector<GraphVector> vectors;
  int squares =
      kNone;  // several rows: the vector of sums of squares of each CTA's columns of the residual stream
  std::vector<GraphMatrix> matrices;
  std::vector<GraphNorm> norms;    // those of a layer first
  std::vector<GraphOp> layer_ops;  // in order, repeated num_layers times
  std::vector<GraphOp> final_ops;  // then these

  /// Norms of a layer.
  int layer_norms() const;
  /// Rows of LaunchParams::norms: those of layer after layer, then those that stand once.
  int num_norm_rows(int num_layers) const;
  int norm_row(int norm, int layer, int num_layers) const;
  /// The matrix of the op that reads a vector in a layer, or behind the last.
  int reader_in_layer(int vector) const;
  int reader_behind_layers(int vector) const;
};

/// Of a model's matrices whose weights have so many bits, as its facts say.
WeightFormat weight_format(const ModelFacts& facts, int bits);

/// The step of a model.
Graph build_graph(const ModelFacts& facts);

}  // namespace soliton
