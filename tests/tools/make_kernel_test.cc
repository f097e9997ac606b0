// Kernels found, or made and kept: by the real compilers once each, else by scripts in their place, which note that they
// were called and leave what a compiler might leave.
#include "runtime/make/make_kernel.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <thread>

#include "layout/fact_list.h"
#include "long_tests.h"
#include "models/hf_config.h"
#include "models/installation.h"
#include "models/model_config.h"
#include "runtime/compile/places.h"
#include "runtime/compile/scratch_folder.h"
#include "runtime/device/kernel_library.h"
#include "runtime/make/measure_bandwidth.h"
#include "tools/make_kernel_fixture.h"

namespace soliton {
namespace {

// Sixteen heads of 256, of keys in two f16, leave no room for 8 rows.
TEST_F(MakeKernel, LeavesOutRowsThatCannotBePlannedAndSaysSo) {
  request_.facts =
      load_model_config(fs::path(SOLITON_SOURCE_DIR) / "tests" / "models" / "deep256-group4.yaml").facts;
  request_.facts.kv_bits = 32;
  request_.facts.num_heads = 16;
  request_.facts.num_kv_heads = 1;
  use_compiler("exec c++ \"$@\" -O0");  // in a hurry
  const KernelLibrary library = KernelLibrary::open(make());
  EXPECT_EQ(library.num_kernels(), 1);
  ASSERT_EQ(lines_.size(), 2u);
  EXPECT_TRUE(
      lines_[1].starts_with("No kernel for more rows: micro: cpu: 8 rows a step: expected shared memory "))
      << lines_[1];
}

TEST_F(MakeKernel, MakesWithTheRealCompilerWhatRuns) {
  use_compiler("exec c++ \"$@\" -O0");
  const fs::path path = make();
  KernelLibrary library = KernelLibrary::open(path);
  library.select_device(0);
  EXPECT_EQ(library.num_kernels(), 2);
  EXPECT_EQ(library.max_rows(), 8);
  EXPECT_EQ(library.model().facts_hash, hash_facts(request_.facts));
  EXPECT_STREQ(library.model().name, "micro");
  ASSERT_EQ(lines_.size(), 1u);
  EXPECT_EQ(lines_[0],
            "Making the kernel for CPU emulation, some seconds: micro, kept in " + request_.cache.string());
  EXPECT_EQ(cached(), std::vector<std::string>{path.filename()});
}

// As soliton-chat asks.
TEST_F(MakeKernel, MakesForTheDeviceThatIsThere) {
  if (has_card()) GTEST_SKIP() << "there is a card";
  use_copying_compiler();
  const fs::path folder = fs::path(SOLITON_SOURCE_DIR) / "models" / "tiny-stories";
  setenv("XDG_CACHE_HOME", folder_.path().c_str(), 1);
  const auto find = [&](const ModelFacts& facts) {
    return find_or_make_kernel({.facts = facts,
                                .name = model_name_of(folder),
                                .source = (folder / "config.json").string(),
                                .kernels = shipped_kernels_folder(),
                                .cache = kernel_cache_folder(),
                                .device = 0});
  };
  const std::string shipped = code_folder() / "kernels" / "tiny-stories-cpu.so";
  EXPECT_EQ(fs::absolute(find(HfConfig::open(folder).facts)), shipped);
  testing::internal::CaptureStderr();
  EXPECT_EQ(find(request_.facts).parent_path(), folder_.path() / "soliton" / "kernels");
  EXPECT_TRUE(testing::internal::GetCapturedStderr().starts_with("Making the kernel for CPU emulation, "));
}

// In short runs of a model of which shared memory holds one row only: nvcc takes half a minute for kernels of all rows.
TEST_F(MakeKernel, MakesWithNvccForACardThatIsNotHere) {
  SOLITON_LONG_RUNS_ONLY("MakesWithTheRealCompilerWhatRuns compiles as well");
  if (!fs::exists("/usr/local/cuda/bin/nvcc")) GTEST_SKIP() << "no nvcc";
  request_.card = device_called("NVIDIA H200", 90, 132);
  request_.facts = load_model_config(fs::path(SOLITON_SOURCE_DIR) / "models" / "tiny-stories.yaml").facts;
  const KernelLibrary library = KernelLibrary::open(make());
  EXPECT_EQ(library.num_kernels(), 9);
  EXPECT_EQ(library.max_rows(), 256);
  EXPECT_STREQ(library.model().gpu, "h200");
  EXPECT_TRUE(lines_.at(0).starts_with("Making the kernel for NVIDIA H200, less than a minute: "));
}

TEST_F(MakeKernel, MakesOnceAndFindsFromThenOn) {
  use_copying_compiler();
  const fs::path path = make();
  EXPECT_EQ(path.parent_path(), request_.cache);
  EXPECT_EQ(num_calls(), 1);
  EXPECT_EQ(make(), path);
  request_.name = "another";  // names do not matter: an instruct model has its base's kernel
  request_.source = "else";
  EXPECT_EQ(make(), path);
  EXPECT_EQ(num_calls(), 1);
  EXPECT_EQ(lines_.size(), 1u);
  EXPECT_EQ(cached(), std::vector<std::string>{path.filename()});
}

TEST_F(MakeKernel, MakesAnotherForOtherFactsCardsAndCompilers) {
  const auto make_anew = [&] {
    try {
      make();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::kMakeFailed);  // the script has the kernel of other facts
    }
    return num_calls();
  };
  use_copying_compiler();
  EXPECT_EQ(make_anew(), 1);
  request_.facts.max_context *= 2;
  EXPECT_EQ(make_anew(), 2);
  request_.facts.max_context /= 2;
  EXPECT_EQ(make_anew(), 2);
  use_copying_compiler("1.1");
  EXPECT_EQ(make_anew(), 3);
  use_copying_compiler("1.1", "CUDACXX");
  request_.card = device_called("NVIDIA H200", 90, 132);
  EXPECT_EQ(make_anew(), 4);
  request_.card = device_called("NVIDIA H100", 90, 132);
  EXPECT_EQ(make_anew(), 5);
  EXPECT_EQ(make_anew(), 5);
  EXPECT_EQ(std::ranges::count_if(cached(), [](const auto& name) { return name.ends_with(".so"); }), 4);
}

TEST_F(MakeKernel, MakesAllRowsForACard) {
  request_.card = device_called("NVIDIA H800", 90, 132);
  request_.card->total_bytes = 85'000'000'000;
  use_compiler(
      fmt::format("for word; do case $word in */kernel.cu) cp -r \"${{word%/*}}\" '{}/made';; esac; done\n",
                  folder_.path().string()) +
          fmt::format(fmt::runtime(kCopies), kMicroKernel),
      "13.0", "CUDACXX");
  const fs::path path = make();
  for (const int rows : {1, 8, 16, 32, 64, 128, 256}) EXPECT_TRUE(has_made_rows(rows)) << rows;
  EXPECT_TRUE(lines_.at(0).starts_with(
      "Making the kernel for NVIDIA H800 (planned as for h100), less than a minute: "));
  EXPECT_TRUE(path.filename().string().ends_with("-compiler-13.0.so")) << path;
  const std::string call = read_text(folder_.path() / "calls");
  EXPECT_NE(call.find("-gencode=arch=compute_90a"), std::string::npos) << call;
  EXPECT_NE(call.find(fmt::format("-I {}/templates", SOLITON_SOURCE_DIR)), std::string::npos) << call;
  EXPECT_EQ(call.find("-Werror"), std::string::npos) << call;
}

TEST_F(MakeKernel, TellsNvccTheCardsArchitecture) {
  use_compiler("exit 1", "13.0", "CUDACXX");
  const auto target_of = [&](const std::string& name, int compute_capability, int num_sms) {
    request_.card = device_called(name, compute_capability, num_sms);
    if (name == "NVIDIA B300") request_.card->total_bytes = 288'000'000'000;  // has no file
    EXPECT_THROW(make(), Error);
    std::string calls = read_text(folder_.path() / "calls");
    fs::remove(folder_.path() / "calls");
    calls.erase(0, calls.find("-gencode="));
    return calls.substr(0, calls.find(' '));
  };
  EXPECT_EQ(target_of("NVIDIA H200", 90, 132), "-gencode=arch=compute_90a,code=sm_90a");
  EXPECT_EQ(target_of("NVIDIA B200", 100, 148), "-gencode=arch=compute_100,code=sm_100");
  EXPECT_EQ(target_of("NVIDIA B300", 103, 148), "-gencode=arch=compute_103,code=sm_103");
}

TEST_F(MakeKernel, ACardThatNvccDoesNotKnowIsNamed) {
  use_compiler("echo \"nvcc fatal   : Unsupported gpu architecture 'compute_130'\" >&2; exit 1", "13.0",
               "CUDACXX");
  request_.card = device_called("NVIDIA R200", 130, 160);
  request_.card->total_bytes = 288'000'000'000;
  expect_refused(
      ExitCode::kMismatch,
      "/compiler: expected a toolkit that makes code for compute capability 13.0 of NVIDIA R200, got "
      "compiler-13.0; name another nvcc in CUDACXX");
  EXPECT_TRUE(cached().empty());
}

TEST_F(MakeKernel, ADriverTooOldForTheToolkitIsNamedBeforeAnythingIsCompiled) {
  use_compiler("exit 1", "13.0.48", "CUDACXX");
  request_.card = device_called("NVIDIA H200", 90, 132);
  request_.card->driver_version = 12080;
  expect_refused(
      ExitCode::kMismatch,
      "driver: expected one for CUDA 13.0 or later, to run what compiler-13.0.48 makes, got one for 12.8; "
      "update it, or name an older nvcc in CUDACXX");
  EXPECT_EQ(num_calls(), 0);
  request_.card->driver_version = 13000;
  expect_refused(ExitCode::kMakeFailed, "got status 1");
}

// What is compiled to measure a card that has no file; its library is opened as any other.
TEST_F(MakeKernel, TheLibraryThatMeasuresCompiles) {
  fs::create_directories(request_.cache);
  const GpuSpec emulated = load_gpu_spec(default_gpus_dir() / "cpu.yaml");
  EXPECT_EQ(measure_bandwidth(emulated, 0, request_.cache, SOLITON_SOURCE_DIR), 0) << "emulation has none";
  EXPECT_TRUE(cached().empty());
  if (!long_tests()) GTEST_SKIP() << "by nvcc in long runs only";
  if (!fs::exists("/usr/local/cuda/bin/nvcc")) GTEST_SKIP() << "no nvcc";
  if (has_card()) GTEST_SKIP() << "there is a card";
  try {
    measure_bandwidth(load_gpu_spec(default_gpus_dir() / "h200.yaml"), 0, request_.cache, SOLITON_SOURCE_DIR);
    ADD_FAILURE() << "measured without a card";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kDevice) << error.what();
  }
}

