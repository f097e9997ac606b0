// What the doctor says of made-up machines, and how much of a model fits into how much memory.
#include "runtime/doctor/report.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "models/model_config.h"
#include "models/model_tables.h"
#include "runtime/make/model_memory.h"

namespace soliton {
namespace {

DoctorReport with_card() {
  DoctorReport report;
  DeviceInfo device{};
  std::string_view("NVIDIA H200").copy(device.name, sizeof(device.name) - 1);
  device.compute_capability = 90;
  device.num_sms = 132;
  device.driver_version = 13010;
  device.total_bytes = 150'000'000'000;
  device.free_bytes = 149'000'000'000;
  report.device = device;
  report.driver = "580.82.07";
  report.gpu = "h200";
  report.nvcc = {.program = "/cuda/bin/nvcc", .version = "nvcc-13.1.80", .problem = ""};
  report.cxx = {.program = "", .version = "", .problem = "CXX: expected a C++ compiler"};
  report.host_bytes = 64'000'000'000;
  report.available_host_bytes = 60'500'000'000;
  report.sources = "/soliton";
  report.shipped = {
      .folder = "/kernels",
      .problem = "",
      .kernels = {{.file = "8b.so", .model = "llama-3.1-8b", .gpu = "h200", .rows = {1, 8}, .problem = ""},
                  {.file = "x.so", .model = "", .gpu = "", .rows = {}, .problem = "x.so: cut short"}}};
  report.cache = {.folder = "/cache", .problem = "", .kernels = {}};
  report.models = {{.name = "small",
                    .weight_bits = 4,
                    .weight_bytes = 1'000'000,
                    .token_bytes = 500,
                    .max_context = 64,
                    .context = 64},
                   {.name = "tight",
                    .weight_bytes = 148'000'000'000,
                    .token_bytes = 131'584,
                    .window_bytes = 250'000'000,
                    .max_context = 8192,
                    .context = 640},
                   {.name = "large",
                    .weight_bytes = 800'000'000'000,
                    .token_bytes = 500'000,
                    .max_context = 8192,
                    .context = 0}};
  return report;
}

TEST(Doctor, SaysWhatACardCanDo) {
  EXPECT_EQ(as_text(with_card()),
            "GPU          NVIDIA H200 (sm_90, 132 SMs), planned for as h200\n"
            "GPU memory   149.00 GB free of 150.00 GB\n"
            "driver       580.82.07, for CUDA up to 13.1\n"
            "nvcc         nvcc-13.1.80 (/cuda/bin/nvcc)\n"
            "C++ compiler CXX: expected a C++ compiler\n"
            "host memory  60.50 GB available of 64.00 GB\n"
            "sources      /soliton\n"
            "kernels      /kernels\n"
            "             8b.so: llama-3.1-8b on h200, 1,8 rows\n"
            "             x.so: cut short\n"
            "made here    /cache: none\n"
            "models       in the GPU's free memory\n"
            "             small                0.00 GB at 4 bits, and 0.5 KB a token: fits with a context of "
            "64, all of it\n"
            "             tight              148.00 GB at 16 bits, and 131.6 KB a token and 0.25 GB of "
            "windows: fits "
            "with a context of 640 of 8192\n"
            "             large              800.00 GB at 16 bits, and 500.0 KB a token: does not fit\n"
            "verdict      NVIDIA H200 runs models here; kernels that are not there yet are made by nvcc\n");
}

TEST(Doctor, SaysWhichCardsCanShareAModel) {
  DoctorReport report = with_card();
  report.links = {{1, "NVIDIA H200", true, true, true},
                  {2, "NVIDIA H200", true, true, false},
                  {3, "NVIDIA H200", true, false, false},
                  {4, "NVIDIA T4", false, true, false}};
  EXPECT_NE(as_text(report).find(
                "\nother GPUs   1: NVIDIA H200, joined by NVLink, can share a model with it (--cards)\n"
                "             2: NVIDIA H200, joined without atomics (no NVLink), shares no model with it\n"
                "             3: NVIDIA H200, without access to its memory, shares no model with it\n"
                "             4: NVIDIA T4, another kind, shares no model with it\n"),
            std::string::npos)
      << as_text(report);
  const auto others = nlohmann::json::parse(as_json(report)).at("gpu").at("others");
  ASSERT_EQ(others.size(), 4u);
  EXPECT_EQ(others[1].at("device"), 2);
  EXPECT_EQ(others[1].at("peer_atomics"), false);
}

TEST(Doctor, SaysWhatIsSpecialAboutACard) {
  DoctorReport report = with_card();
  EXPECT_EQ(nlohmann::json::parse(as_json(report)).at("gpu").at("time_limit"), false);
  report.device->has_time_limit = 1;
  report.device->unified_memory = 1;
  EXPECT_NE(as_text(report).find("\nGPU memory   149.00 GB free of 150.00 GB, which is the host's\n"
                                 "time limit   it drives a display: launches last at most 0.25 s\n"),
            std::string::npos)
      << as_text(report);
  const auto gpu = nlohmann::json::parse(as_json(report)).at("gpu");
  EXPECT_EQ(gpu.at("time_limit"), true);
  EXPECT_EQ(gpu.at("unified_memory"), true);
}

/// The last lines, from the verdict on.
std::string verdict_in(const DoctorReport& report) {
  const std::string text = as_text(report);
  const size_t at = text.find("\nverdict      ");
  return at == std::string::npos ? "none" : text.substr(at + 1);
}

TEST(Doctor, EndsWithAVerdict) {
  DoctorReport report = with_card();
  report.nvcc.problem = "nvcc: found none";
  EXPECT_EQ(verdict_in(report),
            "verdict      NVIDIA H200 runs the models here whose kernels are listed; to make others:\n"
            "             nvcc: found none\n");
  report.gpu = "";
  report.gpu_problem = "NVIDIA A100: expected one of h100";
  EXPECT_EQ(verdict_in(report),
            "verdict      no model runs here:\n             NVIDIA A100: expected one of h100\n");
  report.device.reset();
  report.device_problem = "libcuda.so.1: cuInit: unknown error";
  EXPECT_EQ(verdict_in(report),
            "verdict      no model runs here:\n             libcuda.so.1: cuInit: unknown error\n");
  report.device_problem = kNoCard;
  EXPECT_EQ(verdict_in(report),
            "verdict      without a card small models run in emulation on the CPU, for checking; those whose "
            "kernels are listed, as to make others:\n"
            "             CXX: expected a C++ compiler\n");
}

TEST(Doctor, SaysWhetherAModelRuns) {
  DoctorReport report = with_card();
  report.model =
      CheckedModel{.facts = report.models[1], .folder = "/m", .kernel = "/k.so", .tokens_per_s = 31.08};
  EXPECT_NE(as_text(report).find("model        /m\n             tight "), std::string::npos);
  EXPECT_NE(as_text(report).find("\nkernel       /k.so\n"), std::string::npos);
  EXPECT_EQ(as_text(report).find("small"), std::string::npos) << "only the model that is asked for";
  EXPECT_EQ(verdict_in(report),
            "verdict      tight runs here, at 31 tokens/s at best, with a context of up to 640 tokens; its "
            "kernel is "
            "there\n");
  report.model->kernel = "";
  report.model->tokens_per_s = 3.14;
  report.device.reset();
  EXPECT_EQ(
      verdict_in(report),
      "verdict      tight runs here, but only in emulation on the CPU, for checking: about 3.1 tokens/s; its "
      "kernel is made at the first start\n");
  report.model->missing = {"a: expected b", "c: expected d"};
  EXPECT_EQ(
      verdict_in(report),
      "verdict      tight does not run here:\n             a: expected b\n             c: expected d\n");
  const auto json = nlohmann::json::parse(as_json(report));
  EXPECT_EQ(json.at("model").at("runs"), false);
  EXPECT_EQ(json.at("model").at("missing"), nlohmann::json({"a: expected b", "c: expected d"}));
  EXPECT_EQ(json.at("verdict"), "tight does not run here: a: expected b c: expected d");
}

TEST(Doctor, SaysTheSameAsJson) {
  const auto json = nlohmann::json::parse(as_json(with_card()));
  EXPECT_EQ(json.at("gpu").at("name"), "NVIDIA H200");
  EXPECT_EQ(json.at("gpu").at("driver_cuda_version"), "13.1");
  EXPECT_EQ(json.at("gpu").at("planned_for"), "h200");
  EXPECT_EQ(json.at("driver"), "580.82.07");
  EXPECT_EQ(json.at("nvcc").at("version"), "nvcc-13.1.80");
  EXPECT_TRUE(json.at("cxx").contains("problem"));
  EXPECT_EQ(json.at("kernels").at("kernels").at(0).at("rows"), nlohmann::json({1, 8}));
  EXPECT_TRUE(json.at("kernels").at("kernels").at(1).contains("problem"));
  EXPECT_TRUE(json.at("made_kernels").at("kernels").empty());
  EXPECT_EQ(json.at("models").at(1).at("fitting_context"), 640);
  EXPECT_EQ(json.at("models").at(0).at("weight_bits"), 4);
}

TEST(Doctor, NamesCardsThatCannotBePlannedFor) {
  DoctorReport report = with_card();
  report.gpu = "";
  report.gpu_problem = "NVIDIA A100: expected one of h100";
  EXPECT_TRUE(as_text(report).starts_with(
      "GPU          NVIDIA H200 (sm_90, 132 SMs)\n             NVIDIA A100: expected one of h100\n"));
  EXPECT_EQ(nlohmann::json::parse(as_json(report)).at("gpu").at("problem"), report.gpu_problem);
}

TEST(Doctor, ReadsTheDriversVersion) {
  EXPECT_EQ(driver_version_in("NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.183.01  Sun May 12 2024\n"
                              "GCC version:  gcc version 12.3.0 (Ubuntu 12.3.0)\n"),
            "535.183.01");
  EXPECT_EQ(
      driver_version_in("NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.82.07  Release Build"),
      "580.82.07");
  EXPECT_EQ(driver_version_in(""), "");
  EXPECT_EQ(driver_version_in("GCC version: 12.3.0 \n"), "");
}

TEST(ModelMemory, FitsToThePage) {
  const ModelFacts facts =
      load_model_config(std::filesystem::path(SOLITON_SOURCE_DIR) / "models" / "llama-3.1-8b.yaml").facts;
  // 8 030 261 248 parameters at 2 bytes; a token has 2 x 32 layers x 8 heads x 128 halves, and 128 floats.
  EXPECT_EQ(device_weight_bytes(facts), 2 * 8030261248);
  EXPECT_EQ(context_token_bytes(facts), 2 * 32 * 8 * 128 * 2 + 128 * 4);
  EXPECT_EQ(read_weight_bytes(facts), 2 * (8030261248 - int64_t{4096} * 128256));
  const int64_t page = 64 * context_token_bytes(facts);
  int64_t least = device_weight_bytes(facts);
  while (fitting_context(facts, least + page) == 0) least += 1 << 20;  // what else the device needs
  EXPECT_LE(least, device_weight_bytes(facts) + (100 << 20));
  least += page;
  while (fitting_context(facts, least - 1) > 0) --least;
  EXPECT_EQ(fitting_context(facts, least), 64);
  EXPECT_EQ(fitting_context(facts, least + page - 1), 64);
  EXPECT_EQ(fitting_context(facts, least + page), 128);
  EXPECT_EQ(fitting_context(facts, least + 2000 * page), 64 * 2001);
  EXPECT_EQ(fitting_context(facts, least + 5000 * page), 131072);
  EXPECT_EQ(fitting_context(facts, 0), 0);
  EXPECT_EQ(fitting_context(facts, -1), 0);
}

TEST(ModelMemory, CountsBiasesAndATiedLmHeadTwice) {
  const ModelFacts facts =
      load_model_config(std::filesystem::path(SOLITON_SOURCE_DIR) / "models" / "qwen2.5-1.5b.yaml").facts;
  // Of 1 543 714 304 parameters 28 x 2048 are biases, which the device has as floats.
  constexpr int64_t kBiases = 28 * 2048;
  constexpr int64_t kEmbedding = int64_t{151936} * 1536;
  EXPECT_EQ(device_weight_bytes(facts), 2 * (1543714304 - kBiases) + 4 * kBiases + 2 * kEmbedding);
  EXPECT_EQ(read_weight_bytes(facts), device_weight_bytes(facts) - 2 * kEmbedding);
}

TEST(ModelMemory, CountsAllExpertsOnTheDeviceAndTheChosenOnesOfAToken) {
  const auto facts_of = [](const char* name) {
    return load_model_config(std::filesystem::path(SOLITON_SOURCE_DIR) / "models" / name).facts;
  };
  // 46 702 792 704 parameters, of which 8 experts in 32 layers are 3 matrices of 4096 x 14336 each; a token goes through 2.
  constexpr int64_t kExpert = int64_t{3} * 4096 * 14336;
  constexpr int64_t kEmbedding = int64_t{32000} * 4096;
  const ModelFacts mixtral = facts_of("mixtral-8x7b.yaml");
  EXPECT_EQ(device_weight_bytes(mixtral), 2 * 46702792704);
  EXPECT_EQ(read_weight_bytes(mixtral), 2 * (46702792704 - kEmbedding - 32 * 6 * kExpert));
  EXPECT_EQ(fitting_context(mixtral, 80 * int64_t{1000000000}), 0);
  EXPECT_EQ(device_weight_bytes(facts_of("qwen3-30b-a3b.yaml")), 2 * 30532122624);
}

TEST(ModelMemory, CountsIntegersWithTheirScalesAndZeros) {
  ModelFacts facts =
      load_model_config(std::filesystem::path(SOLITON_SOURCE_DIR) / "models" / "llama-3.1-8b-gptq.yaml")
          .facts;
  // Of 8 030 261 248 parameters 6 979 321 856 stand in the layers' matrices.
  constexpr int64_t kIntegers = 6979321856;
  constexpr int64_t kOthers = 2 * (8030261248 - kIntegers);
  EXPECT_EQ(device_weight_bytes(facts), kIntegers / 2 + kIntegers / 128 * 2 + kOthers);
  facts.weight_group = -1;  // the scale of a row stands in every 128 columns
  EXPECT_EQ(device_weight_bytes(facts), kIntegers / 2 + kIntegers / 128 * 2 + kOthers);
  facts.weight_group = 32;
  facts.weight_zeros = 1;
  EXPECT_EQ(device_weight_bytes(facts), kIntegers / 2 + kIntegers / 32 * 4 + kOthers);
  facts.lm_head_bits = 4;
  constexpr int64_t kLmHead = int64_t{4096} * 128256;
  EXPECT_EQ(device_weight_bytes(facts),
            (kIntegers + kLmHead) / 2 + (kIntegers + kLmHead) / 32 * 4 + kOthers - 2 * kLmHead);
}

}  // namespace
}  // namespace soliton
