#include "runtime/bench/measure.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>

#include "layout/random.h"

namespace soliton {
namespace {

double percentile(std::vector<double> sorted, double share) {
  const size_t index = static_cast<size_t>(std::ceil(share * static_cast<double>(sorted.size()))) - 1;
  return sorted[std::min(index, sorted.size() - 1)];
}

DecodeResult generate_random(Engine& engine, const GenerationTest& test, uint64_t seed) {
  engine.set_position(test.depth);
  const std::vector<int32_t> prompt = random_prompt(1, engine.library().model().facts.vocabulary, seed);
  DecodeRequest request{.tokens = prompt, .max_tokens = test.tokens + 1};
  if (test.sampling) {
    request.sampling = row_sampling(*test.sampling, static_cast<uint32_t>(seed));
    request.want_logprobs = test.sampling->logprobs;
  }
  return engine.decode(request);
}

/// Times of the test's tokens. One more is generated: the first one's time includes the launch, and only differences
/// count.
std::vector<double> time_generation(Engine& engine, const GenerationTest& test, uint64_t seed) {
  const DecodeResult result = generate_random(engine, test, seed);
  std::vector<double> times;
  for (size_t i = 1; i < result.times_ns.size(); ++i) {
    times.push_back(static_cast<double>(result.times_ns[i] - result.times_ns[i - 1]) * 1e-3);
  }
  return times;
}

}  // namespace

std::vector<int32_t> random_prompt(int count, int vocabulary, uint64_t seed) {
  std::vector<int32_t> tokens;
  for (int i = 0; i < count; ++i)
    tokens.push_back(static_cast<int32_t>(random_bits(i, seed) % static_cast<uint32_t>(vocabulary)));
  return tokens;
}

double time_prompt_us(Engine& engine, std::span<const int32_t> prompt) {
  engine.set_position(0);
  const auto begin = std::chrono::steady_clock::now();
  engine.decode({.tokens = prompt, .max_tokens = 1});
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin).count();
}

Rates summarise_rates(const std::vector<double>& rates) {
  Rates summary{.mean = std::accumulate(rates.begin(), rates.end(), 0.0) / static_cast<double>(rates.size())};
  if (rates.size() < 2) return summary;
  double squares = 0;
  for (const double rate : rates) squares += (rate - summary.mean) * (rate - summary.mean);
  summary.deviation = std::sqrt(squares / static_cast<double>(rates.size() - 1));
  return summary;
}

void summarise(const std::vector<std::vector<double>>& repeats, double ceiling, Row& row) {
  std::vector<double> all;
  std::vector<double> rates;
  for (const std::vector<double>& times : repeats) {
    all.insert(all.end(), times.begin(), times.end());
    rates.push_back(1e6 * static_cast<double>(times.size()) /
                    std::accumulate(times.begin(), times.end(), 0.0));
  }
  std::sort(all.begin(), all.end());
  const Rates summary = summarise_rates(rates);
  row.rate = summary.mean;
  row.deviation = summary.deviation;
  row.p50_us = percentile(all, 0.50);
  row.p90_us = percentile(all, 0.90);
  row.p99_us = percentile(all, 0.99);
  row.max_us = all.back();
  row.bandwidth = static_cast<double>(row.bytes) / (row.p50_us * 1e-6);
  row.of_ceiling = ceiling > 0 ? row.bandwidth / ceiling : 0;
}

nlohmann::ordered_json as_json(const Row& row) {
  return {{"test", row.test},
          {"tokens_per_s", row.rate},
          {"tokens_per_s_deviation", row.deviation},
          {"token_us_p50", row.p50_us},
          {"token_us_p90", row.p90_us},
          {"token_us_p99", row.p99_us},
          {"token_us_max", row.max_us},
          {"token_bytes", row.bytes},
          {"bytes_per_s", row.bandwidth},
          {"of_read_bandwidth", row.of_ceiling}};
}

nlohmann::ordered_json as_json(const PromptRow& row) {
  return {{"test", row.test},
          {"tokens_per_s", row.rate},
          {"tokens_per_s_deviation", row.deviation},
          {"first_token_ms_p50", row.p50_ms},
          {"first_token_ms_max", row.max_ms},
          {"flops", row.flops},
          {"flops_per_s", row.flops_rate()}};
}

std::string name_of(const GenerationTest& test) {
  return fmt::format("tg{}{}{}", test.tokens, test.depth > 0 ? fmt::format(" @ d{}", test.depth) : "",
                     test.sampling ? ", sampled" : "");
}

int generate_once(Engine& engine, const GenerationTest& test) {
  return static_cast<int>(generate_random(engine, test, test.seed).tokens.size());
}

Row measure_generation(Engine& engine, const GenerationTest& test, double ceiling,
                       const std::function<void(int)>& on_repeat) {
  Row row{.test = name_of(test)};
  row.bytes = engine.needed_bytes(test.depth + test.tokens / 2);
  time_generation(engine, test, test.seed);  // warms up
  std::vector<std::vector<double>> repeats;
  for (int i = 0; i < test.repeats; ++i) {
    if (on_repeat) on_repeat(i);
    repeats.push_back(time_generation(engine, test, test.seed + i));
  }
  summarise(repeats, ceiling, row);
  return row;
}

}  // namespace soliton
