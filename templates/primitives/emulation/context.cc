#include "primitives/emulation/context.h"

#if defined(__x86_64__) && !defined(SOLITON_BOOST_CONTEXT)

#include <cstdint>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#else
#define ASAN_UNPOISON_MEMORY_REGION(address, bytes) (static_cast<void>(address), static_cast<void>(bytes))
#endif

namespace soliton::emulation {

Context make_context(void* top, size_t bytes, void (*entry)()) {
  // Frames lay here that nobody has returned from.
  ASAN_UNPOISON_MEMORY_REGION(static_cast<char*>(top) - bytes, bytes);
  // Above stands the return address of the entry, which nobody uses; so its stack is aligned as after a call.
  auto* words = static_cast<uintptr_t*>(top) - 3;
  words[0] = reinterpret_cast<uintptr_t>(entry);
  words[1] = 0;
  words[2] = 0;
  return words;
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
