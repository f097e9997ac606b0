#include "runtime/make/make_kernel.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <vector>

#include "generator/generate.h"
#include "generator/text_writer.h"
#include "layout/fact_list.h"
#include "models/check.h"
#include "models/error.h"
#include "models/kept_file.h"
#include "models/printing.h"
#include "runtime/compile/compiler.h"
#include "runtime/compile/places.h"
#include "runtime/compile/scratch_folder.h"
#include "runtime/device/card_name.h"
#include "runtime/device/cuda_driver.h"
#include "runtime/device/kernel_library.h"
#include "runtime/make/cache.h"
#include "runtime/make/card_spec.h"
#include "runtime/make/gpu_for_device.h"
#include "runtime/make/measure_bandwidth.h"
#include "runtime/make/model_memory.h"

namespace soliton {
namespace {

namespace fs = std::filesystem;

constexpr fs::perms kKernelPermissions =
    fs::perms::owner_all | fs::perms::group_read | fs::perms::others_read;
constexpr int64_t kMaxEmulatedBytes = int64_t{1} << 30;  // of weights; a token reads them in a minute or so

DeviceInfo emulated_device() {
  DeviceInfo device{};
  std::string_view("CPU emulation").copy(device.name, sizeof(device.name) - 1);
  return device;
}

/// Makes and finds one kernel.
class Maker {
 public:
  /// `progress` may be null: then nothing is made, and no bandwidth is measured.
  Maker(const MakeKernelRequest& request, const DeviceInfo& device, const ProgressLine& progress)
      : request_(request),
        device_(device),
        cache_(request.cache.empty() ? kernel_cache_folder() : request.cache),
        sources_(sources_folder()),
        gpu_(gpu_for_device(device, sources_ / "generator" / "gpus", cache_,
                            [&](const GpuSpec& gpu) { return measure(gpu, progress); })),
        model_{.name = request.name, .path = request.source, .facts = request.facts},
        num_cards_(static_cast<int>(request.devices().size())),
        generated_(generate(model_, gpu_, choices_for(request.facts, gpu_, num_cards_))),
        key_(cache_key(request.facts, gpu_, sources_, num_cards_)) {}

  /// One that has been made; nothing if there is none and a compiler to make it with. Throws Error.
  std::optional<fs::path> find() const {
    std::optional<Compiler> compiler;
    try {
      compiler = compiler_for(gpu_);
      check_driver(*compiler, device_.driver_version);
    } catch (const Error& absent) {
      if (const auto made = find_of_any_compiler()) return *made;
      throw Error(absent.code(), fmt::format("{}; needed to make the kernel of {} for {}", absent.what(),
                                             model_.name, device_.name));
    }
    const fs::path path = path_of(*compiler);
    return is_kept(path) ? std::optional(path) : std::nullopt;
  }

  fs::path make(const ProgressLine& progress) const {
    const Compiler compiler = compiler_for(gpu_);
    const fs::path path = path_of(compiler);
    progress(fmt::format("Making the kernel for {}, {}: {}, kept in {}", show_device(),
                         gpu_.emulated ? "some seconds" : "less than a minute", model_.name,
                         cache_.string()));
    if (is_there(path)) progress(fmt::format("It is made anew: {} is damaged", path.string()));
    for (const std::string& reason : generated_.left_out) progress("No kernel for more rows: " + reason);
    compile(compiler, path);
    return path;
  }

 private:
  fs::path path_of(const Compiler& compiler) const {
    return cache_ / (key_ + "-" + compiler_version(compiler) + ".so");
  }

  std::string show_device() const {
    const bool is_known =
        gpu_.emulated || is_called(device_.name, gpu_.name) || gpu_.name == spec_name(device_);
    return is_known ? device_.name : fmt::format("{} (planned as for {})", device_.name, gpu_.name);
  }

  /// Whether the library is whole and this model's, and runs on the card, if it is here.
  bool is_usable(const fs::path& path) const {
    try {
      KernelLibrary library = KernelLibrary::open(path);
      if (library.model().facts_hash != hash_facts(request_.facts)) return false;
      if (library.num_cards() != num_cards_) return false;
      if (!request_.card) library.select_cards(request_.devices());
      return true;
    } catch (const Error&) {
      return false;
    }
  }

  static bool is_there(const fs::path& path) {
    std::error_code ignored;
    return fs::exists(path, ignored);
  }

  /// Whether it is there, undamaged and usable. Nothing is opened, which is to execute it, before that is known. Throws
  /// Error (kNotFound) if others can have written it.
  bool is_kept(const fs::path& path) const {
    if (!is_there(path)) return false;
    check_trusted(cache_);
    check_trusted(path);
    try {
      return is_sealed(path) && is_usable(path);
    } catch (const Error&) {
      return false;
    }
  }

  std::optional<fs::path> find_of_any_compiler() const {
    std::error_code ignored;
    std::vector<fs::path> made;
    for (const auto& entry : fs::directory_iterator(cache_, ignored)) {
      const std::string name = entry.path().filename().string();
      if (name.starts_with(key_ + "-") && name.ends_with(".so")) made.push_back(entry.path());
    }
    std::sort(made.begin(), made.end());
    const auto usable =
        std::find_if(made.rbegin(), made.rend(), [&](const auto& path) { return is_kept(path); });
    return usable == made.rend() ? std::nullopt : std::optional(*usable);
  }

