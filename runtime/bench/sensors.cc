#include "runtime/bench/sensors.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace soliton {
namespace {

std::optional<ValueRange> range_of(std::vector<double> values) {
  if (values.empty()) return std::nullopt;
  std::sort(values.begin(), values.end());
  return ValueRange{values.front(), values[values.size() / 2], values.back()};
}

template <class Value>
void keep(std::optional<Value> value, std::vector<double>& values) {
  if (value) values.push_back(static_cast<double>(*value));
}

}  // namespace

Sensors::Sensors(Nvml nvml, std::chrono::milliseconds interval)
    : nvml_(std::move(nvml)), interval_(interval) {
  begin_energy();
  thread_ = std::thread([this] { sample_until_stopped(); });
}

Sensors::~Sensors() {
  {
    const std::lock_guard lock(mutex_);
    stops_ = true;
  }
  stopping_.notify_all();
  thread_.join();
}

void Sensors::sample_until_stopped() {
  std::unique_lock lock(mutex_);
  do {
    sample();
  } while (!stopping_.wait_for(lock, interval_, [this] { return stops_; }));
}

void Sensors::sample() {
  ++num_samples_;
  keep(nvml_.sm_mhz(), sm_mhz_);
  keep(nvml_.memory_mhz(), memory_mhz_);
  keep(nvml_.watts(), watts_);
  keep(nvml_.celsius(), celsius_);
  const std::optional<uint64_t> bits = nvml_.throttling();
  if (!bits) return;
  ++num_throttle_samples_;
  for (const std::string& name : names_of_throttling(*bits)) ++throttling_[name];
}

void Sensors::begin_energy() {
  const std::lock_guard lock(mutex_);
  first_watts_ = watts_.size();
  begin_joules_ = nvml_.joules();
  begin_ = std::chrono::steady_clock::now();
}

std::optional<EnergyUse> Sensors::energy() {
  const std::lock_guard lock(mutex_);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
  const std::optional<double> joules = nvml_.joules();
  if (begin_joules_ && joules) return EnergyUse{*joules - *begin_joules_, seconds, true};
  const auto first = watts_.begin() + static_cast<std::ptrdiff_t>(first_watts_);
  if (first == watts_.end()) return std::nullopt;
  const double mean = std::accumulate(first, watts_.end(), 0.0) / static_cast<double>(watts_.end() - first);
  return EnergyUse{mean * seconds, seconds, false};
}

SensorSummary Sensors::summary() const {
  const std::lock_guard lock(mutex_);
  SensorSummary summary{.num_samples = num_samples_,
                        .sm_mhz = range_of(sm_mhz_),
                        .memory_mhz = range_of(memory_mhz_),
                        .watts = range_of(watts_),
                        .celsius = range_of(celsius_),
                        .watts_limit = nvml_.watts_limit()};
  if (num_throttle_samples_ == 0) return summary;
  summary.throttling.emplace();
  for (const auto& [name, count] : throttling_)
    (*summary.throttling)[name] = 1.0 * count / num_throttle_samples_;
  return summary;
}

}  // namespace soliton
