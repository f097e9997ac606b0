// Bad input as a new user would give it. Whatever is wrong: one line on stderr that starts with the program's
// name and names the file or flag, nothing on stdout, no file left behind, and the exit status below.
//
//   status  soliton-chat, soliton-bench               soliton-gen
//   0       success, --help                           success, --help
//   2       a flag or its value                       a flag or its value
//   3       a file is absent, unreadable, unwritable  the same
//   4       a file's content is malformed or cut      a file says what cannot be
//   5       kernel, model and card do not fit         no plan for this model, card and flags
//   6       no device, or it or the kernel failed     -
//   7       memory, or longer than the context        -
//   8       the compiler made no kernel               -
//   9       the kernel is not verified (soliton-chat) -
//   70      a defect of ours                          a defect of ours
//   130     Ctrl-C (soliton-chat)                     -
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "cli/run_program.h"

namespace soliton {

namespace fs = std::filesystem;
using Arguments = std::vector<std::string>;

inline constexpr int kUsage = 2;
inline constexpr int kNotFound = 3;
inline constexpr int kBadFile = 4;
inline constexpr int kMismatch = 5;
inline constexpr int kDevice = 6;
inline constexpr int kLimit = 7;
inline constexpr int kMakeFailed = 8;
inline constexpr int kNotVerified = 9;
inline constexpr int kInterrupted = 130;

inline const std::string kTinyKernel = std::string(SOLITON_KERNELS) + "/tiny-stories-cpu.so";
inline const std::string kCudaKernel = std::string(SOLITON_KERNELS) + "/card/some-tiny-stories.so";
inline const std::string kOtherKernel = std::string(SOLITON_TEST_KERNELS) + "/micro-1.so";
inline const std::string kOneRowKernel = std::string(SOLITON_TEST_KERNELS) + "/tiny-3.so";
/// In the environment: a driver's library that says there is an H200.
inline const std::string kFakeCard = "LD_LIBRARY_PATH=" + std::string(SOLITON_BINARY_DIR) + "/fake_cuda";
inline const std::string kTinyModel = std::string(SOLITON_SOURCE_DIR) + "/models/tiny-stories.yaml";
inline const std::string kLfsPointer =
    "version https://git-lfs.github.com/spec/v1\noid sha256:0123456789abcdef\nsize 10498464\n";

/// In the environment: the compiler in a hurry, for kernels that do not run for long.
inline std::string quick_compiler(const fs::path& folder) {
  const fs::path script = folder / "c++";
  write_text(script, "#!/bin/sh\nexec c++ \"$@\" -O0\n");
  fs::permissions(script, fs::perms::owner_all);
  return "CXX=" + script.string();
}

/// In the environment: one that makes this library of whatever it is given.
inline std::string copying_compiler(const fs::path& folder, const fs::path& library) {
  const fs::path script = folder / "c++";
  write_text(script,
             "#!/bin/sh\nif [ \"$1\" = --version ]; then exec c++ --version; fi\n"
             "for last; do :; done; cp '" +
                 library.string() + "' \"$last\"\n");
  fs::permissions(script, fs::perms::owner_all);
  return "CXX=" + script.string();
}

/// A working folder that holds a copy of the tiny model, to be damaged.
class Cli : public testing::Test {
 protected:
  Cli() {
    fs::create_directory(model());
    const fs::path source = fs::path(SOLITON_SOURCE_DIR) / "models" / "tiny-stories";
    for (const char* name : {"config.json", "generation_config.json", "tokenizer.json",
                             "tokenizer_config.json", "model.safetensors"}) {
      fs::copy(source / name, model() / name);
    }
  }

  fs::path model() const { return path() / "tiny-stories"; }
  const fs::path& path() const { return folder_.path(); }

  Outcome run(const std::string& program, const Arguments& arguments,
              const std::vector<std::string>& environment = {}) const {
    return Process(program, arguments, path(), environment).wait();
  }
  /// soliton-chat on the copy, with the kernel of the emulation and further arguments.
  Arguments chat(const Arguments& more = {}) const {
    Arguments arguments{"-m", "tiny-stories", "-p", "Once upon", "-n", "2", "-k", kTinyKernel};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
  }
  /// soliton-bench with random weights and further arguments.
  Arguments bench(const Arguments& more = {}) const {
    Arguments arguments{"--random-weights", "-k", kTinyKernel, "-r", "1"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
  }

  /// Runs and expects the one line, which names `culprit` and contains `reason`.
  void expect_error(const std::string& program, const Arguments& arguments, int status,
                    const std::string& culprit, const std::string& reason = "",
                    const std::vector<std::string>& environment = {}) const {
    const std::set<std::string> before = folder_.files();
    const Outcome outcome = run(program, arguments, environment);
    SCOPED_TRACE(outcome.err);
    EXPECT_EQ(outcome.status, status);
    EXPECT_EQ(outcome.out, "");
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1);
    EXPECT_TRUE(outcome.err.ends_with("\n"));
    EXPECT_TRUE(outcome.err.starts_with(program + ": " + culprit)) << "expected to name " << culprit;
    EXPECT_NE(outcome.err.find(reason), std::string::npos) << "expected to say " << reason;
    EXPECT_LE(outcome.err.size(), 500u);
    EXPECT_EQ(folder_.files(), before);
  }

  /// Replaces `from`, which config.json holds once, by `to`.
  void edit_config(const std::string& from, const std::string& to) const {
    std::string text = read_text(model() / "config.json");
    const size_t at = text.find(from);
    ASSERT_NE(at, std::string::npos);
    write_text(model() / "config.json", text.replace(at, from.size(), to));
  }

  TemporaryFolder folder_;
};

}  // namespace soliton
