// The picture of a plan: all of the plan is in it, and it is the one that the README shows.
#include "generator/draw_plan.h"

#include <gtest/gtest.h>

#include <regex>

#include "error_of.h"
#include "generator/generate.h"
#include "tests/generator/plan_fixture.h"

namespace soliton {
namespace {

/// Tiles that the bars of a phase stand for, by their titles: "qkv: CTA 0 to 127, 3 tiles each".
int drawn_tiles(const std::string& picture, const std::string& phase) {
  const std::regex bar("<title>" + phase + ": CTA (\\d+) to (\\d+), (\\d+) tiles each</title>");
  int tiles = 0;
  for (std::sregex_iterator at(picture.begin(), picture.end(), bar), end; at != end; ++at)
    tiles += (std::stoi((*at)[2]) - std::stoi((*at)[1]) + 1) * std::stoi((*at)[3]);
  return tiles;
}

TEST(DrawPlan, HasEveryTileOfEveryPhase) {
  for (const char* gpu : kShippedGpus) {
    for (const char* model : kShippedModels) {
      const Plan plan = shipped_plan(model, gpu);
      const std::string picture = draw(plan);
      for (const PlanPhase& phase : plan.phases) {
        const int dealt = phase.matrix < 0 ? 0 : dealt_tiles(plan, phase);
        EXPECT_EQ(drawn_tiles(picture, phase.name), dealt) << model << " on " << gpu << ": " << phase.name;
      }
      EXPECT_EQ(picture, draw(plan));
    }
  }
}

TEST(DrawPlan, HasTheRingAndWhatIsInFlight) {
  const Plan plan = shipped_plan("llama-3.1-8b", "h200");
  const std::string picture = draw(plan);
  const auto count = [&](const std::string& text) {
    int found = 0;
    for (size_t at = 0; (at = picture.find(text, at)) != std::string::npos; ++at) ++found;
    return found;
  };
  EXPECT_EQ(count("<title>page "), plan.ring_slots);
  EXPECT_EQ(count(fmt::format("A ring of {} pages, of which {} are in flight", plan.ring_slots, plan.window)),
            1);
  for (const PlanRegion& region : plan.shared)
    EXPECT_EQ(count("<title>" + region.name + ": "), 1) << region.name;
}

// Whoever draws with a number that is none, or beyond the page, is found out.
TEST(DrawPlan, StaysOnThePage) {
  const PlanChoices choices[] = {{}, {.rows = 8}, {.rows = 128}};
  for (const PlanChoices& each : choices) {
    const std::string picture = draw(shipped_plan("llama-3.1-8b", "h200", each));
    EXPECT_TRUE(picture.ends_with("</svg>\n"));
    for (const char* word : {"nan", "inf", "\"-"}) EXPECT_EQ(picture.find(word), std::string::npos) << word;
    const std::regex shape(R"re(<rect x="([\d.]+)" y="([\d.]+)" width="([\d.]+)" height="([\d.]+)")re");
    std::smatch page;
    ASSERT_TRUE(std::regex_search(picture, page, std::regex(R"re(width="(\d+)" height="(\d+)")re")));
    for (std::sregex_iterator at(picture.begin(), picture.end(), shape), end; at != end; ++at) {
      EXPECT_LE(std::stod((*at)[1]) + std::stod((*at)[3]), std::stod(page[1]) + 0.1);
      EXPECT_LE(std::stod((*at)[2]) + std::stod((*at)[4]), std::stod(page[2]) + 0.1);
    }
  }
}

// To draw it anew: the target `regenerate`.
TEST(DrawPlan, IsThePictureOfTheDocuments) {
  const Generated made =
      generate(shipped_model("llama-3.1-8b"), std::vector{shipped_gpu("h200"), shipped_gpu("h100")},
               shipped_choices("llama-3.1-8b", "h200"));
  EXPECT_TRUE(read_file(std::string(SOLITON_SOURCE_DIR) + "/generator/llama-3.1-8b.svg") == draw(made.plan))
      << "generator/llama-3.1-8b.svg differs: regenerate it and look at it";
}

}  // namespace
}  // namespace soliton
