#include "runtime/server/timestamp.h"

#include <fmt/chrono.h>

#include <chrono>

namespace soliton {

std::string timestamp_now() {
  const auto now = std::chrono::time_point_cast<std::chrono::microseconds>(std::chrono::system_clock::now());
  const auto micros = now.time_since_epoch() % std::chrono::seconds(1);
  const std::tm utc = fmt::gmtime(std::chrono::system_clock::to_time_t(now));
  return fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:06}Z", utc, micros.count());
}

int64_t unix_time() {
  return std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch())
      .count();
}

}  // namespace soliton
