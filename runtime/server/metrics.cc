#include "runtime/server/metrics.h"

#include <fmt/format.h>

#include <algorithm>

namespace soliton {
namespace {

/// What a metric is called and what it counts.
struct MetricName {
  const char* name;
  const char* help;
};

constexpr std::array<MetricName, static_cast<size_t>(Metrics::Counter::kCount)> kCounters = {{
    {"soliton_prompt_tokens_total", "Tokens of the prompts that have begun"},
    {"soliton_prompt_tokens_cached_total", "Tokens of these prompts whose keys and values were cached"},
    {"soliton_generated_tokens_total", "Tokens generated"},
    {"soliton_launches_total", "Launches of kernels that decoded or fed"},
    {"soliton_steps_total", "Steps that decoded"},
    {"soliton_drafted_tokens_total", "Tokens drafted"},
    {"soliton_accepted_tokens_total", "Of these, those that the model chose too"},
    {"soliton_sent_back_total", "Samples that gave up their pages and waited again"},
    {"soliton_cache_evictions_total", "Branches of the prefix cache that were given up for their pages"},
    {"soliton_refused_total", "Requests refused because the queue was full"},
    {"soliton_cancelled_total", "Samples whose client went away"},
}};

constexpr std::array<MetricName, static_cast<size_t>(Metrics::Gauge::kCount)> kGauges = {{
    {"soliton_samples_running", "Samples that have a row"},
    {"soliton_samples_waiting", "Samples in the queue"},
    {"soliton_kv_pages", "KV pages of 64 tokens"},
    {"soliton_kv_pages_free", "Of these, those that hold nothing"},
    {"soliton_cache_branches", "Ended sequences that the prefix cache keeps"},
    {"soliton_connections", "Open connections"},
}};

constexpr std::array<MetricName, static_cast<size_t>(Metrics::Distribution::kCount)> kDistributions = {{
    {"soliton_time_to_first_token_seconds", "From a request to the first token of each sample"},
    {"soliton_time_per_token_seconds", "Between two tokens of a sample"},
    {"soliton_rows_per_step", "Rows that a step decoded or fed"},
    {"soliton_request_seconds", "From a request to the end of its answer"},
}};

// Three a decade, about.
constexpr Histogram::Bounds kSeconds = {.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 10, 60, 600};
constexpr Histogram::Bounds kTokenSeconds = {.00005, .0001, .00025, .0005, .001, .0025, .005,
                                             .01,    .025,  .05,    .1,    .25,  1,     10};
constexpr Histogram::Bounds kRows = {1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 40, 48, 56, 64};

std::string headed(const MetricName& metric, const char* type) {
  return fmt::format("# HELP {0} {1}\n# TYPE {0} {2}\n", metric.name, metric.help, type);
}

}  // namespace

void Histogram::add(double value) {
  ++counts_[static_cast<size_t>(std::lower_bound(bounds_.begin(), bounds_.end(), value) - bounds_.begin())];
  sum_ += value;
}

std::string Histogram::text(const std::string& name, const std::string& help) const {
  std::string text = headed({name.c_str(), help.c_str()}, "histogram");
  uint64_t count = 0;
  for (size_t i = 0; i < kNumBounds; ++i) {
    count += counts_[i];
    text += fmt::format("{}_bucket{{le=\"{}\"}} {}\n", name, bounds_[i], count);
  }
  count += counts_[kNumBounds];
  return text + fmt::format("{0}_bucket{{le=\"+Inf\"}} {1}\n{0}_sum {2}\n{0}_count {1}\n", name, count, sum_);
}

Metrics::Metrics()
    : values_{.distributions = {Histogram(kSeconds), Histogram(kTokenSeconds), Histogram(kRows),
                                Histogram(kSeconds)}} {}

void Metrics::add(Counter counter, uint64_t number) {
  const std::lock_guard lock(mutex_);
  values_.counters[static_cast<size_t>(counter)] += number;
}

void Metrics::set(Gauge gauge, double value) {
  const std::lock_guard lock(mutex_);
  values_.gauges[static_cast<size_t>(gauge)] = value;
}

void Metrics::observe(Distribution distribution, double value) {
  const std::lock_guard lock(mutex_);
  values_.distributions[static_cast<size_t>(distribution)].add(value);
}

void Metrics::count_answer(const std::string& path, int status) {
  const std::lock_guard lock(mutex_);
  ++values_.answers[{path, status}];
}

uint64_t Metrics::value(Counter counter) const {
  const std::lock_guard lock(mutex_);
  return values_.counters[static_cast<size_t>(counter)];
}

double Metrics::value(Gauge gauge) const {
  const std::lock_guard lock(mutex_);
  return values_.gauges[static_cast<size_t>(gauge)];
}

/// Whoever counts meanwhile waits for a copy, not for the text.
std::string Metrics::text() const {
  const Values values = [this] {
    const std::lock_guard lock(mutex_);
    return values_;
  }();
  std::string text;
  for (size_t i = 0; i < values.counters.size(); ++i) {
    text += headed(kCounters[i], "counter") + fmt::format("{} {}\n", kCounters[i].name, values.counters[i]);
  }
  for (size_t i = 0; i < values.gauges.size(); ++i) {
    text += headed(kGauges[i], "gauge") + fmt::format("{} {}\n", kGauges[i].name, values.gauges[i]);
  }
  for (size_t i = 0; i < values.distributions.size(); ++i) {
    text += values.distributions[i].text(kDistributions[i].name, kDistributions[i].help);
  }
  text += headed({"soliton_http_requests_total", "Requests answered, by path and status"}, "counter");
  for (const auto& [key, count] : values.answers) {
    text += fmt::format("soliton_http_requests_total{{path=\"{}\",status=\"{}\"}} {}\n", key.first,
                        key.second, count);
  }
  return text;
}

}  // namespace soliton
