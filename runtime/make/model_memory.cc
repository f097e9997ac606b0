#include "runtime/make/model_memory.h"

#include <algorithm>

#include "layout/page.h"
#include "runtime/kv_pool.h"

namespace soliton {
namespace {

constexpr int64_t kBf16Bytes = 2;
constexpr int64_t kOtherBytes = 64 << 20;  // workspaces, records, and what the driver takes for itself

}  // namespace

int64_t device_weight_bytes(const ModelFacts& facts) {
  const int64_t hidden = facts.hidden;
  const int64_t attention = hidden * facts.head_dim * 2 * (int64_t{facts.num_heads} + facts.num_kv_heads);
  const int64_t layer = attention + 3 * hidden * facts.ffn + 2 * hidden;
  return kBf16Bytes * (facts.num_layers * layer + hidden + 2 * hidden * facts.vocabulary);
}

int64_t device_token_bytes(const ModelFacts& facts) {
  const int64_t rotary = int64_t{facts.head_dim} * static_cast<int64_t>(sizeof(float));
  return KvPool::bytes(facts, 1) / kKvPageTokens + rotary;
}

int32_t fitting_context(const ModelFacts& facts, int64_t free_bytes) {
  const int64_t left = free_bytes - device_weight_bytes(facts) - kOtherBytes;
  const int64_t pages = std::max<int64_t>(left, 0) / (device_token_bytes(facts) * kKvPageTokens);
  return static_cast<int32_t>(std::min<int64_t>(pages * kKvPageTokens, facts.max_context));
}

}  // namespace soliton
