#include "tests/reference_quantized.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <numeric>

#include "layout/f16.h"
#include "layout/random.h"
#include "layout/weight_format.h"

namespace soliton {
namespace {

constexpr int kWordBits = 32;
constexpr int kMxfp4Group = 32;
constexpr float kMxfp4Values[] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};

uint64_t hash_of(const std::string& text) {
  uint64_t hash = 14695981039346656037ull;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211ull;
  return hash;
}

/// What the layers that read the same activations have in common.
std::string input_name(const std::string& tensor_name) {
  for (const char* name : {"q_proj", "k_proj", "v_proj", "gate_proj", "up_proj"}) {
    const size_t at = tensor_name.find(name);
    if (at != std::string::npos) return tensor_name.substr(0, at);
  }
  return tensor_name;
}

/// Groups in natural order, or of columns drawn by lot.
std::vector<int32_t> draw_groups(int64_t columns, int64_t num_groups, bool ordered, uint64_t seed) {
  std::vector<int32_t> group_of(static_cast<size_t>(columns));
  for (int64_t c = 0; c < columns; ++c) group_of[c] = static_cast<int32_t>(c / (columns / num_groups));
  for (int64_t c = columns - 1; ordered && c > 0; --c) {
    std::swap(group_of[c],
              group_of[random_bits(static_cast<uint64_t>(c), seed) % static_cast<uint32_t>(c + 1)]);
  }
  return group_of;
}

template <class T>
StoredTensor stored(const std::string& name, const char* dtype, std::vector<int64_t> shape,
                    const std::vector<T>& values) {
  StoredTensor tensor{name, dtype, std::move(shape), std::vector<uint8_t>(values.size() * sizeof(T))};
  std::memcpy(tensor.bytes.data(), values.data(), tensor.bytes.size());
  return tensor;
}

float e4m3_value(uint8_t code) {
  const int exponent = code >> 3 & 15;
  const int mantissa = code & 7;
  const float magnitude = exponent == 0 ? std::ldexp(static_cast<float>(mantissa), -9)
                                        : std::ldexp(static_cast<float>(8 + mantissa), exponent - 10);
  return code >= 128 ? -magnitude : magnitude;
}

/// Codes in E4M3, all that there are, with a scale of three bits for each row.
QuantizedMatrix random_e4m3(int64_t rows, int64_t columns, float bound, uint64_t seed) {
  constexpr float kLargest = 448;
  QuantizedMatrix matrix{.rows = rows,
                         .columns = columns,
                         .num_groups = 1,
                         .values = std::vector<uint8_t>(static_cast<size_t>(rows * columns)),
                         .scales = {},
                         .zeros = {},
                         .group_of = std::vector<int32_t>(static_cast<size_t>(columns)),
                         .bits = 8,
                         .is_e4m3 = true};
  for (size_t i = 0; i < matrix.values.size(); ++i) {
    const uint32_t bits = random_bits(i, seed);
    matrix.values[i] = static_cast<uint8_t>(bits % 127 | (bits >> 8 & 1) << 7);
  }
  const float unit = std::exp2(std::floor(std::log2(bound / kLargest))) / 2;
  for (int64_t row = 0; row < rows; ++row)
    matrix.scales.push_back(unit *
                            static_cast<float>(4 + random_bits(static_cast<uint64_t>(row), ~seed) % 4));
  return matrix;
}

}  // namespace

float QuantizedMatrix::weight(int64_t row, int64_t column) const {
  const int64_t group = row * num_groups + group_of[column];
  if (is_e4m3) return scales[group] * e4m3_value(values[row * columns + column]);
  return scales[group] * static_cast<float>(values[row * columns + column] - zeros[group]);
}

bool has_integers(const std::string& tensor_name, const ModelFacts& facts) {
  if (tensor_name == "lm_head.weight") return facts.lm_head_bits < 16;
  return facts.weight_bits < 16 && tensor_name.ends_with("_proj.weight");
}

