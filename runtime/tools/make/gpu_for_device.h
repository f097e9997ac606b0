// Which of the cards that the generator knows a device is.
#pragma once

#include <filesystem>

#include "generator/gpu_spec.h"
#include "layout/library.h"

namespace soliton {

/// The spec in `gpus_dir` for a device: of those whose plans run on it, the one that the device is called after,
/// such as h200 for "NVIDIA H200 NVL"; else one with the same number of SMs, whose plans are right though their
/// predicted times may not be. A compute capability of 0 stands for the emulation. Throws Error (kMismatch) that
/// lists the known cards.
GpuSpec gpu_for_device(const DeviceInfo& device, const std::filesystem::path& gpus_dir);

/// Whether the device is called after the card: "h200" and "NVIDIA H200", but not "NVIDIA GH200".
bool is_called(const DeviceInfo& device, const GpuSpec& gpu);

}  // namespace soliton
