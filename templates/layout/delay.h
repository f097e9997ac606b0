// Kernels compiled with SOLITON_FUZZ delay warps and CTAs at random, to see that no result depends on who
// comes first.
#pragma once

namespace soliton {

#if defined(SOLITON_FUZZ)
constexpr bool kFuzz = true;
#else
constexpr bool kFuzz = false;
#endif

}  // namespace soliton