QuantizedMatrix random_quantized(const std::string& tensor_name, int64_t rows, int64_t columns, float bound,
                                 const ModelFacts& facts, uint64_t seed) {
  if (facts.weight_e4m3 != 0) return random_e4m3(rows, columns, bound, seed);
  QuantizedMatrix matrix{.rows = rows,
                         .columns = columns,
                         .num_groups = facts.weight_group > 0 ? columns / facts.weight_group : 1,
                         .values = std::vector<uint8_t>(static_cast<size_t>(rows * columns)),
                         .scales = {},
                         .zeros = {},
                         .group_of = {},
                         .bits = facts.weight_bits};
  for (size_t i = 0; i < matrix.values.size(); ++i) {
    matrix.values[i] = static_cast<uint8_t>(random_bits(i, seed) % (1u << matrix.bits));
  }
  const int symmetric_zero = 1 << (matrix.bits - 1);
  const float unit = std::exp2(std::floor(std::log2(bound / static_cast<float>(symmetric_zero)))) / 4;
  for (int64_t i = 0; i < rows * matrix.num_groups; ++i) {
    const uint32_t bits = random_bits(static_cast<uint64_t>(i), ~seed);
    matrix.scales.push_back(unit * static_cast<float>(matrix.bits == 8 ? 4 << bits % 2 : 4 + bits % 4));
    matrix.zeros.push_back(static_cast<uint8_t>(facts.weight_zeros ? 4 + bits / 4 % 8 : symmetric_zero));
  }
  matrix.group_of =
      draw_groups(columns, matrix.num_groups, facts.weight_order != 0, hash_of(input_name(tensor_name)));
  return matrix;
}

bool has_mxfp4(const std::string& tensor_name, const ModelFacts& facts) {
  return facts.further_e2m1 != 0 &&
         (tensor_name.ends_with(".experts.gate_up_proj") || tensor_name.ends_with(".experts.down_proj"));
}

std::vector<uint16_t> random_mxfp4(const std::vector<int64_t>& shape, float bound, uint64_t seed) {
  const int64_t columns = shape.at(1);
  const int64_t rows = shape.at(2);
  const int highest = static_cast<int>(std::floor(std::log2(bound / kMxfp4Values[7])));
  std::vector<uint16_t> bits;
  for (int64_t i = 0; i < shape.at(0) * columns * rows; ++i) {
    const int64_t row = i / (columns * rows) * rows + i % rows;
    const int64_t group = row * (columns / kMxfp4Group) + i / rows % columns / kMxfp4Group;
    const int scale = highest - static_cast<int>(random_bits(static_cast<uint64_t>(group), ~seed) % 4);
    const uint32_t code = random_bits(static_cast<uint64_t>(i), seed) % 16;
    const float value = std::ldexp(kMxfp4Values[code % 8], scale);
    bits.push_back(static_cast<uint16_t>(std::bit_cast<uint32_t>(code >= 8 ? -value : value) >> 16));
  }
  return bits;
}

std::vector<StoredTensor> mxfp4_tensors(const std::string& name, const std::vector<int64_t>& shape,
                                        const std::vector<uint16_t>& bits) {
  const int64_t experts = shape.at(0);
  const int64_t columns = shape.at(1);
  const int64_t rows = shape.at(2);
  const int64_t groups = columns / kMxfp4Group;
  std::vector<uint8_t> codes(static_cast<size_t>(experts * rows * columns / 2));
  std::vector<uint8_t> scales(static_cast<size_t>(experts * rows * groups));
  for (int64_t row = 0; row < experts * rows; ++row) {
    const auto value = [&](int64_t column) {
      const uint32_t own = bits[static_cast<size_t>((row / rows * columns + column) * rows + row % rows)];
      return std::bit_cast<float>(own << 16);
    };
    for (int64_t group = 0; group < groups; ++group) {
      float largest = 0;
      for (int i = 0; i < kMxfp4Group; ++i)
        largest = std::max(largest, std::abs(value(group * kMxfp4Group + i)));
      // The least power of two that takes all within 6: they are then values of E2M1, as that has all their doubles.
      const int scale = largest == 0 ? 0 : static_cast<int>(std::ceil(std::log2(largest / kMxfp4Values[7])));
      scales[static_cast<size_t>(row * groups + group)] = static_cast<uint8_t>(127 + scale);
      for (int i = 0; i < kMxfp4Group; ++i) {
        const int64_t column = group * kMxfp4Group + i;
        const float magnitude = std::ldexp(std::abs(value(column)), -scale);
        const auto code = std::ranges::find(kMxfp4Values, magnitude) - std::begin(kMxfp4Values);
        const bool is_negative = std::signbit(value(column));
        codes[static_cast<size_t>((row * columns + column) / 2)] |=
            static_cast<uint8_t>((code | (is_negative ? 8 : 0)) << column % 2 * 4);
      }
    }
  }
  return {stored(name + "_blocks", "U8", {experts, rows, groups, kMxfp4Group / 2}, codes),
          stored(name + "_scales", "U8", {experts, rows, groups}, scales)};
}

