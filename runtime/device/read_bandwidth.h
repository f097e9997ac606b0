// S, the ceiling that decoding is measured against: how fast a device's memory is read by the kernels of a library that
// do nothing else (primitives/stream.cuh).
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "layout/read_rates.h"
#include "runtime/device/kernel_library.h"

namespace soliton {

constexpr int kBandwidthRepeats = 7;

struct ReadBandwidth {
  int64_t bytes = 0;                  // of the buffer that is read, over and over; 0 in emulation
  ReadRates rates = {};               // of several cards the slowest one's
  std::vector<ReadRates> cards = {};  // all of them, measured at once; empty if there is one

  /// Of one card, as what is compared with it is.
  double best() const { return rates.best(); }  // bytes per second; 0 in emulation
};

/// Of the buffer, in whole pages: 4 GiB, or half of what is free. The model has no say, so that S is the card's, and a
/// few times what L2 holds are still far away.
int64_t read_buffer_bytes(int64_t free_bytes);

/// Measures on the library's device, or on all of its cards at once, which must be selected, in a buffer of random data that is freed afterwards: before
/// a model is loaded, so that one that just fits still does. Throws Error: kOutOfMemory without room for the buffer,
/// kDevice if a kernel fails.
ReadBandwidth measure_read_bandwidth(const KernelLibrary& library, int repeats);

/// "4.662 TB/s by rings of the warps (a ring of bulk copies: 4.601), over 4.3 GB".
std::string describe(const ReadBandwidth& bandwidth);

/// Which kernel was the faster one, what each has read, and the buffer's bytes; null in emulation.
nlohmann::ordered_json as_json(const ReadBandwidth& bandwidth);

}  // namespace soliton
