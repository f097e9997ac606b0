// Writes verified plans down: plan.h (numbers), kernel.cu (the phases, calling templates/), plan.txt (for people).
#pragma once

#include <map>
#include <string>
#include <vector>

#include "generator/plan/plan.h"

namespace soliton {

/// File name -> text, of one library with a kernel for each plan: kernel.cu with their phases,
/// plan.h with their numbers, plan.txt for people. The same plans give the same bytes.
std::map<std::string, std::string> emit(const std::vector<Plan>& plans);
/// Of a library with one kernel.
inline std::map<std::string, std::string> emit(const Plan& plan) {
  return emit(std::vector<Plan>{plan});
}

}  // namespace soliton
