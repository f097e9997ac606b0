// Makes a kernel library for the CPU of a kernel and its descriptor. A generated kernel ends in
//   SOLITON_LIBRARY(decode, kDescriptor)
// where decode is void(soliton::LaunchParams) and kDescriptor a constexpr soliton::Descriptor.
#pragma once

#include "layout/library.h"
#include "primitives/emulation/host_runtime.h"

namespace soliton {

template <void (*kernel)(LaunchParams), const Descriptor& kernel_descriptor>
constexpr Library make_host_library() {
  return {
      .abi = kLibraryAbi,
      .descriptor = &kernel_descriptor,
      .timeline = kTimeline,
      .fuzz = kFuzz,
      .last_error = emulation::last_error,
      .open = [](int device,
                 DeviceInfo* info) { return emulation::open_device(device, kernel_descriptor, info); },
      .allocate = emulation::allocate_memory,
      .release = emulation::release,
      .allocate_shared = emulation::allocate_memory,
      .release_shared = emulation::release,
      .fill = emulation::fill_memory,
      .upload = emulation::copy_memory,
      .download = emulation::copy_memory,
      .fill_random = emulation::fill_random,
      .launch = [](const LaunchParams* params,
                   int num_ctas) { return emulation::start(kernel, kernel_descriptor, params, num_ctas); },
      .poll = emulation::poll,
      .wait = emulation::wait,
      .measure_bandwidth = emulation::measure_bandwidth,
  };
}

}  // namespace soliton

/// Defines the two functions that a kernel library for the CPU exports.
#define SOLITON_LIBRARY(kernel, kernel_descriptor)                                                        \
  extern "C" __attribute__((visibility("default"))) const soliton::Library* soliton_library() {           \
    static constexpr soliton::Library kLibrary = soliton::make_host_library<kernel, kernel_descriptor>(); \
    return &kLibrary;                                                                                     \
  }                                                                                                       \
  extern "C" __attribute__((visibility("default"))) soliton::EmulationControl* soliton_emulation() {      \
    return &soliton::emulation::control();                                                                \
  }
