// SOLITON_LIBRARY(kernels, descriptors): exports kernels as a library behind the C ABI of layout/library.h.
#pragma once

#if defined(__CUDACC__)
#include "primitives/cuda_library.h"
#else
#include "primitives/host_library.h"
#endif
