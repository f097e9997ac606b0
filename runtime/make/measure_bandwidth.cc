#include "runtime/make/measure_bandwidth.h"

#include <fmt/format.h>

#include "generator/text_writer.h"
#include "runtime/compile/compiler.h"
#include "runtime/compile/scratch_folder.h"
#include "runtime/device/kernel_library.h"
#include "runtime/device/read_bandwidth.h"
#include "runtime/make/cache.h"
#include "runtime/make/gpu_for_device.h"

namespace soliton {
namespace {

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
  return measure_read_bandwidth(library, kBandwidthRepeats).best();
}

}  // namespace soliton
