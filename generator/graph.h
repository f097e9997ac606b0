// The step of a model as kernels of several rows have it, and as text.
#pragma once

#include <string>

#include "models/graph.h"

namespace soliton {

/// The step with several rows: it begins with the embedding, which is no op of this list; norms are applied by who writes a
/// vector; and before attention there is a phase in which heads are normed, if they are. (With one row, attention does
/// it as it brings them in.) `grouped`: rows are grouped by the experts of a mixture, see layout/grouped_rows.h.
Graph build_rows_graph(const ModelFacts& facts, bool grouped = false);

/// For --dump.
std::string describe(const Graph& graph);

}  // namespace soliton
