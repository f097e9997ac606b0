// QuantizedLinear: words written out by hand in each format, and every way in which tensors can fail to fit.
#include "runtime/weights/quantization/quantized_linear.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>

#include "layout/e4m3.h"
#include "refusals.h"
#include "runtime/weights/quantization/nibbles.h"
#include "temporary_folder.h"

namespace soliton {
namespace {

using nlohmann::json;
using Method = QuantizationMethod;

constexpr uint16_t kHalfOne = 0x3c00;  // of f16
constexpr uint32_t kSevens = 0x77777777;
constexpr uint32_t kEights = 0x88888888;
constexpr uint32_t kDigits = 0x76543210;  // nibble i is i

struct Entry {
  std::string dtype;
  std::vector<int64_t> shape;
  std::string bytes;
};

template <class T>
Entry entry(const char* dtype, std::vector<int64_t> shape, std::vector<T> values) {
  return {dtype, std::move(shape), {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)}};
}

/// Every element the same.
template <class T>
Entry filled(const char* dtype, std::vector<int64_t> shape, T value) {
  const int64_t size = std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>());
  return entry(dtype, std::move(shape), std::vector<T>(static_cast<size_t>(size), value));
}

Entry words(std::vector<int64_t> shape, uint32_t word) {
  return filled("I32", std::move(shape), word);
}

class QuantizedLinearTest : public testing::Test {
 protected:
  static constexpr int64_t kRows = 16;
  static constexpr int64_t kColumns = 128;
  static constexpr int kGroupSize = 32;
  static constexpr int64_t kGroups = kColumns / kGroupSize;

  /// A sound layer of one of the methods, kRows x kColumns, with groups of kGroupSize.
  void start(Method method, bool symmetric) {
    config_ = {};
    config_.method = method;
    config_.group_size = kGroupSize;
    config_.symmetric = symmetric;
    config_.zeros = method == Method::kGptq ? ZeroFormat::kV1 : ZeroFormat::kV2;
    config_.file = "config.json";
    entries_.clear();
    if (method == Method::kCompressedTensors) {
      entries_["weight_packed"] = words({kRows, kColumns / 8}, kDigits);
      entries_["weight_scale"] = filled("BF16", {kRows, kGroups}, uint16_t{0x3f80});
      entries_["weight_shape"] = entry<int64_t>("I64", {2}, {kRows, kColumns});
      if (!symmetric) entries_["weight_zero_point"] = words({kRows / 8, kGroups}, kDigits);
      return;
    }
    const bool is_gptq = method == Method::kGptq;
    entries_["qweight"] =
        is_gptq ? words({kColumns / 8, kRows}, kDigits) : words({kColumns, kRows / 8}, kDigits);
    entries_["scales"] = filled("F16", {kGroups, kRows}, kHalfOne);
    entries_["qzeros"] = words({kGroups, kRows / 8}, symmetric ? kSevens : kDigits);
    if (is_gptq) entries_["g_idx"] = entry("I32", {kColumns}, natural_groups());
  }

  static std::vector<int32_t> natural_groups() {
    std::vector<int32_t> groups(kColumns);
    for (size_t i = 0; i < groups.size(); ++i) groups[i] = static_cast<int32_t>(i) / kGroupSize;
    return groups;
  }

  /// Writes the entries and opens them; the layer is called "layer".
  const TensorSource& write() {
    json header;
    std::string buffer;
    for (const auto& [name, entry] : entries_) {
      header["layer." + name] = {{"dtype", entry.dtype},
                                 {"shape", entry.shape},
                                 {"data_offsets", {buffer.size(), buffer.size() + entry.bytes.size()}}};
      buffer += entry.bytes;
    }
    const std::string text = header.dump();
    uint64_t length = text.size();
    std::string file(sizeof(length), '\0');
    std::memcpy(file.data(), &length, sizeof(length));
    source_ = TensorSource::open(folder_.write("model.safetensors", file + text + buffer));
    return *source_;
  }

  std::optional<QuantizedLinear> find(int64_t rows = kRows, int64_t columns = kColumns) {
    return find_quantized(write(), config_, "layer", rows, columns);
  }

