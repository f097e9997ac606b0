// Whether a kernel with its weights on this machine computes what the checkpoint says: its logits and greedy tokens
// after a built-in prompt against those of HostModel.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "runtime/engine/engine.h"
#include "runtime/verify/host_model.h"

namespace soliton {

inline constexpr int kVerifiedTokens = 8;  // generated

struct Verdict {
  bool agrees = false;
  std::string line;  // "verified: ..." or "NOT verified: ...", with the largest difference
};

/// The first token of a text, if the model has one, and further ones that its vocabulary alone decides: 8.
std::vector<int32_t> verification_prompt(const HfConfig& config);

/// Decodes the prompt, token by token and, if the library has kernels for several rows, also by these, and compares
/// with a HostModel of `source` that keeps keys and values as the kernel does.
/// A logit may differ by what rounding explains, measured by the largest logit of its step; a token may be another
/// one where their logits are as close as that. The engine has room for the prompt and kVerifiedTokens; what it has
/// cached is forgotten. Throws what Engine::decode() and HostModel::logits() throw.
Verdict verify(Engine& engine, const TensorSource& source, HfConfig config, std::span<const int32_t> prompt);

}  // namespace soliton
