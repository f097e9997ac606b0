// What code of templates/ is compiled for: the functions of templates/layout that both the host and the generated kernel
// call are marked, and the cards that have bulk copies are told apart.
#pragma once

#if defined(__CUDACC__)
#define SOLITON_HOST_DEVICE __host__ __device__
#else
#define SOLITON_HOST_DEVICE
#endif

/// From this compute capability on, one thread copies whole pages. A macro, because the preprocessor chooses between
/// primitives.
#define SOLITON_BULK_COPY_CAPABILITY 90

namespace soliton {

constexpr int kBulkCopyCapability = SOLITON_BULK_COPY_CAPABILITY;

/// The one architecture whose warpgroups multiply together (wgmma): of no later card, and not in PTX for them.
constexpr int kWarpgroupCapability = 90;

}  // namespace soliton
