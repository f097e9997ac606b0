// Geometry of everything that streams through the ring: weight pages and KV pages.
// Weights lie in the order in which `mma.m16n8k16` wants its A operand, so that a lane's operand is one
// 16-byte shared-memory load without bank conflicts; keys and values in core matrices of 8 rows x 16 bytes, which both
// `ldmatrix` and `wgmma` take. The runtime packs by these formulas, the kernel reads by them.
//
//   A fragment, the A operand of one mma: 16 rows x 16 k. Lane l = 4 g + j holds four 32-bit registers, each two neighbouring
//   k:
//
//                 k 2j, 2j + 1   k 2j + 8, 2j + 9
//     row g       register 0     register 2
//     row g + 8   register 1     register 3
//
//   A full page of bf16 weights: 16 rows x 512 columns, fragment after fragment.
//
//     | columns 0..31              | columns 32..63 | ...  | columns 480..511 |   512 bytes a fragment, 16 a lane
//     | fragment 0 | fragment 1    |  2    |  3     |      |  30    |  31     |
#pragma once

#include <cstdint>

#include "layout/target.h"

namespace soliton {

constexpr int kWarpLanes = 32;
constexpr int kTileRows = 16;        // output rows of a weight tile: the m of the mma
constexpr int kMmaColumns = 16;      // the k of the mma
constexpr int kFragmentBytes = 512;  // one A operand: 16 x 16 bf16
constexpr int kCoreRows = 8;         // of a core matrix
constexpr int kCoreRowBytes = 16;
constexpr int kCoreBytes = kCoreRows * kCoreRowBytes;
constexpr int kPageBytes = 16384;                           // payload of a ring slot
constexpr int kPageColumns = kPageBytes / (kTileRows * 2);  // 512 bf16 columns of a full weight page
constexpr int kColumnBlock = 32;                            // two mma share one 16-byte load of x
constexpr int kKvPageTokens = 64;                           // tokens of one KV page
constexpr int kTailTokens = 16;  // of a tile of tokens; one holds the keys and values of a step's own rows
constexpr int kPageLayoutVersion = 2;  // raise it whenever an offset formula of this file changes

SOLITON_HOST_DEVICE constexpr int ceil_divide(int a, int b) {
  return (a + b - 1) / b;
}
SOLITON_HOST_DEVICE constexpr int round_up(int a, int b) {
  return ceil_divide(a, b) * b;
}

/// Byte offset inside a tile of the weight of `row` (0..15) and `column` (0..padded-1).
/// Within a block of 32 columns lane quad j owns columns 8j..8j+7, so that its B operands of two mma are one
/// 16-byte load of x in natural order.
SOLITON_HOST_DEVICE constexpr int weight_offset(int row, int column) {
  const int within = column % kColumnBlock;
  const int quad = within / 8;
  const int element = within % 8;
  const int mma = element / 4;
  const int reg = (element % 4) / 2 * 2 + (row >= 8 ? 1 : 0);
  const int lane = (row % 8) * 4 + quad;
  return ((column / kColumnBlock * 2 + mma) * kWarpLanes + lane) * 16 + reg * 4 + element % 2 * 2;
}

/// The KV cache: pages of 64 tokens, [page][layer][kv_head]{K, V}, of the layers that have a window or of those that have none:
/// each have a pool of their own. Keys and values are f16: as many bytes as bf16, but
/// 8 times as exact, and they are well inside its range. With two parts each is a sum of two f16, which leaves 22
/// bits of a float; of every 16 tokens the second part lies behind the first. Or they are bytes: E4M3, each token's with a
/// power of two, which lie behind those of 16 tokens (layout/e4m3.h).
///
///   a page of a KV head   | keys: tile 0 | tile 1 | tile 2 | tile 3 | values: tile 0 | tile 1 | tile 2 | tile 3 |
///   a tile of keys        16 tokens: all dims of tokens 0..7, then of tokens 8..15, in core matrices of 8 tokens
///   a tile of values      16 tokens: dims 0..7 of tokens 0..7, then of tokens 8..15; then dims 8..15, ...
///   of bytes              core matrices have 16 dims of 8 tokens, or 8 dims of 16 tokens: two of those of f16 side by side
struct KvShape {
  int num_layers = 0;
  int num_kv_heads = 0;
  int head_dim = 0;
  int parts = 1;
  bool e4m3 = false;  // are they bytes?

