// GGUF files with blocks of every type that kernels have a format for, at random: they load into the emulated kernels, and decode
// like the scalar reference of the floats that the blocks stand for.
#include "gguf_model.h"
#include "kernel/kernel_cases.h"
#include "kernel/kernel_fixture.h"
#include "layout/fact_list.h"
#include "runtime/weights/gguf/blocks.h"
#include "runtime/weights/tensor_values.h"
#include "temporary_folder.h"

namespace soliton {
namespace {

using enum GgufType;

/// Types of a file's matrices, by how their tensors' names end; the first that fits counts.
struct Mix {
  const char* name;
  const char* kernel;
  std::vector<std::pair<const char*, GgufType>> types;
};

void PrintTo(const Mix& mix, std::ostream* out) {
  *out << mix.name;
}

/// Where blocks have their f16, scale first.
std::vector<int> places_of_f16(GgufType type) {
  switch (type) {
    case kQ2_K:
      return {80, 82};
    case kQ3_K:
      return {108};
    case kQ6_K:
      return {208};
    case kQ4_1:
    case kQ5_1:
    case kQ4_K:
    case kQ5_K:
      return {0, 2};
    default:
      return {0};
  }
}

/// Blocks of random bits, whose values are mostly within `bound`.
std::string random_blocks(GgufType type, int64_t count, float bound, uint64_t seed) {
  const GgufTypeFacts& facts = gguf_type(type);
  std::string bytes(static_cast<size_t>(count / facts.block_columns * facts.block_bytes), '\0');
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>(random_bits(i, seed));
  const BlockFormat format = block_format(type);
  const float codes = static_cast<float>(std::max(format.greatest_code, -format.least_code));
  const float groups = !has_two_levels(type) ? 1 : format.has_offsets ? 32 : 64;  // of their integers
  const std::vector<int> places = places_of_f16(type);
  for (size_t block = 0; block < bytes.size(); block += static_cast<size_t>(facts.block_bytes)) {
    for (size_t i = 0; i < places.size(); ++i) {
      const bool is_offset = i > 0;
      const float spread = 0.75f + 0.25f * random_unit(block + i, ~seed);
      // An offset takes half of what codes give, in the file's own sign.
      const float sign = is_offset && !has_two_levels(type) ? -1.0f : 1.0f;
      const float value = is_offset ? sign * bound / groups : 2 * bound / codes / groups;
      const uint16_t bits = f16_bits(value * spread);
      std::memcpy(&bytes[block + static_cast<size_t>(places[i])], &bits, sizeof bits);
    }
  }
  return bytes;
}

class GgufFormats : public testing::TestWithParam<Mix> {
 protected:
  void SetUp() override { skip_unless_built(GetParam().kernel); }
};

INSTANTIATE_TEST_SUITE_P(
    Mixes, GgufFormats,
    testing::Values(
        Mix{"q4_k_m",
            "k-quants-3-all",
            {{"1.attn_v.weight", kQ6_K},
             {"1.ffn_down.weight", kQ6_K},
             {"attn_output.weight", kQ4_K},
             {"output.weight", kQ6_K},
             {"", kQ4_K}}},
        Mix{"q4_k_m_by_single_warps",
            "k-quants-3-lanes",
            {{"1.attn_v.weight", kQ6_K},
             {"1.ffn_down.weight", kQ6_K},
             {"attn_output.weight", kQ4_K},
             {"output.weight", kQ6_K},
             {"", kQ4_K}}},
        Mix{"q4_k_m_of_many_rows",
            "k-quants-2-rows256",
            {{"1.attn_v.weight", kQ6_K},
             {"1.ffn_down.weight", kQ6_K},
             {"attn_output.weight", kQ4_K},
             {"output.weight", kQ6_K},
             {"", kQ4_K}}},
        Mix{"q4_k_m_of_whole_pages",
            "k-quants-pages-3",
            {{"attn_v.weight", kQ6_K}, {"attn_output.weight", kQ4_K}, {"output.weight", kQ6_K}, {"", kQ4_K}}},
        Mix{"iq4_xs_of_whole_pages", "iq4-pages-3", {{"", kIQ4_XS}}},
        Mix{"q2_k_to_q6_k",
            "few-bits-3-all",
            {{"1.attn_v.weight", kQ5_K},
             {"1.ffn_down.weight", kQ6_K},
             {"attn_output.weight", kQ3_K},
             {"output.weight", kQ6_K},
             {"attn_q.weight", kQ4_K},
             {"attn_k.weight", kQ3_K},
             {"", kQ2_K}}},
        Mix{"q3_k", "q3-k-3-all", {{"", kQ3_K}}},
        Mix{"q5_1", "five-bits-3-all", {{"attn_v.weight", kQ5_1}, {"", kQ5_0}}},
        Mix{"q5_1_by_single_warps", "five-bits-3-lanes", {{"attn_v.weight", kQ5_1}, {"", kQ5_0}}},
        Mix{"iq4_xs",
            "iq4-xs-3-all",
            {{"0.ffn_down.weight", kQ5_K},
             {"attn_v.weight", kQ5_K},
             {"output.weight", kQ6_K},
             {"", kIQ4_XS}}},
        Mix{"q8_0", "int8-3-all", {{"attn_v.weight", kIQ4_NL}, {"", kQ8_0}}},
        Mix{"q8_0_by_single_warps", "int8-3-lanes", {{"attn_v.weight", kIQ4_NL}, {"", kQ8_0}}}),
    [](const testing::TestParamInfo<Mix>& info) { return std::string(info.param.name); });

TEST_P(GgufFormats, DecodeLikeTheirFloats) {
  const Mix& mix = GetParam();
  const ModelFacts facts =
      KernelLibrary::open(std::string(SOLITON_TEST_KERNELS) + "/" + mix.kernel + ".so").model().facts;
  ModelFacts plain = facts;
  plain.weight_bits = plain.lm_head_bits = 16;
  plain.further_bits = 0;
  auto weights = std::make_shared<ReferenceWeights>(random_weights(plain, kWeightSeed));
  GgufBuilder builder;
  add_gguf_facts(builder, facts, "llama");
  uint64_t seed = 0;
  for_each_tensor(
      *weights, plain, [&](const std::string& name, const std::vector<int64_t>& shape, Bf16Bits& bits) {
        const std::string to = gguf_tensor_name(name);
        const bool is_embedding = to.starts_with("token_embd") && facts.tied_lm_head == 0;
        if (shape.size() == 1 || is_embedding) {
          const GgufType type = shape.size() == 1 ? kF32 : kBF16;
          builder.tensor(to, type, shape, gguf_floats(bits, type));
          return;
        }
        const auto type = std::ranges::find_if(mix.types, [&](const auto& each) {
                            return to.ends_with(each.first);
                          })->second;
        const int64_t count = shape[0] * shape[1];
        std::string blocks =
            random_blocks(type, count, std::sqrt(3.0f / static_cast<float>(shape[1])), ++seed);
        std::vector<float> floats(static_cast<size_t>(count));
        dequantise_blocks(type, reinterpret_cast<const std::byte*>(blocks.data()), 0, count, floats.data());
        std::ranges::transform(floats, bits.begin(), [](float value) { return round_to_bf16(value); });
        weights->floats[name] = std::move(floats);
        if (name.ends_with("q_proj.weight") || name.ends_with("k_proj.weight"))
          blocks = paired_rows(blocks, shape[0], facts.head_dim);
        builder.tensor(to, type, shape, blocks);
      });
  const TemporaryFolder folder;
  const std::filesystem::path file = folder.path() / "m.gguf";
  builder.write(file);
  EXPECT_EQ(hash_facts(HfConfig::open(file).facts), hash_facts(facts));
  KernelUnderTest kernel(mix.kernel, file, weights);
  // Many rows are multiplied by warpgroups.
  if (kernel.engine().max_prompt_rows() >= 64) {
    kernel.expect_like_reference(kernel.prompt(140), 2);
    return;
  }
  // Kernels of several rows read a prompt, and then one row goes on; by itself it has large matrices in no short time.
  const bool has_rows = kernel.engine().max_rows() > 1;
  const bool is_large = facts.hidden >= 2048;
  if (!has_rows || !is_large) kernel.expect_like_reference(kernel.prompt(3), 3);
  if (has_rows) kernel.expect_like_reference(kernel.prompt(is_large ? 8 : 12), 2);
}

}  // namespace
}  // namespace soliton
