#include "generator/emit.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numbers>

#include "generator/text_writer.h"
#include "layout/library.h"

namespace soliton {
namespace {

/// Names of what a plan is written into. The first plan has the plain names.
struct Names {
  std::string suffix;   // of files: "" or "-rows8"
  std::string scope;    // namespace within soliton::generated: "" or "rows8"
  std::string command;  // that generated it all
};

Names names_of(const std::vector<Plan>& plans, size_t index) {
  Names names;
  names.command = fmt::format("soliton-gen models/{}.yaml --gpu {}", plans[0].model, plans[0].gpu);
  for (size_t i = 0; plans.size() > 1 && i < plans.size(); ++i)
    names.command += fmt::format("{}{}", i == 0 ? " --rows " : ",", plans[i].rows);
  if (index > 0) {
    names.scope = fmt::format("rows{}", plans[index].rows);
    names.suffix = "-" + names.scope;
  }
  return names;
}

std::string header(const Plan& plan, const Names& names) {
  return fmt::format("// Generated from models/{0}.yaml for {1}. Do not edit; run: {2}", plan.model, plan.gpu,
                     names.command);
}

std::string full_scope(const Names& names) {
  return "soliton::generated" + (names.scope.empty() ? "" : "::" + names.scope);
}

/// kCamelCase of a snake_case name.
std::string constant(const std::string& name) {
  std::string text = "k";
  bool upper = true;
  for (const char c : name) {
    if (c == '_') {
      upper = true;
      continue;
    }
    text += upper ? static_cast<char>(std::toupper(c)) : c;
    upper = false;
  }
  return text;
}

std::string vector_constant(const Plan& plan, int vector) {
  return (plan.rows == 1 ? "" : "Plan::") + constant(plan.vectors[vector].name + "_vector");
}

/// "Vector kQkvVector{...};"
void write_vectors(const Plan& plan, const char* specifiers, TextWriter& out) {
  for (const PlanVector& vector : plan.vectors) {
    out.line("{} Vector {}{{.offset = {}, .elements = {}, .signatures = {}}};", specifiers,
             constant(vector.name + "_vector"), vector.offset,
             static_cast<int64_t>(vector.elements) * vector.element_bytes / 4, vector.signatures);
  }
}

/// A float or double literal that reads back as the same value.
std::string literal(double value) {
  const std::string text = fmt::format("{}", value);
  return text.find_first_of(".en") == std::string::npos ? text + ".0" : text;
}

const char* input_name(InputKind kind) {
  constexpr const char* kNames[] = {"kVector", "kNormed", "kHidden"};
  return kNames[static_cast<int>(kind)];
}
const char* output_name(OutputKind kind) {
  constexpr const char* kNames[] = {"kRotary", "kResidual", "kSwiglu", "kLogits"};
  return kNames[static_cast<int>(kind)];
}
const char* row_order_name(RowOrder order) {
  constexpr const char* kNames[] = {"kPlain", "kRotary", "kGateUp"};
  return kNames[static_cast<int>(order)];
}

/// "{WeightType::kInt4, 128, false}"
std::string format_text(const WeightFormat& format) {
  return fmt::format("{{WeightType::{}, {}, {}}}", format.is_quantized() ? "kInt4" : "kBf16", format.group,
                     format.has_zeros);
}

/// How the plan's integers stand; that of bf16 if it has none.
WeightFormat integer_format(const Plan& plan) {
  for (const PlanMatrix& matrix : plan.matrices) {
    if (matrix.format.is_quantized()) return matrix.format;
  }
  return {};
}

std::string phase_comment(const Plan& plan, int index) {
  const PlanPhase& phase = plan.phases[index];
  std::string text =
      phase.per_layer ? fmt::format("Phase {} of {}", index + 1, plan.phases.size() - 1) : "Last phase";
  text += fmt::format(": {}. Waits for {}", phase.name, plan.vectors[phase.waits_for].name);
  if (phase.first_layer_reads >= 0)
    text += fmt::format(" ({} in layer 0)", plan.vectors[phase.first_layer_reads].name);
  if (phase.writes >= 0) text += fmt::format("; completes {}", plan.vectors[phase.writes].name);
  if (!phase.clears.empty()) text += fmt::format("; clears {}", plan.vectors[phase.clears.front()].name);
  return text + ".";
}

void write_phase(const Plan& plan, int index, TextWriter& out) {
  const PlanPhase& phase = plan.phases[index];
  out.line("// {}", phase_comment(plan, index));
  out.line("constexpr {} {}{{", phase.kind == OpKind::kAttention ? "AttentionPhase" : "MatrixPhase",
           constant(phase.name));
  out.indented([&] {
    out.line(".index = {},", index);
    if (phase.kind == OpKind::kMatrix) {
      const PlanMatrix& matrix = plan.matrices[phase.matrix];
      out.line(".weights = {},", matrix.offset);
      out.line(".layer_stride = {},", matrix.layer_stride);
      out.line(".columns = {},", matrix.columns);
      out.line(".padded = {},", matrix.padded);
      if (matrix.format.is_quantized()) out.line(".format = {},", format_text(matrix.format));
      out.line(".rows = {},", matrix.rows);
      out.line(".num_tiles = {},", matrix.num_tiles);
      out.line(".first_cta = {},", phase.first_cta);
      out.line(".input = InputKind::{},", input_name(phase.input));
    }
    out.line(".input_vector = {},", vector_constant(plan, phase.reads));
    if (phase.first_norm >= 0) {
      out.line(".first_norm = {},", phase.first_norm);
      out.line(".norm_stride = {},", phase.norm_stride);
    }
    if (phase.kind == OpKind::kMatrix) out.line(".output = OutputKind::{},", output_name(phase.output));
    if (phase.output != OutputKind::kLogits)
      out.line(".output_vector = {},", vector_constant(plan, phase.writes));
    if (!phase.clears.empty()) out.line(".clears = {},", vector_constant(plan, phase.clears.front()));
  });
  out.line("}};");
  out.blank();
}

/// Index within the layer of the phase in which the residual stream begins and the new token is appended to
/// the cache.
int first_residual_phase(const Plan& plan) {
  const auto found = std::find_if(plan.phases.begin(), plan.phases.end(), [](const PlanPhase& phase) {
    return phase.kind == OpKind::kMatrix && phase.output == OutputKind::kResidual;
  });
  return static_cast<int>(found - plan.phases.begin());
}

/// Each width of an input once.
void write_widths(const Plan& plan, TextWriter& out) {
  std::map<std::pair<int, WeightType>, Width> widths;  // by columns and type
  for (const PlanPhase& phase : plan.phases) {
    if (phase.kind != OpKind::kMatrix) continue;
    const PlanMatrix& matrix = plan.matrices[phase.matrix];
    Width& width = widths[{matrix.columns, matrix.format.type}];
    width = {matrix.columns, matrix.padded, width.normed || phase.input != InputKind::kVector, matrix.format};
  }
  out.line("static constexpr int kNumWidths = {};", widths.size());
  out.line("static constexpr Width kWidths[] = {{");
  out.indented([&] {
    for (const auto& [key, width] : widths) {
      const std::string format =
          width.format.is_quantized() ? fmt::format(", .format = {}", format_text(width.format)) : "";
      out.line("{{.columns = {}, .padded = {}, .normed = {}{}}},", width.columns, width.padded, width.normed,
               format);
    }
  });
  out.line("}};");
}

void write_number(TextWriter& out, const char* name, int64_t value) {
  out.line("static constexpr int {} = {};", name, value);
}

/// What kernels of one and of several rows know of the model.
void write_model(const Plan& plan, TextWriter& out) {
  const ModelFacts& facts = plan.facts;
  write_number(out, "kNumLayers", facts.num_layers);
  write_number(out, "kNumHeads", facts.num_heads);
  write_number(out, "kNumKvHeads", facts.num_kv_heads);
  write_number(out, "kHeadDim", facts.head_dim);
  out.line("static constexpr KvShape kKv{{kNumLayers, kNumKvHeads, kHeadDim, {}}};", kv_shape(facts).parts);
  write_number(out, "kQkvRows", (facts.num_heads + 2 * facts.num_kv_heads) * facts.head_dim);
  write_number(out, "kHidden", facts.hidden);
  out.line("static constexpr bool kQkvBias = {};", facts.qkv_bias != 0);
  out.line("static constexpr bool kHeadNorm = {};", facts.head_norm != 0);
  out.line("static constexpr float kNormEpsilon = {}f;", literal(static_cast<float>(facts.norm_epsilon)));
  out.line("// 1 / sqrt(head_dim), for exponentials in base 2");
  out.line("static constexpr float kScoreScale = {}f;",
           literal(static_cast<float>(std::numbers::log2e / std::sqrt(static_cast<double>(facts.head_dim)))));
  out.blank();
}

/// The same of the ring.
void write_ring(const Plan& plan, TextWriter& out) {
  write_number(out, "kNumCtas", plan.num_ctas);
  write_number(out, "kThreads", plan.threads());
  write_number(out, "kRingSlots", plan.ring_slots);
  write_number(out, "kSlotBytes", plan.slot_bytes());
  out.line("static constexpr WeightFormat kIntegers{};", format_text(integer_format(plan)));
  out.line("static constexpr uint32_t kWindow = {};  // pages in flight", plan.window);
  write_number(out, "kPrefetchPages", plan.prefetch_pages);
  write_number(out, "kPrefetchNs", plan.prefetch_ns);
}

void write_numbers(const Plan& plan, TextWriter& out) {
  out.line("struct Plan {{");
  out.indented([&] {
    const auto number = [&](const char* name, int64_t value) { write_number(out, name, value); };
    write_model(plan, out);
    write_ring(plan, out);
    number("kConsumerWarps", plan.consumer_warps);
    out.line("static constexpr bool kOrdered = {};", plan.facts.weight_order != 0);
    number("kTileSlots", plan.tile_slots);
    out.line("static constexpr SyncMode kSync = SyncMode::{};",
             plan.sync == SyncMode::kSelfValidating ? "kSelfValidating" : "kCounter");
    number("kNumBlocks", plan.num_blocks());
    number("kMinPagesPerSplit", plan.min_pages_per_split);
    number("kFirstResidualPhase", first_residual_phase(plan));
    out.blank();
    write_widths(plan, out);
    out.blank();
    number("kChunkColumns", plan.chunk_columns);
    number("kXBytes", plan.x_bytes());
    number("kResidualTiles", plan.residual_tiles());
    number("kAttentionUnits", plan.attention_units());
    number("kPartialWords", plan.partial_words());
    number("kSharedBytes", plan.shared_bytes());
    out.blank();
    out.line("static constexpr Vector kCandidates = {};", vector_constant(plan, plan.phases.back().writes));
    const PlanRegion& partials = plan.workspace_region("partials");
    out.line("static constexpr Vector kPartials{{.offset = {}, .elements = {}}};", partials.offset,
             partials.bytes / 4);
    out.line("static constexpr int64_t kCounterOffset = {};", plan.workspace_region("counters").offset);
  });
  out.line("}};");
}

void write_rows_numbers(const Plan& plan, TextWriter& out) {
  out.line("struct Plan {{");
  out.indented([&] {
    const auto number = [&](const char* name, int64_t value) { write_number(out, name, value); };
    write_model(plan, out);
    number("kRows", plan.rows);
    write_ring(plan, out);
    number("kInputBuffers", plan.input_buffers);
    number("kMaxQueryTiles", plan.max_query_tiles);
    out.blank();
    number("kInputBytes", plan.input_buffers * plan.shape().chunk_bytes());
    number("kTileBytes", plan.tile_bytes_shared());
    number("kResidualTiles", plan.residual_tiles());
    number("kSharedBytes", plan.shared_bytes());
    out.blank();
    out.line("// In the workspace.");
    write_vectors(plan, "static constexpr", out);
    out.line("static constexpr int64_t kCounterOffset = {};", plan.workspace_region("counters").offset);
  });
  out.line("}};");
}

void write_descriptor(const Plan& plan, TextWriter& out) {
  out.line("constexpr Descriptor kDescriptor{{");
  out.indented([&] {
    out.line(".model = \"{}\",", plan.model);
    out.line(".gpu = \"{}\",", plan.gpu);
    out.line(".facts =");
    out.indented([&] {
      out.line("{{");
      out.indented([&] {
        for_each_fact(plan.facts, [&](const char* name, const auto& value) {
          using T = std::decay_t<decltype(value)>;
          if constexpr (std::is_same_v<T, RopeKind>) {
            out.line(".{} = RopeKind::{},", name, constant(rope_name(value)));
          } else if constexpr (std::is_floating_point_v<T>) {
            out.line(".{} = {},", name, literal(value));
          } else {
            out.line(".{} = {},", name, value);
          }
        });
      });
      out.line("}},");
    });
    out.line(".facts_hash = {:#x}ull,", hash_facts(plan.facts));
    out.line(".page_layout = {},", kPageLayoutVersion);
    out.line(".compute_capability = {},", plan.limits.compute_capability);
    out.line(".num_ctas = {},", plan.num_ctas);
    out.line(".threads_per_cta = {},", plan.threads());
    out.line(".shared_bytes = {},", plan.shared_bytes());
    out.line(
        ".tree_costs = {{.item_us = {}, .mma_us = {}, .read_bytes_per_s = {}, .exchange_bytes_per_s = {}}},",
        literal(plan.limits.attention_item_us), literal(plan.limits.attention_mma_us),
        literal(plan.limits.read_bandwidth_bytes_per_s), literal(plan.limits.exchange_bytes_per_s));
    out.line(".rows = {},", plan.rows);
    out.line(".weight_bytes = {},", plan.weight_bytes);
    out.line(".needed_weight_bytes = {},", plan.needed_weight_bytes);
    out.line(".max_query_tiles = {},", plan.max_query_tiles);
    out.line(".resident_tokens = {},", plan.rows == 1 ? 0 : plan.resident_tokens());
    out.line(".workspace_byte = {},", plan.rows == 1 ? 255 : 0);
    out.line(".workspace_bytes = {},", plan.workspace_bytes());
    out.line(".counter_offset = {},", plan.workspace_region("counters").offset);
    out.line(".counter_bytes = {},", plan.workspace_region("counters").bytes);
    out.line(".matrices =");
    out.indented([&] {
      out.line("{{");
      out.indented([&] {
        for (const PlanMatrix& matrix : plan.matrices) {
          out.line(
              "{{.name = \"{}\", .offset = {}, .layer_stride = {}, .rows = {}, .columns = {}, "
              ".padded_columns = {}, .format = {}, "
              ".num_tiles = {}, .row_order = RowOrder::{}}},",
              matrix.name, matrix.offset, matrix.layer_stride, matrix.rows, matrix.columns, matrix.padded,
              format_text(matrix.format), matrix.num_tiles, row_order_name(matrix.row_order));
        }
      });
      out.line("}},");
    });
  });
  out.line("}};");
}

std::string emit_plan(const Plan& plan, const Names& names) {
  TextWriter out;
  out.line("{}", header(plan, names));
  out.line("#pragma once");
  out.blank();
  out.line("#include \"layout/library.h\"");
  out.line("#include \"layout/phase.h\"");
  out.blank();
  out.line("namespace {} {{", full_scope(names));
  out.blank();
  const auto write_phases = [&] {
    for (int i = 0; i < static_cast<int>(plan.phases.size()); ++i) {
      if (plan.rows == 1 || plan.phases[i].kind == OpKind::kMatrix) write_phase(plan, i, out);
    }
  };
  if (plan.rows == 1) {
    out.line("// Activation vectors in the workspace.");
    write_vectors(plan, "constexpr", out);
    out.blank();
    write_phases();
    write_numbers(plan, out);
    out.blank();
  } else {
    write_rows_numbers(plan, out);
    out.blank();
    write_phases();
  }
  write_descriptor(plan, out);
  out.blank();
  out.line("}}  // namespace {}", full_scope(names));
  return out.text();
}

/// One kernel: its phases and its entry.
void write_kernel(const Plan& plan, const Names& names, TextWriter& out) {
  const std::string scope = plan.rows == 1 ? "" : "rows::";
  out.line("namespace {} {{", full_scope(names));
  out.blank();
  out.line(
      "static_assert({}SharedMap<Plan>::kBytes == Plan::kSharedBytes, \"planner and kernel agree on shared "
      "memory\");",
      scope);
  out.blank();
  const auto is_matrix = [](const PlanPhase& phase) { return phase.kind == OpKind::kMatrix; };
  const auto attention = std::find_if_not(plan.phases.begin(), plan.phases.end(), is_matrix);
  const auto per_layer = std::count_if(plan.phases.begin(), plan.phases.end(), [&](const PlanPhase& phase) {
    return phase.per_layer && is_matrix(phase);
  });
  out.line("SOLITON_CONSTANT MatrixPhase kMatrices[] = {{");
  out.indented([&] {
    for (const PlanPhase& phase : plan.phases) {
      if (is_matrix(phase)) out.line("{},", constant(phase.name));
    }
  });
  out.line("}};");
  out.blank();
  out.line("/// The phases of each step, for each role of a CTA.");
  out.line("struct Step {{");
  out.indented([&] {
    out.line("static constexpr int kPerLayer = {};  // of the matrices", per_layer);
    out.line("static constexpr int kLast = Plan::kNumLayers * kPerLayer;");
    out.blank();
    out.line("static SOLITON_DEVICE {}MatrixInstance matrix(int i) {{", scope);
    out.indented([&] {
      out.line("const int layer = i == kLast ? 0 : i / kPerLayer;");
      out.line("return {{kMatrices[i == kLast ? kPerLayer : i % kPerLayer], layer}};");
    });
    out.line("}}");
    out.blank();
    out.line("template <class Role>");
    out.line("static SOLITON_DEVICE void run(Role& role) {{");
    out.indented([&] {
      out.line("while (role.begin_step()) {{");
      out.indented([&] {
        out.line("for (int i = 0; i <= kLast; ++i) {{");
        out.indented([&] {
          const std::string condition =
              fmt::format("if (i % kPerLayer == {} && i < kLast)", attention - plan.phases.begin());
          if (plan.rows == 1) {
            out.line("{} role.template attention<{}>(i / kPerLayer);", condition, constant(attention->name));
          } else {
            out.line("{} {{", condition);
            out.indented([&] {
              if (plan.facts.head_norm != 0) out.line("role.norm_heads(i / kPerLayer);");
              out.line("role.attend(i / kPerLayer);");
              out.line("role.merge(i / kPerLayer);");
            });
            out.line("}}");
          }
          out.line("role.matrix(matrix(i), matrix(i == kLast ? 0 : i + 1));");
        });
        out.line("}}");
        out.line("role.end_step();");
      });
      out.line("}}");
    });
    out.line("}}");
  });
  out.line("}};");
  out.blank();
  out.line("SOLITON_KERNEL(Plan::kThreads) decode(const LaunchParams params) {{");
  out.indented([&] { out.line("{}run_roles<Plan, Step>(params);", scope); });
  out.line("}}");
  out.blank();
  out.line("}}  // namespace {}", full_scope(names));
  out.blank();
}

std::string emit_kernels(const std::vector<Plan>& plans) {
  TextWriter out;
  out.line("{}", header(plans[0], names_of(plans, 0)));
  out.line(
      "// One launch decodes tokens until it is told to stop: every CTA walks these phases for every token.");
  std::string kernels, descriptors;
  for (size_t i = 0; i < plans.size(); ++i) {
    const Names names = names_of(plans, i);
    out.line("#include \"plan{}.h\"", names.suffix);
    const std::string scope = names.scope.empty() ? "" : names.scope + "::";
    kernels += fmt::format("{}{}decode", i == 0 ? "" : ", ", scope);
    descriptors += fmt::format("{}{}kDescriptor", i == 0 ? "" : ", ", scope);
  }
  out.blank();
  const auto several = [](const Plan& plan) { return plan.rows > 1; };
  if (!std::all_of(plans.begin(), plans.end(), several)) out.line("#include \"kernel.cuh\"");
  out.line("#include \"primitives/library.h\"");
  if (std::any_of(plans.begin(), plans.end(), several)) out.line("#include \"rows/kernel.cuh\"");
  out.blank();
  for (size_t i = 0; i < plans.size(); ++i) write_kernel(plans[i], names_of(plans, i), out);
  out.line("namespace soliton::generated {{");
  out.blank();
  out.line("constexpr DecodeKernel kKernels[] = {{{}}};", kernels);
  out.line("constexpr Descriptor kDescriptors[] = {{{}}};", descriptors);
  out.blank();
  out.line("}}  // namespace soliton::generated");
  out.blank();
  out.line("SOLITON_LIBRARY(soliton::generated::kKernels, soliton::generated::kDescriptors)");
  return out.text();
}

}  // namespace

std::map<std::string, std::string> emit(const std::vector<Plan>& plans) {
  std::map<std::string, std::string> files{{"kernel.cu", emit_kernels(plans)}};
  for (size_t i = 0; i < plans.size(); ++i) {
    const Names names = names_of(plans, i);
    files["plan" + names.suffix + ".h"] = emit_plan(plans[i], names);
    files["plan" + names.suffix + ".txt"] = describe(plans[i]);
  }
  return files;
}

}  // namespace soliton
