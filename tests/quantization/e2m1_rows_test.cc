// Linear layers in E2M1 that stand in tensors of their own: what they stand for, by hand, and what is refused.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <limits>

#include "fused_folder.h"
#include "refusals.h"
#include "runtime/weights/float_rows.h"
#include "temporary_folder.h"

namespace soliton {
namespace {

constexpr int64_t kRows = 2;
constexpr int64_t kColumns = 64;
const LinearRows kLayer = {.name = "a", .rows = kRows, .tensor_rows = kRows, .tensor_columns = kColumns};
using Tensors = std::map<std::string, OwnedTensor>;

OwnedTensor one_float(float value, std::vector<int64_t> shape) {
  OwnedTensor tensor{"F32", std::move(shape), std::string(sizeof value, '\0')};
  std::memcpy(tensor.bytes.data(), &value, sizeof value);
  return tensor;
}

/// Bytes of codes 1 (0.5, in the lower half) and 15 (-6).
OwnedTensor codes() {
  return {"U8", {kRows, kColumns / 2}, std::string(static_cast<size_t>(kRows * kColumns / 2), '\xf1')};
}

/// All scales are 1.5, but for the last: 2^-9.
Tensors nvfp4(bool divides) {
  OwnedTensor scales{"F8_E4M3", {kRows, kColumns / 16}, std::string(8, '\x3c')};
  scales.bytes.back() = '\x01';
  if (divides)
    return {{"a.weight_packed", codes()},
            {"a.weight_scale", scales},
            {"a.weight_global_scale", one_float(4, {1})}};
  return {{"a.weight", codes()}, {"a.weight_scale", scales}, {"a.weight_scale_2", one_float(0.25, {})}};
}

/// Scales are 2^-1, but for the last: 2.
Tensors mxfp4(const char* codes_name, const char* scale_type) {
  OwnedTensor scales{scale_type, {kRows, kColumns / 32}, std::string(4, '\x7e')};
  scales.bytes.back() = '\x80';
  return {{codes_name, codes()}, {"a.weight_scale", scales}};
}

class E2m1Rows : public testing::Test {
 protected:
  FloatRows open(const Tensors& tensors) {
    write_tensors(folder_.path(), tensors);
    source_ = TensorSource::open(folder_.path());
    return FloatRows(*source_, "a", kLayer);
  }
  std::vector<float> row(const Tensors& tensors, int64_t row) {
    const FloatRows rows = open(tensors);
    std::vector<float> values(kColumns);
    rows.read_floats(row, 0, kColumns, values.data());
    return values;
  }
  void refused(Tensors tensors, const std::function<void(Tensors&)>& change, ExitCode code,
               const std::string& fragment) {
    change(tensors);
    expect_error([&] { row(tensors, kRows - 1); }, code, fragment);
  }

  const TemporaryFolder folder_;
  std::optional<TensorSource> source_;
};

TEST_F(E2m1Rows, StandForCodeTimesScaleTimesFactor) {
  for (const bool divides : {false, true}) {
    const Tensors tensors = nvfp4(divides);
    EXPECT_EQ(open(tensors).e2m1(), E2m1Kind::kNvfp4);
    EXPECT_EQ(open(tensors).factor(), 0.25f);
    const std::vector<float> values = row(tensors, 1);
    EXPECT_EQ(values[0], 0.5f * 1.5f / 4);
    EXPECT_EQ(values[1], -6 * 1.5f / 4);
    EXPECT_EQ(values[kColumns - 1], -6 * 0x1p-9f / 4);
  }
  for (const char* name : {"a.weight_packed", "a.weight"}) {
    for (const char* type : {"U8", "F8_E8M0"}) {
      const Tensors tensors = mxfp4(name, type);
      EXPECT_EQ(open(tensors).e2m1(), E2m1Kind::kMxfp4);
      EXPECT_EQ(open(tensors).factor(), 1);
      const std::vector<float> values = row(tensors, 1);
      EXPECT_EQ(values[0], 0.25f);
      EXPECT_EQ(values[kColumns - 1], -12);
    }
  }
}

TEST_F(E2m1Rows, RefuseWhatIsMissingOrOfAnotherShape) {
  const auto mismatch = [&](const char* erased, const std::string& fragment) {
    refused(
        nvfp4(true), [&](Tensors& tensors) { tensors.erase(erased); }, ExitCode::kMismatch, fragment);
  };
  mismatch("a.weight_scale", "a.weight_scale");
  mismatch("a.weight_global_scale", "a.weight_global_scale");
  mismatch("a.weight_packed", "a.weight");
  refused(
      nvfp4(true),
      [](Tensors& tensors) {
        tensors["a.weight_packed"].shape = {1, kColumns};
      },
      ExitCode::kMismatch, "a.weight_packed: expected U8 [2, 32], got U8 [1, 64]");
  refused(
      nvfp4(true),
      [](Tensors& tensors) {
        tensors["a.weight_scale"].shape = {4, 2};
      },
      ExitCode::kMismatch, "a.weight_scale: expected F8_E4M3 [2, 4], got F8_E4M3 [4, 2]");
  refused(
      nvfp4(true), [](Tensors& tensors) { tensors["a.weight_scale"].dtype = "U8"; }, ExitCode::kMismatch,
      "a.weight_scale: expected U8 [2, 2], got U8 [2, 4]");
  refused(
      nvfp4(false), [](Tensors& tensors) { tensors["a.weight_scale_2"].dtype = "I32"; }, ExitCode::kMismatch,
      "a.weight_scale_2: expected F32 [], got I32 []");
}

TEST_F(E2m1Rows, RefuseNumbersThatKernelsDoNotHave) {
  for (const float global : {0.0f, -1.0f, std::numeric_limits<float>::infinity(), std::nanf(""), 1e-40f}) {
    refused(
        nvfp4(true), [&](Tensors& tensors) { tensors["a.weight_global_scale"] = one_float(global, {1}); },
        ExitCode::kBadFile, "a.weight_global_scale: expected a number above 0, got ");
  }
  for (const char scale : {'\x7f', '\x80', '\xff'}) {
    refused(
        nvfp4(true), [&](Tensors& tensors) { tensors["a.weight_scale"].bytes[5] = scale; },
        ExitCode::kMismatch,
        "a.weight_scale: expected scales that are numbers, and not below 0, got code 0x");
  }
  refused(
      mxfp4("a.weight", "U8"), [](Tensors& tensors) { tensors["a.weight_scale"].bytes[3] = '\x81'; },
      ExitCode::kMismatch, "a.weight_scale: expected scales of 2 at most (exponents up to 128), got 129");
}

}  // namespace
}  // namespace soliton
