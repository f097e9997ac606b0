// Blocks of GGUF files: equality bit for bit with what the package gguf makes of random ones, and, where there is no Python
// with it, of a few that were worked out by hand.
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "error_of.h"
#include "reference_python.h"
#include "runtime/weights/gguf/blocks.h"
#include "runtime/weights/tensor_values.h"

namespace soliton {
namespace {

namespace fs = std::filesystem;
using enum GgufType;

constexpr GgufType kAllTypes[] = {kQ4_0, kQ4_1, kQ5_0, kQ5_1,   kQ8_0,   kQ2_K, kQ3_K,
                                  kQ4_K, kQ5_K, kQ6_K, kIQ4_NL, kIQ4_XS, kMXFP4};

std::span<const std::byte> as_bytes(const std::string& text) {
  return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}

bool are_equal(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof a[0]) == 0;
}

/// Scale x code + offset, with codes in the range that the type is said to have.
std::vector<float> from_codes(GgufType type, const std::byte* data, int64_t count) {
  const BlockFormat format = block_format(type);
  const auto groups = static_cast<size_t>(count / format.group);
  std::vector<int8_t> codes(static_cast<size_t>(count));
  std::vector<float> scales(groups);
  std::vector<float> offsets(groups);
  unpack_blocks(type, data, 0, count, codes.data(), scales.data(), offsets.data());
  std::vector<float> values(codes.size());
  for (size_t i = 0; i < codes.size(); ++i) {
    const size_t group = i / static_cast<size_t>(format.group);
    EXPECT_GE(codes[i], format.least_code);
    EXPECT_LE(codes[i], format.greatest_code);
    const float product = scales[group] * static_cast<float>(codes[i]);
    values[i] = format.has_offsets ? product + offsets[group] : product;
  }
  return values;
}

TEST(GgufBlocks, AreWhatTheReferenceHas) {
  if (!has_package("gguf"))
    GTEST_SKIP() << reference_python() << " has no package gguf; set SOLITON_PYTHON to one that has";
  const fs::path folder = fs::path(SOLITON_BINARY_DIR) / "gguf_blocks";
  fs::create_directories(folder);
  ASSERT_EQ(run_script("gguf/make_blocks.py", "'" + folder.string() + "'"), 0);
  for (const GgufType type : kAllTypes) {
    const std::string name(gguf_type(type).name);
    SCOPED_TRACE(name);
    const std::string blocks = read_file(folder / (name + ".blocks"));
    const std::string bytes = read_file(folder / (name + ".floats"));
    std::vector<float> expected(bytes.size() / sizeof(float));
    std::memcpy(expected.data(), bytes.data(), bytes.size());
    ASSERT_GT(expected.size(), 60'000u);
    const auto count = std::ssize(expected);
    std::vector<float> values(expected.size());
    dequantise_blocks(type, as_bytes(blocks).data(), 0, count, values.data());
    EXPECT_TRUE(are_equal(values, expected));
    EXPECT_TRUE(are_equal(from_codes(type, as_bytes(blocks).data(), count), expected));
    const int64_t first = 256 * 5;  // of a tensor, from its midst
    values.resize(512);
    dequantise_blocks(type, as_bytes(blocks).data(), first, 512, values.data());
    EXPECT_TRUE(are_equal(values, {expected.begin() + first, expected.begin() + first + 512}));
  }
  fs::remove_all(folder);
}

constexpr const char* kOne = "\x00\x3c";   // f16
constexpr const char* kHalf = "\x00\x38";  // f16

std::string f16(const char* bits) {
  return {bits, 2};
}

std::vector<float> dequantised(GgufType type, const std::string& block) {
  const GgufTypeFacts& facts = gguf_type(type);
  EXPECT_EQ(std::ssize(block), facts.block_bytes);
  std::vector<float> values(static_cast<size_t>(facts.block_columns));
  dequantise_blocks(type, as_bytes(block).data(), 0, facts.block_columns, values.data());
  return values;
}

TEST(GgufBlocks, HaveLowNibblesBeforeHighOnes) {
  const std::vector<float> q4 = dequantised(kQ4_0, f16(kHalf) + '\x1f' + std::string(15, '\x80'));
  EXPECT_EQ(q4[0], 3.5f);
  EXPECT_EQ(q4[16], -3.5f);
  EXPECT_EQ(q4[1], -4.0f);
  EXPECT_EQ(q4[17], 0.0f);
  const std::vector<float> q41 = dequantised(kQ4_1, f16(kHalf) + f16(kOne) + '\x1f' + std::string(15, '\0'));
  EXPECT_EQ(q41[0], 8.5f);
  EXPECT_EQ(q41[16], 1.5f);
  const std::vector<float> q5 =
      dequantised(kQ5_0, f16(kOne) + std::string("\x01\x00\x01\x00", 4) + '\x1f' + std::string(15, '\0'));
  EXPECT_EQ(q5[0], 15.0f);
  EXPECT_EQ(q5[16], 1.0f);
  EXPECT_EQ(q5[1], -16.0f);
  EXPECT_EQ(dequantised(kMXFP4, std::string(1, '\x80') + std::string(16, '\x97'))[0], 12.0f);
  EXPECT_EQ(dequantised(kMXFP4, std::string(1, '\x80') + std::string(16, '\x97'))[16], -1.0f);
}

TEST(GgufBlocks, HaveSixBitsOfScalesInTwoPlaces) {
  // Of group 0 scale 63 and offset 1; of group 4 scale 0x2f and offset 0x10, whose upper bits are beside those of group 0.
  std::string scales(12, '\0');
  scales[0] = static_cast<char>(63 | 0x80);
  scales[4] = static_cast<char>(1 | 0x40);
  scales[8] = static_cast<char>(0x0f);
  const std::vector<float> q4 =
      dequantised(kQ4_K, f16(kOne) + f16(kHalf) + scales + std::string(128, '\x21'));
  EXPECT_EQ(q4[0], 63.0f - 0.5f);
  EXPECT_EQ(q4[128], 47.0f - 8.0f);
  EXPECT_EQ(q4[32], 0.0f);
  TwoLevels unpacked;
  const std::string q6 =
      std::string(128, '\x00') + std::string(64, '\x03') + std::string(16, '\xff') + f16(kOne);
  unpack_block(kQ6_K, as_bytes(q6).data(), unpacked);
  EXPECT_EQ(unpacked.scale, 1.0f);
  EXPECT_EQ(unpacked.group_scales[15], -1);
  EXPECT_EQ(unpacked.codes[0], 48 - 32);
  EXPECT_EQ(unpacked.codes[32], -32);
  EXPECT_EQ(dequantised(kQ6_K, q6)[0], -16.0f);
}

TEST(GgufBlocks, BecomeBf16InPieces) {
  const std::string block = f16(kOne) + std::string(16, '\x9c');
  std::string blocks;
  for (int i = 0; i < 100; ++i) blocks += block;
  const Tensor tensor{.name = "t", .dtype = DType::kQ4_0, .shape = {100, 32}, .data = as_bytes(blocks)};
  std::vector<uint16_t> values(99 * 32);
  read_bf16(tensor, 32, std::ssize(values), values.data());
  for (size_t i = 0; i < values.size(); ++i) ASSERT_EQ(values[i], i % 32 < 16 ? 0x4080 : 0x3f80) << i;
}

}  // namespace
}  // namespace soliton
