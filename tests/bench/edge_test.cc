// soliton-bench --edge without an engine: which tests it takes, and what becomes of a report.
#include "runtime/bench/edge.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string_view>

#include "error_of.h"

namespace soliton {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

ModelFacts with_context(int max_context) {
  ModelFacts facts{};
  facts.max_context = max_context;
  return facts;
}

EdgeTest usual(const EdgeTest& asked, int max_context) {
  return usual_edge_test(asked, with_context(max_context), false);
}

TEST(EdgeTest, TakesWhatIsUsual) {
  const EdgeTest test = usual({}, 131072);
  EXPECT_THAT(test.prompts, ElementsAre(32, 512, 2048));
  EXPECT_THAT(test.contexts, ElementsAre(128, 2048));
  EXPECT_EQ(test.tokens, 128);
  EXPECT_THAT(test.left_out, IsEmpty());
  EXPECT_EQ(edge_context(test), 2048 + 128 + 1);
  const EdgeTest emulated = usual_edge_test({}, with_context(131072), true);
  EXPECT_LT(edge_context(emulated), 100);
}

TEST(EdgeTest, TakesWhatIsAskedFor) {
  const EdgeTest test = usual({.prompts = {7}, .contexts = {0, 9}, .tokens = 3, .repeats = 2}, 100);
  EXPECT_THAT(test.prompts, ElementsAre(7));
  EXPECT_THAT(test.contexts, ElementsAre(0, 9));
  EXPECT_EQ(test.tokens, 3);
  EXPECT_EQ(test.repeats, 2);
  EXPECT_EQ(edge_context(test), 9 + 3 + 1);
}

TEST(EdgeTest, LeavesOutWhatTheModelHasNoRoomFor) {
  const EdgeTest exact = usual({}, 2048 + 129);
  EXPECT_THAT(exact.left_out, IsEmpty());
  const EdgeTest less = usual({}, 2048 + 128);
  EXPECT_THAT(less.prompts, ElementsAre(32, 512, 2048));
  EXPECT_THAT(less.contexts, ElementsAre(128));
  EXPECT_THAT(less.left_out, ElementsAre("128 tokens at context 2048: the model takes 2176 in all"));
  const EdgeTest small = usual({}, 511);
  EXPECT_THAT(small.prompts, ElementsAre(32));
  EXPECT_EQ(small.left_out.size(), 3u);
  EXPECT_EQ(small.left_out.front(), "a prompt of 512 tokens: the model takes 511");
  EXPECT_EQ(
      error_of([] { usual({}, 16); }),
      "7 --edge: expected a test that fits the model, left out a prompt of 32 tokens: the model takes 16");
}

/// Of a card that knows everything about itself.
EdgeReport full_report() {
  EdgeReport report{.command = "soliton-bench --edge",
                    .model = "a<b&c",
                    .weights = "random",
                    .kernel_gpu = "h200",
                    .num_ctas = 132};
  std::string_view("NVIDIA H200").copy(report.device.name, sizeof(report.device.name) - 1);
  report.device.compute_capability = 90;
  report.device.driver_version = 13000;
  report.bandwidth = {.bytes = int64_t{4} << 30, .rates = {.bulk_ring = 4.6e12, .warp_rings = 4.66e12}};
  report.test = {.prompts = {32}, .contexts = {128}, .tokens = 128, .repeats = 5};
  report.test.left_out = {"a prompt of 2048 tokens: the model takes 1024"};
  report.prompts = {{.tokens = 32, .first_token_ms = 12.5, .worst_ms = 13}};
  EdgeContext context{.tokens = 128, .predicted_us = 3300};
  context.row = {
      .test = "tg128 @ d128", .rate = 294, .p50_us = 3400, .p90_us = 3410, .p99_us = 3500, .max_us = 4200};
  context.row.of_ceiling = 0.956;
  context.energy = EnergyUse{.joules = 2000, .seconds = 4, .is_counted = true};
  context.energy_tokens = 1000;
  report.contexts = {context};
  report.memory = {.weights = 16'000'000'000,
                   .cache = 400'000'000,
                   .device = 16'500'000'000,
                   .device_total = 150'000'000'000,
                   .host_peak = 1'000'000'000};
  report.load_s = 1.25;
  report.make_s = 42;
  report.sensors = SensorSummary{.num_samples = 200,
                                 .sm_mhz = ValueRange{345, 1755, 1980},
                                 .memory_mhz = ValueRange{3201, 3201, 3201},
                                 .watts = ValueRange{80, 500, 520},
                                 .celsius = ValueRange{40, 55, 61},
                                 .watts_limit = 700,
                                 .throttling = std::map<std::string, double>{{"power cap", 0.25}}};
  report.predicted_for = "h200";
  return report;
}

/// Of one that says nothing.
EdgeReport silent_report() {
  EdgeReport report = full_report();
  report.sensors.reset();
  report.no_sensors = "no NVML";
  report.make_s.reset();
  report.predicted_for.clear();
  report.not_predicted = "no spec";
  report.contexts.front().predicted_us.reset();
  report.contexts.front().energy.reset();
  report.memory.device.reset();
  return report;
}

TEST(EdgeReport, TellsAllAsJson) {
  const auto json = nlohmann::json::parse(edge_json(full_report()));
  EXPECT_EQ(json.at("prompts")[0].at("tokens"), 32);
  EXPECT_EQ(json.at("prompts")[0].at("first_token_ms_p50"), 12.5);
  EXPECT_EQ(json.at("prompts")[0].at("tokens_per_s"), 2560);
  const auto& row = json.at("rows")[0];
  EXPECT_EQ(row.at("test"), "tg128 @ d128");  // as in other results, for those who read them
  EXPECT_EQ(row.at("context"), 128);
  EXPECT_EQ(row.at("token_us_p99"), 3500);
  EXPECT_EQ(row.at("predicted_token_us"), 3300);
  EXPECT_EQ(row.at("mean_watts"), 500);
  EXPECT_EQ(row.at("tokens_per_joule"), 0.5);
  EXPECT_EQ(row.at("energy_is_counted"), true);
  EXPECT_EQ(json.at("make_s"), 42);
  EXPECT_EQ(json.at("load_s"), 1.25);
  EXPECT_EQ(json.at("memory").at("device_bytes"), 16'500'000'000);
  EXPECT_EQ(json.at("sensors").at("sm_mhz").at("min"), 345);
  EXPECT_EQ(json.at("sensors").at("throttling").at("power cap"), 0.25);
  EXPECT_EQ(json.at("left_out").size(), 1u);
}

TEST(EdgeReport, SaysNullForWhatIsNotKnown) {
  const auto json = nlohmann::json::parse(edge_json(silent_report()));
  for (const char* key : {"predicted_token_us", "mean_watts", "tokens_per_joule", "energy_is_counted"}) {
    EXPECT_TRUE(json.at("rows")[0].at(key).is_null()) << key;
  }
  for (const char* key : {"sm_mhz", "memory_mhz", "watts", "watts_limit", "celsius", "throttling"}) {
    EXPECT_TRUE(json.at("sensors").at(key).is_null()) << key;
  }
  EXPECT_EQ(json.at("sensors").at("absent"), "no NVML");
  EXPECT_TRUE(json.at("make_s").is_null());
  EXPECT_TRUE(json.at("predicted_for").is_null());
  EXPECT_TRUE(json.at("memory").at("device_bytes").is_null());
}

TEST(EdgeReport, IsATextToPublish) {
  const std::string full = edge_markdown(full_report());
  for (const char* line :
       {"a<b&c on NVIDIA H200, kernel for h200, driver 13000, weights: random\n",
        "| 32 | 12.50 | 13.00 | 2560.0 |\n",
        "| 128 | 294.00 | 3400.0 | 3410.0 | 3500.0 | 4200.0 | 3300.0 | 95.6% | 500.0 | 0.500 |\n",
        "| device memory | 16.50 GB of 150.00 GB (weights 16.00 GB, cache 0.40 GB) |\n",
        "| making the kernel | 42.0 s |\n", "| SM clock | 1755 MHz (345 to 1980) |\n",
        "| power | 500 W (80 to 520), limit 700 W |\n", "| throttling | power cap in 25% of samples |\n",
        "| prediction | of the spec h200 |\n", "Left out: a prompt of 2048 tokens: the model takes 1024\n"}) {
    EXPECT_THAT(full, HasSubstr(line));
  }
  EXPECT_THAT(full, Not(HasSubstr("n/a")));
  const std::string silent = edge_markdown(silent_report());
  for (const char* line :
       {" | 4200.0 | n/a | 95.6% | n/a | n/a |\n", "| making the kernel | n/a: it was there |\n",
        "| power | n/a |\n", "| throttling | n/a |\n", "| sensors | n/a: no NVML |\n",
        "| prediction | n/a: no spec |\n"}) {
    EXPECT_THAT(silent, HasSubstr(line));
  }
}

TEST(EdgeReport, SaysThatNothingThrottled) {
  EdgeReport report = full_report();
  report.sensors->throttling->clear();
  EXPECT_THAT(edge_markdown(report), HasSubstr("| throttling | none |\n"));
}

/// Elements of an XML text that is well-formed as far as its tags go; fails where they are not.
int count_elements(std::string_view xml) {
  std::vector<std::string> open;
  int count = 0;
  for (size_t at = xml.find('<'); at != std::string_view::npos; at = xml.find('<', at + 1)) {
    const size_t end = xml.find('>', at);
    const std::string tag(xml.substr(at + 1, end - at - 1));
    if (tag.starts_with("?")) continue;
    const std::string name =
        tag.substr(tag.starts_with("/"), tag.find_first_of(" /", 1) - tag.starts_with("/"));
    if (tag.starts_with("/")) {
      EXPECT_TRUE(!open.empty() && open.back() == tag.substr(1)) << tag;
      if (!open.empty()) open.pop_back();
      continue;
    }
    ++count;
    EXPECT_EQ(std::count(tag.begin(), tag.end(), '"') % 2, 0) << tag;
    if (!tag.ends_with("/")) open.push_back(name);
  }
  EXPECT_THAT(open, IsEmpty());
  return count;
}

TEST(EdgeReport, IsAPage) {
  const std::string page = edge_svg(full_report());
  EXPECT_TRUE(page.starts_with("<?xml version=\"1.0\" encoding=\"utf-8\"?>\n<svg xmlns="));
  EXPECT_TRUE(page.ends_with("</svg>\n"));
  EXPECT_GT(count_elements(page), 50);
  for (const char* text :
       {">a&lt;b&amp;c on NVIDIA H200</text>", ">32 tokens</text>", ">12.5 ms, 2560 tokens/s</text>",
        ">context 128</text>", ">3.40 ms, 294.0 tokens/s, 0.50/J</text>", "<title>predicted: 3.30 ms</title>",
        "<title>max: 4.20 ms</title>", ">power cap in 25% of samples</text>",
        ">Left out: a prompt of 2048"}) {
    EXPECT_THAT(page, HasSubstr(text));
  }
  EXPECT_EQ(page, edge_svg(full_report()));
  for (const char* reference : {"href", "url(", "<script", "<image", "nan", "inf"}) {
    EXPECT_THAT(page, Not(HasSubstr(reference)));
  }
}

TEST(EdgeReport, IsAPageOfWhatThereIs) {
  EdgeReport report = silent_report();
  EXPECT_THAT(edge_svg(report), Not(HasSubstr("<title>predicted")));
  report.prompts.clear();
  report.no_sensors = std::string(70, 'x') + " behind";  // a line is full with that
  EXPECT_THAT(edge_svg(report), HasSubstr("xxx</text>"));
  const std::string page = edge_svg(report);
  count_elements(page);
  EXPECT_THAT(page, Not(HasSubstr("Time to the first token")));
  EXPECT_THAT(page, HasSubstr("Time per token"));
}

}  // namespace
}  // namespace soliton
