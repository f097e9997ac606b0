// Power, clocks and throttling of a card while something runs on it, asked for again and again by a thread.
#pragma once

#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "runtime/bench/nvml.h"

namespace soliton {

/// Of all samples in which a value was known.
struct ValueRange {
  double least = 0;
  double median = 0;
  double most = 0;
};

struct SensorSummary {
  int num_samples = 0;
  std::optional<ValueRange> sm_mhz = {};
  std::optional<ValueRange> memory_mhz = {};
  std::optional<ValueRange> watts = {};
  std::optional<ValueRange> celsius = {};
  std::optional<double> watts_limit = {};
  /// Share of the samples in which a cause throttled; nothing: not known.
  std::optional<std::map<std::string, double>> throttling = {};
};

/// What the board took between two moments.
struct EnergyUse {
  double joules = 0;
  double seconds = 0;
  bool is_counted = false;  // by the card's own counter; else the mean power of the samples, over the time

  double mean_watts() const { return joules / seconds; }
};

/// Samples a card from its construction on.
class Sensors {
 public:
  explicit Sensors(Nvml nvml, std::chrono::milliseconds interval = std::chrono::milliseconds(20));
  Sensors(const Sensors&) = delete;
  Sensors& operator=(const Sensors&) = delete;
  ~Sensors();

  /// Begins to count energy anew,
  void begin_energy();
  /// and says what it took since then; nothing where the card knows neither energy nor power.
  std::optional<EnergyUse> energy();
  SensorSummary summary() const;

 private:
  void sample_until_stopped();
  void sample();

  const Nvml nvml_;
  const std::chrono::milliseconds interval_;
  mutable std::mutex mutex_;
  std::condition_variable stopping_;
  bool stops_ = false;
  int num_samples_ = 0;
  std::vector<double> sm_mhz_;
  std::vector<double> memory_mhz_;
  std::vector<double> watts_;
  std::vector<double> celsius_;
  int num_throttle_samples_ = 0;
  std::map<std::string, int> throttling_;
  size_t first_watts_ = 0;  // of those since begin_energy()
  std::optional<double> begin_joules_;
  std::chrono::steady_clock::time_point begin_;
  std::thread thread_;  // last: it uses all of the others
};

}  // namespace soliton
