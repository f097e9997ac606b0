#include "generator/emit.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <span>

#include "generator/plan/kernel_plan.h"
#include "generator/text_writer.h"
#include "layout/fact_list.h"
#include "layout/library.h"

namespace soliton {
namespace {

/// A double literal that reads back as the same value.
std::string literal(double value) {
  const std::string text = fmt::format("{}", value);
  return text.find_first_of(".en") == std::string::npos ? text + ".0" : text;
}
std::string literal(float value) {
  return literal(static_cast<double>(value)) + "f";
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

std::string join_names(const std::vector<GpuSpec>& cards, const char* separator) {
  std::string text;
  for (const GpuSpec& card : cards) text += (text.empty() ? "" : separator) + card.name;
  return text;
}

std::string header(const std::vector<Plan>& plans) {
  const std::string source = plans[0].source.empty() ? "MODEL" : plans[0].source;
  std::string command = fmt::format("soliton-gen {} --gpu {}", source, join_names(plans[0].cards, ","));
  if (plans[0].limits.ptx) command += fmt::format(" --ptx compute_{}", plans[0].limits.compute_capability);
  if (plans[0].num_cards > 1) command += fmt::format(" --cards {}", plans[0].num_cards);
  if (plans[0].max_splits != kMaxSplits) command += fmt::format(" --max-splits {}", plans[0].max_splits);
  for (size_t i = 0; plans.size() > 1 && i < plans.size(); ++i)
    command += fmt::format("{}{}", i == 0 ? " --rows " : ",", plans[i].rows);
  return fmt::format("// Generated from {} for {}. Do not edit; run: {}", source,
                     join_names(plans[0].cards, " and "), command);
}

const char* kind_name(PhaseKind kind) {
  constexpr const char* kNames[] = {"kMatrix", "kAttention", "kNormHeads", "kNormBlock",
                                    "kChoose", "kGroup",     "kUngroup"};
  return kNames[static_cast<int>(kind)];
}
const char* input_name(InputKind kind) {
  constexpr const char* kNames[] = {"kVector", "kNormed", "kHidden"};
  return kNames[static_cast<int>(kind)];
}
const char* output_name(OutputKind kind) {
  constexpr const char* kNames[] = {"kRotary", "kResidual", "kSwiglu", "kLogits", "kRouter"};
  return kNames[static_cast<int>(kind)];
}
const char* row_order_name(RowOrder order) {
  constexpr const char* kNames[] = {"kPlain", "kRotary", "kGateUp"};
  return kNames[static_cast<int>(order)];
}

/// "{WeightType::kInt4, 128, false}", and what few formats have only where it is so
std::string format_text(const WeightFormat& format) {
  const bool is_special = format.has_minima || format.block > 0;
  return fmt::format("{{WeightType::{}, {}, {}{}}}", traits_of(format.type).name, format.group,
                     format.has_zeros,
                     is_special ? fmt::format(", {}, {}", format.has_minima, format.block) : "");
}

/// "kDecode" of one row, "kDecodeRows8" of eight.
std::string plan_name(const Plan& plan) {
  return plan.rows == 1 ? "kDecode" : fmt::format("kDecodeRows{}", plan.rows);
}
std::string kernel_name(const Plan& plan) {
  return plan.rows == 1 ? "decode" : fmt::format("decode_rows{}", plan.rows);
}

// ---- plan.h

/// ", .experts = {ExpertAxis::kRows, 128, 8}"; nothing of none.
std::string experts_text(const ExpertParts& experts) {
  constexpr const char* kAxes[] = {"kNone", "kRows", "kColumns"};
  if (experts.axis == ExpertAxis::kNone) return "";
  return fmt::format(", .experts = {{ExpertAxis::{}, {}, {}}}", kAxes[static_cast<int>(experts.axis)],
                     experts.count, experts.chosen);
}

/// "{.experts = 60, .chosen = 4, .ffn = 1408, .renormalised = false, .shared = 4, .shared_gate = true}"
std::string mixture_text(const Mixture& mixture) {
  std::string text = fmt::format(".experts = {}, .chosen = {}, .ffn = {}, .renormalised = {}",
                                 mixture.experts, mixture.chosen, mixture.ffn, mixture.renormalised);
  if (mixture.shared > 0)
    text += fmt::format(", .shared = {}, .shared_gate = {}", mixture.shared, mixture.shared_gate);
  const bool is_sigmoid = mixture.scores == RouterScores::kSigmoid;
  if (is_sigmoid) text += ", .scores = RouterScores::kSigmoid";
  if (is_sigmoid || mixture.biased) text += fmt::format(", .biased = {}", mixture.biased);
  if (mixture.expert_bias) text += ", .expert_bias = true";
  return "{" + text + "}";
}

void write_matrix(const PackedMatrix& matrix, TextWriter& out) {
  out.line(
      "{{.name = \"{}\", .layer_kind = {}, .offset = {}, .rows = {}, .columns = {}, .padded_columns = {}, "
      ".format = {}, .num_tiles = {}, .row_order = RowOrder::{}{}}},",
      matrix.name, matrix.layer_kind, matrix.offset, matrix.rows, matrix.columns, matrix.padded_columns,
      format_text(matrix.format), matrix.num_tiles, row_order_name(matrix.row_order),
      experts_text(matrix.experts));
}

/// "kQkv = 0, kO = 1"
template <class Part>
std::string numbered(const std::vector<Part>& parts) {
  std::string text;
  for (size_t i = 0; i < parts.size(); ++i)
    text += fmt::format("{}{} = {}", i == 0 ? "" : ", ", constant(parts[i].name), i);
  return text;
}

/// The names of the matrices and vectors of all plans, of which some begin with those of another.
void write_names(const std::vector<Plan>& plans, TextWriter& out) {
  const Plan& longest = *std::max_element(plans.begin(), plans.end(), [](const Plan& a, const Plan& b) {
    return a.vectors.size() < b.vectors.size();
  });
  out.line("// What phases name.");
  out.line("struct Matrices {{ enum : int {{ {} }}; }};", numbered(longest.matrices));
  out.line("struct Vectors {{ enum : int {{ {} }}; }};", numbered(longest.vectors));
  out.blank();
  out.line("constexpr PackedMatrix kMatrices[] = {{  // in the order of the packed weights");
  out.indented([&] {
    for (const PlanMatrix& matrix : longest.matrices) write_matrix(packed_matrix(matrix), out);
  });
  out.line("}};");
  out.blank();
  out.line("constexpr Layer kLayers[] = {{  // the last stands once, behind all others");
  out.indented([&] {
    for (const Layer& layer : longest.layers)
      out.line("{{.kind = {}, .weights = {}, .first_norm = {}{}{}{}}},", layer.kind, layer.weights,
               layer.first_norm, layer.window == 0 ? "" : fmt::format(", .window = {}", layer.window),
               layer.chunk == 0 ? "" : fmt::format(", .chunk = {}", layer.chunk),
               layer.rope == 0 ? "" : fmt::format(", .rope = {}", layer.rope));
  });
  out.line("}};");
  out.blank();
}

/// What kernels know of the model.
void write_shape(const Plan& plan, TextWriter& out) {
  const ModelShape shape = model_shape(plan);
  out.line("constexpr ModelShape kModelShape{{");
  out.indented([&] {
    out.line(".layers = kLayers,");
    out.line(".num_layers = {},", shape.num_layers);
    out.line(".num_heads = {},", shape.num_heads);
    out.line(".num_kv_heads = {},", shape.num_kv_heads);
    out.line(".head_dim = {},", shape.head_dim);
    out.line(".kv_parts = {},", shape.kv_parts);
    if (shape.kv_e4m3) out.line(".kv_e4m3 = true,");
    out.line(".hidden = {},", shape.hidden);
    out.line(".qkv_bias = {},", shape.qkv_bias);
    if (shape.o_bias) out.line(".o_bias = true,");
    out.line(".head_norm = {},", shape.head_norm);
    if (shape.joint_norm) out.line(".joint_norm = true,");
    if (shape.head_norm_last) out.line(".head_norm_last = true,");
    if (shape.norms != NormPlacement::kBefore)
      out.line(".norms = NormPlacement{{{}}},  // {}", static_cast<int>(shape.norms),
               kNormPlacementNames[static_cast<int>(shape.norms)]);
    if (shape.norm_offset) out.line(".norm_offset = true,");
    if (shape.up_biases != 0) out.line(".up_biases = {},", shape.up_biases);
    if (shape.down_bias) out.line(".down_bias = true,");
    if (shape.logit_biases) out.line(".logit_biases = true,");
    if (shape.ungated) out.line(".ungated = true,");
    out.line(".ordered = {},", shape.ordered);
    out.line(".norm_epsilon = {},", literal(shape.norm_epsilon));
    out.line(".score_scale = {},", literal(shape.score_scale));
    if (shape.embedding_scale != 1) out.line(".embedding_scale = {},", literal(shape.embedding_scale));
    if (shape.residual_scale != 1) out.line(".residual_scale = {},", literal(shape.residual_scale));
    if (shape.logit_scale != 1) out.line(".logit_scale = {},", literal(shape.logit_scale));
    if (shape.logit_soft_cap != 0) out.line(".logit_soft_cap = {},", literal(shape.logit_soft_cap));
    if (shape.rope_tables != 1) out.line(".rope_tables = {},", shape.rope_tables);
    if (shape.query_table != 0) out.line(".query_table = {},", shape.query_table);
    std::vector<std::string> attention;
    if (shape.attention.soft_cap != 0)
      attention.push_back(fmt::format(".soft_cap = {}", literal(shape.attention.soft_cap)));
    if (shape.attention.sinks) attention.emplace_back(".sinks = true");
    if (shape.attention.alibi != 0)
      attention.push_back(fmt::format(".alibi = {}", literal(shape.attention.alibi)));
    if (!attention.empty()) out.line(".attention = {{{}}},", fmt::join(attention, ", "));
    if (shape.activation != Activation::kSilu)
      out.line(".activation = Activation{{{}}},  // {}", static_cast<int>(shape.activation),
               kActivationNames[static_cast<int>(shape.activation)]);
    if (shape.mixture.experts > 0) out.line(".mixture = {},", mixture_text(shape.mixture));
    if (shape.router_scale != 1) out.line(".router_scale = {},", literal(shape.router_scale));
    out.line(".integers = {},", format_text(shape.integers));
    if (shape.further != WeightFormat{}) out.line(".further = {},", format_text(shape.further));
  });
  out.line("}};");
  out.blank();
}

/// Of longrope.
void write_rope_factors(const ModelFacts& facts, TextWriter& out) {
  if (facts.rope_kind != RopeKind::kLongrope) return;
  const auto write = [&](const char* name, std::span<const float> factors) {
    std::vector<std::string> texts;
    for (const float factor : factors.first(static_cast<size_t>(rotated_pairs(facts))))
      texts.push_back(literal(factor));
    out.line(".{} = {{{}}},", name, fmt::join(texts, ", "));
  };
  write("rope_short_factors", facts.rope_short_factors);
  write("rope_long_factors", facts.rope_long_factors);
}

/// What the library says of all its kernels.
void write_facts(const Plan& plan, TextWriter& out) {
  out.line("constexpr ModelDescriptor kModel{{");
  out.indented([&] {
    out.line(".name = \"{}\",", plan.model);
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
        if (lists_layers(plan.facts))
          out.line(".layer_ffn = {{{}}},",
                   fmt::join(std::span(plan.facts.layer_ffn).first(plan.facts.num_layers), ", "));
        if (plan.facts.further_bits != 0)
          out.line(".layer_further = {{{}}},",
                   fmt::join(std::span(plan.facts.layer_further)
                                 .first(std::min(plan.facts.num_layers, kMostListedLayers)),
                             ", "));
        if (has_windows(plan.facts))
          out.line(".layer_window = {{{}}},",
                   fmt::join(std::span(plan.facts.layer_window).first(plan.facts.num_layers), ", "));
        if (has_chunks(plan.facts))
          out.line(".layer_chunk = {{{}}},",
                   fmt::join(std::span(plan.facts.layer_chunk).first(plan.facts.num_layers), ", "));
        if (lists_ropes(plan.facts))
          out.line(".layer_rope = {{{}}},",
                   fmt::join(std::span(plan.facts.layer_rope).first(plan.facts.num_layers), ", "));
        write_rope_factors(plan.facts, out);
      });
      out.line("}},");
    });
    out.line(".facts_hash = {:#x}ull,", hash_facts(plan.facts));
    out.line(".page_layout = {},", kPageLayoutVersion);
    out.line(".compute_capability = {},", plan.limits.compute_capability);
    if (plan.limits.ptx) out.line(".ptx = true,");
    out.line(".num_cards = {},", plan.cards.size());
    out.line(".cards =");
    out.indented([&] {
      out.line("{{");
      out.indented([&] {
        for (const GpuSpec& card : plan.cards) {
          out.line(
              "{{.name = \"{}\", .costs = {{.item_us = {}, .mma_us = {}, .read_bytes_per_s = {}, "
              ".exchange_bytes_per_s = {}}}}},",
              card.name, literal(card.attention_item_us), literal(card.attention_mma_us),
              literal(card.read_bandwidth_bytes_per_s), literal(card.exchange_bytes_per_s));
        }
      });
      out.line("}},");
    });
    out.line(".weight_bytes = {},", plan.weight_bytes);
    out.line(".needed_weight_bytes = {},", plan.needed_weight_bytes);
    out.line(".matrices = kMatrices,");
    out.line(".num_matrices = {},", plan.matrices.size());
    out.line(".layers = kLayers,");
  });
  out.line("}};");
  out.blank();
}

