// The work of a prompt, counted another way: token by token, matrix by matrix.
#include "runtime/bench/prompt_work.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace soliton {
namespace {

ModelFacts small_facts() {
  ModelFacts facts;
  facts.hidden = 8;
  facts.ffn = 20;
  facts.num_layers = 3;
  facts.num_heads = 4;
  facts.num_kv_heads = 2;
  facts.head_dim = 16;
  facts.vocabulary = 100;
  return facts;
}

TEST(PromptWork, IsMatricesAndAttentionOfEachToken) {
  ModelFacts facts = small_facts();
  facts.layer_window[1] = 3;
  const double matrices = 8 * (64 + 32 + 32) + 64 * 8 + 3 * 8 * 20;
  double products = 8 * 100;  // lm_head of the last token
  for (int token = 0; token < 7; ++token) {
    for (int layer = 0; layer < 3; ++layer) {
      const int seen = layer == 1 ? std::min(token + 1, 3) : token + 1;
      products += matrices + 2 * 64 * seen;
    }
  }
  EXPECT_EQ(prompt_flops(facts, 7), 2 * products);
}

TEST(PromptWork, IsOfThoseExpertsThatATokenGoesThrough) {
  ModelFacts facts = small_facts();
  facts.num_experts = 10;
  facts.experts_per_token = 2;
  facts.shared_experts = 1;
  facts.expert_ffn = 6;
  const double layer = 8 * 128 + 64 * 8 + 8 * 10 + 3 * (3 * 8 * 6) + 2 * 64;
  EXPECT_EQ(prompt_flops(facts, 1), 2 * (3 * layer + 800));
}

// Of Llama-3.1-8B: 7.50e9 weights but for the embedding, of which lm_head is multiplied with the last token alone.
TEST(PromptWork, IsTwiceTheWeightsOfALargeModel) {
  ModelFacts facts;
  facts.hidden = 4096;
  facts.ffn = 14336;
  facts.num_layers = 32;
  facts.num_heads = 32;
  facts.num_kv_heads = 8;
  facts.head_dim = 128;
  facts.vocabulary = 128256;
  EXPECT_NEAR(prompt_flops(facts, 512) / 512, 2 * 6.98e9, 0.02 * 2 * 6.98e9);
}

}  // namespace
}  // namespace soliton
