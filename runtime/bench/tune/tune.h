// soliton-bench --tune: finds the values of the planner's knobs with which a model decodes fastest on this card,
// and writes them to models/tuned/, where soliton-gen looks for them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace soliton {

struct TuneOptions {
  std::filesystem::path model;     // models/<name>.yaml
  std::string gpu;                 // as soliton-gen takes it
  std::vector<std::string> knobs;  // names; empty: all
  std::vector<int> depths;
  int tokens = 0;
  int repeats = 0;
  int device = 0;
  uint64_t seed = 1;
  bool json = false;      // on stdout, instead of markdown
  std::string json_file;  // empty: none
  std::string command;    // that the results name
};

/// What --knobs may list.
std::vector<std::string> knob_names();

/// Generates, compiles and measures candidates, prints the table, and writes or removes the file of overrides.
/// Throws Error.
void tune(const TuneOptions& options);

}  // namespace soliton