/// Everything but the phases, which stand in kernel.cu.
void write_plan(const Plan& plan, TextWriter& out) {
  const PlannedKernel planned(plan);
  const KernelPlan& kernel = *planned;
  out.line("constexpr Vector {}Vectors[] = {{  // in the workspace", plan_name(plan));
  out.indented([&] {
    for (size_t i = 0; i < plan.vectors.size(); ++i) {
      const Vector& vector = kernel.vectors[i];
      std::string further = vector.to_second == 0 ? "" : fmt::format(", .to_second = {}", vector.to_second);
      if (vector.layer_kind != kNone) further += fmt::format(", .layer_kind = {}", vector.layer_kind);
      out.line("{{.offset = {}, .elements = {}, .signatures = {}{}}},  // {}", vector.offset, vector.elements,
               vector.signatures, further, plan.vectors[i].name);
    }
  });
  out.line("}};");
  out.line("constexpr KernelPlan {}Numbers{{", plan_name(plan));
  out.indented([&] {
    out.line(".model = kModelShape,");
    out.line(".matrices = kMatrices, .num_matrices = {},", kernel.num_matrices);
    out.line(".vectors = {}Vectors, .num_vectors = {},", plan_name(plan), kernel.num_vectors);
    out.line(".rows = {}, .sync = SyncMode::{}, .num_ctas = {},", kernel.rows,
             kernel.sync == SyncMode::kSelfValidating ? "kSelfValidating" : "kCounter", kernel.num_ctas);
    if (kernel.num_cards > 1) out.line(".num_cards = {},", kernel.num_cards);
    out.line(".copies = CopyKind::{}, .consumer_warps = {}, .producer_warps = {},",
             kernel.copies == CopyKind::kBulk ? "kBulk" : "kLanes", kernel.consumer_warps,
             kernel.producer_warps);
    out.line(".ring_slots = {}, .slot_bytes = {}, .window = {}, .waiting_window = {}, .kv_window = {},",
             kernel.ring_slots, kernel.slot_bytes, kernel.window, kernel.waiting_window, kernel.kv_window);
    out.line(".prefetch_pages = {},", kernel.prefetch_pages);
    out.line(".residual_tiles = {}, .num_norms = {},", kernel.residual_tiles, kernel.num_norms);
    if (plan.rows == 1) {
      out.line(".tile_slots = {}, .chunk_columns = {}, .min_pages_per_split = {},", kernel.tile_slots,
               kernel.chunk_columns, kernel.min_pages_per_split);
      if (kernel.max_splits != kMaxSplits) out.line(".max_splits = {},", kernel.max_splits);
    } else {
      out.line(".input_buffers = {}, .max_query_tiles = {}, .warp_dims = {},", kernel.input_buffers,
               kernel.max_query_tiles, kernel.warp_dims);
      if (kernel.shares_registers) out.line(".shares_registers = true,");
      if (kernel.warpgroups) out.line(".warpgroups = true,");
    }
    if (kernel.squares != kNone)
      out.line(".squares = Vectors::{},", constant(plan.vectors[kernel.squares].name));
    if (kernel.block != kNone) {
      out.line(".block = Vectors::{}, .block_squares = Vectors::{},",
               constant(plan.vectors[kernel.block].name), constant(plan.vectors[kernel.block_squares].name));
    }
    if (plan.rows == 1)
      out.line(".partials = {{.offset = {}, .elements = {}}},", kernel.partials.offset,
               kernel.partials.elements);
    if (kernel.warpgroups)
      out.line(".sums = {{.offset = {}, .elements = {}}},", kernel.sums.offset, kernel.sums.elements);
    out.line(".counter_offset = {}, .counter_bytes = {}, .workspace_bytes = {},", kernel.counter_offset,
             kernel.counter_bytes, kernel.workspace_bytes);
    out.line(".num_regions = {},", kernel.num_regions);
    out.line(".regions = {{  // offset and bytes in shared memory");
    out.indented([&] {
      for (int i = 0; i < kernel.num_regions; ++i) {
        const Region& region = kernel.regions[i];
        out.line("{{\"{}\", {}, {}}},", region.name, region.offset, region.bytes);
      }
    });
    out.line("}},");
    out.line(".num_barriers = {},", kernel.num_barriers);
    out.line(".barriers = {{  // slots, arrivals, of whole warps?");
    out.indented([&] {
      for (int i = 0; i < kernel.num_barriers; ++i) {
        const BarrierSet& set = kernel.barriers[i];
        out.line("{{\"{}\", {}, {}, {}}},", set.name, set.slots, set.arrivals, set.by_warps);
      }
    });
    out.line("}},");
  });
  out.line("}};");
}