  void refused(ExitCode code, const std::string& message, int64_t rows = kRows, int64_t columns = kColumns) {
    const std::string path = (folder_.path() / "model.safetensors").string();
    expect_refused([&] { find(rows, columns); }, code, path + ": layer." + message);
  }
  void mismatched(const std::string& message) { refused(ExitCode::kMismatch, message); }

  /// Expects an entry to be refused while it has another shape or type, and while it is absent.
  void expect_required(const std::string& name, const std::string& type, const std::string& shape) {
    const Entry sound = entries_.at(name);
    Entry& entry = entries_.at(name);
    entry.dtype = sound.dtype == "I64" ? "U64" : sound.dtype == "I32" ? "U32" : "I16";
    mismatched(name + ": expected " + type + " " + shape + ", got " + entry.dtype + " " + shape);
    entry = sound;
    entry.shape.push_back(1);
    mismatched(name + ": expected " + sound.dtype + " " + shape + ", got " + sound.dtype + " [");
    entries_.erase(name);
    if (name != "qweight" && name != "weight_packed") {
      mismatched(name + ": expected " + type.substr(0, type.find(' ')) + " " + shape +
                 ", but there is no such tensor");
    }
    entries_[name] = sound;
    EXPECT_TRUE(find().has_value()) << "the layer itself has to be sound";
  }

  static std::vector<uint8_t> values(const QuantizedLinear& linear, int64_t first, int count) {
    std::vector<uint8_t> values(static_cast<size_t>(count * linear.columns()));
    linear.unpack_values(first, count, values.data());
    return values;
  }
  static std::vector<uint8_t> zeros(const QuantizedLinear& linear, int64_t first, int count) {
    std::vector<uint8_t> zeros(static_cast<size_t>(count * linear.num_groups()));
    linear.unpack_zeros(first, count, zeros.data());
    return zeros;
  }

  const TemporaryFolder folder_;
  QuantizationConfig config_;
  std::map<std::string, Entry> entries_;
  std::optional<TensorSource> source_;
};

TEST(Nibbles, HalfPrecisionIsExact) {
  EXPECT_EQ(f16_bits_to_float(0x3c00), 1.0f);
  EXPECT_EQ(f16_bits_to_float(0xc000), -2.0f);
  EXPECT_EQ(f16_bits_to_float(0x7bff), 65504.0f);
  EXPECT_EQ(f16_bits_to_float(0x0400), 0x1p-14f);
  EXPECT_EQ(f16_bits_to_float(0x03ff), 1023 * 0x1p-24f);
  EXPECT_EQ(f16_bits_to_float(0x8001), -0x1p-24f);
  EXPECT_EQ(f16_bits_to_float(0x7c00), std::numeric_limits<float>::infinity());
  EXPECT_TRUE(std::isnan(f16_bits_to_float(0x7e00)));
  EXPECT_TRUE(std::signbit(f16_bits_to_float(0x8000)));
  EXPECT_EQ(bf16_bits_to_float(0xbfc0), -1.5f);
}

TEST(Nibbles, TransposesEveryColumnOfWords) {
  uint32_t words[8][2];
  for (uint32_t i = 0; i < 8; ++i) {
    words[i][0] = i * 0x11111111;
    words[i][1] = 1u << (4 * i);  // symmetric
  }
  transpose_nibbles(words);
  for (uint32_t i = 0; i < 8; ++i) {
    EXPECT_EQ(words[i][0], kDigits);
    EXPECT_EQ(words[i][1], 1u << (4 * i));
  }
}

TEST_F(QuantizedLinearTest, NothingIfTheLayerIsNotQuantised) {
  start(Method::kGptq, true);
  entries_ = {{"weight", filled("BF16", {kRows, kColumns}, uint16_t{0})}};
  EXPECT_FALSE(find());
  config_.method = Method::kCompressedTensors;
  EXPECT_FALSE(find());
}

TEST_F(QuantizedLinearTest, GptqPacksInputsLowNibbleFirst) {
  start(Method::kGptq, false);
  config_.zeros = ZeroFormat::kV2;
  uint32_t first_word = 0xfedcba98;  // of output 3, inputs 8 to 15
  std::memcpy(entries_["qweight"].bytes.data() + (kRows + 3) * 4, &first_word, 4);
  const QuantizedLinear linear = find().value();
  EXPECT_EQ(linear.num_groups(), kGroups);
  EXPECT_EQ(linear.group_size(), kGroupSize);
  EXPECT_FALSE(linear.symmetric());
  EXPECT_TRUE(linear.order().empty());
  const std::vector<uint8_t> row = values(linear, 3, 1);
  for (size_t c = 0; c < row.size(); ++c) EXPECT_EQ(row[c], c >= 8 && c < 16 ? c : c % 8) << c;
  EXPECT_EQ(zeros(linear, 5, 1), std::vector<uint8_t>(kGroups, 5));
}

