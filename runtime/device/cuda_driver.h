// What the CUDA driver says of a card. Its library comes with the driver and is opened when it is asked, so that a
// program needs nothing of CUDA to be built, and no kernel library to know which kernel it is to look for.
#pragma once

#include <optional>
#include <string>
#include <vector>

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

/// Another device, as a kernel over several cards would meet it.
struct LinkedDevice {
  int index = 0;
  std::string name;
  bool same_kind = false;       // a kernel can span both
  bool reaches = false;         // either's memory from the other,
  bool native_atomics = false;  // with atomics too: by NVLink

  bool can_share() const { return same_kind && reaches && native_atomics; }
};

/// All but `device`; none if the driver cannot say.
std::vector<LinkedDevice> ask_links(int device, const char* library = kCudaDriver);

/// The context of a device that kernel libraries work in. CUDA's current device is one of a thread: in another thread than
/// the one that opened an engine, or where other code chooses devices too, calls of the engine need it to be made current.
class PrimaryContext {
 public:
  /// Throws Error (kDevice) if there is no such device.
  explicit PrimaryContext(int device, const char* library = kCudaDriver);

  /// Makes it current in this thread, as long as it lives; then what was before.
  class Current {
   public:
    /// Null is none. Throws Error (kDevice).
    explicit Current(const PrimaryContext* context);
    Current(const Current&) = delete;
    Current& operator=(const Current&) = delete;
    ~Current();

   private:
    const PrimaryContext* context_;
  };

 private:
  void* context_ = nullptr;
  int (*push_)(void* context) = nullptr;
  int (*pop_)(void** context) = nullptr;
};

}  // namespace soliton
