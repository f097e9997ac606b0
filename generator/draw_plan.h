// A plan as a picture for people.
#pragma once

#include <string>

#include "generator/plan/plan.h"

namespace soliton {

/// SVG: what each CTA multiplies when, in a layer of each kind and behind them, as predicted; bytes and times of the phases;
/// a CTA's shared memory with the ring of pages; and the memory of a card. The same plan gives the same bytes.
std::string draw(const Plan& plan);

}  // namespace soliton
