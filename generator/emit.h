// Writes a verified plan down: plan.h (numbers), kernel.cu (the phases, calling templates/), plan.txt (for
// people).
#pragma once

#include <map>
#include <string>

#include "generator/plan/plan.h"

namespace soliton {

/// File name -> text. The same plan gives the same bytes.
std::map<std::string, std::string> emit(const Plan& plan);

}  // namespace soliton