TEST_F(QuantizedLinearTest, GptqAddsOneToZerosWithoutMasking) {
  start(Method::kGptq, false);
  entries_["qzeros"] = words({kGroups, kRows / 8}, 0xf0f0f0f0);
  const QuantizedLinear linear = find().value();
  EXPECT_EQ(zeros(linear, 0, 1), std::vector<uint8_t>(kGroups, 1));
  EXPECT_EQ(zeros(linear, 1, 1), std::vector<uint8_t>(kGroups, 16));
}

TEST_F(QuantizedLinearTest, AwqInterleavesOutputs) {
  start(Method::kAwq, false);
  entries_["qweight"] = words({kColumns, kRows / 8}, 0x75316420);
  entries_["qzeros"] = words({kGroups, kRows / 8}, 0x75316420);
  const QuantizedLinear linear = find().value();
  for (int row = 0; row < kRows; ++row) {
    EXPECT_EQ(values(linear, row, 1), std::vector<uint8_t>(kColumns, static_cast<uint8_t>(row % 8)));
    EXPECT_EQ(zeros(linear, row, 1), std::vector<uint8_t>(kGroups, static_cast<uint8_t>(row % 8)));
  }
}

TEST_F(QuantizedLinearTest, CompressedTensorsPacksRows) {
  start(Method::kCompressedTensors, true);
  const QuantizedLinear symmetric = find().value();
  EXPECT_TRUE(symmetric.symmetric());
  EXPECT_EQ(values(symmetric, 0, 1)[6], 6);
  EXPECT_EQ(zeros(symmetric, 0, 1), std::vector<uint8_t>(kGroups, 8));
  start(Method::kCompressedTensors, false);
  const QuantizedLinear other = find().value();
  EXPECT_FALSE(other.symmetric());
  EXPECT_EQ(zeros(other, 12, 1), std::vector<uint8_t>(kGroups, 4));
}

// Of a tensor, of rows and of blocks, the last of which are smaller; in every type of floats.
TEST_F(QuantizedLinearTest, Fp8HasAsManyScalesAsItsTensorSays) {
  constexpr int64_t kOuts = 130;
  constexpr int64_t kIns = 192;
  config_ = {};
  config_.method = Method::kFp8;
  std::vector<uint8_t> codes(kOuts * kIns);
  for (size_t i = 0; i < codes.size(); ++i) codes[i] = static_cast<uint8_t>(i % 0x7f);
  entries_ = {{"weight", entry("F8_E4M3", {kOuts, kIns}, codes)}};
  const auto scales_of = [&](const char* name, Entry scales, int64_t row) {
    entries_[name] = std::move(scales);
    const QuantizedLinear linear = find(kOuts, kIns).value();
    entries_.erase(name);
    std::vector<float> read(static_cast<size_t>(linear.num_groups()));
    linear.unpack_scales(row, 1, read.data());
    return read;
  };
  const std::vector<float> blocks = {1, 2, 3, 4};
  EXPECT_EQ(scales_of("weight_scale_inv", entry("F32", {2, 2}, blocks), 127), (std::vector<float>{1, 2}));
  EXPECT_EQ(scales_of("weight_scale_inv", entry("F32", {2, 2}, blocks), 128), (std::vector<float>{3, 4}));
  std::vector<uint16_t> rows(kOuts, 0x3f80);
  rows[129] = 0x4040;
  EXPECT_EQ(scales_of("weight_scale", entry("BF16", {kOuts, 1}, rows), 129), std::vector<float>{3});
  EXPECT_EQ(scales_of("weight_scale", entry("BF16", {kOuts}, rows), 128), std::vector<float>{1});
  EXPECT_EQ(scales_of("weight_scale", entry<float>("F32", {}, {0.125f}), 129), std::vector<float>{0.125f});
  EXPECT_EQ(scales_of("weight_scale", entry<uint16_t>("F16", {1}, {kHalfOne}), 0), std::vector<float>{1});

  entries_["weight_scale"] = entry<float>("F32", {1}, {1});
  const QuantizedLinear linear = find(kOuts, kIns).value();
  EXPECT_TRUE(linear.is_fp8());
  EXPECT_EQ(values(linear, 1, 1), std::vector<uint8_t>(codes.begin() + kIns, codes.begin() + 2 * kIns));
}

