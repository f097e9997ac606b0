// Costs fitted to measured steps: costs that were planted are found, what no step tells of stays as it was; and a library's
// costs measured, kept and read.
#include "runtime/bench/tree_model.h"

#include <gtest/gtest.h>

#include <fstream>

#include "error_of.h"
#include "runtime/bench/calibrate.h"
#include "runtime/make/measured_costs.h"
#include "temporary_folder.h"

namespace soliton {
namespace {

constexpr TreeShape kShape{
    .num_ctas = 128, .num_kv_heads = 8, .heads_per_kv_head = 4, .head_dim = 128, .max_item_rows = 64};
constexpr TreeCosts kGuessed{
    .item_us = 0.3, .mma_us = 0.002, .read_bytes_per_s = 4.6e12, .exchange_bytes_per_s = 2.7e12};
constexpr TreeCosts kPlanted{
    .item_us = 1.1, .mma_us = 0.0035, .read_bytes_per_s = 3.1e12, .exchange_bytes_per_s = 1.2e12};
constexpr double kOtherUs = 5000;
constexpr const char* kLibrary = SOLITON_KERNELS "/tiny-stories-cpu.so";

ModelFacts facts_of(int num_layers) {
  ModelFacts facts{};
  facts.num_layers = num_layers;
  return facts;
}

TreePlan planned(const TreeSpec& spec, const TreeCosts& costs) {
  constexpr int kSteps = 4;
  KvTree tree(num_pages_needed(spec, kSteps));
  build_tree(tree, spec, kSteps);
  TreeSnapshot snapshot;
  tree.snapshot(snapshot);
  TreePlan plan;
  TreePlanner(kShape, costs, {}).plan(snapshot, kSteps, plan);
  return plan;
}

/// Steps that take as long as the planted costs say, by plans that were made with the guessed ones.
std::vector<MeasuredStep> steps_over(const std::vector<TreeSpec>& specs, const ModelFacts& facts) {
  std::vector<MeasuredStep> steps;
  for (const TreeSpec& spec : specs) {
    MeasuredStep& step = steps.emplace_back(planned(spec, kGuessed));
    step.us = kOtherUs + attention_us(step.plan, kShape, kPlanted, facts);
  }
  return steps;
}

TEST(TreeModel, FindsPlantedCosts) {
  const ModelFacts facts = facts_of(32);
  const std::vector<MeasuredStep> steps = steps_over(calibration_trees(33, 64, 32768, 131072), facts);
  const CostFit fit = fit_costs(steps, kShape, facts, kGuessed);
  EXPECT_LT(fit.errors.worst, 0.005);
  EXPECT_GT(errors_of({kGuessed, kGuessed, kOtherUs}, steps, kShape, facts).worst, 0.02)
      << "guesses would do";
  EXPECT_NEAR(fit.costs.other_us, kOtherUs, 0.01 * kOtherUs);
  EXPECT_NEAR(fit.costs.attention.read_bytes_per_s, kPlanted.read_bytes_per_s,
              0.1 * kPlanted.read_bytes_per_s);
  EXPECT_NEAR(fit.costs.attention.mma_us, kPlanted.mma_us, 0.1 * kPlanted.mma_us);
  // Trees of other shapes, by the plans that the fitted costs lead to.
  for (const TreeSpec& spec : parse_tree_spec("few-shot:50,binary:6,speculative:64,document-qa:32")) {
    const TreePlan plan = planned(spec, fit.costs.attention);
    const double real = kOtherUs + attention_us(plan, kShape, kPlanted, facts);
    EXPECT_NEAR(fit.costs.other_us + attention_us(plan, kShape, fit.costs.attention, facts), real,
                0.02 * real)
        << spec.name;
  }
}

TEST(TreeModel, CostsThatNoStepTellsOfStay) {
  const ModelFacts facts = facts_of(32);
  std::vector<MeasuredStep> steps = steps_over(parse_tree_spec("few-shot:20"), facts);
  const CostFit fit = fit_costs(steps, kShape, facts, kGuessed);
  EXPECT_EQ(fit.costs.attention, kGuessed);
  EXPECT_LT(fit.errors.worst, 1e-9);
  EXPECT_EQ(error_of([&] { fit_costs({}, kShape, facts, kGuessed); }),
            "70 costs of a tree: expected measured steps, got none");
}

TEST(TreeModel, LayersWithWindowsReadLess) {
  const TreePlan plan = planned(parse_tree_spec("parallel:4@16384").at(0), kGuessed);
  ModelFacts facts = facts_of(2);
  const double all = attention_us(plan, kShape, kGuessed, facts);
  facts.layer_window[1] = 1024;
  const double windowed = attention_us(plan, kShape, kGuessed, facts);
  facts.layer_window[0] = 1024;
  EXPECT_NEAR(windowed, (all + attention_us(plan, kShape, kGuessed, facts)) / 2, 1e-6);
  EXPECT_LT(windowed, 0.95 * all);
}

TEST(CalibrationTrees, FitContextAndMemory) {
  const auto count = [](int64_t context, int64_t tokens) {
    return calibration_trees(17, 32, context, tokens).size();
  };
  EXPECT_EQ(count(1 << 20, 1 << 20), 16u);
  EXPECT_EQ(count(8192, 1 << 20), 12u);
  EXPECT_EQ(count(1 << 20, 8192), 7u);
  EXPECT_EQ(count(64, 1 << 20), 0u);
}

class MeasuredCosts : public testing::Test {
 protected:
  MeasuredCosts() : library_(KernelLibrary::open(kLibrary)) { library_.select_device(0); }

