// Checkpoints with biases and normed heads: a tensor that a kernel needs and does not find, or that it has no use
// for, is refused by name.
#include <functional>
#include <nlohmann/json.hpp>

#include "change_header.h"
#include "error_of.h"
#include "fused_folder.h"
#include "kernel/kernel_fixture.h"
#include "layout/fact_list.h"
#include "models/error.h"
#include "models/matrix_roles.h"
#include "models/model_tables.h"
#include "refusals.h"
#include "runtime/weights/weights.h"

namespace soliton {
namespace {

namespace fs = std::filesystem;

class Load : public testing::Test {
 protected:
  /// A kernel loads a folder of weights for `facts` whose header was changed.
  void expect_refused(KernelUnderTest& kernel, const ModelFacts& facts, const std::string& message,
                      const std::function<void(nlohmann::json&)>& change = {}) {
    const TemporaryModel folder(random_weights(facts, kWeightSeed), facts);
    if (change) change_header(folder.path() / "model.safetensors", change);
    const HfConfig config = HfConfig::open(folder.path());
    try {
      kernel.engine().load(TensorSource::open(folder.path()), nullptr, config.quantization_or_null());
      ADD_FAILURE() << "accepted; expected: " << message;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::kMismatch) << error.what();
      EXPECT_NE(std::string(error.what()).find(message), std::string::npos) << error.what();
    }
  }
};

TEST_F(Load, RefusesMissingBiases) {
  KernelUnderTest kernel("int4-bias-3-all");
  ModelFacts facts = kernel.facts();
  facts.qkv_bias = 0;
  expect_refused(kernel, facts,
                 "model.layers.0.self_attn.q_proj.bias: expected BF16 [256], but there is no such tensor");
}

TEST_F(Load, RefusesBiasesThatTheKernelDoesNotAdd) {
  {
    KernelUnderTest kernel("norm128-4-all");
    ModelFacts facts = kernel.facts();
    facts.qkv_bias = 1;
    expect_refused(kernel, facts, "model.layers.0.self_attn.q_proj: expected no bias, as the config says");
  }
  // Where q, k and v have one, o still has none.
  KernelUnderTest kernel("int4-bias-3-all");
  expect_refused(kernel, kernel.facts(), "model.layers.1.self_attn.o_proj: expected no bias, ",
                 [](nlohmann::json& header) {
                   // One of as many elements, that is looked for later.
                   header["model.layers.1.self_attn.o_proj.bias"] = header["model.norm.weight"];
                   header.erase("model.norm.weight");
                 });
}

TEST_F(Load, RefusesWrongShapes) {
  KernelUnderTest kernel("norm128-4-all");
  ModelFacts facts = kernel.facts();
  expect_refused(kernel, facts,
                 "model.layers.1.self_attn.k_norm.weight: expected BF16 [128], got BF16 [2, 64]",
                 [](nlohmann::json& header) {
                   header["model.layers.1.self_attn.k_norm.weight"]["shape"] = {2, 64};
                 });
  facts.head_norm = 0;
  expect_refused(kernel, facts, "model.layers.0.self_attn.q_norm.weight: expected BF16 [128]");
}

// As GPTQ checkpoints of Qwen2 have them.
TEST_F(Load, ReadsBiasesInF16) {
  KernelUnderTest kernel("int4-bias-3-all");
  const ModelFacts facts = kernel.facts();
  const std::vector<int32_t> prompt = kernel.prompt(3);
  const DecodeResult expected = kernel.decode_from(0, prompt, 1);
  const TemporaryModel folder(random_weights(facts, kWeightSeed), facts);
  change_header(folder.path() / "model.safetensors", [](nlohmann::json& header) {
    for (const char* name : {"q", "k", "v"})
      header[std::string("model.layers.0.self_attn.") + name + "_proj.bias"]["dtype"] = "F16";
  });
  // The same bits mean other numbers, so another answer, but are taken.
  const HfConfig config = HfConfig::open(folder.path());
  kernel.engine().load(TensorSource::open(folder.path()), nullptr, config.quantization_or_null());
  EXPECT_NE(kernel.decode_from(0, prompt, 1).logits, expected.logits);
}

// Between the check of its headers and the end of the load.
TEST_F(Load, RefusesAFileThatIsCutShort) {
  KernelUnderTest kernel("norm128-4-all");
  const TemporaryModel folder(random_weights(kernel.facts(), kWeightSeed), kernel.facts());
  const TensorSource source = TensorSource::open(folder.path());
  const fs::path file = folder.path() / "model.safetensors";
  const uintmax_t size = fs::file_size(file);
  for (const uintmax_t left : {size - 1, size / 2, uintmax_t{8}}) {
    fs::resize_file(file, left);
    expect_error(
        [&] { kernel.engine().load(source, nullptr); }, ExitCode::kBadFile,
        fmt::format("{}: cut short while it was read: expected {} bytes, got {}", file.string(), size, left));
  }
}

/// Bytes of device memory, table by table.
void expect_counted(const KernelLibrary& library, const DeviceWeights& weights) {
  const ModelTables tables = model_tables(library.model().facts);
  EXPECT_EQ(weights.pages.bytes(), static_cast<size_t>(library.model().weight_bytes));
  EXPECT_EQ(weights.embedding.bytes(), 2 * static_cast<size_t>(tables.embedding));
  EXPECT_EQ(weights.norms.bytes(), 2 * static_cast<size_t>(tables.norms));
  EXPECT_EQ(weights.head_norms.bytes(), 2 * static_cast<size_t>(tables.head_norms));
  EXPECT_EQ(weights.qkv_biases.bytes(), 4 * static_cast<size_t>(tables.qkv_biases));
  EXPECT_EQ(weights.router_biases.bytes(), 4 * static_cast<size_t>(tables.router_biases));
  EXPECT_EQ(weights.positions.bytes(), 4 * static_cast<size_t>(tables.positions));
  const size_t all = weights.embedding.bytes() + weights.norms.bytes() + weights.head_norms.bytes() +
                     weights.qkv_biases.bytes() + weights.router_biases.bytes() + weights.positions.bytes();
  EXPECT_EQ(all, static_cast<size_t>(tables.bytes()));
}

// What is said of a model's memory before it is loaded, and what loading it takes.
TEST_F(Load, TakesTheDeviceMemoryThatIsCounted) {
  for (const char* name :
       {"micro-3", "int4-bias-3-all", "norm64-bias-5-counter", "int4-ordered-3-all", "int4-sigmoid-5"}) {
    SCOPED_TRACE(name);
    KernelLibrary library = KernelLibrary::open(fs::path(SOLITON_TEST_KERNELS) / fmt::format("{}.so", name));
    library.select_device(0);
    expect_counted(library, make_random_weights(library, kWeightSeed));
    const ModelFacts facts = library.model().facts;
    const TemporaryModel folder(random_weights(facts, kWeightSeed), facts);
    const HfConfig config = HfConfig::open(folder.path());
    const TensorSource source = TensorSource::open(folder.path());
    expect_counted(
        library,
        load_weights(library, find_tensors(source, config.quantization_or_null(), facts, config.checkpoint),
                     nullptr));
  }
}

// Rows of a tensor that holds several linear layers are those of tensors of their own.
TEST(LoadFused, PacksTheSameBytes) {
  for (const char* name : {"plain-4-split", "narrow96-5", "int4-3", "int4-ordered-3-all"}) {
    SCOPED_TRACE(name);
    KernelLibrary library = KernelLibrary::open(std::string(SOLITON_TEST_KERNELS) + "/" + name + ".so");
    library.select_device(0);
    const ModelFacts& facts = library.model().facts;
    const TemporaryModel folder(random_weights(facts, kWeightSeed), facts);
    const auto load = [&] {
      const HfConfig config = HfConfig::open(folder.path());
      EXPECT_EQ(hash_facts(config.facts), hash_facts(facts)) << config.architecture;
      const TensorSource source = TensorSource::open(folder.path());
      return load_weights(
          library, find_tensors(source, config.quantization_or_null(), config.facts, config.checkpoint),
          nullptr);
    };
    const DeviceWeights apart = load();
    fuse_projections(folder.path());
    const DeviceWeights fused = load();
    const auto expect_same = [](const DeviceMemory& a, const DeviceMemory& b) {
      ASSERT_EQ(a.bytes(), b.bytes());
      EXPECT_TRUE(a.bytes() == 0 || std::memcmp(a.as<void>(), b.as<void>(), a.bytes()) == 0);
    };
    expect_same(fused.pages, apart.pages);
    expect_same(fused.positions, apart.positions);
  }
}

// Weights are in what the kernel was made for, and nothing is converted.
TEST(LoadMxfp4, RefusesWeightsInAnotherForm) {
  for (const auto& [kernel, is] :
       {std::pair("mixture-sinks-5", "bf16"), std::pair("mixture-mxfp4-5", "MXFP4")}) {
    const KernelLibrary library =
        KernelLibrary::open(std::string(SOLITON_TEST_KERNELS) + "/" + kernel + ".so");
    const ModelFacts& facts = library.model().facts;
    const TemporaryModel folder(random_weights(facts, kWeightSeed), facts);
    ModelFacts other = facts;
    other.further_bits = other.further_e2m1 = facts.further_e2m1 != 0 ? 0 : 1;
    if (other.further_e2m1 != 0) {
      other.further_bits = 4;
      for (int32_t& layer : other.layer_further) layer = kGateUpMatrix | kDownMatrix;
    }
    const HfConfig config = HfConfig::open(folder.path());
    const std::string refusal =
        error_of([&] { find_tensors(TensorSource::open(folder.path()), nullptr, other, config.checkpoint); });
    EXPECT_NE(refusal.find("gate_up_proj: expected weights in "), std::string::npos) << refusal;
    EXPECT_EQ(refusal.find(fmt::format("expected weights in {}", is)), std::string::npos) << refusal;
  }
}

TEST(LoadMxfp4, RefusesScalesThatAreMissingOrOfAnotherShape) {
  KernelLibrary library = KernelLibrary::open(std::string(SOLITON_TEST_KERNELS) + "/mixture-mxfp4-5.so");
  const ModelFacts& facts = library.model().facts;
  const TemporaryModel folder(random_weights(facts, kWeightSeed), facts);
  const HfConfig config = HfConfig::open(folder.path());
  const auto refusal_with = [&](const std::function<void(std::map<std::string, OwnedTensor>&)>& change) {
    std::map<std::string, OwnedTensor> tensors;
    {
      const TensorSource source = TensorSource::open(folder.path());
      for (const std::string_view name : source.names())
        tensors[std::string(name)] = joined("", {source.find(name)});
    }
    change(tensors);
    write_tensors(folder.path(), tensors);
    return error_of(
        [&] { find_tensors(TensorSource::open(folder.path()), nullptr, facts, config.checkpoint); });
  };
  const std::string scales = in_layer(1, "mlp.experts.down_proj_scales");
  EXPECT_NE(refusal_with([&](auto& tensors) {
              tensors[scales].shape = {7, 4, 192};
            }).find(scales + ": expected U8 [7, 192, 4], got U8 [7, 4, 192]"),
            std::string::npos);
  EXPECT_NE(refusal_with([&](auto& tensors) { tensors.erase(scales); }).find(scales), std::string::npos);
}

// Where the device's memory is the host's, tiles are packed where the kernel reads them.
TEST(LoadUnified, PacksTheSameBytesWithoutACopy) {
  for (const char* name : {"plain-4-split", "int4-ordered-3-all", "norm64-bias-5-counter"}) {
    SCOPED_TRACE(name);
    KernelLibrary library = KernelLibrary::open(std::string(SOLITON_TEST_KERNELS) + "/" + name + ".so");
    EmulationControl& control =
        *reinterpret_cast<EmulationControl* (*)()>(library.symbol("soliton_emulation"))();
    const ModelDescriptor& model = library.model();
    const ModelFacts& facts = model.facts;
    const TemporaryModel folder(random_weights(facts, kWeightSeed), facts);
    const HfConfig config = HfConfig::open(folder.path());
    const TensorSource source = TensorSource::open(folder.path());
    const ModelTensors tensors =
        find_tensors(source, config.quantization_or_null(), facts, config.checkpoint);
    DeviceWeights weights[2];
    uint64_t uploaded[2];
    for (const bool unified : {false, true}) {
      control.device.unified_memory = unified;
      library.select_device(0);
      control.uploaded_bytes = 0;
      weights[unified] = load_weights(library, tensors, nullptr);
      uploaded[unified] = control.uploaded_bytes;
    }
    control.device = {};
    const uint64_t large = weight_load_bytes(library);
    EXPECT_GE(uploaded[0], large);
    EXPECT_EQ(uploaded[0] - uploaded[1], large) << "norms and the like are uploaded";
    const auto expect_same = [](const DeviceMemory& a, const DeviceMemory& b, size_t bytes) {
      ASSERT_EQ(a.bytes(), bytes);
      ASSERT_EQ(b.bytes(), bytes);
      EXPECT_EQ(std::memcmp(a.as<void>(), b.as<void>(), bytes), 0);
    };
    expect_same(weights[0].pages, weights[1].pages, static_cast<size_t>(model.weight_bytes));
    expect_same(weights[0].embedding, weights[1].embedding, large - weights[0].pages.bytes());
  }
}

}  // namespace
}  // namespace soliton
