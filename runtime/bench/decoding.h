// soliton-bench without --edge and --tune: time per token of prompts, of generation at depths, and of trees, beside the
// read bandwidth measured in the same run.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/bench/calibrate.h"
#include "runtime/bench/drafts.h"
#include "runtime/bench/measure.h"
#include "runtime/bench/options.h"
#include "runtime/bench/test_progress.h"
#include "runtime/bench/timeline.h"
#include "runtime/bench/tree.h"
#include "runtime/device/read_bandwidth.h"
#include "runtime/engine/engine.h"

namespace soliton {

/// Tokens that the KV cache has to hold for every row. Throws Error (kOutOfMemory) if the model cannot.
int needed_context(const BenchOptions& options, const ModelFacts& facts);

/// Tokens that the KV pages have to hold for every tree, and for the same rows without sharing as far as the memory of
/// the selected device goes; 0 without trees.
int64_t needed_pool(const BenchOptions& options, const KernelLibrary& library);

struct DecodingResults {
  ReadBandwidth bandwidth;
  std::vector<KernelCalibration> calibration = {};
  std::vector<PromptRow> prompts = {};
  std::vector<Row> rows = {};
  std::vector<TreeMeasurement> trees = {};
  std::optional<DraftMeasurement> drafts = {};
};

/// Tests that measure_decoding() does.
int count_tests(const BenchOptions& options, Engine& engine);
/// Measures all that the options ask for but the timeline, and says where it is. If costs are calibrated, that comes first:
/// the other tests plan by them.
DecodingResults measure_decoding(Engine& engine, const BenchOptions& options, const ReadBandwidth& bandwidth,
                                 TestProgress& progress);

/// Of a step over the first tree whose rows a kernel takes, else of the last step of the first prompt, else of the token in
/// the middle of a run at the first depth.
Timeline record_timeline(Engine& engine, const BenchOptions& options);

std::string markdown(const Engine& engine, const DecodingResults& results);
/// `command` is what was typed.
std::string as_json(const Engine& engine, const BenchOptions& options, const DecodingResults& results,
                    const std::string& command);

}  // namespace soliton
