// Finding a layer's tensors and checking all that unpacking relies on. A file is believed over its
// configuration only where the tensors leave no doubt, and then says so in a remark.
#include "runtime/weights/quantization/quantized_linear.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <limits>
#include <numeric>
#include <span>

#include "runtime/weights/quantization/nibbles.h"

namespace soliton {
namespace {

using Method = QuantizationMethod;

constexpr int kWordBits = 32;
constexpr uint32_t kAllSevens = 0x77777777;
constexpr uint32_t kAllEights = 0x88888888;
constexpr uint32_t kAllOnes = 0x11111111;
constexpr int32_t kUnset = -1;  // compressed-tensors fills weight_g_idx with it where there is no order

template <class... Args>
Error tensor_error(ExitCode code, const Tensor& tensor, fmt::format_string<Args...> format, Args&&... args) {
  return file_error(code, *tensor.file, "{}: {}", tensor.name,
                    fmt::format(format, std::forward<Args>(args)...));
}

/// Looks tensors of one layer up.
class Finder {
 public:
  Finder(const TensorSource& source, std::string prefix) : source_(source), prefix_(std::move(prefix)) {}

  std::string name(const char* suffix) const { return prefix_ + "." + suffix; }
  const Tensor* find(const char* suffix) const { return source_.find(name(suffix)); }

  /// The tensor, of one of the types; throws if it is absent, of another type or of another shape.
  const Tensor& require(const char* suffix, std::initializer_list<DType> dtypes,
                        std::initializer_list<int64_t> shape) const {
    const Tensor* const found = find(suffix);
    const auto has_type = [&](DType dtype) { return found != nullptr && found->dtype == dtype; };
    if (found != nullptr && std::none_of(dtypes.begin(), dtypes.end(), has_type)) {
      std::vector<std::string_view> names;
      for (const DType dtype : dtypes) names.push_back(dtype_name(dtype));
      throw tensor_error(ExitCode::kMismatch, *found, "expected {} [{}], got {}", fmt::join(names, " or "),
                         fmt::join(shape, ", "), describe_tensor(found->dtype, found->shape));
    }
    return source_.require(name(suffix), found == nullptr ? *dtypes.begin() : found->dtype, std::span(shape));
  }

