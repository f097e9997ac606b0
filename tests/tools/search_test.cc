// The search over the knobs, with a planted optimum instead of a card.
#include "runtime/bench/tune/search.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <set>

#include "generator/overrides.h"
#include "models/error.h"

namespace soliton {
namespace {

constexpr size_t kCtas = 0;
constexpr size_t kWindow = 1;
constexpr size_t kWarps = 2;
constexpr size_t kRing = 3;
constexpr double kSlowest = 1000;

const GpuSpec kCard = {.name = "card", .num_sms = 132};

Knob knob(const std::string& name) {
  return *std::find_if(kKnobs.begin(), kKnobs.end(), [&](const Knob& k) { return k.name == name; });
}

/// Plans as told, and takes the time that `us` gives.
class Planted : public Trials {
 public:
  Planned plan(const PlanChoices& choices) override {
    KnobValues values = own;
    for (size_t i = 0; i < kKnobs.size(); ++i) values[i] = kKnobs[i].chosen(choices).value_or(values[i]);
    if (refused(values)) return {.refusal = "refused"};
    return {.values = values};
  }
  std::vector<std::string> build(const std::vector<KnobValues>& plans) override {
    std::vector<std::string> refusals;
    for (const KnobValues& plan : plans) {
      EXPECT_TRUE(built.insert(plan).second) << "built twice";
      refusals.push_back(spills(plan) ? "spills" : "");
    }
    return refusals;
  }
  std::vector<double> measure(const KnobValues& plan) override {
    EXPECT_TRUE(built.contains(plan));
    ++measured;
    if (stalls(plan)) throw Error(ExitCode::kDevice, "stalled");
    return us(plan);
  }

