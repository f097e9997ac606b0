// The command line of soliton-gen.
#pragma once

#include <filesystem>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "generator/user_error.h"
#include "layout/phase.h"

namespace soliton {

/// What the user asked for. What is empty was not given: the planner chooses.
struct Options {
  std::filesystem::path model;     // models/<name>.yaml
  std::filesystem::path gpu_spec;  // the file that --gpu stands for; exists if it was given by name
  std::optional<std::filesystem::path> output;
  std::optional<int> num_ctas;
  std::optional<int> window;  // pages in flight per CTA
  std::optional<int> consumer_warps;
  std::optional<int> ring_slots;
  std::optional<int> split_from_pages;  // KV pages from which on attention is split over CTAs
  std::optional<int> prefetch_pages;    // brought into L2 while the ring is full
  SyncMode sync = SyncMode::kSelfValidating;
  bool dry_run = false;
  std::optional<std::filesystem::path> dump;  // folder for the plan after each pass
};

/// Reads the command line; argv[0] is the program's name. Returns nothing after --help, whose text goes to
/// `help`. Throws UserError (kUsage) of one line, `FLAG: expected X, got Y`.
std::optional<Options> parse_options(int argc, const char* const* argv, std::ostream& help);

/// The names that --gpu knows: stems of the YAML files in `gpus_dir`, sorted. Throws UserError (kUsage) if
/// there is no such folder.
std::vector<std::string> list_gpus(const std::filesystem::path& gpus_dir);

}  // namespace soliton
