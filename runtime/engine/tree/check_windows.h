// Judges the window pages of a launch by what its queries see, whatever made them.
#pragma once

#include "runtime/engine/tree/tree_snapshot.h"

namespace soliton {

/// Throws Error (kInternal) unless, while the rows of `tree` take `num_steps` steps, every page that a query's window of `window`
/// keys reaches is there, and none is written to that stands for such tokens of another page. `gone_page`: the number of those
/// that are gone.
void check_windows(const TreeSnapshot& tree, int window, int32_t gone_page, int num_steps);

}  // namespace soliton
