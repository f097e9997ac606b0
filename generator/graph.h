// The step of a model as kernels of several rows have it, and as text.
#pragma once

#include <string>

#include "models/graph.h"

namespace soliton {

/// How the rows of a step meet the experts of a mixture.
enum class ExpertRows {
  kTogether,  // a tile of down is multiplied by all experts' rows one after the other
  kPairs,     // see layout/expert_pairs.h
  kGrouped,   // see layout/grouped_rows.h
};

/// The step with several rows: it begins with the embedding, which is no op of this list; norms are applied by who writes a
/// vector; and before attention there is a phase in which heads are normed, if they are. (With one row, attention does
/// it as it brings them in.)
Graph build_rows_graph(const ModelFacts& facts, ExpertRows experts = ExpertRows::kTogether);

/// For --dump.
std::string describe(const Graph& graph);

}  // namespace soliton
