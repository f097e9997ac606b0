// A program that ends with this one, however this one ends.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace soliton {

/// Runs a program, given by its path and arguments, with all that it says in the file `log` and in English. Returns its exit
/// status; -1 if it cannot be started or is killed. Should this program end meanwhile, be it by Ctrl-C, SIGTERM or SIGKILL, a
/// process between the two ends the other one with its children, and removes `folder`, in which it works.
int run_guarded(const std::vector<std::string>& line, const std::filesystem::path& log,
                const std::filesystem::path& folder);

}  // namespace soliton
