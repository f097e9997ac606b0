// A linear layer in nf4: by hand, and what is refused.
#include "runtime/weights/quantization/nf4.h"

#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <vector>

#include "fused_folder.h"
#include "refusals.h"
#include "temporary_folder.h"

namespace soliton {
namespace {

constexpr int64_t kNf4Rows = 2;
constexpr int64_t kNf4Columns = 64;
using Tensors = std::map<std::string, OwnedTensor>;

OwnedTensor floats(const std::vector<float>& values) {
  OwnedTensor tensor{"F32", {std::ssize(values)}, std::string(values.size() * sizeof(float), '\0')};
  std::memcpy(tensor.bytes.data(), values.data(), tensor.bytes.size());
  return tensor;
}

OwnedTensor bytes(const std::string& text) {
  return {"U8", {std::ssize(text)}, text};
}

/// Of codes 0, 1, 2, ...; the table has code - 8. A scale is 2 * code + 1, the codes are 3 and 5.
Tensors nested() {
  OwnedTensor codes{"U8", {kNf4Rows * kNf4Columns / 2, 1}, {}};
  for (int i = 0; i < kNf4Rows * kNf4Columns / 2; ++i)
    codes.bytes += static_cast<char>(2 * i % 16 << 4 | (2 * i + 1) % 16);
  std::vector<float> table;
  for (int i = 0; i < 16; ++i) table.push_back(static_cast<float>(i - 8));
  std::vector<float> scales;
  for (int i = 0; i < 256; ++i) scales.push_back(static_cast<float>(i));
  return {{"a.weight", codes},
          {"a.weight.quant_map", floats(table)},
          {"a.weight.absmax", bytes("\x03\x05")},
          {"a.weight.nested_absmax", floats({2})},
          {"a.weight.nested_quant_map", floats(scales)},
          {"a.weight.quant_state.bitsandbytes__nf4",
           bytes(R"({"quant_type": "nf4", "blocksize": 64, "dtype": "bfloat16", "shape": [2, 64],
                     "nested_blocksize": 256, "nested_dtype": "float32", "nested_offset": 1.0})")}};
}

class Nf4 : public testing::Test {
 protected:
  std::vector<uint16_t> read(const Tensors& tensors, int64_t first, int64_t count) {
    write_tensors(folder_.path(), tensors);
    source_ = TensorSource::open(folder_.path());
    std::vector<uint16_t> values(static_cast<size_t>(count));
    Nf4Linear::find(*source_, "a", kNf4Rows, kNf4Columns).value().read(first, count, values.data());
    return values;
  }
  void refused(const std::function<void(Tensors&)>& change, ExitCode code, const std::string& fragment) {
    Tensors tensors = nested();
    change(tensors);
    expect_error([&] { read(tensors, 0, 1); }, code, fragment);
  }

  const TemporaryFolder folder_;
  std::optional<TensorSource> source_;
};

TEST_F(Nf4, IsTableTimesScaleRoundedToBf16) {
  EXPECT_EQ(read(nested(), 61, 6), (std::vector<uint16_t>{0x420c, 0x4228, 0x4244, 0xc2b0, 0xc29a, 0xc284}));
  Tensors single = nested();  // 35, 42, 49; -88, -77, -66
  single.erase("a.weight.nested_absmax");
  single["a.weight.absmax"] = floats({1, 0.3f});
  EXPECT_EQ(read(single, 63, 2), (std::vector<uint16_t>{0x40e0, 0xc01a}));  // 7, -2.4
}

TEST_F(Nf4, RefusesWhatItDoesNotMean) {
  const std::string state = "a.weight.quant_state.bitsandbytes__nf4";
  const auto stated = [&](const std::string& from, const std::string& to) {
    return [=](Tensors& tensors) {
      std::string text = tensors[state].bytes;
      text.replace(text.find(from), from.size(), to);
      tensors[state] = bytes(text);
    };
  };
  refused(stated("\"blocksize\": 64", "\"blocksize\": 128"), ExitCode::kMismatch,
          state + ": blocksize: expected 64, got 128: not supported");
  refused(stated("[2, 64]", "[64, 2]"), ExitCode::kMismatch, state + ": shape[0]: expected 2, got 64");
  refused(stated("256", "512"), ExitCode::kMismatch, "nested_blocksize: expected 256, got 512");
  refused(stated("{", "["), ExitCode::kBadFile, state);
  refused([](Tensors& tensors) { tensors["a.weight.absmax"] = bytes("\x03"); }, ExitCode::kMismatch,
          "a.weight.absmax: expected U8 [2], got U8 [1]");
  refused([](Tensors& tensors) { tensors.erase("a.weight.quant_map"); }, ExitCode::kMismatch,
          "a.weight.quant_map");
  refused([](Tensors& tensors) { tensors.erase("a.weight.nested_quant_map"); }, ExitCode::kMismatch,
          "a.weight.nested_quant_map");
  refused(
      [](Tensors& tensors) {
        tensors["a.weight"].shape = {1, kNf4Rows * kNf4Columns / 2};
      },
      ExitCode::kMismatch, "a.weight: expected U8 [64, 1], got U8 [1, 64]");
}

}  // namespace
}  // namespace soliton
