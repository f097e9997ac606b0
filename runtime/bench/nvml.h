// What the card's management library (NVML) says of power, clocks and throttling. It comes with the driver and is opened
// when it is asked for, so that nothing of it is needed to build; where it is absent or does not know, nothing is said.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/device/cuda_driver.h"

namespace soliton {

inline constexpr const char* kNvml = "libnvidia-ml.so.1";

/// One card. Each question is answered with nothing where the card or the library does not know.
class Nvml {
 public:
  /// Opens the library and finds the card that CUDA counts as `device`, by its PCI address: NVML counts cards that
  /// CUDA_VISIBLE_DEVICES hides. Throws Error (kDevice) where there is no library, no card or no permission.
  explicit Nvml(int device, const char* library = kNvml, const char* driver = kCudaDriver);
  Nvml(Nvml&&) noexcept;
  Nvml& operator=(Nvml&&) noexcept;
  ~Nvml();

  std::optional<double> watts() const;        // of the board, now or over the last second
  std::optional<double> watts_limit() const;  // that is enforced
  std::optional<double> joules() const;       // since the driver was loaded
  std::optional<int> sm_mhz() const;
  std::optional<int> memory_mhz() const;
  std::optional<int> celsius() const;
  /// Bits: why clocks are lower than they could be, now.
  std::optional<uint64_t> throttling() const;

 private:
  struct Functions;
  std::unique_ptr<Functions> functions_;
};

/// Names of the bits of Nvml::throttling(), of which idling and clocks that were asked for are none: "power cap".
std::vector<std::string> names_of_throttling(uint64_t bits);

}  // namespace soliton
