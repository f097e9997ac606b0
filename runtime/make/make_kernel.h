// The kernel library of a model on this machine: one that came with the programs, one made before, or one
// generated and compiled now.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "layout/library.h"
#include "layout/model_facts.h"

namespace soliton {

struct MakeKernelRequest {
  ModelFacts facts;
  std::string name;               // that a new kernel is to have for its model, see model_name_of()
  std::string source;             // of the facts, for errors: ".../config.json"
  std::filesystem::path kernels;  // those that came with the programs, see shipped_kernels_folder()
  /// Where made ones are kept; empty: kernel_cache_folder(), which is asked only once it is needed.
  std::filesystem::path cache = {};
  int device = 0;
  std::vector<int> cards = {};  // the devices of a kernel that is to span several, instead
  /// A card that is not asked for: it need not be here, and only the cache is looked at.
  std::optional<DeviceInfo> card = {};

  std::vector<int> devices() const { return cards.empty() ? std::vector{device} : cards; }
};

/// Told in one line, without its end, what takes a while.
using ProgressLine = std::function<void(const std::string&)>;

/// Writes the line to stderr.
void print_progress_line(const std::string& line);

/// The path of a kernel library for the model that runs on the device: with 1, 8, 16, 32, 64, 128 and 256 rows on a card
/// (see choices_for()), of which those that cannot be planned are left out and said; with 1 and 8 in emulation, which is for
/// machines without a card. Any number of processes may make the same at once. Throws Error: what check() throws of
/// facts that cannot be; kNotFound without compiler, sources or a place to write; kMismatch if the card is none that the
/// generator knows, or if no kernel can be planned; kMakeFailed if the compiler fails, whose output is kept in the file
/// that is named; kDevice if a card is there and cannot be used, or for a model that emulation is too slow for.
std::filesystem::path find_or_make_kernel(const MakeKernelRequest& request,
                                          const ProgressLine& progress = print_progress_line);

/// The kernel library that find_or_make_kernel() would find; nothing if it would make one, for which all is there.
/// Throws as it does before it makes one.
std::optional<std::filesystem::path> find_kernel(const MakeKernelRequest& request);

/// Whether the system has an NVIDIA card, usable or not.
bool has_card();

}  // namespace soliton