std::string emit_plans(const std::vector<Plan>& plans) {
  TextWriter out;
  out.line("{}", header(plans));
  out.line("#pragma once");
  out.blank();
  out.line("#include \"layout/library.h\"");
  out.blank();
  out.line("namespace soliton::generated {{");
  out.blank();
  write_names(plans, out);
  write_facts(plans[0], out);
  write_shape(plans[0], out);
  for (const Plan& plan : plans) {
    write_plan(plan, out);
    out.blank();
  }
  out.line("}}  // namespace soliton::generated");
  return out.text();
}

// ---- kernel.cu

std::string vector_text(const char* field, const Plan& plan, int vector) {
  return vector < 0 ? "" : fmt::format(", .{} = Vectors::{}", field, constant(plan.vectors[vector].name));
}

/// "{.name = "qkv", .kind = kMatrix, .matrix = Matrices::kQkv, .reads = Vectors::kHidden, ...}"
std::string phase_text(const Plan& plan, const PlanPhase& phase) {
  const bool is_matrix = phase.kind == PhaseKind::kMatrix;
  std::string text = fmt::format("{{.name = \"{}\", .kind = {}", phase.name, kind_name(phase.kind));
  if (is_matrix) text += fmt::format(", .matrix = Matrices::{}", constant(plan.matrices[phase.matrix].name));
  text += vector_text("reads", plan, phase.reads) + vector_text("writes", plan, phase.writes) +
          vector_text("routes", plan, phase.routes);
  if (is_matrix) {
    text += fmt::format(", .input = InputKind::{}, .output = {}", input_name(phase.input),
                        output_name(phase.output));
  }
  if (phase.norm >= 0) text += fmt::format(", .norm = {}", phase.norm);
  if (phase.first_cta > 0) text += fmt::format(", .first_cta = {}", phase.first_cta);
  if (phase.layer_kind > 0) text += fmt::format(", .layer_kind = {}", phase.layer_kind);
  if (phase.appends) text += ", .appends = true";
  if (phase.column_slices > 1) text += fmt::format(", .column_slices = {}", phase.column_slices);
  return text + "}";
}

