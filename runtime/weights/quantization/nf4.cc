#include "runtime/weights/quantization/nf4.h"

#include <nlohmann/json.hpp>
#include <string_view>

#include "models/error.h"
#include "models/strict_json.h"
#include "runtime/weights/quantization/nibbles.h"
#include "runtime/weights/tensor_values.h"

namespace soliton {
namespace {

constexpr int64_t kBlock = 64;         // codes that share a scale
constexpr int64_t kNestedBlock = 256;  // codes of scales that do
constexpr int64_t kNestedCodes = 256;  // that there are
constexpr const char* kState = ".weight.quant_state.bitsandbytes__nf4";

/// A member that has to be this number.
void expect(const JsonView& view, int64_t number) {
  if (view.integer() != number)
    throw view.error(ExitCode::kMismatch, "expected {}, got {}: not supported", number, view.describe());
}

}  // namespace

std::optional<Nf4Linear> Nf4Linear::find(const TensorSource& source, const std::string& name, int64_t rows,
                                         int64_t columns) {
  const Tensor* const state = source.find(name + kState);
  if (state == nullptr) return std::nullopt;
  const auto require = [&](const char* suffix, DType dtype, std::initializer_list<int64_t> shape) {
    return &source.require(name + suffix, dtype, std::span(shape));
  };
  const std::string_view text(reinterpret_cast<const char*>(state->data.data()), state->data.size());
  const std::string place = fmt::format("{}: {}", *state->file, state->name);
  const nlohmann::json document = parse_json(text, place);
  const JsonView root(document, place);
  expect(root["blocksize"], kBlock);
  expect(root["shape"][0], rows);
  expect(root["shape"][1], columns);

  Nf4Linear linear;
  const int64_t blocks = (rows * columns + kBlock - 1) / kBlock;
  linear.codes_ = require(".weight", DType::kU8, {rows * columns / 2, 1});
  read_floats(*require(".weight.quant_map", DType::kF32, {std::ssize(linear.table_)}), 0,
              std::ssize(linear.table_), linear.table_);
  const bool is_nested = source.find(name + ".weight.nested_absmax") != nullptr;
  linear.scales_ = require(".weight.absmax", is_nested ? DType::kU8 : DType::kF32, {blocks});
  if (!is_nested) return linear;
  expect(root["nested_blocksize"], kNestedBlock);
  linear.offset_ = static_cast<float>(root["nested_offset"].number());
  linear.nested_table_ = require(".weight.nested_quant_map", DType::kF32, {kNestedCodes});
  linear.nested_scales_ =
      require(".weight.nested_absmax", DType::kF32, {(blocks + kNestedBlock - 1) / kNestedBlock});
  return linear;
}

float Nf4Linear::scale(int64_t block) const {
  if (nested_table_ == nullptr) return load<float>(scales_->data.data(), block);
  const auto code = load<uint8_t>(scales_->data.data(), block);
  const float product = load<float>(nested_table_->data.data(), code) *
                        load<float>(nested_scales_->data.data(), block / kNestedBlock);
  return product + offset_;
}

void Nf4Linear::read(int64_t first, int64_t count, uint16_t* values) const {
  float own = 0;
  for (int64_t i = first; i < first + count; ++i) {
    if (i == first || i % kBlock == 0) own = scale(i / kBlock);
    const auto both = load<uint8_t>(codes_->data.data(), i / 2);
    values[i - first] = round_to_bf16(table_[i % 2 == 0 ? both >> 4 : both & 15] * own);
  }
}

}  // namespace soliton
