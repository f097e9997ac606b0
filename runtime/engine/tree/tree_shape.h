// The shape that the attention of a kernel's steps is planned for.
#pragma once

#include "runtime/device/kernel_library.h"
#include "runtime/engine/tree/item_costs.h"

namespace soliton {

/// Of one of the library's kernels of several rows, on one of the cards that it spans. Costs of items are to be times those of
/// the card's spec, if no costs of the kernel have been measured.
TreeShape tree_shape(const KernelLibrary& library, int kernel, int card = 0);

}  // namespace soliton