std::vector<std::string> phase_texts(const Plan& plan) {
  std::vector<std::string> texts;
  for (const PlanPhase& phase : plan.phases) texts.push_back(phase_text(plan, phase));
  return texts;
}

/// "8 and 16 rows a step"
std::string rows_text(const std::vector<Plan>& plans, size_t begin, size_t end) {
  std::string text;
  for (size_t i = begin; i < end; ++i) {
    const char* before = i == begin ? "" : i + 1 == end ? " and " : ", ";
    text += fmt::format("{}{}", before, plans[i].rows);
  }
  return text + (text == "1" ? " row" : " rows") + " a step";
}

/// The phases of plans that have the same, and their plans.
void write_steps(const std::vector<Plan>& plans, TextWriter& out) {
  for (size_t begin = 0; begin < plans.size();) {
    const std::vector<std::string> phases = phase_texts(plans[begin]);
    size_t end = begin + 1;
    while (end < plans.size() && phase_texts(plans[end]) == phases) ++end;
    const std::string name = fmt::format("kStep{}", begin == 0 ? "" : fmt::format("{}", plans[begin].rows));
    out.line("// {}.", rows_text(plans, begin, end));
    out.line("constexpr Phase {}[] = {{", name);
    out.indented([&] {
      for (const std::string& phase : phases) out.line("{},", phase);
    });
    out.line("}};");
    for (; begin < end; ++begin) {
      const std::string plan = plan_name(plans[begin]);
      out.line("constexpr KernelPlan {0} = with_phases({0}Numbers, {1});", plan, name);
    }
    out.blank();
  }
}

