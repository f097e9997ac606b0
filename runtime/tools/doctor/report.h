// What soliton-doctor finds on a machine: the card and its driver, compilers, memory, kernels, and which models
// the memory holds. A thing that is not there is no error: the report says so.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "layout/library.h"

namespace soliton {

struct DoctorOptions {
  int device = 0;
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
  int64_t token_bytes = 0;         // of context
  int32_t max_context = 0;         // tokens
  std::optional<int32_t> context;  // that the card's free memory holds beside the weights; 0: not even these
};

struct DoctorReport {
  std::optional<DeviceInfo> device;
  std::string device_problem;
  std::string driver;  // "580.82.07"; empty if there is none
  std::string gpu;     // the card that kernels are planned for: "h200"
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
};

/// Looks at everything. Throws for nothing that it looks for.
DoctorReport examine(const DoctorOptions& options);

/// The version in the text of /proc/driver/nvidia/version: of "NVRM version: NVIDIA UNIX x86_64 Kernel Module
/// 580.82.07  Wed ..." 580.82.07. Empty if there is none.
std::string driver_version_in(const std::string& text);

/// The report for people: a line or a list for each thing.
std::string as_text(const DoctorReport& report);

/// The report as one JSON object.
std::string as_json(const DoctorReport& report);

/// examine(), and the report to stdout: all that soliton-doctor does.
void print_doctor(const DoctorOptions& options);

}  // namespace soliton
