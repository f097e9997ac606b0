// The trials that mutants stand: which kernels are launched how, in batches.
#pragma once

#include <vector>

namespace soliton {

/// What is launched of a kernel.
enum class Launches {
  kOneRow,
  kRows,
  kMany,
  kSampled,
  kTree,
  kPages,
  kPagesOfRows,
  kStopped,
  kDrawn,
  kForks,
  kPath
};
constexpr const char* kSuffixes[] = {"",       "",         "",       " sampled", " tree", " pages",
                                     " pages", " stopped", " drawn", " forks",   " path"};
struct TrialOf {
  const char* kernel;
  Launches launches;
};

/// Cheap ones first. A batch is of one process: the stacks of all threads of more kernels are more mappings than a process
/// may have.
inline const std::vector<TrialOf> kBatches[] = {{{"single-4", Launches::kOneRow},
                                                 {"single-4", Launches::kStopped},
                                                 {"single-4", Launches::kSampled},
                                                 {"single-4", Launches::kPages},
                                                 {"single-4-rows8", Launches::kStopped},
                                                 {"single-4-rows8", Launches::kDrawn},
                                                 {"single-4-rows8", Launches::kPagesOfRows},
                                                 {"plain-4-split-counter", Launches::kPages},
                                                 {"plain-1-rows8", Launches::kPath},
                                                 {"plain-1-rows8", Launches::kForks},
                                                 {"group8-one", Launches::kOneRow},
                                                 {"plain-4-split", Launches::kOneRow},
                                                 {"micro-3-counter", Launches::kOneRow},
                                                 {"micro-3-counter", Launches::kSampled},
                                                 {"plain-2-split-cards2", Launches::kOneRow},
                                                 {"norm64-bias-5-counter", Launches::kOneRow},
                                                 {"plain-4-split-counter", Launches::kOneRow},
                                                 {"plain-4-split-lanes", Launches::kOneRow},
                                                 {"single-4-rows8", Launches::kRows},
                                                 {"plain-4-rows8", Launches::kRows},
                                                 {"plain-1-rows8", Launches::kRows}},
                                                {{"micro-6", Launches::kOneRow},
                                                 {"broad-2", Launches::kOneRow},
                                                 {"micro-2-cards3", Launches::kOneRow},
                                                 {"micro-2-cards3", Launches::kSampled},
                                                 {"words-1", Launches::kSampled},
                                                 {"narrow96-5", Launches::kOneRow},
                                                 {"wide128-4-split", Launches::kOneRow},
                                                 {"deep256-5-split", Launches::kOneRow},
                                                 {"int4-ordered-4-split", Launches::kOneRow},
                                                 {"int4-wide-3", Launches::kOneRow},
                                                 {"int4-5-four", Launches::kOneRow},
                                                 {"int4-zeros-4", Launches::kOneRow},
                                                 {"plain-4-rows8-lanes", Launches::kRows},
                                                 {"plain-4-rows8-lanes", Launches::kPath},
                                                 {"micro-3-rows8", Launches::kSampled},
                                                 {"micro-3-rows8", Launches::kDrawn},
                                                 {"plain-4-rows8", Launches::kTree}},
                                                {{"plain-4-rows32", Launches::kRows},
                                                 {"plain-3-rows64", Launches::kRows},
                                                 {"int4-zeros-2-rows8", Launches::kRows},
                                                 {"int4-wide-2-rows32", Launches::kRows},
                                                 {"int4-zeros-3-rows64", Launches::kRows},
                                                 {"int4-wide-2-rows8", Launches::kRows},
                                                 {"broad-2-rows8", Launches::kRows},
                                                 {"int4-ordered-3-all", Launches::kRows},
                                                 {"int4-ordered-3-all", Launches::kDrawn},
                                                 {"int4-3-all", Launches::kRows},
                                                 {"int4-3-all", Launches::kDrawn},
                                                 {"norm128-2-rows8-cards2", Launches::kRows},
                                                 {"plain-2-rows32-cards2", Launches::kRows}},
                                                {{"plain-1-rows8", Launches::kTree},
                                                 {"plain-4-rows32", Launches::kTree},
                                                 {"plain-4-rows32", Launches::kForks},
                                                 {"plain-3-rows64", Launches::kTree},
                                                 {"plain-3-rows64", Launches::kForks},
                                                 {"plain-3-rows64", Launches::kDrawn},
                                                 {"deep256-group4-3-rows32", Launches::kForks},
                                                 {"int4-zeros-2-rows8", Launches::kTree},
                                                 {"group7-4-rows32", Launches::kRows},
                                                 {"deep256-group4-3-rows32", Launches::kRows},
                                                 {"deep256-group4-3-rows32", Launches::kTree},
                                                 {"plain-2-rows32-cards2", Launches::kTree}},
                                                {{"micro-17", Launches::kSampled},
                                                 {"micro-17-cards2", Launches::kMany},
                                                 {"plain-3-rows64-lanes", Launches::kRows},
                                                 {"plain-11-wide", Launches::kOneRow},
                                                 {"group7-4-rows32", Launches::kTree},
                                                 {"broad-4-rows64", Launches::kRows},
                                                 {"group7-4-rows64", Launches::kRows},
                                                 {"plain-2-rows128", Launches::kRows},
                                                 {"int4-wide-2-rows128", Launches::kRows},
                                                 {"norm64-bias-2-rows128", Launches::kRows}}};

}  // namespace soliton
