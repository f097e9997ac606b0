// Whether this build is one of a sanitizer, in which everything takes longer and more memory.
#pragma once

namespace soliton {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif

}  // namespace soliton
