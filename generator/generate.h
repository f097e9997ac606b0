// The passes from config to files, in a straight list.
#pragma once

#include <map>
#include <string>

#include "generator/plan/plan.h"

namespace soliton {

struct Generated {
  Plan plan;
  std::map<std::string, std::string> files;  // name -> text
  std::map<std::string, std::string> dumps;  // pass -> text
};

/// config -> graph -> plan -> verify -> emit. Throws UserError (kPlanRefused) with the first violation.
Generated generate(const ModelConfig& model, const GpuSpec& gpu, const PlanChoices& choices);

}  // namespace soliton