TEST_F(MakeKernel, BrokenCompilersLeaveNothingButTheirLog) {
  const auto expect_log_only = [&](const std::string& said) {
    ASSERT_EQ(cached().size(), 1u);
    EXPECT_TRUE(cached()[0].ends_with(".log"));
    EXPECT_EQ(read_text(request_.cache / cached()[0]), said);
  };
  use_compiler("echo 'kernel.cu: note'; echo 'kernel.cu(1): error: broken' >&2; echo more; exit 3");
  expect_refused(ExitCode::kMakeFailed, "/compiler, got status 3: kernel.cu(1): error: broken");
  expect_log_only("kernel.cu: note\nkernel.cu(1): error: broken\nmore\n");
  use_compiler("for last; do :; done; echo half > \"$last\"; exit 1");
  expect_refused(ExitCode::kMakeFailed, "got status 1: no message");
  expect_log_only("");
  use_compiler("echo fine");
  expect_refused(ExitCode::kMakeFailed, "got a library that cannot be used");
  expect_log_only("fine\n");
  use_compiler("for last; do :; done; echo text > \"$last\"");
  expect_refused(ExitCode::kMakeFailed, ".log: expected a kernel of micro for CPU emulation from ");
  use_compiler("kill -9 $$");
  expect_refused(ExitCode::kMakeFailed, "got status -1");
  expect_log_only("");
  use_copying_compiler();
  make();  // and so the log goes away
  EXPECT_EQ(cached().size(), 1u);
  EXPECT_TRUE(cached()[0].ends_with(".so"));
}

