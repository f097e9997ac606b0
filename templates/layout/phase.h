// The phases of a token step: constants that the generator writes into kernel.cu. Matrix phases become a table that
// one piece of code walks: a kernel whose layer is longer than the instruction cache fetches all of it anew in every
// layer.
#pragma once

#include <cstdint>

#include "layout/deal.h"
#include "layout/packed_matrix.h"
#include "layout/page.h"
#include "layout/weight_format.h"

namespace soliton {

/// How phases learn that their input has arrived.
enum class SyncMode : int {
  kSelfValidating,  // words carry the tag of their use; readers repeat those that have not come
  kCounter,         // a grid-wide counter that every CTA raises at the end of every phase
};

/// How a CTA's warps copy pages and activations into shared memory.
enum class CopyKind : int {
  kBulk,   // one lane copies a page: cards of compute capability 9.0 and up
  kLanes,  // 16 bytes each by all lanes of one or several warps: any card
};

/// Several rows: bits of a float that no partial sum or result may have, "not written yet".
constexpr uint32_t kMissing = 0xffffffffu;
constexpr int kMissingByte = 0xff;  // each of its bytes
constexpr uint32_t kCanonicalNan = 0x7fffffffu;

/// An activation vector that CTAs exchange: `elements` floats, row after row, then one signature word of
/// every CTA when `signatures` is not 0 (a CTA that may have no tile of the writing phase says so by
/// signing). One row: uses take its places in turn.
struct Vector {
  int64_t offset = -1;    // bytes in the workspace, 16-byte aligned; -1: no vector
  int elements = 0;       // a multiple of 4
  int signatures = 0;     // 0 or the number of CTAs
  int64_t to_second = 0;  // bytes from the first place to the second; 0: there is one place
  int layer_kind = -1;    // that alone writes it, where there are several kinds of layers; -1: all do

  SOLITON_HOST_DEVICE constexpr int64_t place(uint32_t use) const { return offset + use % 2 * to_second; }
};

/// Index of no vector, no matrix.
constexpr int kNone = -1;

enum class PhaseKind : int {
  kMatrix,
  kAttention,  // over the cache and the step's own tokens
  kNormHeads,  // several rows: norms and rotates heads of q and k
  kNormBlock,  // the same: norms what a block gives and adds it to the residual stream, behind the phase that wrote it
  // Mixtures, where warpgroups multiply, see layout/grouped_rows.h:
  kChoose,  // which experts every row goes through
  kGroup,   // brings rows side by side by their experts
  // There, and where pairs are multiplied, see layout/expert_pairs.h:
  kUngroup,  // adds up for every row what its experts have put out, and adds that to the residual stream
};

/// What a matrix phase multiplies with.
enum class InputKind : int {
  kVector,  // the vector as it is
  kNormed,  // RMS norm of the vector: of the residual stream, in layers without a norm before blocks itself
  kHidden,  // the same of the residual stream that is the embedding in layer 0, the vector in the others
};

/// What becomes of a tile's sums. One word per operation: the names of templates/ops.
enum class OutputKind : int {
  kRotary,
  kResidual,
  kSwiglu,
  kLogits,
  kRouter,  // logits of a mixture's experts
};

/// Where warpgroups multiply: does the warp that has a tile's sums finish it? Those of gate and up, if a CTA has all columns;
/// all others go through the workspace.
SOLITON_HOST_DEVICE constexpr bool is_finished_by_warp(OutputKind output, int column_slices) {
  return output == OutputKind::kSwiglu && column_slices == 1;
}

/// Does a phase stand beside a matrix phase of its layer, before or behind it, rather than around attention?
SOLITON_HOST_DEVICE constexpr bool is_beside_matrix(PhaseKind kind) {
  return kind != PhaseKind::kMatrix && kind != PhaseKind::kAttention && kind != PhaseKind::kNormHeads;
}

/// A phase as the generator writes it.
struct Phase {
  const char* name = nullptr;
  PhaseKind kind = PhaseKind::kMatrix;
  int matrix = kNone;  // of KernelPlan::matrices; matrix phases only
  // Of KernelPlan::vectors.
  int reads = kNone;  // and waits for; in layer 0 InputKind::kHidden waits for the candidates instead
  int writes = kNone;
  int routes = kNone;  // the logits that choose the phase's experts, and those of the phases behind it
  InputKind input = InputKind::kVector;
  OutputKind output = OutputKind::kResidual;
  // Row of the norms, from its layer's first on: of what the phase reads; of who writes the residual stream, that of its
  // reader.
  int norm = kNone;
  int first_cta = 0;      // owner of tile 0, see deal_tiles()
  int layer_kind = 0;     // happens in the layers of this kind
  bool appends = false;   // appends the step's keys and values to the cache
  int column_slices = 1;  // CTAs that share the columns of a tile, see deal_block() and RouterSlices
};

/// Columns of a matrix phase's input, and how its weights stand. What depends on them is compiled for each
/// that a model has.
struct Width {
  int columns = 0;
  int padded = 0;       // padded_columns(format, columns)
  bool normed = false;  // does a phase of this width norm its input?
  WeightFormat format = {};
};

}  // namespace soliton
