// What is cleaned out of the cache, and what stays.
#include "runtime/make/cache.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "cli/run_program.h"
#include "generator/gpu_spec.h"
#include "models/kept_file.h"
#include "models/model_config.h"
#include "runtime/compile/compiler.h"
#include "runtime/compile/places.h"
#include "runtime/compile/scratch_folder.h"
#include "runtime/doctor/cleaning.h"

namespace soliton {
namespace {

namespace fs = std::filesystem;

const fs::path kTinyKernel = std::string(SOLITON_KERNELS) + "/tiny-stories-cpu.so";

class CleanCache : public testing::Test {
 protected:
  ~CleanCache() override { ::unsetenv("CXX"); }

  /// A kernel as it is made for the tiny model without a card, of that compiler.
  fs::path add_kernel(const std::string& compiler) const {
    const ModelFacts facts =
        load_model_config(fs::path(SOLITON_SOURCE_DIR) / "models" / "tiny-stories.yaml").facts;
    const GpuSpec gpu = load_gpu_spec(default_gpus_dir() / "cpu.yaml");
    return add_copy(cache_key(facts, gpu, sources_folder()) + "-" + compiler + ".so");
  }
  fs::path add_copy(const std::string& name) const {
    fs::copy(kTinyKernel, cache() / name);
    seal_file(cache() / name);
    return cache() / name;
  }
  fs::path add_text(const std::string& name, const std::string& text) const {
    write_text(cache() / name, text);
    return cache() / name;
  }
  const fs::path& cache() const { return folder_.path(); }

  const TemporaryFolder folder_;
  const std::string compiler_ = compiler_version(find_compiler(true));
};

TEST_F(CleanCache, KeepsWhatIsLookedForAndWhatIsNotIts) {
  const fs::path made = add_kernel(compiler_);
  const fs::path other = add_text("notes.txt", "x");
  fs::create_directory(cache() / "folder.so");
  const ScratchFolder in_making(cache() / kMakingPrefix);
  const Cleaning cleaning = clean_cache(cache());
  EXPECT_TRUE(cleaning.removed.empty()) << as_text(cleaning);
  EXPECT_EQ(cleaning.num_kept, 1);
  EXPECT_EQ(cleaning.kept_bytes, static_cast<int64_t>(fs::file_size(made)));
  for (const fs::path& path : {made, other, cache() / "folder.so", in_making.path()}) {
    EXPECT_TRUE(fs::exists(path)) << path;
  }
}

TEST_F(CleanCache, RemovesWhatIsNeverLookedFor) {
  const fs::path older = add_copy("cpu-0123456789abcdef-" + compiler_ + ".so");
  const auto kernel_bytes = static_cast<int64_t>(fs::file_size(older));
  const fs::path damaged = add_text("cpu-1-x.so", "text");
  const fs::path log = add_text("cpu-2-x.log", "12345");
  const fs::path scratch = cache() / ".making-old";
  fs::create_directory(scratch);
  write_text(scratch / "kernel.cu", "123");
  const Cleaning cleaning = clean_cache(cache());
  const std::string begin = "removed " + cache().string() + "/";
  EXPECT_EQ(as_text(cleaning),
            begin + "cpu-0123456789abcdef-" + compiler_ + ".so, " + std::to_string(kernel_bytes) +
                " bytes: made from other sources, or in another way\n" + begin +
                "cpu-1-x.so, 4 bytes: " + "damaged: its hash is not that of its content\n" + begin +
                "cpu-2-x.log, 5 bytes: of a compilation that failed\n" + begin +
                ".making-old, 3 bytes: of a compilation that was killed\nremoved 4 files, " +
                std::to_string(kernel_bytes + 12) + " bytes; kept 0 kernels, 0 bytes\n");
  EXPECT_TRUE(fs::is_empty(cache()));
  EXPECT_TRUE(clean_cache(cache()).removed.empty());
}

TEST_F(CleanCache, RemovesThoseOfAnotherCompilerWhileThereIsOne) {
  const fs::path made = add_kernel("c++-1.0");
  ::setenv("CXX", "absent", 1);
  EXPECT_EQ(clean_cache(cache()).num_kept, 1) << "it is found as long as no other can be made";
  ::unsetenv("CXX");
  const Cleaning cleaning = clean_cache(cache());
  ASSERT_EQ(cleaning.removed.size(), 1u);
  EXPECT_EQ(cleaning.removed[0].reason, "made by another compiler than " + compiler_);
  EXPECT_FALSE(fs::exists(made));
}

TEST_F(CleanCache, AnAbsentCacheIsClean) {
  EXPECT_EQ(as_text(clean_cache(cache() / "absent")), "removed 0 files, 0 bytes; kept 0 kernels, 0 bytes\n");
}

}  // namespace
}  // namespace soliton
