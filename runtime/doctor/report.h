// What soliton-doctor finds on a machine: the card and its driver, compilers, memory, kernels, which models the memory
// holds, and what all of it comes to. A thing that is not there is no error: the report says so.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "layout/library.h"
#include "layout/model_facts.h"
#include "runtime/device/cuda_driver.h"
#include "runtime/hub/fetch_model.h"

namespace soliton {

struct GpuSpec;  // the planner's, which programs that show reports do not see

inline constexpr const char* kNoCard = "no NVIDIA card found";

struct DoctorOptions {
  std::string model;  // as fetch_model() takes it; empty: those of models/ instead
  HubOptions hub = {};
  std::string weights = {};  // see weight_rounding.h
  int device = 0;
  std::optional<int> kv_bits = {};  // of a key or value in the model's cache
  bool json = false;
};

/// A compiler, or why there is none.
struct FoundCompiler {
  std::string program;
  std::string version;  // "nvcc-13.0.48"
  std::string problem;
};

/// A kernel library, or why it is none.
struct FoundKernel {
  std::string file;
  std::string model;
  std::string gpu;
  std::vector<int> rows;
  std::string problem;
};

struct KernelFolder {
  std::string folder;
  std::string problem;
  std::vector<FoundKernel> kernels;
};

/// A model of models/.
struct FoundModel {
  std::string name;
  int32_t weight_bits = 16;  // of the layers' matrices
  int64_t weight_bytes = 0;
  int64_t token_bytes = 0;         // of each token of a long context,
  int64_t window_bytes = 0;        // and of layers with a window, whatever the context; 0: there are none
  int32_t max_context = 0;         // tokens
  std::optional<int32_t> context;  // that the card's free memory holds beside the weights; 0: not even these
};

/// What a model would be over all cards that can share it, if as much is free on the others.
struct SharedModel {
  std::vector<int> cards;   // devices, as --cards takes them
  int32_t context = 0;      // tokens that fit
  double tokens_per_s = 0;  // at best; 0: unknown
};

/// A model that is asked for: whether it would run here.
struct CheckedModel {
  FoundModel facts;         // without weight_bytes if not even these are known
  std::string folder;       // empty if there is none
  std::string kernel;       // the library that would run it; empty: one would be made
  bool has_weights = true;  // false: they are downloaded at the first start
  double tokens_per_s = 0;  // at best: what a token reads at the rate of the memory; 0: unknown
  std::optional<SharedModel> shared = {};  // where cards can share it, and it fits them
  std::vector<std::string> missing = {};   // why it would not
  int status = 0;                          // that soliton-chat would exit with; 0: it would run
};

struct DoctorReport {
  std::optional<DeviceInfo> device;
  std::string device_problem;
  std::vector<LinkedDevice> links;  // other devices
  std::string driver;               // "580.82.07"; empty if there is none
  std::string gpu;                  // the card that kernels are planned for: "h200"
  std::string gpu_problem;
  FoundCompiler nvcc;
  FoundCompiler cxx;
  int64_t host_bytes = 0;
  int64_t available_host_bytes = 0;
  std::string sources;
  std::string sources_problem;
  KernelFolder shipped;
  KernelFolder cache;
  std::vector<FoundModel> models;
  std::optional<CheckedModel> model;
};

/// Looks at a model as soliton-chat would, up to the point where a kernel is made.
CheckedModel check_model(const DoctorOptions& options, const DoctorReport& report);

/// What the report comes to, in lines: what runs here, how fast at best, or what is missing.
std::vector<std::string> verdict_of(const DoctorReport& report);

FoundModel describe_facts(const std::string& name, const ModelFacts& facts,
                          const std::optional<DeviceInfo>& device);

/// The card that kernels are planned for on the report's device. Throws as gpu_for_device() does; measures nothing.
GpuSpec gpu_of(const DoctorReport& report);

/// Looks at everything. Throws for nothing that it looks for.
DoctorReport examine(const DoctorOptions& options);

/// The version in the text of /proc/driver/nvidia/version: of "NVRM version: NVIDIA UNIX x86_64 Kernel Module
/// 580.82.07  Wed ..." 580.82.07. Empty if there is none.
std::string driver_version_in(const std::string& text);

/// The report for people: a line or a list for each thing.
std::string as_text(const DoctorReport& report);

/// The report as one JSON object.
std::string as_json(const DoctorReport& report);

/// examine(), and the report to stdout: all that soliton-doctor does. Returns what it exits with: 0, or for a model that
/// would not run what soliton-chat would.
int print_doctor(const DoctorOptions& options);

}  // namespace soliton
