// A chat without a card: which of the kernels is emulated faster, and what is said of it.
#pragma once

#include <functional>
#include <string>

#include "runtime/engine/engine.h"

namespace soliton {

/// Has the engine generate with the kernel of one row, or with that of the fewest rows beyond if its step takes clearly
/// less time: in emulation that depends on the model. Returns the seconds of its step, as `seconds_of_step` says.
double take_fastest_kernel(Engine& engine,
                           const std::function<double(Engine&, double hopeless_s)>& seconds_of_step);

/// About the time of a step of the kernel that the engine generates with: of the second step of a launch, or of a launch of
/// one step if that takes longer than `hopeless_s` already, which is not 0. The engine's tree has to be empty, and is
/// afterwards.
double seconds_of_step(Engine& engine, double hopeless_s = 0);

/// "No card: emulating on the CPU, for checking; about 0.3 tokens/s"; of a kernel that is emulated beside a card, without
/// its first words.
std::string describe_emulation(double step_s, bool has_card);

}  // namespace soliton
