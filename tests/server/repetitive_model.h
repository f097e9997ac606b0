// A model whose texts repeat themselves, so that drafts from the text are often right, and sometimes wrong.
#pragma once

#include "kernel/kernel_fixture.h"

namespace soliton {

/// Random ones, by which the next token depends on the last one most, and on others less.
inline ReferenceWeights repetitive_weights(const ModelFacts& facts) {
  constexpr uint16_t kExponent = 0x7f80;  // of a bf16
  constexpr uint16_t kEighth = 3 << 7;    // less of it
  ReferenceWeights weights = random_weights(facts, kWeightSeed);
  for (ReferenceLayer& layer : weights.layers) {
    for (uint16_t& bits : layer.o) bits = (bits & kExponent) > kEighth ? bits - kEighth : 0;
  }
  return weights;
}

/// Loads these.
inline void make_repetitive(Engine& engine, const ModelFacts& facts) {
  const TemporaryModel folder(repetitive_weights(facts), facts);
  engine.load(TensorSource::open(folder.path()), nullptr);
}

}  // namespace soliton
