#include "runtime/verify/host_matrix.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <thread>

#include "layout/e4m3.h"
#include "runtime/weights/gguf/blocks.h"
#include "runtime/weights/matrix_source.h"
#include "runtime/weights/rounding.h"

namespace soliton {
namespace {

constexpr int kBlockRows = 16;  // read at a time: whole cache lines of GPTQ's words

/// In several sums, so that the compiler may use vectors.
float dot(const float* a, const float* b, int64_t size) {
  constexpr int kSums = 16;
  float sums[kSums] = {};
  int64_t i = 0;
  for (; i + kSums <= size; i += kSums) {
    for (int j = 0; j < kSums; ++j) sums[j] += a[i + j] * b[i + j];
  }
  for (; i < size; ++i) sums[0] += a[i] * b[i];
  float sum = 0;
  for (const float part : sums) sum += part;
  return sum;
}

}  // namespace

HostMatrix::HostMatrix(const TensorSource& source, const QuantizationConfig* quantization,
                       const std::string& name, const LinearRows& rows, int64_t columns, int rounded_bits)
    : first_(rows.first),
      step_(rows.step),
      rows_(rows.rows),
      first_column_(rows.first_column),
      columns_(columns),
      all_columns_(rows.tensor_columns),
      paired_rows_(rows.paired_rows),
      paired_dims_(rows.paired_dims),
      rounded_bits_(16) {
  const bool rounds = quantization != nullptr && quantization->method == QuantizationMethod::kRounded;
  if (rounds) rounded_bits_ = rounded_bits;
  if (quantization != nullptr && !rounds)
    integers_ = find_quantized(source, *quantization, name, rows.tensor_rows, all_columns_);
  if (!integers_) floats_ = FloatRows(source, name, rows);
}

void HostMatrix::read(int64_t first, int count, float* values) const {
  first = first_ + first * step_;
  std::vector<float> all(static_cast<size_t>(count * all_columns_));
  if (paired_rows_ == 0) {
    read_stored(first, count, all.data());
  } else {
    for (int row = 0; row < count; ++row)
      read_stored(stored_row(first + row * step_, paired_rows_, paired_dims_), 1,
                  all.data() + row * all_columns_);
  }
  for (int row = 0; row < count; ++row)
    std::copy_n(all.data() + row * all_columns_ + first_column_, columns_, values + row * columns_);
}

void HostMatrix::read_stored(int64_t first, int count, float* values) const {
  if (integers_) return read_integers(first, count, values);
  if (rounded_bits_ != 16) return read_rounded(first, count, values);
  if (floats_.e2m1() != E2m1Kind::kNone) {
    for (int row = 0; row < count; ++row)
      floats_.read_floats(first + row * step_, 0, all_columns_, values + row * all_columns_);
    return;
  }
  std::vector<uint16_t> bits(static_cast<size_t>(count * all_columns_));
  std::vector<int64_t> rows;
  for (int row = 0; row < count; ++row) rows.push_back(first + row * step_);
  floats_.read(rows, 0, all_columns_, bits.data());
  for (size_t i = 0; i < bits.size(); ++i)
    values[i] = std::bit_cast<float>(static_cast<uint32_t>(bits[i]) << 16);
}

void HostMatrix::read_rounded(int64_t first, int count, float* values) const {
  std::vector<uint8_t> integers(static_cast<size_t>(all_columns_));
  std::vector<float> scales(static_cast<size_t>(all_columns_ / kRoundedGroup));
  const int zero = 1 << (rounded_bits_ - 1);
  for (int row = 0; row < count; ++row) {
    round_row(floats_, first + row * step_, 0, all_columns_, rounded_bits_, integers.data(), scales.data());
    for (int64_t column = 0; column < all_columns_; ++column)
      *values++ = scales[static_cast<size_t>(column / kRoundedGroup)] *
                  static_cast<float>(integers[static_cast<size_t>(column)] - zero);
  }
}

void HostMatrix::read_integers(int64_t first, int count, float* values) const {
  if (const Tensor* const blocks = integers_->blocks()) {
    dequantise_blocks(*block_type(blocks->dtype), blocks->data.data(), first * all_columns_,
                      count * all_columns_, values);
    return;
  }
  const int num_groups = integers_->num_groups();
  const int group_size = integers_->group_size();
  std::vector<uint8_t> integers(static_cast<size_t>(count * all_columns_));
  std::vector<float> scales(static_cast<size_t>(count) * num_groups);
  std::vector<uint8_t> zeros(scales.size());
  integers_->unpack_values(first, count, integers.data());
  integers_->unpack_scales(first, count, scales.data());
  integers_->unpack_zeros(first, count, zeros.data());
  const std::vector<int32_t>& order = integers_->order();
  for (int row = 0; row < count; ++row) {
    for (int64_t column = 0; column < all_columns_; ++column) {
      const int64_t group = row * num_groups + column / group_size;
      const uint8_t value = integers[row * all_columns_ + column];
      const int64_t input = order.empty() ? column : order[column];
      values[row * all_columns_ + input] =
          scales[group] *
          (integers_->is_fp8() ? e4m3_to_float(value) : static_cast<float>(value - zeros[group]));
    }
  }
}

TokenRows HostMatrix::multiply(const TokenRows& x) const {
  TokenRows y(x.num_tokens(), rows_);
  std::atomic<int64_t> next{0};
  const auto work = [&] {
    std::vector<float> block(static_cast<size_t>(kBlockRows * columns_));
    for (int64_t first = next.fetch_add(kBlockRows); first < rows_; first = next.fetch_add(kBlockRows)) {
      const int count = static_cast<int>(std::min<int64_t>(kBlockRows, rows_ - first));
      read(first, count, block.data());
      for (int row = 0; row < count; ++row) {
        for (size_t token = 0; token < x.num_tokens(); ++token) {
          y.of(token)[first + row] = dot(block.data() + row * columns_, x.of(token), columns_);
        }
      }
    }
  };
  std::vector<std::jthread> threads;
  for (unsigned i = 1; i < std::thread::hardware_concurrency(); ++i) threads.emplace_back(work);
  work();
  threads.clear();  // that is, all have ended
  return y;
}

}  // namespace soliton
