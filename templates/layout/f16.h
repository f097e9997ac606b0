// The host's type for IEEE's binary16. GCC 12 knows _Float16 in C++ on x86-64 alone; on aarch64 __fp16 has the same bits
// and rounds alike.
#pragma once

namespace soliton {

#if defined(__aarch64__)
using F16 = __fp16;
#else
using F16 = _Float16;
#endif

}  // namespace soliton
