#include "runtime/server/metrics.h"

#include <gmock/gmock.h>

namespace soliton {
namespace {

using testing::HasSubstr;

TEST(Metrics, TextIsWhatPrometheusReads) {
  Metrics metrics;
  metrics.add(Metrics::Counter::kGeneratedTokens, 7);
  metrics.set(Metrics::Gauge::kPages, 12);
  metrics.observe(Metrics::Distribution::kRowsPerStep, 1);
  metrics.observe(Metrics::Distribution::kRowsPerStep, 8);
  metrics.observe(Metrics::Distribution::kRowsPerStep, 100);
  metrics.count_answer("/v1/models", 200);
  const std::string text = metrics.text();
  EXPECT_THAT(text,
              HasSubstr("# TYPE soliton_generated_tokens_total counter\nsoliton_generated_tokens_total 7\n"));
  EXPECT_THAT(text, HasSubstr("# TYPE soliton_kv_pages gauge\nsoliton_kv_pages 12\n"));
  EXPECT_THAT(text, HasSubstr("soliton_rows_per_step_bucket{le=\"1\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("soliton_rows_per_step_bucket{le=\"6\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("soliton_rows_per_step_bucket{le=\"8\"} 2\n"));
  EXPECT_THAT(text, HasSubstr("soliton_rows_per_step_bucket{le=\"64\"} 2\n"));
  EXPECT_THAT(text, HasSubstr("soliton_rows_per_step_bucket{le=\"+Inf\"} 3\n"));
  EXPECT_THAT(text, HasSubstr("soliton_rows_per_step_sum 109\nsoliton_rows_per_step_count 3\n"));
  EXPECT_THAT(text, HasSubstr("soliton_http_requests_total{path=\"/v1/models\",status=\"200\"} 1\n"));
}

}  // namespace
}  // namespace soliton
