#include "primitives/emulation/context.h"

#if defined(__x86_64__) && !defined(SOLITON_BOOST_CONTEXT)

#include <algorithm>
#include <cstdint>

// What a callee saves, then the return address: this is what a stack that does not run ends in.
asm(R"(
  .text
  .p2align 4
  .hidden soliton_switch_stack
  .globl soliton_switch_stack
  .type soliton_switch_stack, @function
soliton_switch_stack:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
  .size soliton_switch_stack, . - soliton_switch_stack
)");
extern "C" void soliton_switch_stack(void** from, void* to);

namespace soliton::emulation {

Context make_context(void* top, size_t /*bytes*/, void (*entry)()) {
  constexpr int kSaved = 6;
  // Above the entry stands its own return address, which nobody uses; so its stack is aligned as after a call.
  auto* words = static_cast<uintptr_t*>(top) - (kSaved + 2);
  std::fill(words, static_cast<uintptr_t*>(top), 0);
  words[kSaved] = reinterpret_cast<uintptr_t>(entry);
  return words;
}

void switch_context(Context* from, Context to) {
  soliton_switch_stack(from, to);
}

}  // namespace soliton::emulation

#else

#include <boost/context/detail/fcontext.hpp>

namespace soliton::emulation {

namespace {

namespace context = boost::context::detail;

void (*begin)() = nullptr;

void arrive(context::transfer_t transfer) {
  *static_cast<Context*>(transfer.data) = transfer.fctx;
}

void enter(context::transfer_t transfer) {
  arrive(transfer);
  begin();
}

}  // namespace

Context make_context(void* top, size_t bytes, void (*entry)()) {
  begin = entry;
  return context::make_fcontext(top, bytes, enter);
}

void switch_context(Context* from, Context to) {
  arrive(context::jump_fcontext(to, from));
}

}  // namespace soliton::emulation

#endif