TEST_F(QuantizedLinearTest, RefusesFp8WithoutSoundScalesOrWithNan) {
  config_ = {};
  config_.method = Method::kFp8;
  const auto sound = filled("F8_E4M3", {kRows, kColumns}, uint8_t{1});
  entries_ = {{"weight", sound}};
  mismatched("weight: expected weight_scale or weight_scale_inv beside it, got neither");
  entries_["weight_scale"] = filled("F32", {2, 1}, 1.0f);
  mismatched("weight_scale: expected F32, BF16 or F16 [1], [16, 1] or [1, 1], got F32 [2, 1]");
  entries_["weight_scale"] = filled("U8", {1}, uint8_t{1});
  mismatched("weight_scale: expected F32, BF16 or F16 [1], [16, 1] or [1, 1], got U8 [1]");
  entries_["weight_scale"] = filled("F32", {1}, 1.0f);
  entries_["weight"] = filled("F8_E4M3", {kColumns, kRows}, uint8_t{1});
  mismatched("weight: expected F8_E4M3 [16, 128], got F8_E4M3 [128, 16]");
  entries_["weight"] = filled("F8_E5M2", {kRows, kColumns}, uint8_t{1});
  EXPECT_FALSE(find().has_value());
  entries_["weight"] = sound;
  entries_["weight"].bytes[5 * kColumns + 3] = '\xff';
  const QuantizedLinear linear = find().value();
  EXPECT_EQ(values(linear, 0, 5).size(), 5u * kColumns);
  expect_refused([&] { values(linear, 4, 2); }, ExitCode::kBadFile,
                 (folder_.path() / "model.safetensors").string() +
                     ": layer.weight: expected numbers, got NaN in rows 4 to 5");
}

TEST(Nibbles, E4m3IsExact) {
  EXPECT_EQ(e4m3_to_float(0x7e), 448.0f);
  EXPECT_EQ(e4m3_to_float(0xfe), -448.0f);
  EXPECT_EQ(e4m3_to_float(0x38), 1.0f);
  EXPECT_EQ(e4m3_to_float(0x08), 0x1p-6f);
  EXPECT_EQ(e4m3_to_float(0x87), -7 * 0x1p-9f);
  EXPECT_EQ(e4m3_to_float(0x01), 0x1p-9f);
}

TEST_F(QuantizedLinearTest, ActOrderSortsInputsByGroupStably) {
  start(Method::kGptq, true);
  config_.act_order = true;
  std::vector<int32_t> groups(kColumns);
  for (size_t i = 0; i < groups.size(); ++i) groups[i] = 3 - static_cast<int32_t>(i) % 4;
  entries_["g_idx"] = entry("I32", {kColumns}, groups);
  const QuantizedLinear linear = find().value();
  ASSERT_EQ(linear.order().size(), static_cast<size_t>(kColumns));
  const std::vector<uint8_t> row = values(linear, 0, 1);
  for (int32_t c = 0; c < kColumns; ++c) {
    const int32_t input = 3 - c / kGroupSize + 4 * (c % kGroupSize);
    EXPECT_EQ(linear.order()[static_cast<size_t>(c)], input);
    EXPECT_EQ(row[static_cast<size_t>(c)], input % 8);
  }
}