  KnobValues own = {128, 3, 4, 10, 2, 8};
  std::function<bool(const KnobValues&)> refused = [](const auto&) { return false; };
  std::function<bool(const KnobValues&)> spills = refused;
  std::function<bool(const KnobValues&)> stalls = refused;
  std::function<std::vector<double>(const KnobValues&)> us;
  std::set<KnobValues> built;
  int measured = 0;
};

/// Time that grows with each knob's distance from the optimum, each knob by itself.
std::function<std::vector<double>(const KnobValues&)> bowl(const KnobValues& optimum) {
  return [optimum](const KnobValues& values) {
    double us = kSlowest;
    for (size_t i = 0; i < values.size(); ++i) us *= 1 + 0.01 * std::abs(values[i] - optimum[i]);
    return std::vector{us, 2 * us};
  };
}

SearchResult run(Planted& planted, const std::optional<PlanChoices>& start = {},
                 std::vector<Knob> knobs = {kKnobs.begin(), kKnobs.end()}) {
  return search(planted, kCard, start, knobs, [](const Trial&) {});
}

TEST(Search, FindsThePlantedOptimum) {
  Planted planted;
  planted.us = bowl({132, 6, 8, 12, 3, 0, 4, 2});
  const SearchResult result = run(planted);
  EXPECT_EQ(result.trials[result.best].values, (KnobValues{132, 6, 8, 12, 3, 0, 4, 2}));
  for (size_t i = 0; i < kKnobs.size(); ++i) {
    EXPECT_EQ(kKnobs[i].chosen(result.chosen), result.trials[result.best].values[i]) << kKnobs[i].name;
  }
}

TEST(Search, LeavesOutWhatThePlannerChoosesAnyway) {
  Planted planted;
  KnobValues optimum = planted.own;
  optimum[kCtas] = 132;
  optimum[kWindow] = 4;
  planted.us = bowl(optimum);
  const PlanChoices start{.num_ctas = 132, .consumer_warps = 4, .prefetch_pages = 8};
  const SearchResult result = run(planted, start);
  EXPECT_EQ(describe_knobs(result.chosen), "num_ctas 132, window 4");
}

TEST(Search, KeepsThePlannersChoiceIfNothingBeatsIt) {
  Planted planted;
  planted.us = bowl(planted.own);
  const SearchResult result = run(planted);
  EXPECT_EQ(result.best, 0u);
  for (const Knob& knob : kKnobs) EXPECT_FALSE(knob.chosen(result.chosen)) << knob.name;
  EXPECT_GT(result.trials.size(), 10u);
}

TEST(Search, TheNoiseMarginDecides) {
  for (const auto& [gain, best] : {std::pair{0.9 * kNoise, 3}, std::pair{1.1 * kNoise, 4}}) {
    Planted planted;
    planted.us = [gain = gain](const KnobValues& values) {
      return std::vector{values[kWindow] == 4 ? kSlowest * (1 - gain) : kSlowest};
    };
    const SearchResult result = run(planted);
    EXPECT_EQ(result.trials[result.best].values[kWindow], best) << gain;
  }
}

TEST(Search, TheGeometricMeanOverDepthsDecides) {
  EXPECT_DOUBLE_EQ(geometric_mean(std::vector{2.0, 8.0}), 4.0);
  // A twentieth faster at one depth; slower at the other by less, or by more.
  for (const auto& [deep_us, best] : {std::pair{1040.0, 4}, std::pair{1060.0, 3}}) {
    Planted planted;
    planted.us = [deep_us = deep_us](const KnobValues& values) {
      return values[kWindow] == 4 ? std::vector{95.0, deep_us} : std::vector{100.0, 1000.0};
    };
    const SearchResult result = run(planted, {}, {knob("window")});
    EXPECT_EQ(result.trials[result.best].values[kWindow], best) << deep_us;
  }
}

TEST(Search, TheIncumbentIsMeasuredAgainBesideItsRivals) {
  // Everything gets slower with time, and what is tried last never as fast as the first look at the incumbent.
  Planted planted;
  planted.us = [&](const KnobValues& values) {
    const double drift = 1 + 0.01 * planted.measured;
    return std::vector{(values[kWindow] == 4 ? 0.95 : 1.0) * kSlowest * drift};
  };
  const SearchResult result = run(
      planted, {}, {knob("ring_slots"), knob("min_pages_per_split"), knob("prefetch_pages"), knob("window")});
  EXPECT_EQ(result.trials[result.best].values[kWindow], 4);
}

TEST(Search, ALuckyMeasurementIsFoundOut) {
  Planted planted;
  std::set<KnobValues> seen;
  planted.us = [&](const KnobValues& values) {
    const bool lucky = values[kWindow] == 4 && seen.insert(values).second;
    return std::vector{lucky ? 0.9 * kSlowest : kSlowest};
  };
  const SearchResult result = run(planted, {}, {knob("window")});
  EXPECT_EQ(result.best, 0u);
}

TEST(Search, SurvivesWhatIsRefusedSpillsOrStalls) {
  Planted planted;
  planted.us = bowl({132, 4, 8, 12, 2, 8});
  planted.refused = [](const KnobValues& values) { return values[kRing] == 12; };
  planted.spills = [](const KnobValues& values) { return values[kWarps] == 8; };
  planted.stalls = [](const KnobValues& values) { return values[kCtas] == 132; };
  const SearchResult result = run(planted);
  EXPECT_EQ(result.trials[result.best].values, (KnobValues{128, 4, 4, 13, 2, 8}));
  std::multiset<std::string> refusals;
  for (const Trial& trial : result.trials) {
    if (!trial.refusal.empty()) refusals.insert(trial.refusal);
  }
  EXPECT_EQ(refusals, (std::multiset<std::string>{"refused", "spills", "stalled"}));
}

TEST(Search, StartsFromTheOverridesIfTheyAreFaster) {
  KnobValues optimum = Planted().own;
  optimum[kRing] = 7;  // no candidate
  for (const int ring : {7, 64}) {
    Planted planted;
    planted.us = bowl(optimum);
    const SearchResult result = run(planted, PlanChoices{.ring_slots = ring}, {knob("window")});
    EXPECT_EQ(result.chosen.ring_slots, ring == 7 ? 7 : 0);
    EXPECT_EQ(result.best == 0, ring != 7);
  }
}

TEST(Search, TriesOnlyTheNamedKnobs) {
  Planted planted;
  planted.us = bowl({132, 6, 8, 12, 3, 0, 4, 2});
  const SearchResult result = run(planted, {}, {knob("window")});
  EXPECT_EQ(result.trials.size(), 4u);  // 2, 4 and 6 beside 3
  EXPECT_EQ(result.chosen.window, 6);
}

TEST(Search, NeedsAChoiceOfThePlannerThatRuns) {
  const auto code = [](Planted& planted) {
    planted.us = bowl(planted.own);
    try {
      run(planted);
    } catch (const Error& error) {
      return static_cast<int>(error.code());
    }
    return 0;
  };
  Planted refused;
  refused.refused = [](const auto&) { return true; };
  EXPECT_EQ(code(refused), 5);
  Planted spills;
  spills.spills = refused.refused;
  EXPECT_EQ(code(spills), 5);
  Planted stalls;
  stalls.stalls = refused.refused;
  EXPECT_EQ(code(stalls), 6);
}

}  // namespace
}  // namespace soliton