  const std::filesystem::path& cache() const { return folder_.path(); }
  std::string file() const { return measured_costs_file(library_, cache()).string(); }
  /// Of a file that says this, without its own name.
  std::string refusal_of(const std::string& text) {
    std::ofstream(file()) << text;
    const std::string refusal = error_of([&] { read_measured_costs(library_, cache()); });
    const size_t at = refusal.find(file());
    EXPECT_NE(at, std::string::npos) << refusal;
    return refusal.substr(at == std::string::npos ? 0 : at + file().size());
  }

  KernelLibrary library_;
  TemporaryFolder folder_;
};

TEST_F(MeasuredCosts, AreKeptForTheirLibrary) {
  EXPECT_TRUE(read_measured_costs(library_, cache()).empty());
  std::vector<std::optional<KernelCosts>> costs(static_cast<size_t>(library_.num_kernels()));
  costs.back() = KernelCosts{.attention = kPlanted, .planned_by = kGuessed, .other_us = 12.5};
  library_.set_measured_costs(costs);
  EXPECT_EQ(library_.planned_costs(library_.num_kernels() - 1), kGuessed);
  EXPECT_EQ(library_.planned_costs(0), library_.card().costs);
  keep_measured_costs(library_, cache());
  EXPECT_EQ(read_measured_costs(library_, cache()), costs);
  costs.pop_back();
  EXPECT_NE(error_of([&] {
              library_.set_measured_costs(costs);
            }).find("measured costs: expected those of 2 kernels, got 1"),
            std::string::npos);
}

TEST_F(MeasuredCosts, OfOtherKernelsOrValuesAreRefused) {
  const auto with = [](int rows, const std::string& rate) {
    const std::string costs =
        R"({"item_us": 1, "mma_us": 1, "exchange_bytes_per_s": 1e9, "read_bytes_per_s": )";
    return R"({"kernels": [{"rows": )" + std::to_string(rows) + R"(, "other_us": 1, "attention": )" + costs +
           rate + R"(}, "planned_by": )" + costs + "1e9}}]}";
  };
  EXPECT_NE(refusal_of("{").find("expected"), std::string::npos);
  EXPECT_EQ(refusal_of("{}"), ": kernels: expected an array, got nothing");
  EXPECT_EQ(refusal_of(with(7, "1e9")),
            std::string(": kernels[0].rows: expected the rows of a kernel of ") + kLibrary + ", got 7");
  EXPECT_EQ(refusal_of(with(8, "0")),
            ": kernels[0].attention.read_bytes_per_s: expected a number in [1000000, 1e+18], got 0");
  std::ofstream(file()) << with(8, "1e9");
  EXPECT_EQ(read_measured_costs(library_, cache()).size(), 2u);
}

/// The smallest trees, in emulation.
TEST(Calibrate, MeasuresAndPlansByWhatItFinds) {
  constexpr int kContext = 128;
  Engine engine(KernelLibrary::open(std::string(SOLITON_TEST_KERNELS) + "/micro-3-rows8.so"),
                {.context = kContext, .pool_tokens = 16 * kContext});
  engine.load_random(1);
  TestProgress progress(0);
  const std::vector<KernelCalibration> found = calibrate(engine, 16 * kContext, 1, 1, progress);
  ASSERT_EQ(found.size(), 1u);
  const KernelCalibration& kernel = found[0];
  EXPECT_EQ(kernel.rows, 8);
  EXPECT_EQ(kernel.tests.size(), 2u);
  for (size_t i = 0; i < kernel.tests.size(); ++i) {
    EXPECT_GT(kernel.before_us.at(i), 0);
    EXPECT_GT(kernel.after_us.at(i), 0);
    EXPECT_GT(kernel.predicted_us.at(i), 0);
  }
  const KernelCosts* costs = engine.library().measured_costs(engine.kernel_for_rows(8));
  ASSERT_NE(costs, nullptr);
  EXPECT_EQ(*costs, kernel.fit.costs);
  EXPECT_EQ(costs->planned_by == costs->attention, kernel.gain() >= 1);
  EXPECT_NE(calibration_table(found).find("\n| 8 | "), std::string::npos);
}

}  // namespace
}  // namespace soliton
