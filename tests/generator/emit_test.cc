// What is written is what was planned: golden text for the tiny model, and the golden plan.h compiled into
// this test. SOLITON_UPDATE_GOLDEN=1 rewrites tests/generator/golden; then read the diff.
#include "generator/emit.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>

#include "error_of.h"
#include "generator/text_writer.h"
#include "layout/fact_list.h"
#include "one_row/context.cuh"
#include "tests/generator/golden/plan.h"
#include "tests/generator/plan_fixture.h"

namespace soliton {
namespace {

namespace golden = soliton::generated;

const std::filesystem::path kGolden =
    std::filesystem::path(SOLITON_SOURCE_DIR) / "tests" / "generator" / "golden";

/// What follows `key` up to the end of its line.
std::string after(const std::string& text, const std::string& key) {
  const size_t position = text.find(key);
  EXPECT_NE(position, std::string::npos) << key;
  if (position == std::string::npos) return "";
  const size_t begin = position + key.size();
  return text.substr(begin, text.find('\n', begin) - begin);
}

bool operator==(const Vector& a, const Vector& b) {
  return a.offset == b.offset && a.elements == b.elements && a.signatures == b.signatures &&
         a.to_second == b.to_second && a.layer_kind == b.layer_kind;
}

/// The vector as the kernel should see it: in words of 4 bytes.
Vector expected_vector(const Plan& plan, int index) {
  if (index < 0) return {};
  const PlanVector& vector = plan.vectors[index];
  return {.offset = vector.offset,
          .elements = vector.elements * vector.element_bytes / 4,
          .signatures = vector.signatures,
          .to_second = vector.places == 2 ? vector.place_bytes() : 0};
}

void expect_phase(const Plan& plan, const std::string& name, const KernelPlan& kernel) {
  const int index = index_of(plan.phases, name);
  const PlanPhase& phase = plan.phases[index];
  const PlanMatrix& matrix = plan.matrices[phase.matrix];
  const MatrixPhase emitted = matrix_phase(kernel, index);
  const auto is_matrix = [](const PlanPhase& before) { return before.kind == PhaseKind::kMatrix; };
  EXPECT_EQ(emitted.number, std::count_if(plan.phases.begin(), plan.phases.begin() + index, is_matrix))
      << name;
  const bool once = phase.layer_kind == plan.once();
  const Layer& first = once ? plan.layers.back() : plan.layers[0];
  const Layer& next = once ? first : plan.layers[1];
  EXPECT_EQ(emitted.weights, first.weights + matrix.offset) << name;
  EXPECT_EQ(emitted.layer_stride, next.weights - first.weights) << name;
  EXPECT_EQ(emitted.columns, matrix.columns) << name;
  EXPECT_EQ(emitted.padded, matrix.padded) << name;
  EXPECT_EQ(emitted.format, matrix.format) << name;
  EXPECT_EQ(emitted.rows, matrix.rows) << name;
  EXPECT_EQ(emitted.num_tiles, matrix.num_tiles) << name;
  EXPECT_EQ(emitted.first_cta, phase.first_cta) << name;
  EXPECT_EQ(emitted.window, phase.window) << name;
  EXPECT_EQ(emitted.input, phase.input) << name;
  EXPECT_TRUE(emitted.input_vector == expected_vector(plan, phase.reads)) << name;
  EXPECT_EQ(emitted.first_norm, first.first_norm + phase.norm) << name;
  EXPECT_EQ(emitted.norm_stride, next.first_norm - first.first_norm) << name;
  EXPECT_EQ(emitted.output, phase.output) << name;
  EXPECT_TRUE(emitted.output_vector == expected_vector(plan, phase.writes)) << name;
  EXPECT_EQ(emitted.appends, phase.appends) << name;
}

/// The golden numbers with the phases of the tiny model's plan, as golden/kernel.cu puts them together.
KernelPlan golden_kernel(const PlannedKernel& planned) {
  KernelPlan kernel = golden::kDecodeNumbers;
  kernel.phases = planned->phases;
  kernel.num_phases = planned->num_phases;
  return kernel;
}

TEST(Emit, GoldenTextOfTheTinyModel) {
  const std::map<std::string, std::string> files = emit(shipped_plan("tiny-stories", "cpu"));
  if (const char* update = std::getenv("SOLITON_UPDATE_GOLDEN"); update && std::string(update) == "1") {
    write_folder(kGolden, files);
  }
  ASSERT_EQ(files.size(), 3u);
  for (const auto& [name, text] : files) EXPECT_EQ(text, read_file(kGolden / name)) << name;
}

// What the compiler made of the golden plan.h.
TEST(Emit, PhasesReadBackAsPlanned) {
  const Plan plan = shipped_plan("tiny-stories", "cpu");
  const PlannedKernel planned(plan);
  const KernelPlan kernel = golden_kernel(planned);
  EXPECT_EQ(kernel.num_phases, 6);
  for (const char* name : {"qkv", "o", "gate_up", "down", "lm_head"}) expect_phase(plan, name, kernel);
  const PlanPhase& attention = named(plan.phases, "attention");
  const Phase& emitted = kernel.phases[index_of(plan.phases, "attention")];
  EXPECT_EQ(emitted.kind, PhaseKind::kAttention);
  EXPECT_EQ(kernel.window_of(emitted), attention.window);
  EXPECT_TRUE(kernel.vector(emitted.reads) == expected_vector(plan, attention.reads));
  EXPECT_TRUE(kernel.vector(emitted.writes) == expected_vector(plan, attention.writes));
}

TEST(Emit, NumbersReadBackAsPlanned) {
  const Plan plan = shipped_plan("tiny-stories", "cpu");
  const PlannedKernel planned(plan);
  const KernelPlan& numbers = golden::kDecodeNumbers;
  EXPECT_EQ(numbers.rows, 1);
  EXPECT_EQ(numbers.num_ctas, plan.num_ctas);
  EXPECT_EQ(numbers.consumer_warps, plan.consumer_warps);
  EXPECT_EQ(numbers.threads(), plan.threads());
  EXPECT_EQ(numbers.ring_slots, plan.ring_slots);
  EXPECT_EQ(numbers.slot_bytes, kPageBytes);
  EXPECT_EQ(numbers.window, plan.window);
  EXPECT_EQ(numbers.kv_window, named(plan.phases, "attention").window);
  EXPECT_EQ(numbers.prefetch_pages, plan.prefetch_pages);
  EXPECT_EQ(numbers.tile_slots, plan.tile_slots);
  EXPECT_EQ(numbers.sync, SyncMode::kSelfValidating);
  EXPECT_EQ(numbers.min_pages_per_split, plan.min_pages_per_split);
  EXPECT_EQ(numbers.chunk_columns, plan.chunk_columns);
  EXPECT_EQ(numbers.x_bytes(), planned->x_bytes());
  EXPECT_EQ(numbers.residual_tiles, planned->residual_tiles);
  EXPECT_EQ(numbers.partial_words(), planned->partial_words());
  EXPECT_EQ(numbers.shared_bytes(), plan.shared_bytes());
  EXPECT_EQ(numbers.partials.offset, plan.workspace_region("partials").offset);
  EXPECT_EQ(numbers.partials.elements * 4, plan.workspace_region("partials").bytes);
  EXPECT_EQ(numbers.counter_offset, plan.workspace_region("counters").offset);
  EXPECT_EQ(numbers.counter_bytes, plan.workspace_region("counters").bytes);
  EXPECT_EQ(numbers.workspace_bytes, plan.workspace_bytes());
  for (int i = 0; i < static_cast<int>(plan.vectors.size()); ++i) {
    EXPECT_TRUE(numbers.vectors[i] == expected_vector(plan, i)) << plan.vectors[i].name;
  }
}

TEST(Emit, ShapeOfTheModelReadsBackAsPlanned) {
  const Plan plan = shipped_plan("tiny-stories", "cpu");
  const ModelShape& shape = golden::kDecodeNumbers.model;
  EXPECT_EQ(shape.num_layers, plan.facts.num_layers);
  EXPECT_EQ(shape.num_heads, plan.facts.num_heads);
  EXPECT_EQ(shape.num_kv_heads, plan.facts.num_kv_heads);
  EXPECT_EQ(shape.head_dim, plan.facts.head_dim);
  EXPECT_EQ(shape.kv_parts, 1);
  EXPECT_EQ(shape.hidden, plan.facts.hidden);
  EXPECT_EQ(shape.num_blocks(), 2);
  EXPECT_FALSE(shape.qkv_bias || shape.head_norm || shape.ordered || shape.integers.has_scales());
  EXPECT_EQ(shape.norm_epsilon, static_cast<float>(plan.facts.norm_epsilon));
  EXPECT_FLOAT_EQ(shape.score_scale, static_cast<float>(1 / (8 * std::log(2.0))));  // head_dim is 64
}

TEST(Emit, RegionsAndBarriersReadBackAsPlanned) {
  const Plan plan = shipped_plan("tiny-stories", "cpu");
  const KernelPlan& numbers = golden::kDecodeNumbers;
  ASSERT_EQ(numbers.num_regions, static_cast<int>(plan.shared.size()));
  for (int i = 0; i < numbers.num_regions; ++i) {
    EXPECT_EQ(numbers.regions[i].name, plan.shared[i].name);
    EXPECT_EQ(numbers.regions[i].offset, plan.shared[i].offset) << plan.shared[i].name;
    EXPECT_EQ(numbers.regions[i].bytes, plan.shared[i].bytes) << plan.shared[i].name;
  }
  ASSERT_EQ(numbers.num_barriers, static_cast<int>(plan.barriers.size()));
  std::string by_warps;
  int offset = static_cast<int>(plan.shared.back().offset);
  for (int i = 0; i < numbers.num_barriers; ++i) {
    EXPECT_EQ(numbers.barriers[i].name, plan.barriers[i].name);
    EXPECT_EQ(numbers.barriers[i].slots, plan.barriers[i].slots) << plan.barriers[i].name;
    EXPECT_EQ(numbers.barriers[i].arrivals, plan.barriers[i].arrivals) << plan.barriers[i].name;
    EXPECT_EQ(numbers.barrier_offset(i), offset) << plan.barriers[i].name;
    offset += 8 * plan.barriers[i].slots;
    by_warps += numbers.barriers[i].by_warps ? 'w' : '-';
  }
  EXPECT_EQ(offset, plan.shared_bytes());
  EXPECT_EQ(by_warps, "-wwwwwwwwwww---");  // of pages that land, of the stop and of the end a lane tells
}

TEST(Emit, WidthsReadBackAsPlanned) {
  const Plan plan = shipped_plan("tiny-stories", "cpu");
  const PlannedKernel planned(plan);
  const one_row::Widths widths = one_row::input_widths(golden_kernel(planned));
  ASSERT_EQ(widths.count, 2);
  const Width& hidden = widths.widths[0];
  EXPECT_EQ(hidden.columns, plan.facts.hidden);
  EXPECT_EQ(hidden.padded, named(plan.matrices, "gate_up").padded);
  EXPECT_TRUE(hidden.normed);
  const Width& ffn = widths.widths[1];
  EXPECT_EQ(ffn.columns, plan.facts.ffn);
  EXPECT_EQ(ffn.padded, named(plan.matrices, "down").padded);
  EXPECT_FALSE(ffn.normed);
}

/// Columns, padding and whether it is normed of each width that a model's kernel is compiled for.
std::string widths_of(int hidden, int num_heads, int ffn) {
  ModelConfig model = shipped_model("tiny-stories");
  model.facts.hidden = hidden;
  model.facts.num_heads = num_heads;
  model.facts.ffn = ffn;
  const Plan plan = make_plan(model, shipped_gpu("cpu"));
  const one_row::Widths widths = one_row::input_widths(*PlannedKernel(plan));
  std::string text;
  for (int i = 0; i < widths.count; ++i) {
    const Width& width = widths.widths[i];
    text += fmt::format("{} {}{}; ", width.columns, width.padded, width.normed ? " normed" : "");
  }
  return text;
}

// The kernel is compiled for each width once, and norms inputs of this width if any phase does.
TEST(Emit, EveryWidthIsCompiledOnce) {
  EXPECT_EQ(widths_of(256, 4, 256), "256 256 normed; ");
  EXPECT_EQ(widths_of(256, 12, 768), "256 256 normed; 768 768; ");
  EXPECT_EQ(widths_of(192, 8, 64), "192 256 normed; 512 512; 64 128; ");  // in units of 128 columns
}

TEST(Emit, DescriptorReadsBackAsPlanned) {
  const Plan plan = shipped_plan("tiny-stories", "cpu");
  const PlannedKernel planned(plan);
  const KernelPlan kernel = golden_kernel(planned);
  const Descriptor descriptor = describe(golden::kModel, kernel);
  const ModelDescriptor& model = *descriptor.model;
  EXPECT_STREQ(model.name, "tiny-stories");
  EXPECT_STREQ(model.gpu, "cpu");
  EXPECT_EQ(hash_facts(model.facts), hash_facts(plan.facts));  // every fact, to the last bit
  EXPECT_EQ(model.facts_hash, hash_facts(plan.facts));
  EXPECT_EQ(model.page_layout, kPageLayoutVersion);
  EXPECT_EQ(model.compute_capability, 0);
  EXPECT_EQ(descriptor.num_ctas, plan.num_ctas);
  EXPECT_EQ(descriptor.threads_per_cta, plan.threads());
  EXPECT_EQ(descriptor.shared_bytes, plan.shared_bytes());
  EXPECT_EQ(descriptor.rows, 1);
  ASSERT_EQ(model.num_cards, 1);
  EXPECT_STREQ(model.cards[0].name, "cpu");
  const TreeCosts& costs = model.cards[0].costs;
  EXPECT_EQ(costs.item_us, plan.limits.attention_item_us);
  EXPECT_EQ(costs.mma_us, plan.limits.attention_mma_us);
  EXPECT_EQ(costs.read_bytes_per_s, plan.limits.read_bandwidth_bytes_per_s);
  EXPECT_EQ(costs.exchange_bytes_per_s, plan.limits.exchange_bytes_per_s);
  EXPECT_EQ(model.weight_bytes, plan.weight_bytes);
  EXPECT_EQ(model.needed_weight_bytes, plan.needed_weight_bytes);
  EXPECT_EQ(descriptor.workspace_bytes, plan.workspace_bytes());
  ASSERT_EQ(model.num_matrices, std::ssize(plan.matrices));
  for (int i = 0; i < model.num_matrices; ++i) {
    const PackedMatrix& emitted = model.matrices[i];
    const PlanMatrix& planned = plan.matrices[i];
    EXPECT_EQ(emitted.name, planned.name);
    EXPECT_EQ(emitted.offset, planned.offset) << planned.name;
    EXPECT_EQ(emitted.layer_kind, planned.layer_kind) << planned.name;
    EXPECT_EQ(emitted.rows, planned.rows) << planned.name;
    EXPECT_EQ(emitted.columns, planned.columns) << planned.name;
    EXPECT_EQ(emitted.padded_columns, planned.padded) << planned.name;
    EXPECT_EQ(emitted.format, planned.format) << planned.name;
    EXPECT_EQ(emitted.num_tiles, planned.num_tiles) << planned.name;
    EXPECT_EQ(emitted.row_order, planned.row_order) << planned.name;
  }
}

TEST(Emit, SamePlanSameBytes) {
  for (const char* model : kShippedModels) {
    EXPECT_EQ(emit(shipped_plan(model, "h200")), emit(shipped_plan(model, "h200"))) << model;
  }
}

TEST(Emit, NoPathsOfThisMachine) {
  for (const char* model : kShippedModels) {
    for (const auto& [name, text] : emit(shipped_plan(model, "h100"))) {
      EXPECT_EQ(text.find(SOLITON_SOURCE_DIR), std::string::npos) << model << ": " << name;
      EXPECT_EQ(text.find('\t'), std::string::npos) << model << ": " << name;
      EXPECT_EQ(text.back(), '\n') << model << ": " << name;
    }
  }
}

TEST(Emit, SaysWhereItComesFrom) {
  const auto files = emit(shipped_plan("llama-3.2-1b", "h100"));
  for (const char* name : {"plan.h", "kernel.cu"}) {
    EXPECT_EQ(files.at(name).substr(0, files.at(name).find('\n')),
              "// Generated from models/llama-3.2-1b.yaml for h100. Do not edit; run: soliton-gen "
              "models/llama-3.2-1b.yaml --gpu h100");
  }
  EXPECT_EQ(files.at("plan.txt").substr(0, 20), "llama-3.2-1b on h100");
}

// What is not written is 0: a kernel with a window of 0 would never read a page.
TEST(Emit, NumbersOfSeveralRowsAreWritten) {
  const Plan plan = shipped_plan("tiny-stories", "h200", {.rows = 32});
  const std::string text = emit(plan).at("plan.h");
  const std::string numbers = text.substr(text.find("constexpr KernelPlan kDecodeRows32Numbers{"));
  const auto is = [&](const std::string& name, int64_t value) {
    const std::string field = fmt::format(".{} = {},", name, value);
    EXPECT_NE(numbers.find(field), std::string::npos) << field;
  };
  is("rows", 32);
  is("num_ctas", plan.num_ctas);
  is("consumer_warps", plan.consumer_warps);
  is("ring_slots", plan.ring_slots);
  is("slot_bytes", kPageBytes);
  is("window", plan.window);
  is("waiting_window", plan.waiting_window);
  is("kv_window", named(plan.phases, "attention").window);
  is("prefetch_pages", plan.prefetch_pages);
  is("residual_tiles", PlannedKernel(plan)->residual_tiles);
  is("input_buffers", plan.input_buffers);
  is("max_query_tiles", plan.max_query_tiles);
  is("counter_offset", plan.workspace_region("counters").offset);
  is("counter_bytes", plan.workspace_region("counters").bytes);
  is("workspace_bytes", plan.workspace_bytes());
}

// A float or double that is read back differs by nothing.
TEST(Emit, LiteralsReadBackExactly) {
  for (const double value : {1e-5, 1e-6, 1.0 / 3.0, 0.0625, 9.999999999999999e-6, 1e-38}) {
    for (const double theta : {10000.0, 500000.0, 1e12, 12345.678901234567, 9007199254740993.0}) {
      ModelConfig model = shipped_model("tiny-stories");
      model.facts.norm_epsilon = value;
      model.facts.rope_theta = theta;
      const std::string text = emit(make_plan(model, shipped_gpu("cpu"))).at("plan.h");
      const std::string shape = text.substr(text.find("constexpr ModelShape"));
      EXPECT_EQ(std::strtof(after(shape, ".norm_epsilon = ").c_str(), nullptr), static_cast<float>(value));
      EXPECT_EQ(std::strtod(after(text, ".norm_epsilon = ").c_str(), nullptr), value);
      const std::string emitted = after(text, ".rope_theta = ");
      EXPECT_EQ(std::strtod(emitted.c_str(), nullptr), theta);
      EXPECT_NE(emitted.find_first_of(".e"), std::string::npos) << emitted << " would be an integer";
    }
  }
}

TEST(Emit, OffsetsBeyondFourGigabytesAreWritten) {
  const Plan plan = shipped_plan("llama-3.1-70b", "h200");
  const int64_t offset = plan.layers.back().weights;
  ASSERT_GT(offset, int64_t{1} << 32);
  const std::string text = emit(plan).at("plan.h");
  EXPECT_NE(text.find(fmt::format("{{.kind = 1, .weights = {}, ", offset)), std::string::npos);
  EXPECT_NE(text.find(fmt::format(".weight_bytes = {},", plan.weight_bytes)), std::string::npos);
}

TEST(Emit, SynchronisationIsAConstantOfThePlan) {
  const auto sync = [](SyncMode mode) {
    return after(emit(shipped_plan("tiny-stories", "cpu", {.sync = mode})).at("plan.h"), ".sync = ")
        .substr(0, 25);
  };
  EXPECT_EQ(sync(SyncMode::kSelfValidating), "SyncMode::kSelfValidating");
  EXPECT_EQ(sync(SyncMode::kCounter).rfind("SyncMode::kCounter,", 0), 0u);
}

TEST(Emit, BiasesAndNormedHeadsAreConstantsOfThePlan) {
  ModelConfig model = shipped_model("tiny-stories");
  model.facts.qkv_bias = 1;
  const std::string text = emit(make_plan(model, shipped_gpu("cpu"))).at("plan.h");
  const std::string shape = text.substr(text.find("constexpr ModelShape"));
  EXPECT_EQ(after(shape, ".qkv_bias = "), "true,");
  EXPECT_EQ(after(shape, ".head_norm = "), "false,");
}

TEST(Emit, RopeKindAndTiedWeightsAreFacts) {
  ModelConfig model = shipped_model("tiny-stories");
  model.facts.rope_kind = RopeKind::kDefault;
  model.facts.tied_lm_head = 0;
  const std::string text = emit(make_plan(model, shipped_gpu("cpu"))).at("plan.h");
  EXPECT_EQ(after(text, ".rope_kind = "), "RopeKind::kDefault,");
  EXPECT_EQ(after(text, ".tied_lm_head = "), "0,");
}

}  // namespace
}  // namespace soliton
