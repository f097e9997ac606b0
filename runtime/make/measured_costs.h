// Costs of a kernel library's attention that were measured on a card: kept in the folder of made kernels, for this library
// on this card with its clock and driver, and read by all programs that open the library there.
#pragma once

#include <filesystem>
#include <optional>
#include <vector>

#include "runtime/device/kernel_library.h"

namespace soliton {

/// Where the costs of a library on the device that it has selected are kept; need not exist. Throws what
/// MappedFile::open() throws of the library's file.
std::filesystem::path measured_costs_file(const KernelLibrary& library, const std::filesystem::path& cache);

/// Keeps the library's measured costs. Throws Error (kNotFound) if the folder cannot be made or written, or others than its
/// owner may write it.
void keep_measured_costs(const KernelLibrary& library, const std::filesystem::path& cache);

/// [num_kernels()]: the costs that were kept for the library, nothing for kernels without; empty if none were kept. Throws
/// Error: kBadFile for a file that does not hold costs of this library's kernels, kNotFound for one that others may write.
std::vector<std::optional<KernelCosts>> read_measured_costs(const KernelLibrary& library,
                                                            const std::filesystem::path& cache);

}  // namespace soliton