 private:
  const TensorSource& source_;
  const std::string prefix_;
};

/// Groups of a row; each has the same number of inputs.
int count_groups(int group_size, const Tensor& values, int64_t columns) {
  if (group_size < 0 || group_size >= columns) return 1;
  if (columns % group_size != 0) {
    throw tensor_error(ExitCode::kMismatch, values, "expected inputs in groups of {}, got {} inputs",
                       group_size, columns);
  }
  return static_cast<int>(columns / group_size);
}

/// Inputs sorted by the group that `tensor` gives them, stably; empty if that is their natural order, or if
/// the tensor holds no order and none is `expected`.
std::vector<int32_t> read_order(const Tensor& tensor, int64_t columns, int num_groups, bool expected) {
  // A copy, as the file may change between the check of a group and its use.
  std::vector<int32_t> groups(static_cast<size_t>(columns));
  std::memcpy(groups.data(), tensor.data.data(), groups.size() * sizeof groups[0]);
  const auto group_of = [&](int64_t input) { return groups[static_cast<size_t>(input)]; };
  const auto group_size = static_cast<int32_t>(columns / num_groups);
  std::vector<int32_t> sizes(static_cast<size_t>(num_groups));
  bool all_zero = true;
  bool all_unset = true;
  bool natural = true;
  for (int64_t input = 0; input < columns; ++input) {
    const int32_t group = group_of(input);
    all_zero &= group == 0;
    all_unset &= group == kUnset;
    natural &= group == input / group_size;
  }
  if (natural) return {};
  if (all_zero || all_unset) {
    if (!expected) return {};
    throw tensor_error(ExitCode::kMismatch, tensor,
                       "expected groups, because of act-order, got {} throughout", group_of(0));
  }
  for (int64_t input = 0; input < columns; ++input) {
    const int32_t group = group_of(input);
    if (group < 0 || group >= num_groups) {
      throw tensor_error(ExitCode::kBadFile, tensor, "[{}]: expected a group in [0, {}], got {}", input,
                         num_groups - 1, group);
    }
    ++sizes[static_cast<size_t>(group)];
  }
  const auto odd = std::find_if(sizes.begin(), sizes.end(), [&](int32_t size) { return size != group_size; });
  if (odd != sizes.end()) {
    throw tensor_error(ExitCode::kMismatch, tensor, "expected {} inputs in every group, got {} in group {}",
                       group_size, *odd, odd - sizes.begin());
  }
  std::vector<int32_t> next(sizes.size());
  for (size_t group = 0; group < next.size(); ++group) next[group] = static_cast<int32_t>(group) * group_size;
  std::vector<int32_t> order(static_cast<size_t>(columns));
  for (int64_t input = 0; input < columns; ++input) {
    order[static_cast<size_t>(next[static_cast<size_t>(group_of(input))]++)] = static_cast<int32_t>(input);
  }
  return order;
}

/// Reads the order from the tensor of that name, which may be absent only if the configuration knows of none.
std::vector<int32_t> find_order(const Finder& finder, const QuantizationConfig& config, const char* suffix,
                                const QuantizedTensors& tensors) {
  const Tensor* const found = finder.find(suffix);
  const bool expected = config.act_order && tensors.num_groups > 1;
  if (found == nullptr && !expected) return {};
  const Tensor& tensor = finder.require(suffix, {DType::kI32}, {tensors.columns});
  return read_order(tensor, tensors.columns, tensors.num_groups, expected);
}

/// Which values the stored zeros have.
struct ZeroKinds {
  bool all_seven = true;
  bool all_eight = true;
  bool only_those = true;  // nothing but sevens and eights

