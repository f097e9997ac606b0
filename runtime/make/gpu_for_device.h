// Which card a device is: one that the generator knows, or one that its driver describes.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>

#include "generator/gpu_spec.h"
#include "layout/library.h"
#include "runtime/compile/compiler.h"

namespace soliton {

/// The spec in `gpus_dir` of a device: of those with its compute capability, SMs and memory, the one that the device is
/// called after, such as h200 for "NVIDIA H200 NVL", else any; nothing if there is none. A compute capability of 0
/// stands for the emulation.
std::optional<GpuSpec> shipped_gpu(const DeviceInfo& device, const std::filesystem::path& gpus_dir);

/// Measures the bandwidth of the card with that spec, in bytes per second; 0 where it cannot be measured.
using MeasureBandwidth = std::function<double(const GpuSpec& gpu)>;

/// The spec of a device: the shipped one, or else of what its driver says and of the bandwidth, which is measured once
/// and kept in `cache` as a file that people may change. Where nothing measures, it is estimated and not kept. Throws
/// Error: kMismatch if the card is too old, or a file that was kept claims what the card does not have; kBadFile for a
/// file that is malformed, or a driver that says what cannot be; kNotFound if the cache cannot be written.
GpuSpec gpu_for_device(const DeviceInfo& device, const std::filesystem::path& gpus_dir,
                       const std::filesystem::path& cache, const MeasureBandwidth& measure = nullptr);

/// The compiler of a card, with the card's target, or of the emulation. Throws as find_compiler() does.
Compiler compiler_for(const GpuSpec& gpu);

}  // namespace soliton
