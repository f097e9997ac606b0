// What the tests of the emulator share.
#pragma once

#include <algorithm>
#include <string>

#include "primitives/emulation/emulator.h"
#include "primitives/primitives.h"

namespace soliton {

using emulation::LaunchShape;

/// Memory that checked kernels may touch.
template <class T>
class Buffer {
 public:
  explicit Buffer(size_t count, T value = {}, int card = 0)
      : data_(static_cast<T*>(emulation::allocate(count * sizeof(T), card))) {
    std::fill(data_, data_ + count, value);
  }
  ~Buffer() { emulation::release(data_); }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  T* data() { return data_; }
  T& operator[](size_t i) { return data_[i]; }

 private:
  T* data_;
};

inline EmulationOptions checked(uint64_t seed = 1, CopyPolicy copies = CopyPolicy::kRandom) {
  EmulationOptions options;
  options.seed = seed;
  options.copies = copies;
  options.check = true;
  return options;
}

inline std::string run(emulation::Kernel kernel, const LaunchParams& params, const LaunchShape& shape,
                       const EmulationOptions& options) {
  EmulationControl control;
  control.options = options;
  return emulation::run(kernel, params, shape, control);
}

inline LaunchParams with_workspace(void* workspace) {
  LaunchParams params = {};
  params.workspace = workspace;
  return params;
}

inline bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace soliton
