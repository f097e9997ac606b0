// The ops of one token step and the vectors that flow between them. Knows no hardware.
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
};

/// One op. Indices into Graph::vectors, which are VectorId, and Graph::matrices, which are MatrixId; -1: none.
struct GraphOp {
  std::string name;
  PhaseKind kind = PhaseKind::kMatrix;
  bool per_layer = true;
  int matrix = -1;
  int reads = -1;
  int writes = -1;
  InputKind input = InputKind::kVector;
  OutputKind output = OutputKind::kResidual;
  int first_norm = -1;  // row of the norms in layer 0
  int norm_stride = 0;
  bool appends = false;  // appends the step's keys and values to the cache
};

struct Graph {
  std::vector<GraphVector> vectors;
  std::vector<GraphMatrix> matrices;
  std::vector<GraphOp> layer_ops;  // in order, repeated num_layers times
  std::vector<GraphOp> final_ops;  // then these
};

/// Of a model's matrices whose weights have so many bits, as its facts say.
WeightFormat weight_format(const ModelFacts& facts, int bits);

/// The step of a model, one row. Where heads are normed, attention does it as it brings them in.
Graph build_graph(const ModelFacts& facts);

/// The same with several rows: norms are applied by who writes a vector; before attention there is a phase in which heads
/// are normed, if they are; and the step begins with the embedding, which is no op of this list.
Graph build_rows_graph(const ModelFacts& facts);

/// For --dump.
std::string describe(const Graph& graph);

}  // namespace soliton
