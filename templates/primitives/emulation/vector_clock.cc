#include "primitives/emulation/vector_clock.h"

#include <cstring>

#include "layout/wide_vectors.h"

namespace soliton::emulation {

typedef Epoch ClockChunk __attribute__((vector_size(kClockChunk * sizeof(Epoch))));

SOLITON_WIDE_VECTORS void merge_epochs(Epoch* into, const Epoch* from, size_t size) {
  for (size_t i = 0; i < size; i += kClockChunk) {
    ClockChunk a;
    ClockChunk b;
    std::memcpy(&a, into + i, sizeof a);
    std::memcpy(&b, from + i, sizeof b);
    a = a > b ? a : b;
    std::memcpy(into + i, &a, sizeof a);
  }
}

}  // namespace soliton::emulation
