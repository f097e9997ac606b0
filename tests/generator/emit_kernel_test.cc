// kernel.cu: the phases of every kernel of a library as they were planned, and the kernels themselves.
#include <gtest/gtest.h>

#include "generator/emit.h"
#include "tests/generator/plan_fixture.h"

namespace soliton {
namespace {

/// Phases of one step as kernel.cu has them: of each, field -> value.
using PhaseText = std::map<std::string, std::string>;
std::vector<PhaseText> emitted_phases(const std::string& kernel, const std::string& step) {
  std::vector<PhaseText> phases;
  size_t at = kernel.find("constexpr Phase " + step + "[] = {\n");
  EXPECT_NE(at, std::string::npos) << step;
  if (at == std::string::npos) return phases;
  const size_t end = kernel.find("\n};\n", at);
  while ((at = kernel.find("{.name = ", at)) < end) {
    const size_t close = kernel.find("},\n", at);
    PhaseText& phase = phases.emplace_back();
    while (at < close) {
      const size_t equals = kernel.find(" = ", at);
      const size_t comma = std::min(kernel.find(", ", equals), close);
      const size_t dot = kernel.find('.', at);
      phase[kernel.substr(dot + 1, equals - dot - 1)] = kernel.substr(equals + 3, comma - equals - 3);
      at = comma + 1;
    }
  }
  return phases;
}

/// Index of a phase in kernel.cu; its field, or "-".
std::string field(const std::vector<PhaseText>& phases, size_t index, const std::string& name) {
  const auto found = phases.at(index).find(name);
  return found == phases[index].end() ? "-" : found->second;
}

std::string vector_constant(const Plan& plan, int vector) {
  static const std::map<std::string, std::string> kNames = {
      {"qkv", "kQkv"},         {"heads", "kHeads"},      {"post_attention", "kPostAttention"},
      {"ffn", "kFfn"},         {"hidden", "kHidden"},    {"candidates", "kCandidates"},
      {"squares", "kSquares"}, {"unnormed", "kUnnormed"}};
  return vector < 0 ? "-" : "Vectors::" + kNames.at(plan.vectors[vector].name);
}

void expect_phases(const Plan& plan, const std::vector<PhaseText>& emitted) {
  static const std::map<std::string, std::string> kMatrices = {
      {"qkv", "kQkv"}, {"o", "kO"}, {"gate_up", "kGateUp"}, {"down", "kDown"}, {"lm_head", "kLmHead"}};
  constexpr const char* kKinds[] = {"kMatrix", "kAttention", "kNormHeads", "kNormBlock",
                                    "kChoose", "kGroup",     "kUngroup"};
  constexpr const char* kInputs[] = {"kVector", "kNormed", "kHidden"};
  constexpr const char* kOutputs[] = {"kRotary", "kResidual", "kSwiglu", "kLogits"};
  ASSERT_EQ(emitted.size(), plan.phases.size());
  for (size_t i = 0; i < emitted.size(); ++i) {
    const PlanPhase& phase = plan.phases[i];
    const bool multiplies = phase.matrix >= 0;
    const auto is = [&](const char* name) { return field(emitted, i, name); };
    EXPECT_EQ(is("name"), '"' + phase.name + '"');
    EXPECT_EQ(is("kind"), kKinds[static_cast<int>(phase.kind)]) << phase.name;
    EXPECT_EQ(is("matrix"), multiplies ? "Matrices::" + kMatrices.at(plan.matrices[phase.matrix].name) : "-");
    EXPECT_EQ(is("reads"), vector_constant(plan, phase.reads)) << phase.name;
    EXPECT_EQ(is("writes"), vector_constant(plan, phase.writes)) << phase.name;
    EXPECT_EQ(is("input"),
              multiplies ? std::string("InputKind::") + kInputs[static_cast<int>(phase.input)] : "-");
    EXPECT_EQ(is("output"), multiplies ? kOutputs[static_cast<int>(phase.output)] : "-") << phase.name;
    EXPECT_EQ(is("norm"), phase.norm < 0 ? "-" : std::to_string(phase.norm)) << phase.name;
    EXPECT_EQ(is("first_cta"), phase.first_cta == 0 ? "-" : std::to_string(phase.first_cta)) << phase.name;
    EXPECT_EQ(is("layer_kind"), phase.layer_kind == 0 ? "-" : std::to_string(phase.layer_kind)) << phase.name;
    EXPECT_EQ(is("appends"), phase.appends ? "true" : "-") << phase.name;
  }
}

// Of one row and of several, of heads that are normed and of those that are not; on the CPU and with 132 CTAs.
TEST(EmitKernel, KernelHasThePhasesOfTheStepInOrder) {
  for (const char* model : {"tiny-stories", "llama-3.1-70b", "llama-3.1-8b-gptq", "qwen3-0.6b"}) {
    for (const int rows : {1, 8}) {
      const Plan plan = shipped_plan(model, "h200", {.rows = rows, .num_ctas = 131});
      SCOPED_TRACE(fmt::format("{}, {} rows", model, rows));
      expect_phases(plan, emitted_phases(emit(plan).at("kernel.cu"), "kStep"));
    }
  }
}

// Phases that several kernels have stand once; every kernel has its own numbers.
TEST(EmitKernel, PlansOfTheSamePhasesShareThem) {
  std::vector<Plan> plans;
  for (const int rows : {1, 8, 16}) plans.push_back(shipped_plan("tiny-stories", "cpu", {.rows = rows}));
  const auto files = emit(plans);
  const std::string& kernel = files.at("kernel.cu");
  expect_phases(plans[0], emitted_phases(kernel, "kStep"));
  expect_phases(plans[1], emitted_phases(kernel, "kStep8"));
  expect_phases(plans[2], emitted_phases(kernel, "kStep8"));
  EXPECT_EQ(kernel.find("kStep16"), std::string::npos);
  for (const char* line :
       {"// 1 row a step.\n", "// 8 and 16 rows a step.\n",
        "constexpr KernelPlan kDecode = with_phases(kDecodeNumbers, kStep);\n",
        "constexpr KernelPlan kDecodeRows8 = with_phases(kDecodeRows8Numbers, kStep8);\n",
        "constexpr KernelPlan kDecodeRows16 = with_phases(kDecodeRows16Numbers, kStep8);\n",
        "decode(const LaunchParams params) { one_row::run<kDecode>(params); }\n",
        "decode_rows8(const LaunchParams params) { rows::run<kDecodeRows8>(params); }\n",
        "decode_rows16(const LaunchParams params) { rows::run<kDecodeRows16>(params); }\n",
        "kKernels[] = {decode, decode_rows8, decode_rows16};\n",
        "kDescriptors[] = {describe(kModel, kDecode), describe(kModel, kDecodeRows8), describe(kModel, "
        "kDecodeRows16)};\n"}) {
    EXPECT_NE(kernel.find(line), std::string::npos) << line;
  }
  for (const char* name : {"kDecodeNumbers{", "kDecodeRows8Numbers{", "kDecodeRows16Numbers{"}) {
    EXPECT_NE(files.at("plan.h").find(std::string("constexpr KernelPlan ") + name), std::string::npos)
        << name;
  }
  EXPECT_EQ(files.at("plan.txt"), describe(plans[0]) + "\n" + describe(plans[1]) + "\n" + describe(plans[2]));
}

TEST(EmitKernel, KernelsIncludeWhatTheyRun) {
  const auto includes = [](int rows) {
    const std::string kernel = emit(shipped_plan("tiny-stories", "cpu", {.rows = rows})).at("kernel.cu");
    return std::pair(kernel.find("#include \"one_row/kernel.cuh\"") != std::string::npos,
                     kernel.find("#include \"rows/kernel.cuh\"") != std::string::npos);
  };
  EXPECT_EQ(includes(1), std::pair(true, false));
  EXPECT_EQ(includes(8), std::pair(false, true));
}

// With 132 CTAs gate_up begins where the 256 tiles of o end.
TEST(EmitKernel, FirstCtaIsWritten) {
  const Plan plan = shipped_plan("llama-3.1-8b", "h200", {.num_ctas = 132});
  const std::vector<PhaseText> phases = emitted_phases(emit(plan).at("kernel.cu"), "kStep");
  EXPECT_EQ(field(phases, index_of(plan.phases, "gate_up"), "first_cta"), "124");
  EXPECT_EQ(field(phases, index_of(plan.phases, "o"), "first_cta"), "-");
}

// Models without it keep their step.
TEST(EmitKernel, StepsNormHeadsWhereTheModelDoes) {
  ModelConfig model = shipped_model("tiny-stories");
  const auto norms = [&](int rows) {
    const auto files = emit(make_plan(model, shipped_gpu("cpu"), {.rows = rows}));
    std::vector<size_t> at;
    const std::vector<PhaseText> phases = emitted_phases(files.at("kernel.cu"), "kStep");
    for (size_t i = 0; i < phases.size(); ++i) {
      if (field(phases, i, "kind") == "kNormHeads") at.push_back(i);
    }
    return at;
  };
  EXPECT_TRUE(norms(1).empty());
  EXPECT_TRUE(norms(8).empty());
  model.facts.head_norm = 1;
  EXPECT_TRUE(norms(1).empty()) << "attention does it";
  EXPECT_EQ(norms(8), std::vector<size_t>{1}) << "between qkv and attention";
}

}  // namespace
}  // namespace soliton
