// What clients may take of the server: memory, connections and time, each of them alone and all together.
#pragma once

#include <chrono>
#include <cstddef>

namespace soliton {

struct HttpLimits {
  size_t header_bytes = 16 << 10;
  size_t body_bytes = 16 << 20;
  size_t connections = 512;  // who comes then takes the place of one who is slow, or is told 503
  std::chrono::milliseconds header{10'000};  // from a request's first byte to the end of its header
  std::chrono::milliseconds body{60'000};    // from there to its end
  std::chrono::milliseconds idle{75'000};    // between two requests of a connection
  std::chrono::milliseconds write{30'000};   // of what a client does not read

  // Of the connections this part is for others, whatever one client does: an eighth.
  static constexpr size_t kConnectionsForOthers = 8;
  // Of bodies that are on their way or wait to be read, so many of the largest may be there at once.
  static constexpr size_t kBodiesOfOne = 4;   // of one client
  static constexpr size_t kBodiesOfAll = 16;  // of all together
};

}  // namespace soliton
