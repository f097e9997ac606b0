// The passes from config to files, in a straight list.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "generator/plan/plan.h"
#include "models/error.h"

namespace soliton {

struct Generated {
  Plan plan;                                 // of the first kernel
  std::map<std::string, std::string> files;  // name -> text
  std::map<std::string, std::string> dumps;  // pass -> text
  std::vector<std::string> left_out;         // why there is no kernel for further rows, a line each
};

/// No kernel can be planned, or the plan is not sound. Has what the passes before have dumped: pass -> text.
class PlanRefused : public Error {
 public:
  PlanRefused(const std::string& message, std::map<std::string, std::string> dumps)
      : Error(ExitCode::kMismatch, message), dumps_(std::move(dumps)) {}

  const std::map<std::string, std::string>& dumps() const { return dumps_; }

 private:
  std::map<std::string, std::string> dumps_;
};

/// config -> graph -> plan -> verify -> emit. Throws PlanRefused with the first violation; its dumps have all
/// of them.
/// With several cards one library for all of them, planned for the first. Where PlanChoices::leaves_out says so, further
/// rows that cannot be planned are in Generated::left_out instead.
Generated generate(const ModelConfig& model, const std::vector<GpuSpec>& gpus, const PlanChoices& choices);
inline Generated generate(const ModelConfig& model, const GpuSpec& gpu, const PlanChoices& choices) {
  return generate(model, std::vector<GpuSpec>{gpu}, choices);
}

}  // namespace soliton