  /// Nothing stands at `path` before all of it does.
  void compile(const Compiler& compiler, const fs::path& path) const {
    create_cache(cache_);
    remove_stale_scratch(cache_, [](const fs::path& folder) {
      std::error_code ignored;
      fs::remove_all(folder, ignored);
    });
    const ScratchFolder scratch(cache_ / kMakingPrefix);
    write_folder(scratch.path(), generated_.files);
    const Compilation result = compile_kernel(compiler, scratch.path(), sources_);
    const fs::path made = scratch.path() / "kernel.so";
    const fs::path log = fs::path(path).replace_extension(".log");
    std::error_code failure;
    if (result.too_old) {
      throw Error(
          ExitCode::kMismatch,
          fmt::format("{}: expected a toolkit that makes code for compute capability {}.{} of {}, got {}; "
                      "name another nvcc in CUDACXX",
                      compiler.program, gpu_.compute_capability / 10, gpu_.compute_capability % 10,
                      device_.name, compiler_version(compiler)));
    }
    if (result.full_disk) {
      throw file_error(ExitCode::kNotFound, result.full_disk->folder.string(),
                       "expected room to make the kernel of {}, got a full disk with {} bytes free",
                       model_.name, result.full_disk->free_bytes);
    }
    if (result.status != 0 || !is_usable(made)) {
      fs::rename(scratch.path() / "compiler.log", log, failure);
      throw file_error(ExitCode::kMakeFailed, log.string(), "expected a kernel of {} for {} from {}, got {}",
                       model_.name, device_.name, compiler.program,
                       result.status != 0 ? fmt::format("status {}: {}", result.status, result.complaint)
                                          : "a library that cannot be used");
    }
    seal_file(made);
    fs::permissions(made, kKernelPermissions, failure);  // whatever the user's mask lets compilers do
    move_kept_file(made, path);
    fs::remove(log, failure);  // of a failure before
  }

  /// Of the card that is here; 0 if that fails: then kernels are planned by an estimate, and if there is a reason
  /// against these too, it is said when they are made.
  double measure(const GpuSpec& gpu, const ProgressLine& progress) const {
    if (!progress || request_.card) return 0;
    try {
      check_driver(compiler_for(gpu), device_.driver_version);
      progress(fmt::format("Measuring the bandwidth of {}, once: some seconds", device_.name));
      return measure_bandwidth(gpu, request_.device, cache_, sources_);
    } catch (const Error&) {
      return 0;
    }
  }

  const MakeKernelRequest& request_;
  const DeviceInfo device_;
  const fs::path cache_;
  const fs::path sources_;
  const GpuSpec gpu_;
  const ModelConfig model_;
  const int num_cards_;
  const Generated generated_;
  const std::string key_;
};

KernelSearch search_shipped(const MakeKernelRequest& request) {
  std::error_code ignored;
  if (!fs::is_directory(request.kernels, ignored)) return {};
  return search_kernels(request.kernels, request.facts, request.devices());
}

/// The card, or the emulation where there is none.
DeviceInfo choose_device(const MakeKernelRequest& request) {
  std::optional<DeviceInfo> device;  // of several the one with the least free memory
  for (const int index : request.devices()) {
    const DeviceAnswer answer = ask_driver(index);
    if (!answer.device && (has_card() || request.device > 0))
      throw Error(ExitCode::kDevice, fmt::format("device {}: {}", index, answer.reason));
    if (!answer.device) return emulated_device();
    if (!device || answer.device->free_bytes < device->free_bytes) device = answer.device;
  }
  return *device;
}

/// A kernel that came with the programs, or who finds or makes another one.
struct Choice {
  std::optional<fs::path> shipped = {};
  std::optional<Maker> maker = {};
};

Choice choose(const MakeKernelRequest& request, const ProgressLine& progress) {
  check({.file = request.source, .unsupported = ExitCode::kMismatch, .facts = request.facts});
  Choice choice;
  if (request.card) {
    choice.maker.emplace(request, *request.card, progress);
    return choice;
  }
  const KernelSearch shipped = search_shipped(request);
  if (shipped.fitting) return {.shipped = shipped.fitting};
  const DeviceInfo device = choose_device(request);
  if (device.compute_capability == 0) {
    if (shipped.emulation) return {.shipped = shipped.emulation};
    if (const int64_t bytes = device_weight_bytes(request.facts); bytes > kMaxEmulatedBytes) {
      throw file_error(
          ExitCode::kDevice, request.source,
          "expected a GPU for a model of {:.1f} GB, found none; emulation is for up to {:.1f} GB",
          static_cast<double>(bytes) * 1e-9, static_cast<double>(kMaxEmulatedBytes) * 1e-9);
    }
  } else {
    const int num_cards = static_cast<int>(request.devices().size());
    check_memory(request.source, request.facts, 0,
                 free_bytes_of_cards(request.facts, device.free_bytes, num_cards));
  }
  choice.maker.emplace(request, device, progress);
  return choice;
}

}  // namespace

void print_progress_line(const std::string& line) {
  say_line(line);
}

bool has_card() {
  std::error_code ignored;
  // The last is WSL's.
  return fs::exists("/dev/nvidiactl", ignored) || fs::exists("/dev/nvidia0", ignored) ||
         fs::exists("/dev/dxg", ignored);
}

std::optional<fs::path> find_kernel(const MakeKernelRequest& request) {
  const Choice choice = choose(request, nullptr);
  return choice.shipped ? seen_from_here(*choice.shipped) : choice.maker->find();
}

fs::path find_or_make_kernel(const MakeKernelRequest& request, const ProgressLine& progress) {
  const Choice choice = choose(request, progress);
  if (choice.shipped) return seen_from_here(*choice.shipped);
  const std::optional<fs::path> made = choice.maker->find();
  return made ? *made : choice.maker->make(progress);
}

}  // namespace soliton
