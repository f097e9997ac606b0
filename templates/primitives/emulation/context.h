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
#if defined(__x86_64__) && !defined(SOLITON_BOOST_CONTEXT)
// A stack that does not run ends in where it goes on and rbp. What else is needed the compiler keeps, as this changes
// every register; 128 bytes below the stack may be in use.
[[gnu::always_inline]] inline void switch_context(Context* from, Context to) {
  asm volatile(
      "leaq -128(%%rsp), %%rsp\n"
      "pushq %%rbp\n"
      "leaq 1f(%%rip), %%rax\n"
      "pushq %%rax\n"
      "movq %%rsp, (%0)\n"
      "movq %1, %%rsp\n"
      "popq %%rax\n"
      "popq %%rbp\n"
      "jmpq *%%rax\n"
      "1:\n"
      "leaq 128(%%rsp), %%rsp\n"
      : "+D"(from), "+S"(to)
      :
      : "rax", "rbx", "rcx", "rdx", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15", "xmm0", "xmm1",
        "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13",
        "xmm14", "xmm15", "cc", "memory");
}
#else
void switch_context(Context* from, Context to);
#endif

}  // namespace soliton::emulation
