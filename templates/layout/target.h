// Marks the functions of templates/layout that both the host and the generated kernel call.
#pragma once

#if defined(__CUDACC__)
#define SOLITON_HOST_DEVICE __host__ __device__
#else
#define SOLITON_HOST_DEVICE
#endif
