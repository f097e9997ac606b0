// The spec of a card that has no file: what its driver says of it, and a bandwidth.
#pragma once

#include <filesystem>
#include <string>

#include "generator/gpu_spec.h"
#include "layout/library.h"

namespace soliton {

/// "rtx-4080-super-80sm-16gb": what the driver calls the device, and what tells apart cards that it calls the same.
std::string spec_name(const DeviceInfo& device);

/// Bytes per second that reading the device's memory may reach, by its clock and width, or, where the driver does not
/// say these, by the number of SMs.
double estimated_bandwidth(const DeviceInfo& device);

/// The spec of a device that reads `bandwidth` bytes per second; waits are those of an H100 at the device's clock.
/// Throws Error (kBadFile) if the driver says what cannot be.
GpuSpec spec_from_driver(const DeviceInfo& device, double bandwidth);

/// Throws Error (kMismatch), which names `path`, if the spec claims what the device does not have: another compute
/// capability, more SMs, shared memory or registers. It may claim less, to leave something to others.
void check_spec(const GpuSpec& gpu, const DeviceInfo& device, const std::filesystem::path& path);

}  // namespace soliton
