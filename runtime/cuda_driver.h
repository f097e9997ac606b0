// What the CUDA driver says of a card. Its library comes with the driver and is opened when it is asked, so that a
// program needs nothing of CUDA to be built, and no kernel library to know which kernel it is to look for.
#pragma once

#include <optional>
#include <string>

#include "layout/library.h"

namespace soliton {

/// What a device says of itself, or why nothing is known of it.
struct DeviceAnswer {
  std::optional<DeviceInfo> device;
  std::string reason;
};

inline constexpr const char* kCudaDriver = "libcuda.so.1";

/// Asks the driver for a device, counted as CUDA_VISIBLE_DEVICES leaves them. `library` is searched for as the system
/// searches for libraries. The device's memory can be asked for only in a context of it: the primary one is made, which
/// takes a fraction of a second, and stays, so that the kernel library, which works in it too, finds it made.
DeviceAnswer ask_driver(int device, const char* library = kCudaDriver);

}  // namespace soliton
