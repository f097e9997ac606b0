// The bandwidth of a card that nobody has written down.
#pragma once

#include <filesystem>

#include "generator/gpu_spec.h"

namespace soliton {

/// Bytes per second that a kernel which only reads reaches on a device, by a library that is compiled for it in a
/// folder of `cache` with the templates of `sources`. Takes some seconds. Throws Error: kNotFound without compiler or
/// a place to write, kMakeFailed if the compiler fails, and what KernelLibrary throws.
double measure_bandwidth(const GpuSpec& gpu, int device, const std::filesystem::path& cache,
                         const std::filesystem::path& sources);

}  // namespace soliton
