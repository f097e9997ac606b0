// What a server has done so far, for Prometheus.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>

namespace soliton {

/// Counts of values up to each bound, as Prometheus has them.
class Histogram {
 public:
  static constexpr size_t kNumBounds = 14;
  using Bounds = std::array<double, kNumBounds>;  // rising

  explicit Histogram(const Bounds& bounds) : bounds_(bounds) {}
  void add(double value);
  /// Lines of the text format.
  std::string text(const std::string& name, const std::string& help) const;

 private:
  Bounds bounds_;
  std::array<uint64_t, kNumBounds + 1> counts_ = {};  // of each bound alone; the last: above all
  double sum_ = 0;
};

/// Any thread may use it.
class Metrics {
 public:
  Metrics();

  enum class Counter {
    kPromptTokens,     // of requests that have begun
    kCachedTokens,     // of these, those that were in the cache
    kGeneratedTokens,  // of all samples
    kLaunches,
    kSteps,
    kDraftedTokens,
    kAcceptedTokens,  // of these, those that the model chose too
    kSentBack,        // samples that gave up their pages for others
    kEvicted,         // branches of the cache
    kRefused,         // requests, as the queue was full
    kCancelled,
    kCount
  };
  enum class Gauge { kRunning, kWaiting, kPages, kFreePages, kKeptBranches, kConnections, kCount };
  enum class Distribution { kFirstTokenS, kTokenS, kRowsPerStep, kRequestS, kCount };

  void add(Counter counter, uint64_t number = 1);
  void set(Gauge gauge, double value);
  void observe(Distribution distribution, double value);
  /// A request of a path that was answered with a status.
  void count_answer(const std::string& path, int status);
  uint64_t value(Counter counter) const;
  double value(Gauge gauge) const;

  /// All of it in the text format of Prometheus.
  std::string text() const;

 private:
  struct Values {
    std::array<uint64_t, static_cast<size_t>(Counter::kCount)> counters = {};
    std::array<double, static_cast<size_t>(Gauge::kCount)> gauges = {};
    std::array<Histogram, static_cast<size_t>(Distribution::kCount)> distributions;
    std::map<std::pair<std::string, int>, uint64_t> answers = {};
  };

  mutable std::mutex mutex_;
  Values values_;  // guarded by the mutex
};

}  // namespace soliton