  /// The same of some of the layers.
  SOLITON_HOST_DEVICE constexpr KvShape of_layers(int layers) const {
    return {layers, num_kv_heads, head_dim, parts, e4m3};
  }
  /// The same of f16: as a step's own keys and values are before they are appended.
  SOLITON_HOST_DEVICE constexpr KvShape in_f16() const { return {num_layers, num_kv_heads, head_dim, parts}; }
  /// Bytes of the K (or V) half of one page and KV head.
  SOLITON_HOST_DEVICE constexpr int half_bytes() const { return kKvPageTokens / kTailTokens * tile_bytes(); }
  /// Bytes of the keys (or values) of 16 tokens, and where a part of them begins.
  SOLITON_HOST_DEVICE constexpr int tile_bytes() const {
    return part_bytes() * parts + (e4m3 ? kTailTokens : 0);
  }
  SOLITON_HOST_DEVICE constexpr int part_bytes() const { return kTailTokens * head_dim * (e4m3 ? 1 : 2); }
  /// Ring slots that one K (or V) half takes: 1 for one part up to head_dim 128.
  SOLITON_HOST_DEVICE constexpr int slots_per_half() const { return ceil_divide(half_bytes(), kPageBytes); }
  /// Tokens in one ring slot of a K or V half.
  SOLITON_HOST_DEVICE constexpr int slot_tokens() const { return kKvPageTokens / slots_per_half(); }
  /// Bytes of one token in all layers and KV heads.
  SOLITON_HOST_DEVICE constexpr int64_t token_bytes() const { return page_offset(1, 0, 0) / kKvPageTokens; }

  /// Byte offset of the K half of one page in the pool; the V half follows.
  SOLITON_HOST_DEVICE constexpr int64_t page_offset(int64_t page, int layer, int kv_head) const {
    return ((page * num_layers + layer) * num_kv_heads + kv_head) * 2 * half_bytes();
  }
  /// Byte offset of (token, dim) in the K half: rows are tokens, k is the dim. Core matrices of 8 tokens, one behind the
  /// other: a row of each has a pair of dims of all four lane quads, of which quad j owns dims j*head_dim/4 ..
  /// (j+1)*head_dim/4, so that its part of q is contiguous.
  SOLITON_HOST_DEVICE constexpr int key_offset(int token, int dim, int part = 0) const {
    const int quad = dim / (head_dim / 4);
    const int rest = dim % (head_dim / 4);
    const int row = token % kTailTokens;
    if (e4m3) {
      return part_offset(token, part) + row / kCoreRows * key_stride() + rest / 4 * kCoreBytes +
             row % kCoreRows * kCoreRowBytes + quad * 4 + rest % 4;
    }
    return part_offset(token, part) + row / kCoreRows * key_stride() + rest / 2 * kCoreBytes +
           row % kCoreRows * kCoreRowBytes + quad * 4 + dim % 2 * 2;
  }
  /// From 8 tokens to the next, of keys; the core matrices of the next 8 k lie side by side.
  SOLITON_HOST_DEVICE constexpr int key_stride() const { return kCoreRows * head_dim * (e4m3 ? 1 : 2); }
  /// Byte offset of (token, dim) in the V half: rows are dims, k is the token. Of each 16 tokens core matrices of 8 dims by
  /// 8 tokens: those of the next 8 tokens lie side by side.
  SOLITON_HOST_DEVICE constexpr int value_offset(int token, int dim, int part = 0) const {
    const int k = token % kTailTokens;
    if (e4m3) {
      return part_offset(token, part) + dim * kCoreRowBytes + k % kCoreRows / 2 * 4 + k / kCoreRows * 2 +
             k % 2;
    }
    return part_offset(token, part) + dim / kCoreRows * kValueStride + k / kCoreRows * kCoreBytes +
           dim % kCoreRows * kCoreRowBytes + k % kCoreRows * 2;
  }
  static constexpr int kValueStride = 2 * kCoreBytes;  // from 8 dims to the next, of values that are f16
  /// Byte offset in either half of a token's power of two, of bytes.
  SOLITON_HOST_DEVICE constexpr int exponent_offset(int token) const {
    return part_offset(token, 1) + token % kTailTokens;
  }

 private:
  SOLITON_HOST_DEVICE constexpr int part_offset(int token, int part) const {
    return token / kTailTokens * tile_bytes() + part * part_bytes();
  }
};

}  // namespace soliton
