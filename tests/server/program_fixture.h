// soliton-server itself, on the small model.
#pragma once

#include <unistd.h>

#include <fstream>

#include "cli/run_program.h"
#include "server/service_fixture.h"

namespace soliton {

class ServerProgram : public testing::Test {
 protected:
  ServerProgram() {
    const KernelLibrary library = KernelLibrary::open(kKernel);
    write_small_model(library.model().facts, folder_);
  }

  /// Starts it, with these flags too, and waits until it serves.
  void start(std::vector<std::string> flags = {}, const std::vector<std::string>& environment = {}) {
    flags.insert(flags.begin(),
                 {folder_.path(), "-k", kernel_, "-c", "256", "--port", "0", "--alias", "small"});
    process_.emplace("soliton-server", flags, folder_.path(), environment);
    wait_until_it_serves("small");
  }
  /// Returns all that it has said then.
  std::string wait_until_it_says(const std::string& text) {
    std::string said;
    while ((said = process_->err_so_far()).find(text) == std::string::npos || !said.ends_with("\n")) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return said;
  }
  void wait_until_it_serves(const std::string& model) {
    const std::string serving = "Serving " + model + " at http://127.0.0.1:";
    const std::string said = wait_until_it_says(serving);
    port_ = static_cast<uint16_t>(std::stoi(said.substr(said.find(serving) + serving.size())));
  }
  /// Bytes that it has in memory.
  int64_t resident_bytes() const {
    std::ifstream file("/proc/" + std::to_string(process_->pid()) + "/statm");
    int64_t total = 0;
    int64_t resident = 0;
    file >> total >> resident;
    return resident * ::sysconf(_SC_PAGESIZE);
  }
  Outcome run(const std::vector<std::string>& flags) {
    return Process("soliton-server", flags, folder_.path()).wait();
  }

  static constexpr const char* kKernel = SOLITON_TEST_KERNELS "/micro-2-all.so";
  /// Of the same facts; 20 ms a step, in which no processor is busy.
  static constexpr const char* kPacedKernel = SOLITON_BINARY_DIR "/paced_kernel/kernel.so";
  static constexpr const char* kLongStream =
      R"({"prompt": "abc", "max_tokens": 250, "stream": true, "ignore_eos": true})";
  std::string kernel_ = kKernel;
  TemporaryFolder folder_;
  std::optional<Process> process_;
  uint16_t port_ = 0;
};

}  // namespace soliton