TEST_F(QuantizedLinearTest, SymmetricZerosDecideTheFormatAndSaySoAlike) {
  start(Method::kGptq, true);
  EXPECT_EQ(find()->remark(), "");
  config_.zeros = ZeroFormat::kV2;
  const QuantizedLinear first = find().value();
  EXPECT_EQ(
      first.remark(),
      "config.json: checkpoint_format: expected gptq, because sym is true and zeros are stored as 7, got "
      "gptq_v2; read as gptq");
  EXPECT_TRUE(first.symmetric());
  EXPECT_EQ(zeros(first, 0, 1), std::vector<uint8_t>(kGroups, 8));
  config_.zeros = ZeroFormat::kV1;
  entries_["qzeros"] = words({kGroups, kRows / 8}, kEights);
  const QuantizedLinear second = find().value();
  EXPECT_EQ(
      second.remark(),
      "config.json: checkpoint_format: expected gptq_v2, because sym is true and zeros are stored as 8, "
      "got gptq; read as gptq_v2");
  EXPECT_TRUE(second.symmetric());
  EXPECT_EQ(zeros(second, 0, 1), std::vector<uint8_t>(kGroups, 8));
}

TEST_F(QuantizedLinearTest, AsymmetricZerosDoNot) {
  start(Method::kGptq, false);
  entries_["qzeros"] = words({kGroups, kRows / 8}, kEights);
  const QuantizedLinear linear = find().value();
  EXPECT_EQ(linear.remark(), "");
  EXPECT_FALSE(linear.symmetric());
  EXPECT_EQ(zeros(linear, 0, 1), std::vector<uint8_t>(kGroups, 9));
  start(Method::kGptq, true);
  entries_["qzeros"] = words({kGroups, kRows / 8}, kDigits);
  const QuantizedLinear untrue = find().value();
  EXPECT_EQ(untrue.remark(),
            "config.json: sym: expected false, because zeros are neither all 7 nor all 8, got true; read as "
            "gptq without symmetry");
  EXPECT_FALSE(untrue.symmetric());
}

TEST_F(QuantizedLinearTest, RefusesSymmetricZerosOfBothFormats) {
  start(Method::kGptq, true);
  std::memcpy(entries_["qzeros"].bytes.data(), &kEights, 4);
  mismatched("qzeros: expected 7 throughout (gptq) or 8 throughout (gptq_v2), because sym is true, got both");
}

TEST_F(QuantizedLinearTest, BiasIsNullWhereItIsAbsentOrZero) {
  start(Method::kGptq, true);
  EXPECT_EQ(find()->bias(), nullptr);
  entries_["bias"] = filled("F16", {kRows}, uint16_t{0});
  EXPECT_EQ(find()->bias(), nullptr);
  for (const char* dtype : {"F16", "BF16"}) {
    entries_["bias"] = filled(dtype, {kRows}, kHalfOne);
    const std::optional<QuantizedLinear> linear = find();
    ASSERT_NE(linear->bias(), nullptr);
    EXPECT_EQ(dtype_name(linear->bias()->dtype), dtype);
  }
  entries_["bias"] = filled("F32", {kRows}, 1.0f);
  EXPECT_NE(find()->bias(), nullptr);
  expect_required("scales", "F16 or BF16", "[4, 16]");
  entries_["bias"] = filled("F16", {kRows + 8}, kHalfOne);
  mismatched("bias: expected F16 [16], got F16 [24]");
  entries_["bias"] = filled("I32", {kRows}, 1);
  mismatched("bias: expected F16 or BF16 or F32 [16], got I32 [16]");
}

TEST_F(QuantizedLinearTest, RequiresEveryTensorOfGptq) {
  start(Method::kGptq, true);
  expect_required("qweight", "I32", "[16, 16]");
  expect_required("scales", "F16 or BF16", "[4, 16]");
  expect_required("qzeros", "I32", "[4, 2]");
  config_.act_order = true;
  std::vector<int32_t> groups = natural_groups();
  std::swap(groups.front(), groups.back());
  entries_["g_idx"] = entry("I32", {kColumns}, groups);
  expect_required("g_idx", "I32", "[128]");
  entries_["scales"] = filled("F16", {kGroups - 1, kRows}, kHalfOne);
  mismatched("scales: expected F16 [4, 16], got F16 [3, 16]");
  entries_["scales"] = filled("F32", {kGroups, kRows}, 1.0f);
  mismatched("scales: expected F16 or BF16 [4, 16], got F32 [4, 16]");
}

TEST_F(QuantizedLinearTest, RequiresEveryTensorOfAwq) {
  start(Method::kAwq, false);
  expect_required("qweight", "I32", "[128, 2]");
  expect_required("scales", "F16 or BF16", "[4, 16]");
  expect_required("qzeros", "I32", "[4, 2]");
  config_.method = Method::kGptq;
  mismatched("qweight: expected I32 [16, 16], got I32 [128, 2]");
}

