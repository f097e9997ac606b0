// Blocks of 256 columns, whose groups have integers for scales.
#pragma once

#include "runtime/weights/gguf/blocks.h"

namespace soliton {

void unpack_q2_k(const std::byte* block, TwoLevels& unpacked);
void unpack_q3_k(const std::byte* block, TwoLevels& unpacked);
void unpack_q4_k(const std::byte* block, TwoLevels& unpacked);
void unpack_q5_k(const std::byte* block, TwoLevels& unpacked);
void unpack_q6_k(const std::byte* block, TwoLevels& unpacked);
void unpack_iq4_xs(const std::byte* block, TwoLevels& unpacked);

/// What the four bits of IQ4_NL and IQ4_XS stand for.
inline constexpr int8_t kNonLinearCodes[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                               1,    13,   25,  38,  53,  69,  89,  113};

}  // namespace soliton
