// Stacks to run on, and the jump from one to another. Boost.Context saves the modes of floating point at every
// jump, which takes longer than all the rest; kernels never change them, so x86-64 jumps by a few lines of its own.
#pragma once

#include <cstddef>

namespace soliton::emulation {

/// Where a stack that does not run goes on. Null: nowhere yet.
using Context = void*;

/// A context that begins with `entry`, which must not return, on the `bytes` below `top` (16-byte aligned).
/// All contexts of a process that are not done yet have the same entry.
Context make_context(void* top, size_t bytes, void (*entry)());

/// Goes on at `to`. Returns when somebody switches to what this call has left in *from.
void switch_context(Context* from, Context to);

}  // namespace soliton::emulation
