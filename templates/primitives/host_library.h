// Makes a kernel library for the CPU of kernels and their descriptors. A generated file ends in
//   SOLITON_LIBRARY(kKernels, kDescriptors)
// two constexpr arrays: of soliton::DecodeKernel and of soliton::Descriptor.
#pragma once

#include <iterator>

#include "layout/library.h"
#include "primitives/emulation/host_runtime.h"

namespace soliton {

template <const auto& kKernels, const auto& kDescriptors>
constexpr Library make_host_library() {
  return {
      .abi = kLibraryAbi,
      .descriptors = kDescriptors,
      .num_kernels = std::size(kDescriptors),
      .timeline = kTimeline,
      .fuzz = kFuzz,
      .last_error = emulation::last_error,
      .open = [](int device,
                 DeviceInfo* info) { return emulation::open_device(device, kDescriptors[0], info); },
      .enter = emulation::enter_device,
      .allocate = emulation::allocate_memory,
      .allocate_unified = emulation::allocate_memory,
      .release = emulation::release,
      .allocate_shared = emulation::allocate_shared,
      .release_shared = emulation::release,
      .fill = emulation::fill_memory,
      .finish = [] { return 0; },
      .upload = emulation::upload,
      .download = emulation::download,
      .fill_random = emulation::fill_random,
      .fill_random_tiles = emulation::fill_random_tiles,
      .move_tokens = emulation::move_cached_tokens,
      .launch =
          [](int kernel, const LaunchParams* params, int num_ctas) {
            return emulation::start(kKernels[kernel], kDescriptors[kernel], params, num_ctas);
          },
      .poll = emulation::poll,
      .wait = emulation::wait,
      .measure_bandwidth = emulation::measure_bandwidth,
      .reach_peers = emulation::reach_peers,
  };
}

}  // namespace soliton

/// Defines the two functions that a kernel library for the CPU exports.
#define SOLITON_LIBRARY(kernels, descriptors)                                                        \
  extern "C" __attribute__((visibility("default"))) const soliton::Library* soliton_library() {      \
    static constexpr soliton::Library kLibrary = soliton::make_host_library<kernels, descriptors>(); \
    return &kLibrary;                                                                                \
  }                                                                                                  \
  extern "C" __attribute__((visibility("default"))) soliton::EmulationControl* soliton_emulation() { \
    return &soliton::emulation::control();                                                           \
  }
