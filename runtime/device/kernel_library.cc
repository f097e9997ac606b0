#include "runtime/device/kernel_library.h"

#include <dlfcn.h>
#include <elf.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <set>
#include <utility>

#include "layout/fact_list.h"
#include "models/mapped_file.h"
#include "runtime/device/card_name.h"
#include "runtime/device/host_memory.h"

namespace soliton {
namespace {

/// dlopen() does not compare the file's length with what it maps, and a missing page is a SIGBUS. Linkers put
/// the section headers last: where they end, the file has to have them.
void check_complete(const std::filesystem::path& path) {
  const MappedFile file = MappedFile::open(path);
  Elf64_Ehdr header{};
  if (file.bytes().size() < sizeof header || !file.text().starts_with(ELFMAG)) {
    throw bad_file(file.path(), "expected a kernel library, got no shared library");
  }
  std::memcpy(&header, file.bytes().data(), sizeof header);
  const uint64_t end = header.e_shoff + uint64_t{header.e_shnum} * header.e_shentsize;
  if (end > file.bytes().size()) {
    throw bad_file(file.path(), "cut short: expected {} bytes, got {}", end, file.bytes().size());
  }
}

}  // namespace

DeviceMemory::DeviceMemory(const Library& library, size_t bytes)
    : DeviceMemory(library, library.allocate, bytes) {}
DeviceMemory DeviceMemory::unified(const Library& library, size_t bytes) {
  return DeviceMemory(library, library.allocate_unified, bytes);
}
DeviceMemory::DeviceMemory(const Library& library, int (*allocate)(size_t, void**), size_t bytes)
    : library_(&library), bytes_(bytes) {
  if (allocate(bytes, &address_) != 0) {
    throw Error(ExitCode::kOutOfMemory,
                fmt::format("device memory: expected {} bytes free: {}", bytes, library.last_error()));
  }
}
DeviceMemory::DeviceMemory(DeviceMemory&& other) noexcept {
  *this = std::move(other);
}
DeviceMemory& DeviceMemory::operator=(DeviceMemory&& other) noexcept {
  std::swap(library_, other.library_);
  std::swap(address_, other.address_);
  std::swap(bytes_, other.bytes_);
  return *this;
}
DeviceMemory::~DeviceMemory() {
  if (address_ != nullptr) library_->release(address_);
}

HostMemory::HostMemory(const Library& library, size_t bytes) : library_(&library), bytes_(bytes) {
  if (library.allocate_shared(bytes, &address_) != 0) {
    throw Error(ExitCode::kOutOfMemory,
                fmt::format("pinned host memory: expected {} bytes free: {}", bytes, library.last_error()));
  }
}
HostMemory::HostMemory(HostMemory&& other) noexcept {
  *this = std::move(other);
}
HostMemory& HostMemory::operator=(HostMemory&& other) noexcept {
  std::swap(library_, other.library_);
  std::swap(address_, other.address_);
  std::swap(bytes_, other.bytes_);
  return *this;
}
HostMemory::~HostMemory() {
  if (address_ != nullptr) library_->release_shared(address_);
}

void KernelLibrary::Closer::operator()(void* handle) const {
  dlclose(handle);
}

KernelLibrary KernelLibrary::open(const std::filesystem::path& path) {
  KernelLibrary library;
  library.path_ = path.string();
  check_complete(path);
  // A bare name would be searched for in the system's folders.
  void* handle = dlopen(std::filesystem::absolute(path).c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) throw bad_file(library.path_, "expected a kernel library, got: {}", dlerror());
  library.handle_.reset(handle);
  const auto entry = reinterpret_cast<LibraryFunction>(dlsym(handle, kLibrarySymbol));
  if (entry == nullptr) {
    throw file_error(ExitCode::kBadFile, library.path_, "expected a kernel library, got one without {}",
                     kLibrarySymbol);
  }
  library.functions_ = entry();
  if (library.functions_->abi != kLibraryAbi) {
    throw file_error(ExitCode::kMismatch, library.path_, "ABI: expected {}, got {}: build the kernel again",
                     kLibraryAbi, library.functions_->abi);
  }
  if (library.model().page_layout != kPageLayoutVersion) {
    throw file_error(ExitCode::kMismatch, library.path_,
                     "page layout: expected {}, got {}: generate the kernel again", kPageLayoutVersion,
                     library.model().page_layout);
  }
  return library;
}

void KernelLibrary::select_device(int device) {
  std::vector<int> devices(static_cast<size_t>(num_cards()));
  std::iota(devices.begin(), devices.end(), device);
  select_cards(std::move(devices));
}

void KernelLibrary::select_cards(std::vector<int> devices) {
  if (static_cast<int>(devices.size()) != num_cards()) {
    throw file_error(ExitCode::kUsage, path_, "--cards: expected {} devices, got {}", num_cards(),
                     devices.size());
  }
  if (std::set(devices.begin(), devices.end()).size() != devices.size())
    throw Error(ExitCode::kUsage, "--cards: expected each device once, got one twice");
  devices_ = std::move(devices);
  for (size_t card = devices_.size(); card-- > 0;) {
    const DeviceInfo other = device_;
    check(functions_->open(devices_[card], &device_), "select the device");
    if (device_.compute_capability > 0) count_reclaimable(device_);
    for (int kernel = 0; kernel < num_kernels(); ++kernel) check_device(descriptor(kernel));
    if (card + 1 == devices_.size()) continue;
    check_alike(other);
    device_.free_bytes = std::min(device_.free_bytes, other.free_bytes);
  }
  if (num_cards() == 1) return;
  check(functions_->reach_peers(devices_.data(), num_cards()), "--cards");
  enter_card(0);
}

/// Everyone waits for the slowest card, so one of another kind is no help; and tiles are dealt alike.
void KernelLibrary::check_alike(const DeviceInfo& other) const {
  const std::string_view name = device_.name;
  if (name == other.name && device_.num_sms == other.num_sms) return;
  throw file_error(ExitCode::kMismatch, path_,
                   "--cards: expected cards of one kind, got {} ({} SMs) and {} ({} SMs)", name,
                   device_.num_sms, other.name, other.num_sms);
}

void KernelLibrary::enter_card(int card) const {
  if (num_cards() > 1) check(functions_->enter(devices_[card]), "select the device");
}

int KernelLibrary::max_rows() const {
  int most = 1;
  for (int kernel = 0; kernel < num_kernels(); ++kernel) {
    if (row_blocks(descriptor(kernel).rows) == 1) most = descriptor(kernel).rows;
  }
  return most;
}

const CardRates& KernelLibrary::card() const {
  const ModelDescriptor& known = model();
  for (int i = 0; i < known.num_cards; ++i) {
    if (is_called(device_.name, known.cards[i].name)) return known.cards[i];
  }
  return known.cards[0];
}

const KernelCosts* KernelLibrary::measured_costs(int kernel) const {
  if (measured_costs_.empty() || !measured_costs_[kernel]) return nullptr;
  return &*measured_costs_[kernel];
}

const TreeCosts& KernelLibrary::planned_costs(int kernel) const {
  const KernelCosts* measured = measured_costs(kernel);
  return measured != nullptr ? measured->planned_by : card().costs;
}

void KernelLibrary::set_measured_costs(std::vector<std::optional<KernelCosts>> costs) {
  if (std::ssize(costs) != num_kernels()) {
    throw file_error(ExitCode::kInternal, path_, "measured costs: expected those of {} kernels, got {}",
                     num_kernels(), costs.size());
  }
  measured_costs_ = std::move(costs);
}

void KernelLibrary::check_device(const Descriptor& kernel) const {
  const ModelDescriptor& needs = *kernel.model;
  if (!needs.runs_on(device_.compute_capability)) {
    throw file_error(ExitCode::kMismatch, path_,
                     "compute capability: kernel built for {}{} ({}), got {} ({})", needs.compute_capability,
                     needs.ptx ? " or later" : "", needs.gpu, device_.compute_capability, device_.name);
  }
  if (device_.num_sms < kernel.num_ctas) {
    throw file_error(ExitCode::kMismatch, path_, "SMs: expected at least {} ({}), got {} ({})",
                     kernel.num_ctas, needs.gpu, device_.num_sms, device_.name);
  }
  if (device_.max_shared_bytes < kernel.shared_bytes) {
    throw file_error(ExitCode::kMismatch, path_,
                     "shared memory a block: expected at least {} ({}), got {} ({})", kernel.shared_bytes,
                     needs.gpu, device_.max_shared_bytes, device_.name);
  }
}

void* KernelLibrary::symbol(const char* name) const {
  return dlsym(handle_.get(), name);
}

void KernelLibrary::check(int status, const char* what) const {
  if (status == 0) return;
  throw file_error(ExitCode::kDevice, path_, "{}: {}", what, functions_->last_error());
}

std::vector<std::filesystem::path> list_libraries(const std::filesystem::path& folder) {
  std::error_code unreadable;
  std::vector<std::filesystem::path> libraries;
  for (const auto& entry : std::filesystem::directory_iterator(folder, unreadable)) {
    if (entry.path().extension() == ".so") libraries.push_back(entry.path());
  }
  if (unreadable) {
    throw file_error(ExitCode::kNotFound, folder.string(), "expected a folder of kernel libraries, got: {}",
                     unreadable.message());
  }
  std::sort(libraries.begin(), libraries.end());
  return libraries;
}

KernelSearch search_kernels(const std::filesystem::path& folder, const ModelFacts& facts,
                            const std::vector<int>& devices) {
  KernelSearch search;
  for (const std::filesystem::path& path : list_libraries(folder)) {
    try {
      KernelLibrary library = KernelLibrary::open(path);
      if (library.model().facts_hash != hash_facts(facts)) continue;
      if (library.num_cards() != static_cast<int>(devices.size())) continue;
      if (library.model().compute_capability == 0) {
        search.emulation = path;
        continue;
      }
      try {
        library.select_cards(devices);
        search.fitting = path;
        return search;
      } catch (const Error& error) {
        search.refusal.emplace(ExitCode::kMismatch, error.what());
      }
    } catch (const Error& error) {
      search.unusable = error;
    }
  }
  return search;
}

void check_facts(const ModelDescriptor& model, const StatedFacts& stated) {
  check_same(stated, model.facts, fmt::format("kernel of {}", model.name));
}

}  // namespace soliton
