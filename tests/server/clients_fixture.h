// Clients that others wrote, as scripts of this folder, against a server in this process.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "server/service_fixture.h"

namespace soliton {

/// Exit status and output of a shell command.
inline std::pair<int, std::string> shell(const std::string& command) {
  FILE* const pipe = ::popen((command + " 2>&1").c_str(), "r");
  std::string output;
  char bytes[4096];
  for (size_t num_bytes; (num_bytes = std::fread(bytes, 1, sizeof(bytes), pipe)) > 0;)
    output.append(bytes, num_bytes);
  return {WEXITSTATUS(::pclose(pipe)), output};
}

/// The Python that has the libraries of tests, if there is one, else any.
inline std::string python() {
  const char* named = std::getenv("SOLITON_PYTHON");
  return named == nullptr ? "python3" : named;
}

inline constexpr int kNoProgram = 127;

class ClientsTest : public ServiceTest {
 protected:
  explicit ClientsTest(const std::vector<std::string>& signs = kSmallSigns,
                       const std::string& chat_template = kSmallTemplate)
      : ClientsTest(small_tokenizer(signs), chat_template) {}
  ClientsTest(const nlohmann::json& tokenizer, const std::string& chat_template)
      : ServiceTest({.model = "small", .api_key = {}, .origins = {}, .hosts = {}}, 64, 80, tokenizer,
                    chat_template) {}

  /// Runs a script of this folder against the server; one that lacks what it needs says so by its status.
  void expect_good(const std::string& script, const std::string& arguments = {}) {
    const auto [status, output] = shell(python() + " -B -W ignore " SOLITON_SOURCE_DIR "/tests/server/" +
                                        script + " " + std::to_string(port()) + " " + arguments);
    constexpr int kSkipped = 77;
    if (status == kSkipped || status == kNoProgram) GTEST_SKIP() << output;
    EXPECT_EQ(status, 0) << output;
  }
};

}  // namespace soliton
