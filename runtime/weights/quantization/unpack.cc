// Unpacking rows of the three formats. A row of GPTQ or AWQ is a column of its file, so rows are taken by the
// cache line, and a few hundred bytes of each are finished before the next ones.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <span>

#include "layout/e4m3.h"
#include "models/error.h"
#include "runtime/weights/quantization/nibbles.h"
#include "runtime/weights/quantization/quantized_linear.h"
#include "runtime/weights/tensor_values.h"

namespace soliton {
namespace {

constexpr int kLanes = 16;      // rows at a time: words of a cache line
constexpr int kBlockWords = 8;  // words of a row at a time
constexpr int kBlockValues = kBlockWords * kNibblesPerWord;
constexpr int kWordBits = 32;
constexpr int kPrefetchBlocks = 2;  // ahead: words of one row lie pages apart, which hardware does not follow

/// [columns / P][rows] words, P integers along columns.
void unpack_gptq(const QuantizedTensors& tensors, int64_t first, int count, uint8_t* values) {
  const std::byte* const words = tensors.values->data.data();
  const int of_word = kWordBits / tensors.bits;
  const int64_t num_words = tensors.columns / of_word;
  for (int lane = 0; lane < count; lane += kLanes) {
    const int num_lanes = std::min(kLanes, count - lane);
    const auto place = [&](int64_t word) { return words + (word * tensors.rows + first + lane) * 4; };
    for (int64_t begin = 0; begin < num_words; begin += kBlockWords) {
      const auto size = static_cast<int>(std::min<int64_t>(kBlockWords, num_words - begin));
      for (int w = 0; w < size; ++w) {
        const int64_t ahead = begin + kPrefetchBlocks * kBlockWords + w;
        if (ahead < num_words) __builtin_prefetch(place(ahead));
      }
      uint32_t block[kLanes][kBlockWords];
      for (int w = 0; w < size; ++w) {
        const std::byte* const line = place(begin + w);
        for (int i = 0; i < num_lanes; ++i) block[i][w] = load<uint32_t>(line, i);
      }
      for (int i = 0; i < num_lanes; ++i) {
        spread_integers(tensors.bits, reinterpret_cast<const uint8_t*>(block[i]), size * 4,
                        values + (lane + i) * tensors.columns + begin * of_word);
      }
    }
  }
}

/// [columns][rows / 8] words, AWQ's nibbles along rows. Whole words are taken; rows before `first` and after
/// the last one are dropped.
void unpack_awq(const QuantizedTensors& tensors, int64_t first, int count, uint8_t* values) {
  const std::byte* const words = tensors.values->data.data();
  const int64_t row_words = tensors.rows / kNibblesPerWord;
  const int64_t first_word = first / kNibblesPerWord;
  const int64_t last_word = (first + count - 1) / kNibblesPerWord;
  for (int64_t begin = 0; begin < tensors.columns; begin += kBlockValues) {
    const int64_t end = std::min(begin + kBlockValues, tensors.columns);
    for (int64_t column = end; column < std::min(end + kBlockValues, tensors.columns); ++column) {
      __builtin_prefetch(words + (column * row_words + first_word) * 4);
    }
    for (int64_t word = first_word; word <= last_word; ++word) {
      uint32_t block[kNibblesPerWord][kBlockWords] = {};
      for (int64_t column = begin; column < end; ++column) {
        block[(column - begin) % kNibblesPerWord][(column - begin) / kNibblesPerWord] =
            load<uint32_t>(words, column * row_words + word);
      }
      transpose_nibbles(block);
      const int64_t word_row = word * kNibblesPerWord - first;
      const auto from = static_cast<int>(std::max<int64_t>(0, -word_row));
      const auto to = static_cast<int>(std::min<int64_t>(kNibblesPerWord, count - word_row));
      for (int i = from; i < to; ++i) {
        spread_nibbles(reinterpret_cast<const uint8_t*>(block[awq_nibble(i)]), (end - begin) / 2,
                       values + (word_row + i) * tensors.columns + begin);
      }
    }
  }
}

/// [rows][columns / P] words, P integers along columns.
void unpack_compressed_tensors(const QuantizedTensors& tensors, int64_t first, int count, uint8_t* values) {
  const int64_t row_bytes = tensors.columns * tensors.bits / 8;
  spread_integers(tensors.bits,
                  reinterpret_cast<const uint8_t*>(tensors.values->data.data()) + first * row_bytes,
                  count * row_bytes, values);
}

/// Of E4M3, as they stand. A NaN would spread to every logit.
void copy_codes(const QuantizedTensors& tensors, int64_t first, int count, uint8_t* values) {
  const int64_t size = count * tensors.columns;
  std::memcpy(values, tensors.values->data.data() + first * tensors.columns, static_cast<size_t>(size));
  bool has_nan = false;  // a loop that becomes wide
  for (int64_t i = 0; i < size; ++i) has_nan |= (values[i] & kE4m3Nan) == kE4m3Nan;
  if (!has_nan) return;
  throw file_error(ExitCode::kBadFile, *tensors.values->file,
                   "{}: expected numbers, got NaN in rows {} to {}", tensors.values->name, first,
                   first + count - 1);
}

void check_fp8_scales(const Tensor& tensor, std::span<const float> scales) {
  const auto odd = std::ranges::find_if_not(
      scales, [](float scale) { return std::abs(scale) <= kMostE4m3Scale; });  // NaN is none of these
  if (odd == scales.end()) return;
  throw file_error(ExitCode::kMismatch, *tensor.file, "{}: expected scales of {} at most, got {}",
                   tensor.name, kMostE4m3Scale, *odd);
}

/// In the model's order of inputs.
void unpack_natural(const QuantizedTensors& tensors, int64_t first, int count, uint8_t* values) {
  switch (tensors.method) {
    case QuantizationMethod::kGptq:
      return unpack_gptq(tensors, first, count, values);
    case QuantizationMethod::kAwq:
      return unpack_awq(tensors, first, count, values);
    case QuantizationMethod::kCompressedTensors:
      return unpack_compressed_tensors(tensors, first, count, values);
    case QuantizationMethod::kFp8:
      return copy_codes(tensors, first, count, values);
    case QuantizationMethod::kGguf:
    case QuantizationMethod::kE2m1:
    case QuantizationMethod::kRounded:
      break;
  }
}

}  // namespace

void QuantizedLinear::unpack_values(int64_t first, int count, uint8_t* values) const {
  if (count == 0) return;
  if (tensors_.order.empty()) return unpack_natural(tensors_, first, count, values);
  const auto natural = std::make_unique_for_overwrite<uint8_t[]>(static_cast<size_t>(kLanes * columns()));
  for (int begin = 0; begin < count; begin += kLanes) {
    const int size = std::min(kLanes, count - begin);
    unpack_natural(tensors_, first + begin, size, natural.get());
    for (int i = 0; i < size; ++i) {
      const uint8_t* const from = natural.get() + i * columns();
      uint8_t* const to = values + (begin + i) * columns();
      for (int64_t c = 0; c < columns(); ++c) to[c] = from[tensors_.order[static_cast<size_t>(c)]];
    }
  }
}

void QuantizedLinear::unpack_scales(int64_t first, int count, float* scales) const {
  if (is_fp8()) {
    for (int i = 0; i < count; ++i)
      read_floats(*tensors_.scales, (first + i) / tensors_.scale_rows * num_groups(), num_groups(),
                  scales + static_cast<ptrdiff_t>(i) * num_groups());
    return check_fp8_scales(*tensors_.scales, std::span(scales, static_cast<size_t>(count) * num_groups()));
  }
  const bool by_row = tensors_.method == QuantizationMethod::kCompressedTensors;
  const bool is_f16 = tensors_.scales->dtype == DType::kF16;
  for (int64_t group = 0; group < num_groups(); ++group) {
    for (int64_t row = first; row < first + count; ++row) {
      const int64_t index = by_row ? row * num_groups() + group : group * rows() + row;
      const auto bits = load<uint16_t>(tensors_.scales->data.data(), index);
      scales[(row - first) * num_groups() + group] =
          is_f16 ? f16_bits_to_float(bits) : bf16_bits_to_float(bits);
    }
  }
}

void QuantizedLinear::unpack_zeros(int64_t first, int count, uint8_t* zeros) const {
  if (is_fp8()) {
    std::fill_n(zeros, static_cast<int64_t>(count) * num_groups(), uint8_t{0});
    return;
  }
  if (tensors_.zeros == nullptr || tensors_.bits == 8) {  // of 8 bits they are symmetric
    std::fill_n(zeros, static_cast<int64_t>(count) * num_groups(),
                static_cast<uint8_t>(1 << (tensors_.bits - 1)));
    return;
  }
  const bool by_row = tensors_.method == QuantizationMethod::kCompressedTensors;
  const bool is_awq = tensors_.method == QuantizationMethod::kAwq;
  for (int64_t group = 0; group < num_groups(); ++group) {
    for (int64_t row = first; row < first + count; ++row) {
      const int64_t word = row / kNibblesPerWord;
      const auto lane = static_cast<int>(row % kNibblesPerWord);
      const int64_t index = by_row ? word * num_groups() + group : group * (rows() / kNibblesPerWord) + word;
      // A sum, not a nibble: GPTQ's 15 stands for 16.
      const int zero =
          nibble(load<uint32_t>(tensors_.zeros->data.data(), index), is_awq ? awq_nibble(lane) : lane) +
          tensors_.zero_offset;
      zeros[(row - first) * num_groups() + group] = static_cast<uint8_t>(zero);
    }
  }
}

}  // namespace soliton
