// Equality with what make_cases.py stores and says it means, for every format. Skipped where no Python with
// numpy is found.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "runtime/weights/quantization/quantized_linear.h"

namespace soliton {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

int run(const std::string& command) {
  const int status = std::system(command.c_str());
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

std::vector<float> floats(const Tensor& tensor) {
  std::vector<float> values(tensor.data.size() / sizeof(float));
  std::memcpy(values.data(), tensor.data.data(), tensor.data.size());
  return values;
}

/// The whole matrix in the model's order of inputs, unpacked `step` rows at a time, the first time `offset`.
std::vector<float> dequantise(const QuantizedLinear& linear, int step, int offset) {
  const int64_t columns = linear.columns();
  std::vector<float> weight(static_cast<size_t>(linear.rows() * columns));
  for (int64_t first = 0; first < linear.rows();) {
    const int wanted = first == 0 && offset > 0 ? offset : step;
    const auto count = static_cast<int>(std::min<int64_t>(wanted, linear.rows() - first));
    std::vector<uint8_t> values(static_cast<size_t>(count * columns));
    std::vector<float> scales(static_cast<size_t>(count * linear.num_groups()));
    std::vector<uint8_t> zeros(scales.size());
    linear.unpack_values(first, count, values.data());
    linear.unpack_scales(first, count, scales.data());
    linear.unpack_zeros(first, count, zeros.data());
    for (int64_t row = 0; row < count; ++row) {
      for (int64_t c = 0; c < columns; ++c) {
        const int64_t input = linear.order().empty() ? c : linear.order()[static_cast<size_t>(c)];
        const auto group = static_cast<size_t>(row * linear.num_groups() + c / linear.group_size());
        const int difference = values[static_cast<size_t>(row * columns + c)] - zeros[group];
        weight[static_cast<size_t>((first + row) * columns + input)] =
            scales[group] * static_cast<float>(difference);
      }
    }
    first += count;
  }
  return weight;
}

/// Compares one folder; the number of weights that were compared.
size_t compare_case(const fs::path& folder) {
  const json expected = json::parse(std::ifstream(folder / "expected.json"));
  const json document = json::parse(std::ifstream(folder / "config.json"));
  const auto config = QuantizationConfig::read(JsonView(document, "config.json"), folder);
  if (!config) throw std::runtime_error("no configuration was found");
  const TensorSource source = TensorSource::open(folder);
  const int64_t rows = expected["rows"];
  const int64_t columns = expected["columns"];
  const auto linear = find_quantized(source, *config, expected["layer"], rows, columns);
  if (!linear) throw std::runtime_error("no layer was found");

  EXPECT_EQ(linear->rows(), rows);
  EXPECT_EQ(linear->columns(), columns);
  EXPECT_EQ(linear->num_groups(), expected["num_groups"]);
  EXPECT_EQ(linear->group_size(), columns / linear->num_groups());
  EXPECT_EQ(linear->symmetric(), expected["symmetric"].get<bool>());
  EXPECT_EQ(linear->order(), expected["order"].get<std::vector<int32_t>>());
  EXPECT_EQ(!linear->remark().empty(), expected["remark"].get<bool>()) << linear->remark();
  EXPECT_EQ(linear->bias() != nullptr, expected["bias"].get<bool>());

  const TensorSource meant = TensorSource::open(folder / "weight.safetensors");
  const std::vector<float> weight = floats(*meant.find("weight"));
  constexpr struct {
    int step;
    int offset;
  } kSplits[] = {{1 << 20, 0}, {16, 0}, {16, 5}, {8, 0}, {7, 1}, {1, 0}};
  for (const auto& split : kSplits) {
    EXPECT_TRUE(dequantise(*linear, split.step, split.offset) == weight)
        << split.step << " rows at a time, " << split.offset << " first";
  }
  if (linear->bias() != nullptr && linear->bias()->dtype == DType::kF32) {
    EXPECT_EQ(floats(*linear->bias()), floats(*meant.find("bias")));
  }
  return weight.size();
}

TEST(QuantizationParity, EveryFormatMeansWhatItsWriterMeant) {
  const char* const chosen = std::getenv("SOLITON_PYTHON");
  const std::string python = chosen == nullptr ? "python3" : chosen;
  if (run("'" + python + "' -c 'import numpy' 2> /dev/null") != 0) {
    GTEST_SKIP() << python << " has no package numpy; set SOLITON_PYTHON to one that has";
  }
  const fs::path folder = fs::path(SOLITON_BINARY_DIR) / "quantization_parity";
  fs::remove_all(folder);
  ASSERT_EQ(run("'" + python + "' -B '" SOLITON_SOURCE_DIR "/tests/quantization/make_cases.py' '" +
                folder.string() + "'"),
            0);
  size_t num_cases = 0;
  size_t num_weights = 0;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    SCOPED_TRACE(entry.path().filename().string());
    num_weights += compare_case(entry.path());
    ++num_cases;
  }
  constexpr size_t kNumCases = 55;
  EXPECT_EQ(num_cases, kNumCases);
  std::cout << num_cases << " layers, " << num_weights << " weights\n";
  if (!HasFailure()) fs::remove_all(folder);
}

}  // namespace
}  // namespace soliton
