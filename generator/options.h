// The command line of soliton-gen.
#pragma once

#include <filesystem>
#include <optional>
#include <ostream>

#include "generator/plan/plan.h"
#include "runtime/hub/fetch_model.h"

namespace soliton {

/// What the user asked for.
struct Options {
  std::filesystem::path model;                       // models/<name>.yaml, or a Hugging Face folder or name
  HubOptions hub;                                    // of a name
  std::vector<std::filesystem::path> gpu_specs;      // the files that --gpu stands for; they exist
                                                     // by name; always there without write_model
  std::optional<std::filesystem::path> write_model;  // YAML file for the facts of a folder
  std::optional<std::filesystem::path> output;
  std::optional<int> kv_bits;  // of the cache, in place of the model's
  std::optional<int> ptx;      // compute capability of the PTX to make in place of the cards' code
  PlanChoices choices;         // what the flags decide, and nothing else
  bool tuned = true;           // overrides are looked for
  bool dry_run = false;
  bool compile = false;                       // what is written, into kernel.so beside it
  std::optional<std::filesystem::path> svg;   // file for a picture of the plan
  std::optional<std::filesystem::path> dump;  // folder for the plan after each pass
};

/// Reads the command line; argv[0] is the program's name. Returns nothing after --help, whose text goes to
/// `help`. Throws Error (kUsage) of one line, `FLAG: expected X, got Y`.
std::optional<Options> parse_options(int argc, const char* const* argv, std::ostream& help);

}  // namespace soliton