std::vector<StoredTensor> gptq_tensors(const std::string& tensor_name, const QuantizedMatrix& matrix) {
  const std::string prefix = tensor_name.substr(0, tensor_name.rfind('.') + 1);
  const int64_t rows = matrix.rows;
  const int64_t groups = matrix.num_groups;
  const int of_word = kWordBits / matrix.bits;
  std::vector<uint32_t> values(static_cast<size_t>(matrix.columns / of_word * rows));
  for (int64_t column = 0; column < matrix.columns; ++column) {
    for (int64_t row = 0; row < rows; ++row) {
      values[column / of_word * rows + row] |= uint32_t{matrix.values[row * matrix.columns + column]}
                                               << column % of_word * matrix.bits;
    }
  }
  std::vector<uint32_t> zeros(static_cast<size_t>(groups * rows / of_word));
  std::vector<uint16_t> scales(static_cast<size_t>(groups * rows));
  for (int64_t group = 0; group < groups; ++group) {
    for (int64_t row = 0; row < rows; ++row) {
      zeros[(group * rows + row) / of_word] |= uint32_t{matrix.zeros[row * groups + group]}
                                               << row % of_word * matrix.bits;
      scales[group * rows + row] =
          std::bit_cast<uint16_t>(static_cast<F16>(matrix.scales[row * groups + group]));
    }
  }
  return {stored(prefix + "qweight", "I32", {matrix.columns / of_word, rows}, values),
          stored(prefix + "qzeros", "I32", {groups, rows / of_word}, zeros),
          stored(prefix + "scales", "F16", {groups, rows}, scales),
          stored(prefix + "g_idx", "I32", {matrix.columns}, matrix.group_of)};
}

std::vector<StoredTensor> fp8_tensors(const std::string& tensor_name, const QuantizedMatrix& matrix) {
  return {stored(tensor_name, "F8_E4M3", {matrix.rows, matrix.columns}, matrix.values),
          stored(tensor_name + "_scale", "F32", {matrix.rows, 1}, matrix.scales)};
}

std::vector<float> gptq_weights(const TensorSource& source, const std::string& tensor_name, int64_t rows,
                                int64_t columns) {
  const std::string prefix = tensor_name.substr(0, tensor_name.rfind('.') + 1);
  const Tensor* stored_scales = source.find(prefix + "scales");
  if (source.find(prefix + "qweight") == nullptr || stored_scales == nullptr) return {};
  const int64_t groups = stored_scales->shape.at(0);
  const auto read = [&](const char* name, DType dtype, std::vector<int64_t> shape) {
    return source.require(prefix + name, dtype, shape).data.data();
  };
  const int64_t of_word = columns / source.find(prefix + "qweight")->shape.at(0);
  const int64_t bits = kWordBits / of_word;
  const std::byte* values = read("qweight", DType::kI32, {columns / of_word, rows});
  const std::byte* zeros = read("qzeros", DType::kI32, {groups, rows / of_word});
  const std::byte* scales = read("scales", DType::kF16, {groups, rows});
  const std::byte* group_of = read("g_idx", DType::kI32, {columns});
  const auto load = [](const std::byte* data, int64_t index, auto value) {
    std::memcpy(&value, data + index * static_cast<int64_t>(sizeof value), sizeof value);
    return value;
  };
  const uint32_t largest = (1u << bits) - 1;
  std::vector<float> weights;
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t column = 0; column < columns; ++column) {
      const int64_t group = load(group_of, column, int32_t{});
      const uint32_t value =
          load(values, column / of_word * rows + row, uint32_t{}) >> column % of_word * bits & largest;
      const uint32_t zero =
          load(zeros, (group * rows + row) / of_word, uint32_t{}) >> row % of_word * bits & largest;
      const auto scale = static_cast<float>(load(scales, group * rows + row, F16{}));
      weights.push_back(scale * static_cast<float>(static_cast<int>(value) - static_cast<int>(zero)));
    }
  }
  return weights;
}

}  // namespace soliton
