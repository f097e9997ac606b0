// Times of the day as logs and APIs tell them.
#pragma once

#include <cstdint>
#include <string>

namespace soliton {

/// Now, as "2026-11-25T18:34:41.123456Z".
std::string timestamp_now();
/// Seconds since 1970.
int64_t unix_time();

}  // namespace soliton