  void add(uint32_t word, uint32_t mask) {
    const uint32_t difference = (word ^ kAllSevens) & mask;  // each nibble 0 of a seven, 15 of an eight
    all_seven &= difference == 0;
    all_eight &= ((word ^ kAllEights) & mask) == 0;
    only_those &= difference == (difference & kAllOnes) * 0xf;
  }
};

ZeroKinds survey_words(std::span<const std::byte> data) {
  ZeroKinds kinds;
  const auto num_words = static_cast<int64_t>(data.size() / sizeof(uint32_t));
  for (int64_t i = 0; i < num_words; ++i) {
    kinds.add(load<uint32_t>(data.data(), i), std::numeric_limits<uint32_t>::max());
  }
  return kinds;
}

/// Decides between the formats of GPTQ's zeros. What a symmetric file must store is known, so that there the
/// tensor decides; elsewhere any value may be, and the configuration decides.
void decide_zero_format(const QuantizationConfig& config, QuantizedTensors& tensors) {
  const ZeroKinds kinds = survey_words(tensors.zeros->data);
  ZeroFormat zeros = config.zeros;
  if (config.symmetric && (kinds.all_seven || kinds.all_eight)) {
    zeros = kinds.all_seven ? ZeroFormat::kV1 : ZeroFormat::kV2;
    if (zeros != config.zeros) {
      tensors.remark = fmt::format(
          "{}: checkpoint_format: expected {}, because sym is true and zeros are stored as {}, got {}; read "
          "as {}",
          config.file, zero_format_name(zeros), kinds.all_seven ? 7 : 8, zero_format_name(config.zeros),
          zero_format_name(zeros));
    }
  } else if (config.symmetric && kinds.only_those) {
    throw tensor_error(
        ExitCode::kMismatch, *tensors.zeros,
        "expected 7 throughout (gptq) or 8 throughout (gptq_v2), because sym is true, got both");
  } else if (config.symmetric) {
    tensors.remark = fmt::format(
        "{}: sym: expected false, because zeros are neither all 7 nor all 8, got true; read as {} without "
        "symmetry",
        config.file, zero_format_name(zeros));
  }
  tensors.zero_offset = zeros == ZeroFormat::kV1 ? 1 : 0;
  tensors.symmetric = zeros == ZeroFormat::kV1 ? kinds.all_seven : kinds.all_eight;
}

/// `bits`: of an integer.
void require_words(const Tensor& values, const char* what, int64_t count, int bits) {
  if (count % (kWordBits / bits) != 0) {
    throw tensor_error(ExitCode::kMismatch, values, "expected {} in {}, got {}", what,
                       bits == 4 ? "eights" : "fours", count);
  }
}

/// Kernels know no other zeros of 8 bits. GPTQ stores them less one, or as they are.
void require_symmetric_bytes(const Tensor& zeros) {
  const auto all = [&](uint8_t value) {
    return std::ranges::all_of(zeros.data, [=](std::byte byte) { return byte == std::byte{value}; });
  };
  if (!all(127) && !all(128))
    throw tensor_error(ExitCode::kMismatch, zeros, "expected zeros of 128 throughout, got others");
}

void find_gptq_or_awq(const Finder& finder, const QuantizationConfig& config, int group_size,
                      QuantizedTensors& tensors) {
  const bool is_gptq = config.method == Method::kGptq;
  const int64_t rows = tensors.rows;
  const int64_t columns = tensors.columns;
  require_words(*tensors.values, "outputs", rows, tensors.bits);
  const int of_word = kWordBits / tensors.bits;
  const int64_t row_words = rows / of_word;
  finder.require("qweight", {DType::kI32},
                 {is_gptq ? columns / of_word : columns, is_gptq ? rows : row_words});
  tensors.num_groups = count_groups(group_size, *tensors.values, columns);
  tensors.scales = &finder.require("scales", {DType::kF16, DType::kBF16}, {tensors.num_groups, rows});
  tensors.zeros = &finder.require("qzeros", {DType::kI32}, {tensors.num_groups, row_words});
  if (is_gptq) {
    tensors.order = find_order(finder, config, "g_idx", tensors);
    if (tensors.bits == 4) {
      decide_zero_format(config, tensors);
    } else {
      require_symmetric_bytes(*tensors.zeros);
      tensors.symmetric = true;
    }
  } else {
    tensors.symmetric = survey_words(tensors.zeros->data).all_eight;
  }
}

void check_weight_shape(const Finder& finder, const QuantizedTensors& tensors) {
  const Tensor& shape = finder.require("weight_shape", {DType::kI64, DType::kI32}, {2});
  const auto extent = [&](int64_t index) -> int64_t {
    return shape.dtype == DType::kI64 ? load<int64_t>(shape.data.data(), index)
                                      : load<int32_t>(shape.data.data(), index);
  };
  if (extent(0) != tensors.rows || extent(1) != tensors.columns) {
    throw tensor_error(ExitCode::kBadFile, shape, "expected {} x {}, as weight_packed is, got {} x {}",
                       tensors.rows, tensors.columns, extent(0), extent(1));
  }
}

/// Whether all zeros of [rows / 8][groups] words are 8. Nibbles past the last row are filling.
bool all_eight(const Tensor& zeros, int64_t rows, int num_groups) {
  ZeroKinds kinds =
      survey_words(zeros.data.first(static_cast<size_t>(rows / kNibblesPerWord * num_groups * 4)));
  const auto num_last = static_cast<int>(rows % kNibblesPerWord);
  for (int group = 0; num_last > 0 && group < num_groups; ++group) {
    kinds.add(load<uint32_t>(zeros.data.data(), rows / kNibblesPerWord * num_groups + group),
              (uint32_t{1} << (4 * num_last)) - 1);
  }
  return kinds.all_eight;
}

void find_compressed_tensors(const Finder& finder, const QuantizationConfig& config,
                             QuantizedTensors& tensors) {
  const int64_t rows = tensors.rows;
  finder.require("weight_packed", {DType::kI32}, {rows, tensors.columns * tensors.bits / kWordBits});
  check_weight_shape(finder, tensors);
  tensors.num_groups = count_groups(config.group_size, *tensors.values, tensors.columns);
  tensors.scales = &finder.require("weight_scale", {DType::kF16, DType::kBF16}, {rows, tensors.num_groups});
  if (!config.symmetric) {
    tensors.zeros = &finder.require("weight_zero_point", {DType::kI32},
                                    {(rows + kNibblesPerWord - 1) / kNibblesPerWord, tensors.num_groups});
  } else if (const Tensor* const zeros = finder.find("weight_zero_point")) {
    throw tensor_error(ExitCode::kMismatch, *zeros, "expected no zero points, because symmetric is true");
  }
  if (tensors.zeros != nullptr && tensors.bits == 8)
    throw tensor_error(ExitCode::kMismatch, *tensors.zeros, "expected no zeros of 8 bits, got some");
  tensors.symmetric = tensors.zeros == nullptr || all_eight(*tensors.zeros, rows, tensors.num_groups);
  tensors.order = find_order(finder, config, "weight_g_idx", tensors);
}

/// The bias, unless there is none or it is zero throughout.
const Tensor* find_bias(const Finder& finder, int64_t rows) {
  if (finder.find("bias") == nullptr) return nullptr;
  const Tensor& bias = finder.require("bias", {DType::kF16, DType::kBF16, DType::kF32}, {rows});
  const bool is_zero =
      std::all_of(bias.data.begin(), bias.data.end(), [](std::byte byte) { return byte == std::byte{0}; });
  return is_zero ? nullptr : &bias;
}

/// All layers that one tensor holds, as one of their rows together.
std::optional<QuantizedLinear> find_blocks(const TensorSource& source, const std::string& prefix,
                                           int64_t rows, int64_t columns) {
  const Tensor* const whole = source.find(prefix);
  const Tensor* const found = whole != nullptr ? whole : source.find(prefix + ".weight");
  if (found == nullptr || !block_type(found->dtype)) return std::nullopt;
  if (*block_type(found->dtype) == GgufType::kMXFP4) return std::nullopt;  // see FloatRows
  const int64_t all = found->shape.empty() ? 0 : found->shape.back();
  const int64_t all_rows =
      std::accumulate(found->shape.begin(), found->shape.end() - (found->shape.empty() ? 0 : 1), int64_t{1},
                      std::multiplies<>());
  if (all != columns || all_rows != rows) {
    throw tensor_error(ExitCode::kMismatch, *found, "expected {} of {} x {}, got {}",
                       dtype_name(found->dtype), rows, columns, describe_tensor(found->dtype, found->shape));
  }
  QuantizedTensors tensors;
  tensors.method = Method::kGguf;
  tensors.rows = rows;
  tensors.columns = columns;
  tensors.num_groups = static_cast<int>(columns / gguf_type(*block_type(found->dtype)).block_columns);
  tensors.values = found;
  tensors.symmetric = true;
  tensors.bias = find_bias(Finder(source, prefix), rows);
  return QuantizedLinear(std::move(tensors));
}

/// How many scales there are decides what each is for.
void find_fp8_scales(const Finder& finder, QuantizedTensors& tensors) {
  const int64_t row_blocks = (tensors.rows + kE4m3Group - 1) / kE4m3Group;
  const int64_t column_blocks = (tensors.columns + kE4m3Group - 1) / kE4m3Group;
  const bool is_inverse = finder.find("weight_scale_inv") != nullptr;
  const char* const name = is_inverse ? "weight_scale_inv" : "weight_scale";
  const Tensor* const found = finder.find(name);
  if (found == nullptr) {
    throw tensor_error(ExitCode::kMismatch, *tensors.values,
                       "expected weight_scale or weight_scale_inv beside it, got neither");
  }
  const auto is = [&](std::initializer_list<int64_t> shape) {
    return std::ranges::equal(found->shape, shape);
  };
  const bool is_float =
      found->dtype == DType::kF32 || found->dtype == DType::kBF16 || found->dtype == DType::kF16;
  const bool of_tensor = is({}) || is({1}) || is({1, 1});
  const bool of_rows = is({tensors.rows, 1}) || is({tensors.rows});
  const bool of_blocks = is({row_blocks, column_blocks});
  if (!is_float || !(of_tensor || of_rows || of_blocks)) {
    throw tensor_error(ExitCode::kMismatch, *found,
                       "expected F32, BF16 or F16 [1], [{}, 1] or [{}, {}], got {}", tensors.rows, row_blocks,
                       column_blocks, describe_tensor(found->dtype, found->shape));
  }
  const bool is_of_blocks = of_blocks && !of_tensor && !of_rows;
  tensors.scales = found;
  tensors.num_groups = is_of_blocks ? static_cast<int>(column_blocks) : 1;
  tensors.scale_rows = is_of_blocks ? kE4m3Group : of_rows && !of_tensor ? 1 : tensors.rows;
}

/// A layer in E4M3; nothing if it is in other floats.
std::optional<QuantizedLinear> find_fp8(const TensorSource& source, const std::string& prefix, int64_t rows,
                                        int64_t columns) {
  const Finder finder(source, prefix);
  const Tensor* const found = finder.find("weight");
  if (found == nullptr || found->dtype != DType::kF8E4M3) return std::nullopt;
  QuantizedTensors tensors;
  tensors.method = Method::kFp8;
  tensors.bits = 8;
  tensors.rows = rows;
  tensors.columns = columns;
  tensors.values = &finder.require("weight", {DType::kF8E4M3}, {rows, columns});
  tensors.symmetric = true;
  find_fp8_scales(finder, tensors);
  tensors.bias = find_bias(finder, rows);
  return QuantizedLinear(std::move(tensors));
}

}  // namespace

std::optional<QuantizedLinear> find_quantized(const TensorSource& source, const QuantizationConfig& config,
                                              const std::string& prefix, int64_t rows, int64_t columns) {
  if (config.method == Method::kGguf) return find_blocks(source, prefix, rows, columns);
  if (config.method == Method::kFp8) return find_fp8(source, prefix, rows, columns);
  if (config.method == Method::kE2m1) return std::nullopt;  // see FloatRows
  const Finder finder(source, prefix);
  const bool has_own_names = config.method == Method::kCompressedTensors;
  const char* const suffix = has_own_names ? "weight_packed" : "qweight";
  const char* const foreign = has_own_names ? "qweight" : "weight_packed";
  const Tensor* const values = finder.find(suffix);
  if (values == nullptr) {
    if (const Tensor* const other = finder.find(foreign)) {
      throw tensor_error(ExitCode::kMismatch, *other, "expected {}, because of quant_method in {}", suffix,
                         config.file);
    }
    return std::nullopt;
  }
  const ModuleRule* const rule = config.modules.find(prefix, config.file);
  const bool is_left_out = config.modules.is_left_out(prefix, config.file);
  if (is_left_out) {
    throw tensor_error(ExitCode::kMismatch, *values, "expected floats, because of dynamic in {}",
                       config.file);
  }
  QuantizedTensors tensors;
  tensors.method = config.method;
  tensors.bits = rule == nullptr ? config.bits : rule->bits;
  tensors.rows = rows;
  tensors.columns = columns;
  tensors.values = values;
  require_words(*values, "inputs", columns, tensors.bits);
  if (has_own_names) {
    find_compressed_tensors(finder, config, tensors);
  } else {
    find_gptq_or_awq(finder, config, rule == nullptr ? config.group_size : rule->group_size, tensors);
  }
  tensors.bias = find_bias(finder, rows);
  return QuantizedLinear(std::move(tensors));
}

}  // namespace soliton
