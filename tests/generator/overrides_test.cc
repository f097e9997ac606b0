// Overrides of the planner: the table of knobs, the file, and who wins.
#include "generator/overrides.h"

#include <gtest/gtest.h>

#include "error_of.h"
#include "generator/generate.h"
#include "generator/knobs.h"
#include "models/strict_yaml.h"
#include "tests/generator/plan_fixture.h"

namespace soliton {
namespace {

PlanChoices parse(const std::string& text) {
  return parse_overrides(StrictYaml::parse(text, "x.yaml"));
}

std::string parse_error(const std::string& text) {
  return error_of([&] { parse(text); });
}

/// A value that the planner would not choose for the tiny model, and that it can follow.
const std::map<std::string, int> kOther = {
    {"num_ctas", 3},       {"window", 2},     {"waiting_window", 2},      {"consumer_warps", 2},
    {"producer_warps", 3}, {"ring_slots", 5}, {"min_pages_per_split", 7}, {"prefetch_pages", 0}};

TEST(Knobs, EachIsChosenPlannedAndForgottenByItself) {
  const ModelConfig model = shipped_model("tiny-stories");
  for (size_t i = 0; i < kKnobs.size(); ++i) {
    ASSERT_TRUE(kOther.contains(kKnobs[i].name)) << kKnobs[i].name;
    const int value = kOther.at(kKnobs[i].name);
    const bool is_of_bulk =
        std::string_view(kKnobs[i].name) == "waiting_window";  // and producer_warps of copies by lanes
    const GpuSpec gpu = shipped_gpu(is_of_bulk ? "h200" : "a100-80");
    const KnobValues own = knob_values(make_plan(model, gpu));
    PlanChoices choices;
    EXPECT_EQ(kKnobs[i].chosen(choices), std::nullopt);
    kKnobs[i].choose(choices, value);
    for (size_t j = 0; j < kKnobs.size(); ++j) {
      EXPECT_EQ(kKnobs[j].chosen(choices), i == j ? std::optional(value) : std::nullopt) << kKnobs[j].name;
    }
    EXPECT_NE(own[i], value) << kKnobs[i].name;
    EXPECT_EQ(knob_values(make_plan(model, gpu, choices))[i], value) << kKnobs[i].name;
    kKnobs[i].choose(choices, std::nullopt);
    EXPECT_EQ(kKnobs[i].chosen(choices), std::nullopt);
  }
}

TEST(Knobs, EveryCardHasCandidatesInRange) {
  for (const char* gpu : kShippedGpus) {
    for (const Knob& knob : kKnobs) {
      const std::vector<int> candidates = knob.candidates(shipped_gpu(gpu));
      EXPECT_FALSE(candidates.empty()) << knob.name;
      for (const int value : candidates) EXPECT_TRUE(knob.range.contains(value)) << knob.name << " " << value;
    }
  }
}

TEST(Overrides, StandBesideTheModel) {
  EXPECT_EQ(overrides_path("models/tiny.yaml", "h200"), "models/tuned/tiny-h200.yaml");
  EXPECT_EQ(overrides_path("a.b-1.2.yaml", "cpu"), "tuned/a.b-1.2-cpu.yaml");
}

TEST(Overrides, WhatIsWrittenIsRead) {
  PlanChoices choices;
  for (const Knob& knob : kKnobs) {
    knob.choose(choices, kOther.at(knob.name));
    const std::string text = format_overrides(choices, "two\nlines: of [comment");
    EXPECT_EQ(text.rfind("# two\n# lines: of [comment\nnum_ctas: 3\n", 0), 0u) << text;
    const PlanChoices read = parse(text);
    for (const Knob& other : kKnobs) EXPECT_EQ(other.chosen(read), other.chosen(choices)) << other.name;
  }
}

TEST(Overrides, EveryKeyIsOptional) {
  EXPECT_EQ(describe_knobs(parse("{}")), "");
  EXPECT_EQ(describe_knobs(parse("prefetch_pages: 0")), "prefetch_pages 0");
  EXPECT_EQ(describe_knobs(parse("ring_slots: 8\nwindow: 4")), "window 4, ring_slots 8");
}

TEST(Overrides, RefusesEverythingElse) {
  EXPECT_EQ(parse_error("window: 4\nwindows: 4"),
            "4 x.yaml:2: windows: expected one of num_ctas, window, consumer_warps, ring_slots, "
            "min_pages_per_split, prefetch_pages, producer_warps, waiting_window, got an unknown key");
  EXPECT_EQ(parse_error("window: 4\nwindow: 4").rfind("4 x.yaml:2: window: expected this key once", 0), 0u);
  EXPECT_EQ(parse_error("window: 0"), "4 x.yaml:1: window: expected an integer from 1 to 64, got 0");
  EXPECT_EQ(parse_error("window: 65"), "4 x.yaml:1: window: expected an integer from 1 to 64, got 65");
  EXPECT_EQ(parse_error("prefetch_pages: -1"),
            "4 x.yaml:1: prefetch_pages: expected an integer from 0 to 1024, got -1");
  EXPECT_EQ(parse_error("num_ctas: 1.5").rfind("4 x.yaml:1: num_ctas: expected an integer", 0), 0u);
  EXPECT_EQ(parse_error("ring_slots: [8]").rfind("4 x.yaml:1: ring_slots: expected an integer", 0), 0u);
  EXPECT_EQ(parse_error("ring_slots: \"8\"").rfind("4 x.yaml:1: ring_slots: expected an integer", 0), 0u);
  EXPECT_EQ(parse_error("ring_slots:").rfind("4 x.yaml:1: ring_slots: expected an integer", 0), 0u);
  EXPECT_EQ(parse_error("# nothing\n").rfind("4 x.yaml:", 0), 0u);
}

TEST(Overrides, AnAbsentFileIsNoneAndABadOneIsRefused) {
  const TemporaryFolder folder;
  EXPECT_FALSE(load_overrides(folder.path() / "none" / "x.yaml"));
  EXPECT_EQ(load_overrides(folder.write("x.yaml", "window: 4")).value().window, 4);
  EXPECT_EQ(error_of([&] { load_overrides(folder.path()); }).substr(0, 2), "3 ");
  EXPECT_EQ(error_of([&] { load_overrides(folder.write("y.yaml", "- 4")); }).substr(0, 2), "4 ");
}

TEST(Overrides, FlagsWin) {
  const PlanChoices both =
      with_overrides({.window = 2, .sync = SyncMode::kCounter},
                     {.window = 4, .ring_slots = 8, .prefetch_pages = 0}, "/some/models/tuned/tiny-cpu.yaml");
  EXPECT_EQ(describe_knobs(both), "window 2, ring_slots 8, prefetch_pages 0");
  EXPECT_EQ(both.sync, SyncMode::kCounter);
  EXPECT_EQ(both.tuned, "ring_slots 8, prefetch_pages 0 from tuned/tiny-cpu.yaml");
  EXPECT_EQ(with_overrides({.window = 2}, {.window = 4}, "tuned/tiny-cpu.yaml").tuned, "");
  EXPECT_EQ(with_overrides({.prefetch_pages = 0}, {.prefetch_pages = 4}, "x").prefetch_pages, 0);
}

TEST(Overrides, ThePlanNamesThemAndNothingElseChanges) {
  const ModelConfig model = shipped_model("tiny-stories");
  const GpuSpec gpu = shipped_gpu("h200");
  auto plain = generate(model, gpu, {.window = 2}).files;
  auto tuned = generate(model, gpu, with_overrides({}, {.window = 2}, "tuned/tiny.yaml")).files;
  EXPECT_EQ(with(tuned.at("plan.txt"), "tuned: window 2 from tuned/tiny.yaml\n", ""), plain.at("plan.txt"));
  tuned.erase("plan.txt");
  plain.erase("plan.txt");
  EXPECT_EQ(tuned, plain);
}

TEST(Overrides, ARefusedPlanNamesThem) {
  const std::string error = error_of([] {
    generate(shipped_model("tiny-stories"), shipped_gpu("h200"),
             with_overrides({}, {.consumer_warps = 3}, "tuned/tiny-stories-h200.yaml"));
  });
  EXPECT_EQ(error.rfind("5 --consumer-warps: expected", 0), 0u) << error;
  EXPECT_TRUE(error.ends_with("got 3 (consumer_warps 3 from tuned/tiny-stories-h200.yaml)")) << error;
}

}  // namespace
}  // namespace soliton
