// Arrays of one launch on their way to the device: gathered in host memory, uploaded in one copy.
#pragma once

#include <cstddef>
#include <cstring>
#include <span>
#include <vector>

#include "runtime/device/kernel_library.h"

namespace soliton {

class EngineInput {
 public:
  /// Forgets the arrays of the last launch, but keeps the memory.
  void clear() { staging_.clear(); }

  /// Appends an array, 16-byte aligned; returns its offset.
  template <class T>
  size_t add(std::span<const T> values) {
    constexpr size_t kAlignment = 16;
    const size_t offset = staging_.size();
    staging_.resize((offset + values.size_bytes() + kAlignment - 1) / kAlignment * kAlignment);
    if (!values.empty()) std::memcpy(staging_.data() + offset, values.data(), values.size_bytes());
    return offset;
  }

  /// Copies all arrays to the device. Only then it is known where at() finds them.
  void upload(const KernelLibrary& library) {
    const Library& device = library.functions();
    if (memory_.bytes() < staging_.size()) memory_ = DeviceMemory(device, 2 * staging_.size());
    library.check(device.upload(memory_.as<void>(), staging_.data(), staging_.size()), "upload the input");
  }

  /// Device address of the array that add() has put at `offset`.
  template <class T>
  const T* at(size_t offset) const {
    return reinterpret_cast<const T*>(memory_.as<std::byte>() + offset);
  }

 private:
  std::vector<std::byte> staging_;
  DeviceMemory memory_;
};

}  // namespace soliton
