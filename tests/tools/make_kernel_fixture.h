// A place to make kernels in, with scripts in place of compilers, which note that they were called and leave what a compiler
// might leave.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdlib>

#include "cli/run_program.h"
#include "models/error.h"
#include "models/model_config.h"
#include "runtime/make/make_kernel.h"

namespace soliton {

namespace fs = std::filesystem;

inline const std::string kMicroKernel = std::string(SOLITON_TEST_KERNELS) + "/micro-1.so";
inline constexpr const char* kCopies =
    "for last; do :; done; cp '{}' \"$last\"";  // to the place of the kernel

inline DeviceInfo device_called(const std::string& name, int compute_capability, int num_sms) {
  DeviceInfo info{};
  name.copy(info.name, sizeof(info.name) - 1);
  info.compute_capability = compute_capability;
  info.num_sms = num_sms;
  info.max_shared_bytes = 232448;
  return info;
}

class MakeKernel : public testing::Test {
 protected:
  /// Does the source that the compiler was given have a kernel of so many rows?
  bool has_made_rows(int rows) const {
    return read_text(folder_.path() / "made" / "plan.h").find(fmt::format(".rows = {}, .sync", rows)) !=
           std::string::npos;
  }

  MakeKernel() {
    request_.facts =
        load_model_config(fs::path(SOLITON_SOURCE_DIR) / "tests" / "models" / "micro.yaml").facts;
    request_.name = "micro";
    request_.source = "micro/config.json";
    request_.cache = folder_.path() / "new" / "cache";
    request_.card = device_called("CPU emulation", 0, 0);
  }
  ~MakeKernel() override {
    for (const char* variable : {"CXX", "CUDACXX", "XDG_CACHE_HOME", "SOLITON_KERNELS"}) unsetenv(variable);
  }

  /// A compiler that runs `body`, and whose version is `version`.
  void use_compiler(const std::string& body, const std::string& version = "1.0",
                    const char* variable = "CXX") {
    const fs::path script = folder_.path() / "compiler";
    write_text(script,
               fmt::format("#!/bin/sh\nif [ \"$1\" = --version ]; then echo 'tools V{0} {0}'; exit; fi\n"
                           "echo \"$@\" >> '{1}'\n{2}\n",
                           version, (folder_.path() / "calls").string(), body));
    ::chmod(script.c_str(), 0700);
    setenv(variable, script.c_str(), 1);
  }
  void use_copying_compiler(const std::string& version = "1.0", const char* variable = "CXX") {
    use_compiler(fmt::format(fmt::runtime(kCopies), kMicroKernel), version, variable);
  }
  int num_calls() const {
    const std::string calls = read_text(folder_.path() / "calls");
    return static_cast<int>(std::count(calls.begin(), calls.end(), '\n'));
  }

  fs::path make() {
    return find_or_make_kernel(request_, [&](const std::string& line) { lines_.push_back(line); });
  }
  void expect_refused(ExitCode code, const std::string& message) {
    try {
      make();
      ADD_FAILURE() << "made; expected: " << message;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), code) << error.what();
      EXPECT_NE(std::string(error.what()).find(message), std::string::npos) << error.what();
    }
  }
  /// Names of all that lies in the cache.
  std::vector<std::string> cached() const {
    std::vector<std::string> names;
    if (!fs::exists(request_.cache)) return names;
    for (const auto& entry : fs::directory_iterator(request_.cache)) names.push_back(entry.path().filename());
    std::sort(names.begin(), names.end());
    return names;
  }

  const TemporaryFolder folder_;
  MakeKernelRequest request_;
  std::vector<std::string> lines_;
};

}  // namespace soliton
