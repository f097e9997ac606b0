// Kernels compiled outside the build: with the same options, and what is said when that fails.
#include "runtime/compile/compiler.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>
#include <sstream>

#include "cli/run_program.h"

namespace soliton {
namespace {

namespace fs = std::filesystem;

/// A compiler that says `report` and exits with `status`.
Compiler saying(const TemporaryFolder& folder, const std::string& report, int status) {
  const fs::path script = folder.path() / "compiler";
  write_text(script, fmt::format("#!/bin/sh\ncat <<'END'\n{}\nEND\nexit {}\n", report, status));
  ::chmod(script.c_str(), 0700);
  return {.program = script, .emulated = false};
}

TEST(Compile, ReadsTheReport) {
  const TemporaryFolder folder;
  const std::string none = "    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads";
  const std::string spills = "    16 bytes stack frame, 16 bytes spill stores, 8 bytes spill loads";
  const auto refusal = [&](const std::string& report, int status) {
    return compile_kernels(saying(folder, report, status), {folder.path()}, SOLITON_SOURCE_DIR).front();
  };
  EXPECT_EQ(refusal(none, 0), "");
  EXPECT_EQ(refusal(none + "\n" + spills, 0),
            "spills: 16 bytes stack frame, 16 bytes spill stores, 8 bytes spill loads");
  EXPECT_TRUE(refusal("a.h(1): note\na.h(2): error: no\nmore", 1).ends_with("status 1: a.h(2): error: no"));
  EXPECT_TRUE(refusal("one\nkilled", 9).ends_with("status 9: killed"));
  EXPECT_NE(compile_kernels({.program = "/absent"}, {folder.path()}, SOLITON_SOURCE_DIR).front(), "");
}

TEST(Compile, CompilesAllAndKeepsTheirOrder) {
  const TemporaryFolder folder;
  std::vector<fs::path> folders;
  for (int i = 0; i < 5; ++i) {
    folders.push_back(folder.path() / std::to_string(i));
    fs::create_directory(folders.back());
    // Kernels of the emulation are plain shared libraries.
    write_text(folders.back() / "kernel.cu", i == 3 ? "#error three\n" : "int kernel() { return 0; }\n");
  }
  const std::vector<std::string> refusals = compile_kernels(find_compiler(true), folders, SOLITON_SOURCE_DIR);
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(refusals[i].find("three") != std::string::npos, i == 3) << refusals[i];
    EXPECT_EQ(fs::exists(folders[i] / "kernel.so"), i != 3);
  }
}

}  // namespace
}  // namespace soliton
