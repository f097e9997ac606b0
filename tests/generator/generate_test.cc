// The passes together: what comes out, and that a plan that cannot be sound ends in one line.
#include "generator/generate.h"

#include <gtest/gtest.h>

#include <set>

#include "error_of.h"
#include "tests/generator/plan_fixture.h"

namespace soliton {
namespace {

std::set<std::string> names(const std::map<std::string, std::string>& texts) {
  std::set<std::string> result;
  for (const auto& [name, text] : texts) result.insert(name);
  return result;
}

Generated generate_shipped(const std::string& model, const std::string& gpu,
                           const PlanChoices& choices = {}) {
  return generate(shipped_model(model), shipped_gpu(gpu), choices);
}

TEST(Generate, ThreeFilesAndADumpOfEachPass) {
  const Generated generated = generate_shipped("tiny-stories", "cpu");
  EXPECT_EQ(names(generated.files), (std::set<std::string>{"kernel.cu", "plan.h", "plan.txt"}));
  EXPECT_EQ(names(generated.dumps),
            (std::set<std::string>{"1-config.txt", "2-graph.txt", "3-plan.txt", "4-verify.txt"}));
  EXPECT_EQ(generated.dumps.at("4-verify.txt"), "sound\n");
  EXPECT_EQ(generated.dumps.at("3-plan.txt"), generated.files.at("plan.txt"));
  EXPECT_EQ(generated.dumps.at("2-graph.txt"), describe(build_graph(shipped_model("tiny-stories").facts)));
}

TEST(Generate, FurtherRowsHaveAPlanOfTheirOwnInTheSameLibrary) {
  const Generated both = generate_shipped("tiny-stories", "cpu", {.further_rows = {8}});
  EXPECT_EQ(names(both.files), (std::set<std::string>{"kernel.cu", "plan.h", "plan.txt"}));
  EXPECT_EQ(both.plan.rows, 1);
  const std::string numbers = both.files.at("plan.h");
  const size_t eight = numbers.find("constexpr KernelPlan kDecodeRows8Numbers{");
  ASSERT_NE(eight, std::string::npos);
  EXPECT_NE(numbers.find(".rows = 8,", eight), std::string::npos);
  EXPECT_LT(numbers.find("constexpr KernelPlan kDecodeNumbers{"), eight);
  EXPECT_EQ(both.files.at("plan.txt"),
            both.dumps.at("3-plan.txt") + "\n" + both.dumps.at("3-plan-rows8.txt"));
  EXPECT_EQ(both.dumps.at("4-verify-rows8.txt"), "sound\n");
  for (const auto& [name, text] : both.files) {
    if (name.ends_with(".txt")) continue;
    EXPECT_NE(text.find("run: soliton-gen models/tiny-stories.yaml --gpu cpu --rows 1,8\n"),
              std::string::npos)
        << name;
  }
}

/// As soliton-chat makes them: numbers of rows that a card's shared memory has no room for are left out.
TEST(Generate, EveryShippedCardHasAPlanForThe8B) {
  const std::vector<std::string> gpus = list_gpus(default_gpus_dir());
  EXPECT_GE(gpus.size(), 21u);
  for (const std::string& gpu : gpus) {
    for (const char* model : {"llama-3.1-8b", "llama-3.1-8b-gptq"}) {
      SCOPED_TRACE(gpu + ", " + model);
      const Generated made = generate_shipped(model, gpu, {.further_rows = {8, 32}, .leaves_out = true});
      EXPECT_EQ(made.dumps.at("4-verify.txt"), "sound\n");
      EXPECT_LE(made.plan.num_ctas, made.plan.limits.num_sms);
      EXPECT_LE(made.plan.shared_bytes(), made.plan.limits.max_shared_bytes_per_block);
      EXPECT_GE(made.plan.num_ctas, made.plan.limits.num_sms * 9 / 10) << "SMs are left idle";
      for (const std::string& reason : made.left_out) {
        EXPECT_NE(reason.find("expected shared memory for at least"), std::string::npos) << reason;
      }
      // With few CTAs each holds more of the residual stream.
      if (made.plan.limits.max_shared_bytes_per_block > 200 << 10 && made.plan.num_ctas >= 20) {
        EXPECT_TRUE(made.left_out.empty());
      }
    }
  }
}

TEST(Generate, PtxIsPlannedForTheCardAndSaysSo) {
  const GpuSpec h200 = with_ptx(shipped_gpu("h200"), 80);
  const Generated made = generate(shipped_model("tiny-stories"), h200, {});
  EXPECT_EQ(made.plan.gpu, "compute80");
  const std::string numbers = made.files.at("plan.h");
  EXPECT_NE(numbers.find(".compute_capability = 80,\n  .ptx = true,\n"), std::string::npos);
  EXPECT_NE(numbers.find("--gpu h200 --ptx compute_80"), std::string::npos);
  EXPECT_EQ(generate_shipped("tiny-stories", "h200").files.at("plan.h").find(".ptx"), std::string::npos);
}

TEST(Generate, OneLibraryServesSeveralCards) {
  const std::vector<GpuSpec> cards = {shipped_gpu("h200"), shipped_gpu("h100")};
  const Generated both = generate(shipped_model("tiny-stories"), cards, {});
  EXPECT_EQ(both.plan.gpu, "sm90");
  ASSERT_EQ(both.plan.cards.size(), 2u);
  EXPECT_EQ(both.plan.cards[0].name, "h200");
  EXPECT_EQ(both.plan.cards[1].name, "h100");
  const std::string header =
      "// Generated from models/tiny-stories.yaml for h200 and h100. Do not edit; run: soliton-gen "
      "models/tiny-stories.yaml --gpu h200,h100\n";
  for (const char* name : {"plan.h", "kernel.cu"})
    EXPECT_EQ(both.files.at(name).rfind(header, 0), 0u) << name;
  // Rates of both, in this order.
  const std::string numbers = both.files.at("plan.h");
  EXPECT_NE(numbers.find(".gpu = \"sm90\",\n"), std::string::npos);
  EXPECT_NE(numbers.find(".num_cards = 2,\n"), std::string::npos);
  const size_t first = numbers.find(".name = \"h200\", .costs = {.item_us = 0.3, ");
  const size_t second = numbers.find(".name = \"h100\", .costs = {.item_us = ");
  ASSERT_NE(first, std::string::npos);
  ASSERT_NE(second, std::string::npos);
  EXPECT_LT(first, second);
  // The kernels are those of the first card.
  const Generated one = generate_shipped("tiny-stories", "h200");
  const auto kernels = [](const Generated& generated) {
    const std::string& text = generated.files.at("plan.h");
    return text.substr(text.find("constexpr KernelPlan"));
  };
  EXPECT_EQ(kernels(both), kernels(one));
  EXPECT_EQ(predicted_token_us(both.plan, 0), predicted_token_us(one.plan, 0));
}

TEST(Generate, CardsOfOneLibraryAreAlike) {
  const std::vector<GpuSpec> cards = {shipped_gpu("h200"), shipped_gpu("cpu")};
  EXPECT_EQ(error_of([&] { generate(shipped_model("tiny-stories"), cards, {}); }),
            "5 --gpu: expected cards that differ in rates alone for one library, got h200 and cpu");
}

TEST(Generate, ConfigDumpHasEveryFact) {
  EXPECT_EQ(generate_shipped("tiny-stories", "cpu").dumps.at("1-config.txt"),
            "tiny-stories\n"
            "hidden: 256\n"
            "ffn: 768\n"
            "num_layers: 6\n"
            "num_heads: 4\n"
            "num_kv_heads: 2\n"
            "head_dim: 64\n"
            "vocabulary: 2048\n"
            "tied_lm_head: 1\n"
            "qkv_bias: 0\n"
            "head_norm: 0\n"
            "activation: silu\n"
            "kv_bits: 16\n"
            "max_context: 2048\n"
            "rope_kind: llama3\n"
            "rope_original_context: 256\n"
            "rope_truncate: 1\n"
            "weight_bits: 16\n"
            "weight_group: 0\n"
            "weight_zeros: 0\n"
            "weight_order: 0\n"
            "lm_head_bits: 16\n"
            "norm_epsilon: 1e-05\n"
            "rope_theta: 10000\n"
            "rope_factor: 8\n"
            "rope_low_freq_factor: 1\n"
            "rope_high_freq_factor: 4\n"
            "rope_beta_fast: 32\n"
            "rope_beta_slow: 1\n"
            "rope_attention_factor: 1\n");
}

TEST(Generate, SameInputSameBytes) {
  for (const char* model : kShippedModels) {
    EXPECT_EQ(generate_shipped(model, "h200").files, generate_shipped(model, "h200").files) << model;
  }
}

TEST(Generate, EveryInputShows) {
  const std::set<std::string> plans = {
      generate_shipped("tiny-stories", "cpu").files.at("plan.h"),
      generate_shipped("tiny-stories", "h100").files.at("plan.h"),
      generate_shipped("tiny-stories", "h200").files.at("plan.h"),
      generate_shipped("llama-3.2-1b", "h200").files.at("plan.h"),
      generate_shipped("tiny-stories", "h200", {.num_ctas = 3}).files.at("plan.h"),
      generate_shipped("tiny-stories", "h200", {.window = 4}).files.at("plan.h"),
      generate_shipped("tiny-stories", "h200", {.consumer_warps = 2}).files.at("plan.h"),
      generate_shipped("tiny-stories", "h200", {.ring_slots = 4}).files.at("plan.h"),
      generate_shipped("tiny-stories", "h200", {.min_pages_per_split = 16}).files.at("plan.h"),
      generate_shipped("tiny-stories", "h200", {.sync = SyncMode::kCounter}).files.at("plan.h"),
  };
  EXPECT_EQ(plans.size(), 10u);
}

TEST(Generate, RefusedPlansEndInOneLine) {
  const auto refusal = [](const PlanChoices& choices) {
    return error_of([&] { generate_shipped("llama-3.1-8b", "h200", choices); });
  };
  EXPECT_EQ(refusal({.num_ctas = 132}), "no error");
  EXPECT_EQ(
      refusal({.num_ctas = 133}),
      "5 llama-3.1-8b on h200: plan refused: too many CTAs: CTAs: expected 1 to 132, one per SM, got 133");
  EXPECT_EQ(refusal({.ring_slots = 13}), "no error");
  EXPECT_EQ(refusal({.ring_slots = 14}),
            "5 llama-3.1-8b on h200: plan refused: shared memory exceeded: shared memory: x ends at byte "
            "245760, expected at most 232448");
}

/// The dumps that a refusal carries.
std::map<std::string, std::string> dumps_of_refusal(const ModelConfig& model, const GpuSpec& gpu,
                                                    const PlanChoices& choices) {
  try {
    generate(model, gpu, choices);
  } catch (const PlanRefused& refusal) {
    return refusal.dumps();
  }
  return {};
}

TEST(Generate, RefusedPlansAreDumpedWithAllThatIsWrong) {
  const ModelConfig model = shipped_model("llama-3.1-8b");
  const GpuSpec gpu = shipped_gpu("h200");
  const auto dumps = dumps_of_refusal(model, gpu, {.ring_slots = 14});
  EXPECT_EQ(names(dumps),
            (std::set<std::string>{"1-config.txt", "2-graph.txt", "3-plan.txt", "4-verify.txt"}));
  EXPECT_NE(dumps.at("3-plan.txt").find("ring of 14 pages"), std::string::npos);
  EXPECT_NE(dumps.at("4-verify.txt").find("shared memory exceeded: shared memory: x ends"),
            std::string::npos);
  EXPECT_NE(dumps.at("4-verify.txt").find("shared memory exceeded: shared memory: barriers end"),
            std::string::npos);
  // Refused before there is a plan.
  EXPECT_EQ(names(dumps_of_refusal(model, gpu, {.consumer_warps = 3})),
            (std::set<std::string>{"1-config.txt", "2-graph.txt"}));
}

TEST(Generate, PlanTextHasNoTrailingSpaces) {
  for (const char* model : kShippedModels) {
    const std::string text = generate_shipped(model, "h200").files.at("plan.txt");
    EXPECT_EQ(text.find(" \n"), std::string::npos) << model;
  }
}

/// The predicted time is the sum of the phases, or that of their chain, and the plan says which.
TEST(Generate, PlansSayWhatTheirTimeIsMadeOf) {
  for (const char* model : kShippedModels) {
    const Generated generated = generate_shipped(model, "h200");
    const Plan& plan = generated.plan;
    double layer = 0;
    double once = 0;
    for (const PlanPhase& phase : plan.phases) (phase.layer_kind == 0 ? layer : once) += phase.predicted_us;
    const double sum = plan.facts.num_layers * layer + once;
    const double chain = static_cast<double>(step_sequence(plan).size()) * plan.limits.phase_latency_us;
    const std::string text = generated.files.at("plan.txt");
    const std::string parts =
        fmt::format("{} layers of {:.2f} us and {:.2f} us\n", plan.facts.num_layers, layer, once);
    const std::string expected =
        sum >= chain
            ? fmt::format("predicted: {:.1f} us a token without KV: {}", sum, parts)
            : fmt::format(
                  "predicted: {:.1f} us a token without KV: {} phases of {} us, which is more than {}", chain,
                  step_sequence(plan).size(), plan.limits.phase_latency_us, parts);
    EXPECT_NE(text.find(expected), std::string::npos) << expected << text;
  }
}

TEST(Generate, RefusesACardWithTooLittleSharedMemory) {
  GpuSpec gpu = shipped_gpu("h200");
  gpu.max_shared_bytes_per_block = 48 * 1024;
  const std::string error = error_of([&] { generate(shipped_model("llama-3.1-8b"), gpu, {}); });
  EXPECT_EQ(error.rfind("5 llama-3.1-8b: h200: 1 row a step: expected shared memory for at least 2 pages, "
                        "got 49152 bytes of which ",
                        0),
            0u)
      << error;
}

/// Heads of 256 and keys and values in two f16 leave room for a step of 16 rows, and for no more.
TEST(Generate, RowsThatCannotBePlannedAreLeftOutWhereAsked) {
  ModelConfig model =
      load_model_config(std::string(SOLITON_SOURCE_DIR) + "/tests/models/deep256-group4.yaml");
  model.facts.kv_bits = 32;
  PlanChoices choices{.rows = 1, .further_rows = {16, 64}};
  EXPECT_EQ(
      error_of([&] {
        generate(model, shipped_gpu("h200"), choices);
      }).find("5 deep256-group4: h200: 64 rows a step: expected shared memory for at least 8 pages, got "),
      0u);
  choices.leaves_out = true;
  const Generated generated = generate(model, shipped_gpu("h200"), choices);
  ASSERT_EQ(generated.left_out.size(), 1u);
  EXPECT_NE(generated.left_out[0].find("64 rows a step"), std::string::npos) << generated.left_out[0];
  EXPECT_NE(generated.files.at("plan.h").find("Rows16"), std::string::npos);
  EXPECT_EQ(generated.files.at("plan.h").find("Rows64"), std::string::npos);
}

/// All heads of a row are in one item: where shared memory cannot hold them, that is said, and not a plan made of it.
TEST(Generate, RowsWhoseHeadsFillSharedMemoryAreRefused) {
  ModelConfig model = load_model_config(std::string(SOLITON_SOURCE_DIR) + "/tests/models/micro.yaml");
  model.facts.num_heads = 184;
  model.facts.num_kv_heads = 1;
  model.facts.head_dim = 256;
  EXPECT_EQ(error_of([&] {
              generate(model, shipped_gpu("h200"), {.rows = 16});
            }).find("5 micro: h200: 16 rows a step: expected shared memory for at least 4 pages, got "),
            0u);
  model.facts.num_heads = 176;
  EXPECT_EQ(generate(model, shipped_gpu("h200"), {.rows = 16}).plan.max_query_tiles, 12);
}

/// Fewer query tiles in an item make room for the ring.
TEST(Generate, HeadsOf256HaveKernelsOfAllRows) {
  const ModelConfig model =
      load_model_config(std::string(SOLITON_SOURCE_DIR) + "/tests/models/deep256-group4.yaml");
  for (const int rows : {1, 8, 16, 32, 64}) {
    const Plan plan = generate(model, shipped_gpu("h200"), {.rows = rows}).plan;
    EXPECT_GE(plan.ring_slots, 4) << rows;
  }
  const Plan plan = generate(model, shipped_gpu("h200"), {.rows = 64, .copies = CopyKind::kLanes})
                        .plan;  // without warpgroups
  EXPECT_GE(plan.ring_slots, 4);
  EXPECT_EQ(plan.max_query_tiles, 4);
}

TEST(Generate, RandomModelsGenerate) {
  for (int seed = 0; seed < kNumRandomModels; ++seed) {
    const RandomCase random = random_case(seed);
    EXPECT_EQ(error_of([&] { generate(random.model, shipped_gpu("h200"), random.choices); }), "no error")
        << random.describe();
  }
}

}  // namespace
}  // namespace soliton
