#include "runtime/tools/make/measure_bandwidth.h"

#include <fmt/format.h>

#include <algorithm>

#include "generator/text_writer.h"
#include "layout/page.h"
#include "runtime/kernel_library.h"
#include "runtime/tools/make/cache.h"
#include "runtime/tools/make/compiler.h"
#include "runtime/tools/make/scratch_folder.h"

namespace soliton {
namespace {

constexpr int64_t kMostBytes = int64_t{4} << 30;  // many times what L2 holds
constexpr int kRepeats = 5;
constexpr int kPattern = 0x5a;

std::string source_text(const GpuSpec& gpu) {
  return fmt::format(
      "// Measures the bandwidth of {}.\n"
      "#define SOLITON_COMPUTE_CAPABILITY {}\n"
      "#include \"primitives/bandwidth_library.h\"\n",
      gpu.name, gpu.compute_capability);
}

}  // namespace

double measure_bandwidth(const GpuSpec& gpu, int device, const std::filesystem::path& cache,
                         const std::filesystem::path& sources) {
  const Compiler compiler = compiler_for(gpu);
  create_cache(cache);
  const ScratchFolder scratch(cache / kMakingPrefix);
  write_folder(scratch.path(), {{"kernel.cu", source_text(gpu)}});
  const Compilation made = compile_kernel(compiler, scratch.path(), sources);
  if (made.status != 0) {
    throw Error(ExitCode::kMakeFailed,
                fmt::format("{} failed with status {}: {}", compiler.program, made.status, made.complaint));
  }
  KernelLibrary library = KernelLibrary::open(scratch.path() / "kernel.so");
  library.select_device(device);
  const Library& functions = library.functions();
  const auto bytes =
      static_cast<size_t>(std::min(kMostBytes, library.device().free_bytes / 2) / kPageBytes * kPageBytes);
  const DeviceMemory memory(functions, bytes);
  library.check(functions.fill(memory.as<void>(), kPattern, bytes), "fill what is read");
  double rate = 0;
  library.check(functions.measure_bandwidth(memory.as<void>(), bytes, kRepeats, &rate),
                "measure the bandwidth");
  return rate;
}

}  // namespace soliton
