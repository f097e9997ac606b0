// Checkpoints: a whole file, or ('{' comes first) a header alone, around which a sound file is built: its length
// before it, and behind it as many zeros as an input of its length can ask for. Behind "cut " stands either that is cut
// short while it is read; and behind "index " the index of a sound shard. Of all that can be opened the tensors of small
// models are looked for.
#include <algorithm>
#include <span>
#include <vector>

#include "fuzz/fuzz_target.h"
#include "models/matrix_roles.h"
#include "runtime/weights/model_tensors.h"

namespace soliton {
namespace {

constexpr size_t kMaxDataBytes = 1 << 15;

/// The largest number in the text up to kMaxDataBytes: most likely where the last tensor ends.
size_t data_bytes(std::string_view header) {
  size_t most = 0;
  size_t number = 0;
  for (const char c : header) {
    const bool is_digit = c >= '0' && c <= '9';
    number = is_digit ? std::min<size_t>(10 * number + static_cast<size_t>(c - '0'), kMaxDataBytes + 1) : 0;
    if (number <= kMaxDataBytes) most = std::max(most, number);
  }
  return most;
}

std::string with_length(std::string_view header) {
  std::string file(sizeof(uint64_t), '\0');
  for (size_t i = 0; i < file.size(); ++i) file[i] = static_cast<char>(uint64_t{header.size()} >> (8 * i));
  file += header;
  file.append(data_bytes(header), '\0');
  return file;
}

constexpr std::string_view kCut = "cut ";
constexpr std::string_view kIndex = "index ";
constexpr const char* kShard =
    R"({"a":{"dtype":"U8","shape":[3],"data_offsets":[0,3]},"b":{"dtype":"I8","shape":[2],"data_offsets":[3,5]}})";

/// Of one layer; a row has two groups of columns, or one.
ModelFacts small_facts() {
  ModelFacts facts;
  facts.hidden = 64;
  facts.ffn = facts.head_dim = 32;
  facts.vocabulary = 8;
  facts.num_layers = facts.num_heads = facts.num_kv_heads = 1;
  return facts;
}

/// The same with a mixture of experts in the place of its feed-forward network.
ModelFacts small_mixture() {
  ModelFacts facts = small_facts();
  facts.num_experts = 2;
  facts.experts_per_token = 1;
  facts.expert_ffn = 8;
  facts.renormalised = 1;
  return facts;
}

/// Reads a row, in whichever form it is.
void read_row(const LinearTensors& linear, int64_t row) {
  std::vector<float> floats(static_cast<size_t>(linear.columns));
  if (linear.floats.e2m1() != E2m1Kind::kNone)
    return linear.floats.read_floats(row, 0, linear.columns, floats.data());
  std::vector<uint16_t> values(static_cast<size_t>(linear.columns));
  linear.floats.read(std::span(&row, 1), 0, linear.columns, values.data());
}

/// Looks for those of mixtures: experts apart, or all in one tensor, in gpt-oss's manner too, with MXFP4 or without.
void look_for_mixtures(const TensorSource& source) {
  const auto look = [&](const ModelFacts& facts, const MixtureNames& names) {
    accepts([&] {
      const ModelTensors tensors =
          find_tensors(source, nullptr, facts, make_checkpoint(facts, Projections::kApart, names));
      for (const auto& layers : tensors.matrices) {
        for (const LinearTensors& linear : layers.begin()->second) {
          expect(linear.floats.is_there(), "floats");
          read_row(linear, linear.first + (linear.rows - 1) * linear.step);
        }
      }
    });
  };
  ModelFacts facts = small_mixture();
  look(facts, {});
  facts.router_bias = facts.expert_bias = 1;
  const MixtureNames gpt_oss{
      .router = "mlp.router", .router_bias = "mlp.router.bias", .is_interleaved = true};
  look(facts, gpt_oss);
  facts.expert_ffn = 32;  // a block of columns
  facts.further_bits = 4;
  facts.further_e2m1 = 1;
  facts.layer_further[0] = kGateUpMatrix | kDownMatrix;
  look(facts, gpt_oss);
}

/// Looks for the tensors of small models, whichever they may be; what is found is as they ask.
void look_for_models(const TensorSource& source) {
  ModelFacts facts = small_facts();
  const auto look = [&](const QuantizationConfig* quantization) {
    accepts([&] {
      const ModelTensors tensors =
          find_tensors(source, quantization, facts, make_checkpoint(facts, Projections::kApart));
      expect(tensors.embedding->data.size() >= 2 * 64 * 8, "an embedding of all bytes");
      for (const auto& layers : tensors.matrices) {
        expect(layers.size() == 1, "one layer");
        for (const LinearTensors& linear : layers.begin()->second) {
          expect(linear.floats.is_there() != linear.integers.has_value(), "floats or integers");
          if (!linear.integers) read_row(linear, linear.rows - 1);
          if (!linear.integers) continue;
          std::vector<int32_t> order = linear.integers->order();
          std::sort(order.begin(), order.end());
          for (size_t i = 0; i < order.size(); ++i) expect(order[i] == static_cast<int32_t>(i), "an order");
        }
      }
    });
  };
  look(nullptr);
  facts.further_bits = 4;
  facts.further_e2m1 = 1;
  facts.layer_further[0] = kQkvMatrix | kOMatrix | kGateUpMatrix | kDownMatrix;
  for (const int group : {0, 16}) {  // MXFP4, NVFP4
    facts.further_group = group;
    look(nullptr);
  }
  facts = small_facts();
  facts.weight_bits = 4;
  facts.weight_zeros = facts.weight_order = 1;
  facts.weight_group = 32;
  for (const auto method :
       {QuantizationMethod::kGptq, QuantizationMethod::kAwq, QuantizationMethod::kCompressedTensors}) {
    const QuantizationConfig quantization{.method = method,
                                          .group_size = 32,
                                          .symmetric = false,
                                          .act_order = method != QuantizationMethod::kAwq,
                                          .file = "config.json"};
    look(&quantization);
  }
}

unsigned sum_of(const TensorSource& source) {
  unsigned sum = 0;
  for (const std::string_view name : source.names()) {
    for (const std::byte value : source.find(name)->data) sum += static_cast<unsigned>(value);
  }
  return sum;
}

void read(const std::filesystem::path& path) {
  const TensorSource source = TensorSource::open(path);
  uint64_t total = 0;
  for (const std::string_view name : source.names()) {
    const Tensor& tensor = *source.find(name);
    int64_t elements = 1;
    for (const int64_t extent : tensor.shape) elements *= extent;
    const int64_t bits = elements * dtype_bits(tensor.dtype);
    expect(bits % 8 == 0 && static_cast<uint64_t>(bits / 8) == tensor.data.size(),
           "bytes that are shape x type");
    total += tensor.data.size();
  }
  expect(total == source.total_bytes(), "a total that is the sum");
  volatile unsigned sink = read_whole(source, [&] { return sum_of(source); });
  static_cast<void>(sink);
  look_for_models(source);
  look_for_mixtures(source);
}

/// Half of the file is gone once it is open: whatever is read then is refused.
void read_cut(const std::filesystem::path& path) {
  const TensorSource source = TensorSource::open(path);
  std::filesystem::resize_file(path, std::filesystem::file_size(path) / 2);
  const bool is_whole = accepts([&] { read_whole(source, [&] { return sum_of(source); }); });
  expect(!is_whole, "a file that is known to be cut");
  look_for_models(source);
}

}  // namespace
}  // namespace soliton

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace soliton;
  std::string_view text = as_text(data, size);
  const FuzzFolder& folder = fuzz_folder();
  if (text.starts_with(kIndex)) {
    folder.write("a.safetensors", with_length(kShard));
    accepts([&] { read(folder.write("model.safetensors.index.json", text.substr(kIndex.size()))); });
    return 0;
  }
  const bool is_cut = text.starts_with(kCut);
  if (is_cut) text.remove_prefix(kCut.size());
  const std::string file = text.starts_with('{') ? with_length(text) : std::string(text);
  accepts([&] {
    const auto path = folder.write("model.safetensors", file);
    is_cut ? read_cut(path) : read(path);
  });
  return 0;
}
