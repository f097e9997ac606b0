#include "runtime/device/read_bandwidth.h"

#include <fmt/format.h>

#include <algorithm>
#include <barrier>
#include <future>
#include <nlohmann/json.hpp>

#include "layout/page.h"

namespace soliton {
namespace {

constexpr int64_t kMostReadBytes = int64_t{4} << 30;
constexpr uint64_t kReadSeed = 1;

void nothing_to_wait_for() {}

/// Of the card that this thread has entered; calls ready() before it begins.
template <class Ready>
ReadRates measure_card(const KernelLibrary& library, int64_t bytes, int repeats, const Ready& ready) {
  const Library& functions = library.functions();
  const DeviceMemory buffer(functions, static_cast<size_t>(bytes));
  // Zeros would cost less power, and leave higher clocks, than weights do.
  library.check(functions.fill_random(buffer.as<void>(), buffer.bytes() / 2, 1.0f, kReadSeed, {}),
                "fill the buffer");
  library.check(functions.finish(), "fill the buffer");
  ready();
  ReadRates rates;
  library.check(functions.measure_bandwidth(buffer.as<void>(), buffer.bytes(), repeats, &rates),
                "measure the read bandwidth");
  return rates;
}

bool warps_are_faster(const ReadRates& rates) {
  return rates.warp_rings >= rates.bulk_ring;
}

}  // namespace

int64_t read_buffer_bytes(int64_t free_bytes) {
  return std::min(kMostReadBytes, free_bytes / 2) / kPageBytes * kPageBytes;
}

ReadBandwidth measure_read_bandwidth(const KernelLibrary& library, int repeats) {
  if (library.device().compute_capability == 0) return {};
  ReadBandwidth bandwidth{.bytes = read_buffer_bytes(library.device().free_bytes)};
  if (bandwidth.bytes == 0) {
    throw Error(ExitCode::kOutOfMemory,
                fmt::format("device memory: expected {} bytes free to measure the read bandwidth, got {}",
                            2 * kPageBytes, library.device().free_bytes));
  }
  if (library.num_cards() == 1) {
    bandwidth.rates = measure_card(library, bandwidth.bytes, repeats, nothing_to_wait_for);
    return bandwidth;
  }
  std::barrier all(library.num_cards());
  std::vector<std::future<ReadRates>> cards;
  for (int card = 0; card < library.num_cards(); ++card) {
    cards.push_back(std::async(std::launch::async, [&, card] {
      library.enter_card(card);
      return measure_card(library, bandwidth.bytes, repeats, [&] { all.arrive_and_wait(); });
    }));
  }
  for (std::future<ReadRates>& card : cards) bandwidth.cards.push_back(card.get());
  bandwidth.rates =
      *std::min_element(bandwidth.cards.begin(), bandwidth.cards.end(),
                        [](const ReadRates& a, const ReadRates& b) { return a.best() < b.best(); });
  return bandwidth;
}

std::string describe(const ReadBandwidth& bandwidth) {
  if (bandwidth.bytes == 0) return "none, the kernel is emulated";
  const ReadRates& rates = bandwidth.rates;
  constexpr double kTera = 1e-12;
  constexpr const char* kWarpRings = "rings of the warps";
  constexpr const char* kBulkRing = "a ring of bulk copies";
  const bool warps = warps_are_faster(rates);
  std::string text = fmt::format("{:.3f} TB/s by {}", rates.best() * kTera, warps ? kWarpRings : kBulkRing);
  if (rates.bulk_ring > 0) {
    const double slower = std::min(rates.bulk_ring, rates.warp_rings);
    text += fmt::format(" ({}: {:.3f})", warps ? kBulkRing : kWarpRings, slower * kTera);
  }
  text += fmt::format(", over {:.1f} GB", static_cast<double>(bandwidth.bytes) * 1e-9);
  if (bandwidth.cards.empty()) return text;
  std::string cards;
  double sum = 0;
  for (const ReadRates& card : bandwidth.cards) {
    cards += fmt::format("{}{:.3f}", cards.empty() ? "" : " + ", card.best() * kTera);
    sum += card.best();
  }
  return text +
         fmt::format("; of {} cards at once {} = {:.3f}, and what follows is of the one that reads the most",
                     bandwidth.cards.size(), cards, sum * kTera);
}

nlohmann::ordered_json as_json(const ReadBandwidth& bandwidth) {
  if (bandwidth.bytes == 0) return nullptr;
  const auto rate = [](double value) {
    return value > 0 ? nlohmann::ordered_json(value) : nlohmann::ordered_json();
  };
  nlohmann::ordered_json json = {{"kernel", warps_are_faster(bandwidth.rates) ? "warp_rings" : "bulk_ring"},
                                 {"warp_rings_bytes_per_s", rate(bandwidth.rates.warp_rings)},
                                 {"bulk_ring_bytes_per_s", rate(bandwidth.rates.bulk_ring)},
                                 {"buffer_bytes", bandwidth.bytes}};
  for (const ReadRates& card : bandwidth.cards) json["cards_bytes_per_s"].push_back(card.best());
  return json;
}

}  // namespace soliton
