// A kernel library in use: opened, its descriptor checked, its device selected; and the memory that comes
// from it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "layout/library.h"
#include "models/check.h"
#include "models/error.h"

namespace soliton {

/// Device memory of a library. Move-only; freed with the object. Throws Error (kOutOfMemory).
class DeviceMemory {
 public:
  DeviceMemory() = default;
  DeviceMemory(const Library& library, size_t bytes);
  /// That the host writes too while no launch runs: of a device whose memory is the host's.
  static DeviceMemory unified(const Library& library, size_t bytes);
  DeviceMemory(DeviceMemory&& other) noexcept;
  DeviceMemory& operator=(DeviceMemory&& other) noexcept;
  ~DeviceMemory();

  template <class T>
  T* as() const {
    return static_cast<T*>(address_);
  }
  size_t bytes() const { return bytes_; }

 private:
  DeviceMemory(const Library& library, int (*allocate)(size_t, void**), size_t bytes);

  const Library* library_ = nullptr;
  void* address_ = nullptr;
  size_t bytes_ = 0;
};

/// Host memory that kernels read and write while they run. Move-only.
class HostMemory {
 public:
  HostMemory() = default;
  HostMemory(const Library& library, size_t bytes);
  HostMemory(HostMemory&& other) noexcept;
  HostMemory& operator=(HostMemory&& other) noexcept;
  ~HostMemory();

  template <class T>
  T* as() const {
    return static_cast<T*>(address_);
  }
  size_t bytes() const { return bytes_; }

 private:
  const Library* library_ = nullptr;
  void* address_ = nullptr;
  size_t bytes_ = 0;
};

/// What was measured of a kernel of several rows on a card.
struct KernelCosts {
  TreeCosts attention;   // what it takes
  TreeCosts planned_by;  // by which it takes the least
  double other_us = 0;   // of a step, beside the attention of its layers

  bool operator==(const KernelCosts&) const = default;
};

/// A kernel library and its device.
class KernelLibrary {
 public:
  /// Opens the shared library and checks that it is one of ours. Throws Error: kNotFound,
  /// kBadFile for what is no kernel library or cut, or kMismatch for another ABI or page layout.
  static KernelLibrary open(const std::filesystem::path& path);

  KernelLibrary(KernelLibrary&&) noexcept = default;
  KernelLibrary& operator=(KernelLibrary&&) noexcept = default;

  /// Selects a device and checks that the kernel was built for it; if it spans several cards, as many devices from this one
  /// on. Throws Error: kDevice if there is none, kMismatch if it is another one.
  void select_device(int device);
  /// Selects one device for each card that the kernel spans, and enters the first. Throws Error: kUsage if they are not as
  /// many, or one is named twice; kDevice if one cannot use another's memory; kMismatch if they are not alike.
  void select_cards(std::vector<int> devices);
  /// From here on this thread allocates on a card, copies to it and launches there.
  void enter_card(int card) const;
  int num_cards() const { return descriptor().num_cards; }
  /// Of the KV heads that a card has.
  KvShape card_kv() const { return descriptor().plan->card_kv(); }
  const std::vector<int>& card_devices() const { return devices_; }

  const Library& functions() const { return *functions_; }
  /// What all its kernels have in common: facts, matrices, cards.
  const ModelDescriptor& model() const { return *descriptor().model; }
  /// Of one of its kernels: the first takes one row a step, further ones more.
  const Descriptor& descriptor(int kernel = 0) const { return functions_->descriptors[kernel]; }
  int num_kernels() const { return functions_->num_kernels; }
  /// The most rows that one of them takes a step whatever they are; 1 if there is none for several.
  int max_rows() const;
  /// And the most of one prompt: kernels that take blocks of rows, see row_blocks(), take nothing else.
  int max_prompt_rows() const { return descriptor(num_kernels() - 1).rows; }
  /// Of several cards the first, with the memory of the one that has the least free.
  const DeviceInfo& device() const { return device_; }
  /// What the library knows of the card: the entry that has its name, else the first.
  const CardRates& card() const;
  /// By which the attention of one of its kernels is planned: as measured on this card, else as the card's spec has it.
  const TreeCosts& planned_costs(int kernel) const;
  /// Nothing for a kernel whose costs have not been measured.
  const KernelCosts* measured_costs(int kernel) const;
  /// From now on steps are planned by these costs: [num_kernels()], nothing for those not measured.
  void set_measured_costs(std::vector<std::optional<KernelCosts>> costs);
  const std::string& path() const { return path_; }
  /// A symbol that only some libraries export, or null.
  void* symbol(const char* name) const;

  /// Throws Error (kDevice) with the library's reason unless `status` is 0.
  void check(int status, const char* what) const;

 private:
  struct Closer {
    void operator()(void* handle) const;
  };

  KernelLibrary() = default;
  void check_device(const Descriptor& kernel) const;
  void check_alike(const DeviceInfo& other) const;

  std::string path_;
  std::unique_ptr<void, Closer> handle_;
  const Library* functions_ = nullptr;
  DeviceInfo device_{};
  std::vector<int> devices_;                                // by card
  std::vector<std::optional<KernelCosts>> measured_costs_;  // by kernel, or empty
};

/// The shared libraries in `folder`, sorted. Throws Error (kNotFound) if there is no such folder.
std::vector<std::filesystem::path> list_libraries(const std::filesystem::path& folder);

/// What a folder holds for a model.
struct KernelSearch {
  std::optional<std::filesystem::path> fitting;    // runs on the device
  std::optional<std::filesystem::path> emulation;  // sought on, as long as none fits
  std::optional<Error> refusal;                    // why the last kernel of this model does not run here
  std::optional<Error> unusable;                   // why a library, perhaps of this model, cannot be opened
};

/// Opens the libraries in `folder` until one fits that spans as many cards as there are devices. Throws Error (kNotFound)
/// if there is no such folder.
KernelSearch search_kernels(const std::filesystem::path& folder, const ModelFacts& facts,
                            const std::vector<int>& devices);

/// Throws Error (kMismatch), naming the first fact in which they differ as the model's file calls it, unless the kernel
/// was generated for these. How it keeps keys and values is its own choice.
void check_facts(const ModelDescriptor& model, const StatedFacts& stated);

}  // namespace soliton