TEST_F(QuantizedLinearTest, RequiresEveryTensorOfCompressedTensors) {
  start(Method::kCompressedTensors, false);
  expect_required("weight_packed", "I32", "[16, 16]");
  expect_required("weight_scale", "F16 or BF16", "[16, 4]");
  expect_required("weight_shape", "I64 or I32", "[2]");
  expect_required("weight_zero_point", "I32", "[2, 4]");
  config_.symmetric = true;
  mismatched("weight_zero_point: expected no zero points, because symmetric is true");
  entries_.erase("weight_zero_point");
  config_.act_order = true;
  mismatched("weight_g_idx: expected I32 [128], but there is no such tensor");
  entries_["weight_shape"] = entry<int32_t>("I32", {2}, {kRows, kColumns + 8});
  refused(ExitCode::kBadFile, "weight_shape: expected 16 x 128, as weight_packed is, got 16 x 136");
}

TEST_F(QuantizedLinearTest, RefusesTheNamesOfAnotherMethod) {
  start(Method::kGptq, true);
  config_.method = Method::kCompressedTensors;
  mismatched("qweight: expected weight_packed, because of quant_method in config.json");
  start(Method::kCompressedTensors, true);
  config_.method = Method::kAwq;
  mismatched("weight_packed: expected qweight, because of quant_method in config.json");
}

TEST_F(QuantizedLinearTest, RefusesAnImpossibleOrder) {
  start(Method::kGptq, true);
  std::vector<int32_t> groups = natural_groups();
  const auto with = [&](size_t input, int32_t group) {
    std::vector<int32_t> changed = groups;
    changed[input] = group;
    entries_["g_idx"] = entry("I32", {kColumns}, changed);
  };
  with(7, 4);
  refused(ExitCode::kBadFile, "g_idx: [7]: expected a group in [0, 3], got 4");
  with(127, -1);
  refused(ExitCode::kBadFile, "g_idx: [127]: expected a group in [0, 3], got -1");
  with(0, 1);
  mismatched("g_idx: expected 32 inputs in every group, got 31 in group 0");
}

TEST_F(QuantizedLinearTest, RefusesActOrderWithoutAnOrder) {
  start(Method::kGptq, true);
  entries_["g_idx"] = filled("I32", {kColumns}, 0);
  EXPECT_TRUE(find()->order().empty());
  entries_.erase("g_idx");
  EXPECT_TRUE(find()->order().empty());
  config_.act_order = true;
  mismatched("g_idx: expected I32 [128], but there is no such tensor");
  entries_["g_idx"] = filled("I32", {kColumns}, 0);
  mismatched("g_idx: expected groups, because of act-order, got 0 throughout");
  start(Method::kCompressedTensors, true);
  config_.act_order = true;
  entries_["weight_g_idx"] = filled("I32", {kColumns}, -1);
  mismatched("weight_g_idx: expected groups, because of act-order, got -1 throughout");
}

TEST_F(QuantizedLinearTest, RefusesSizesThatDoNotDivide) {
  start(Method::kGptq, true);
  refused(ExitCode::kMismatch, "qweight: expected outputs in eights, got 12", 12, kColumns);
  refused(ExitCode::kMismatch, "qweight: expected inputs in eights, got 100", kRows, 100);
  entries_["qweight"] = words({kColumns / 8 + 2, kRows}, kDigits);
  refused(ExitCode::kMismatch, "qweight: expected inputs in groups of 32, got 144 inputs", kRows, 144);
}

TEST_F(QuantizedLinearTest, RefusesFilesCutShortOrLeftAsPointers) {
  start(Method::kGptq, true);
  write();
  const std::filesystem::path path = folder_.path() / "model.safetensors";
  std::filesystem::resize_file(path, std::filesystem::file_size(path) - 1);
  expect_refused([&] { TensorSource::open(folder_.path()); }, ExitCode::kBadFile,
                 path.string() + ": cut short");
  folder_.write("model.safetensors", "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n");
  expect_refused([&] { TensorSource::open(folder_.path()); }, ExitCode::kBadFile,
                 path.string() + ": a git-LFS pointer");
}

}  // namespace
}  // namespace soliton