TEST_F(MakeKernel, MakesForIntegersTheRowsThatCanBeHad) {
  request_.card = device_called("NVIDIA H200", 90, 132);
  request_.facts = load_model_config(fs::path(SOLITON_SOURCE_DIR) / "tests" / "models" / "int4.yaml").facts;
  use_compiler(
      fmt::format("for word; do case $word in */kernel.cu) cp -r \"${{word%/*}}\" '{}/made';; esac; done\n",
                  folder_.path().string()) +
          fmt::format(fmt::runtime(kCopies), std::string(SOLITON_TEST_KERNELS) + "/int4-3.so"),
      "13.0", "CUDACXX");
  make();
  EXPECT_TRUE(has_made_rows(32));
  EXPECT_TRUE(has_made_rows(64));
  EXPECT_TRUE(has_made_rows(128));
}

TEST_F(MakeKernel, FindsWhatWasMadeByACompilerThatIsGone) {
  use_copying_compiler();
  const fs::path path = make();
  setenv("CXX", "absent", 1);
  EXPECT_EQ(make(), path);
  request_.facts.max_context *= 2;
  expect_refused(
      ExitCode::kNotFound,
      "CXX: expected a compiler, got \"absent\"; needed to make the kernel of micro for CPU emulation");
}

TEST_F(MakeKernel, MakersDoNotMeet) {
  use_compiler("sleep 0.2; " + fmt::format(fmt::runtime(kCopies), kMicroKernel));
  std::vector<fs::path> paths(4);
  {
    std::vector<std::jthread> threads;
    for (fs::path& path : paths)
      threads.emplace_back([&] { path = find_or_make_kernel(request_, [](const std::string&) {}); });
  }
  for (const fs::path& path : paths) {
    EXPECT_EQ(path, paths[0]);
    EXPECT_TRUE(read_text(path).starts_with(read_text(kMicroKernel)));
  }
  EXPECT_EQ(cached(), std::vector<std::string>{paths[0].filename()});
}

