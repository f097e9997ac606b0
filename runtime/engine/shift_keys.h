// Keys of the cache as they would be at other positions: RoPE turns a key by its position, and what it is turned by more or less
// can be made up for without the key as it was before.
#pragma once

#include <vector>

#include "layout/model_facts.h"
#include "layout/page.h"

namespace soliton {

/// By how much keys are turned: of each table that layers have {cos, sin} of every pair of dims.
class KeyShift {
 public:
  /// To positions that are `back` lower. `context`: that of the engine whose keys they are.
  KeyShift(const ModelFacts& facts, int back, int context);

  /// Throws Error (kMismatch), naming what it is for by `flag`, for models whose keys are no more what RoPE made of them.
  static void check(const ModelFacts& facts, const char* flag);

  /// Turns the keys of tokens `first` to `end` - 1 of a page in all layers that have a window, or in all that have none.
  /// `page`: its bytes, see KvShape, of `kv`'s heads and layers.
  void turn(unsigned char* page, const KvShape& kv, bool have_windows, int first, int end) const;

 private:
  void turn_key(unsigned char* keys, const KvShape& kv, int token, const float* rotations) const;

  const ModelFacts& facts_;
  std::vector<float> rotations_;  // [rope_tables()][head_dim / 2]{cos, sin}
};

}  // namespace soliton
