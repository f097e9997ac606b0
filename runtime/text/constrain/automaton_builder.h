// The first half of making an automaton: states and edges of a grammar's rules, before anything is known of how they end.
#pragma once

#include <bitset>

#include "runtime/text/constrain/automaton.h"

namespace soliton::constrain {

/// An automaton without heights, characters and the like. Throws what make_automaton() does for sizes.
Automaton states_of(const Grammar& grammar, const std::bitset<256>& bytes, Budget& budget);

}  // namespace soliton::constrain