TEST_F(MakeKernel, PrefersWhatCameWithThePrograms) {
  if (has_card()) GTEST_SKIP() << "there is a card";
  request_.card.reset();
  request_.kernels = folder_.path() / "kernels";
  use_copying_compiler();
  const fs::path made = make();  // a folder that is not there holds nothing
  EXPECT_EQ(made.parent_path(), request_.cache);
  fs::create_directory(request_.kernels);
  write_text(request_.kernels / "damaged.so", "text");
  EXPECT_EQ(make(), made);
  fs::copy(kMicroKernel, request_.kernels / "micro.so");
  EXPECT_EQ(make(), request_.kernels / "micro.so");
  EXPECT_EQ(num_calls(), 1);
  request_.device = 1;
  expect_refused(ExitCode::kDevice, "device 1: ");
}

// Who has a card and a library for it, and no toolkit.
TEST_F(MakeKernel, AsksForNoCompilerWhereALibraryOfTheProgramsFits) {
  request_.card.reset();
  request_.kernels = folder_.path() / "kernels";
  setenv("CUDACXX", "absent", 1);
  setenv("FAKE_KERNEL_FACTS_HASH", fmt::format("{}", hash_facts(request_.facts)).c_str(), 1);
  fs::create_directory(request_.kernels);
  fs::copy(SOLITON_BINARY_DIR "/fake_kernel/kernel.so", request_.kernels / "micro-sm90.so");
  EXPECT_EQ(find_kernel(request_), request_.kernels / "micro-sm90.so");
  EXPECT_EQ(make(), request_.kernels / "micro-sm90.so");
  EXPECT_TRUE(lines_.empty());
  unsetenv("FAKE_KERNEL_FACTS_HASH");
}

TEST_F(MakeKernel, RefusesWhatNoKernelCanBeMadeFor) {
  use_copying_compiler();
  const ModelFacts good = request_.facts;
  request_.facts.ffn = 65;
  expect_refused(ExitCode::kMismatch, "micro/config.json: ffn: expected a multiple of 64");
  request_.facts = good;
  request_.facts.num_kv_heads = request_.facts.num_heads + 1;
  expect_refused(ExitCode::kBadFile, "micro/config.json: num_kv_heads: expected a divisor");
  request_.facts = good;
  request_.card = device_called("Tesla T4", 75, 40);
  expect_refused(ExitCode::kMismatch,
                 "Tesla T4: expected a card of compute capability 8.0 or later, got 7.5");
  request_.card = device_called("CPU emulation", 0, 0);
  write_text(folder_.path() / "file", "");
  request_.cache = folder_.path() / "file" / "cache";
  expect_refused(ExitCode::kNotFound, "/file: expected a folder that can be made, got: Not a directory");
  EXPECT_EQ(num_calls(), 0);
  EXPECT_TRUE(lines_.size() == 1);
  if (has_card()) return;
  request_.card.reset();
  request_.facts = load_model_config(fs::path(SOLITON_SOURCE_DIR) / "models" / "llama-3.1-8b.yaml").facts;
  expect_refused(ExitCode::kDevice, "micro/config.json: expected a GPU for a model of 16.1 GB, found none");
}

TEST_F(MakeKernel, KnowsItsPlaces) {
  setenv("XDG_CACHE_HOME", "/x", 1);
  EXPECT_EQ(kernel_cache_folder(), "/x/soliton/kernels");
  setenv("XDG_CACHE_HOME", "relative", 1);  // which the specification wants ignored
  const std::string home = std::getenv("HOME") == nullptr ? "" : std::getenv("HOME");
  setenv("HOME", "/home/someone", 1);
  EXPECT_EQ(kernel_cache_folder(), "/home/someone/.cache/soliton/kernels");
  unsetenv("HOME");
  EXPECT_THROW(kernel_cache_folder(), Error);
  setenv("HOME", home.c_str(), 1);
  EXPECT_EQ(shipped_kernels_folder(), code_folder() / "kernels");
  setenv("SOLITON_KERNELS", folder_.path().c_str(), 1);
  EXPECT_EQ(shipped_kernels_folder(), folder_.path());
  setenv("SOLITON_KERNELS", "absent", 1);
  EXPECT_THROW(shipped_kernels_folder(), Error);
  EXPECT_TRUE(fs::exists(sources_folder() / "templates" / "one_row" / "kernel.cuh"));
}

}  // namespace
}  // namespace soliton
