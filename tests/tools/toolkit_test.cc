// nvcc where there is no CUDA toolkit: which one is taken, and one that pip gets. An imitation of pip, which needs no network.
#include "runtime/compile/toolkit.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>

#include "cli/run_program.h"
#include "error_of.h"

namespace soliton {
namespace {

namespace fs = std::filesystem;

constexpr const char* kSaysItsVersion = "#!/bin/sh\necho 'Cuda compilation tools, release 13.0, V13.0.88'\n";

class Toolkit : public testing::Test {
 protected:
  Toolkit() {
    for (const char* variable : {"CUDACXX", "CUDA_HOME", "VIRTUAL_ENV"}) unsetenv(variable);
    setenv("XDG_CACHE_HOME", path("cache").c_str(), 1);
    setenv("PATH", path("bin").c_str(), 1);
  }
  ~Toolkit() override {
    setenv("PATH", before_.c_str(), 1);
    unsetenv("XDG_CACHE_HOME");
    unsetenv("VIRTUAL_ENV");
  }

  fs::path path(const std::string& name) const { return folder_.path() / name; }
  fs::path write_program(const std::string& name, const std::string& text) const {
    fs::create_directories(path(name).parent_path());
    write_text(path(name), text);
    ::chmod(path(name).c_str(), 0700);
    return path(name);
  }
  /// python3 whose pip runs `body`, with where to install to in $target.
  void use_pip(const std::string& body) const {
    write_program("bin/python3", fmt::format("#!/bin/sh\nPATH=/usr/bin:/bin\necho \"$@\" >> '{}'\n"
                                             "for each; do [ \"$last\" = --target ] && target=$each; "
                                             "last=$each; done\n{}\n",
                                             path("calls").string(), body));
  }
  void use_good_pip() const {
    write_program("nvcc", kSaysItsVersion);
    use_pip(fmt::format("mkdir -p $target/nvidia/cu13/bin && cp -p '{}' $target/nvidia/cu13/bin/nvcc",
                        path("nvcc").string()));
  }
  std::string install(int32_t driver_version = 0) {
    return install_toolkit(driver_version, [&](const std::string& line) { lines_.push_back(line); });
  }

  const std::string before_ = std::getenv("PATH");
  const TemporaryFolder folder_;
  std::vector<std::string> lines_;
};

TEST_F(Toolkit, TakesTheNewestOfPackages) {
  EXPECT_EQ(nvcc_of_packages(path("packages")), std::nullopt);
  write_program("packages/nvidia/cu9/bin/nvcc", kSaysItsVersion);
  EXPECT_EQ(nvcc_of_packages(path("packages")), path("packages/nvidia/cu9/bin/nvcc"));
  write_program("packages/nvidia/cu13/bin/nvcc", kSaysItsVersion);
  EXPECT_EQ(nvcc_of_packages(path("packages")), path("packages/nvidia/cu13/bin/nvcc"));
  ::chmod(path("packages/nvidia/cu13/bin/nvcc").c_str(), 0600);
  EXPECT_EQ(nvcc_of_packages(path("packages")), path("packages/nvidia/cu9/bin/nvcc"));
}

TEST_F(Toolkit, LooksInEnvironmentsBehindThePath) {
  const fs::path kept = write_program("cache/soliton/toolkit/nvidia/cu13/bin/nvcc", kSaysItsVersion);
  EXPECT_EQ(find_nvcc(), kept);
  const fs::path packaged =
      write_program("venv/lib/python3.11/site-packages/nvidia/cu13/bin/nvcc", kSaysItsVersion);
  EXPECT_EQ(find_nvcc(), kept);  // not active
  setenv("VIRTUAL_ENV", path("venv").c_str(), 1);
  EXPECT_EQ(find_nvcc(), packaged);
  const fs::path found = write_program("bin/nvcc", kSaysItsVersion);
  EXPECT_EQ(find_nvcc(), found);
}

TEST_F(Toolkit, LinksWithLibrariesThatNvccDoesNotLookFor) {
  const std::string nvcc = write_program("packages/nvidia/cu13/bin/nvcc", kSaysItsVersion);
  EXPECT_EQ(libraries_beside(nvcc), std::nullopt);
  write_program("packages/nvidia/cu13/lib/libcudart_static.a", "");
  EXPECT_EQ(libraries_beside(nvcc), path("packages/nvidia/cu13/lib"));
  fs::create_directory(path("packages/nvidia/cu13/lib64"));
  EXPECT_EQ(libraries_beside(nvcc), std::nullopt);
}

TEST_F(Toolkit, IsInstalledByPip) {
  use_good_pip();
  const fs::path folder = path("cache/soliton/toolkit");
  EXPECT_EQ(install(13000), folder / "nvidia/cu13/bin/nvcc");
  EXPECT_EQ(find_nvcc(), folder / "nvidia/cu13/bin/nvcc");
  ASSERT_EQ(lines_.size(), 1u);
  EXPECT_EQ(lines_[0], "Installing nvcc 13.0 in " + folder.string() + " (some 250 MB), by pip");
  const std::string call = read_text(path("calls"));
  EXPECT_TRUE(call.starts_with("-m pip install --quiet ")) << call;
  EXPECT_NE(call.find(" nvidia-cuda-nvcc==13.0.* "), std::string::npos) << call;
  write_text(folder / "of before", "");
  EXPECT_EQ(install(), folder / "nvidia/cu13/bin/nvcc");
  EXPECT_FALSE(fs::exists(folder / "of before"));
  const auto left = std::distance(fs::directory_iterator(folder.parent_path()), fs::directory_iterator());
  EXPECT_EQ(left, 1);  // neither a log nor a folder of work
}

TEST_F(Toolkit, KeepsWhatIsThereIfPipFails) {
  const fs::path kept = write_program("cache/soliton/toolkit/nvidia/cu13/bin/nvcc", kSaysItsVersion);
  const std::string log = path("cache/soliton/toolkit.log");
  const std::string python = path("bin/python3");
  const auto error = [&] { return error_of([&] { install(); }); };
  EXPECT_EQ(error(), "3 python3: expected it in PATH, with pip, found none");
  use_pip("mkdir $target/half; echo 'ERROR: No matching distribution' >&2; exit 1");
  EXPECT_EQ(error(), "8 " + log + ": expected " + python +
                         " -m pip to install nvcc, got ERROR: No matching distribution");
  use_pip("echo '/usr/bin/python3: No module named pip' >&2; exit 1");
  EXPECT_TRUE(error().ends_with("; it is in the package python3-pip of Debian and its relatives")) << error();
  use_pip("true");
  EXPECT_TRUE(error().ends_with("got packages without it"));
  use_good_pip();
  write_program("nvcc", "#!/bin/sh\necho Illegal instruction\n");
  EXPECT_TRUE(error().ends_with("got one that does not run"));
  EXPECT_EQ(find_nvcc(), kept);
  EXPECT_EQ(std::distance(fs::directory_iterator(path("cache/soliton")), fs::directory_iterator()), 2);
}

TEST_F(Toolkit, IsNotInstalledForAnOlderDriver) {
  use_good_pip();
  EXPECT_EQ(
      error_of([&] { install(12080); }),
      "5 driver: expected one for CUDA 13.0 or later, to run what this nvcc makes, got one for 12.8; update "
      "it, or install an older CUDA toolkit");
  EXPECT_FALSE(fs::exists(path("calls")));
}

}  // namespace
}  // namespace soliton