std::string emit_kernels(const std::vector<Plan>& plans) {
  TextWriter out;
  out.line("{}", header(plans));
  out.line(
      "// One launch decodes tokens until it is told to stop: every CTA walks the phases of a step for every "
      "token.");
  out.line("// All but the last happen in every layer{}. A phase waits for what it reads.",
           plans[0].once() == 1 ? "" : " of their kind");
  out.line("#include \"plan.h\"");
  out.blank();
  const auto several = [](const Plan& plan) { return plan.rows > 1; };
  if (!std::all_of(plans.begin(), plans.end(), several)) out.line("#include \"one_row/kernel.cuh\"");
  out.line("#include \"primitives/library.h\"");
  if (std::any_of(plans.begin(), plans.end(), several)) out.line("#include \"rows/kernel.cuh\"");
  out.blank();
  out.line("namespace soliton::generated {{");
  out.blank();
  out.line("using enum PhaseKind;");
  out.line("using enum OutputKind;");
  out.blank();
  write_steps(plans, out);
  for (const Plan& plan : plans) {
    out.line("SOLITON_KERNEL({0}.threads()) {1}(const LaunchParams params) {{ {2}::run<{0}>(params); }}",
             plan_name(plan), kernel_name(plan), plan.rows == 1 ? "one_row" : "rows");
  }
  out.blank();
  std::string kernels, descriptors;
  for (const Plan& plan : plans) {
    const char* comma = kernels.empty() ? "" : ", ";
    kernels += comma + kernel_name(plan);
    descriptors += fmt::format("{}describe(kModel, {})", comma, plan_name(plan));
  }
  out.line("constexpr DecodeKernel kKernels[] = {{{}}};", kernels);
  out.line("constexpr Descriptor kDescriptors[] = {{{}}};", descriptors);
  out.blank();
  out.line("}}  // namespace soliton::generated");
  out.blank();
  out.line("SOLITON_LIBRARY(soliton::generated::kKernels, soliton::generated::kDescriptors)");
  return out.text();
}

/// For people.
std::string emit_text(const std::vector<Plan>& plans) {
  std::string text;
  for (const Plan& plan : plans) text += (text.empty() ? "" : "\n") + describe(plan);
  return text;
}

}  // namespace

std::map<std::string, std::string> emit(const std::vector<Plan>& plans) {
  return {{"kernel.cu", emit_kernels(plans)}, {"plan.h", emit_plans(plans)}, {"plan.txt", emit_text(plans)}};
}

}  // namespace soliton
