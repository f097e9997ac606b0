// Matrices and vectors fit the phases that use them, and those the model; inputs are brought in as the kernel
// can.
#include <fmt/format.h>

#include <algorithm>

#include "generator/plan/verify_passes.h"
#include "models/matrix_roles.h"

namespace soliton {
namespace {

/// Something that can be counted, as it must be and as it is.
struct Count {
  const char* what;
  int expected;
  int got;
};

template <class Counts>
void check_counts(Rule rule, const std::string& name, const Counts& counts, Report& report) {
  for (const Count& count : counts) {
    if (count.expected == count.got) continue;
    report.refuse(rule, "{}: expected {} {}, got {}", name, count.expected, count.what, count.got);
  }
}

/// What a matrix phase's output kind asks of its matrix and of the vector that it writes.
struct OutputShape {
  int rows;
  RowOrder row_order;
  int elements;
  int element_bytes;
};

int heads_elements(const ModelFacts& facts) {
  return facts.num_heads * facts.head_dim;
}
int qkv_elements(const ModelFacts& facts) {
  return (facts.num_heads + 2 * facts.num_kv_heads) * facts.head_dim;
}
/// A sum of squares of each tile of q and k, if they are normed whole.
int squares_elements(const ModelFacts& facts) {
  return facts.joint_norm == 0 ? 0 : (facts.num_heads + facts.num_kv_heads) * facts.head_dim / kTileRows;
}

/// The same of what blocks give, where it is normed.
int block_squares_elements(const ModelFacts& facts) {
  return holds_blocks(norm_placement(facts)) ? facts.hidden / kTileRows : 0;
}

OutputShape output_shape(const Plan& plan, const PlanPhase& phase) {
  const ModelFacts& facts = plan.facts;
  const int width = ffn_of(plan, phase);
  const int ffn = width == kMixture ? used_experts(facts) * expert_width(facts) : width;
  const int qkv = qkv_elements(facts);
  const OutputShape shapes[] = {
      {qkv, RowOrder::kRotary, qkv + squares_elements(facts), 4},                         // kRotary
      {facts.hidden, RowOrder::kPlain, facts.hidden + block_squares_elements(facts), 4},  // kResidual
      {facts.ungated != 0 ? ffn : 2 * ffn, facts.ungated != 0 ? RowOrder::kPlain : RowOrder::kGateUp, ffn,
       4},  // kSwiglu
      {facts.vocabulary, RowOrder::kPlain, plan.all_ctas() + 1,
       8},  // kLogits: a candidate of each CTA, and to stop
      {router_rows(facts), RowOrder::kPlain, round_up(router_rows(facts), 4) * phase.column_slices,
       4}};  // kRouter: whole loads of 4, of each slice of columns
  return shapes[static_cast<int>(phase.output)];
}

const char* order_name(RowOrder order) {
  constexpr const char* kNames[] = {"plain", "rotary", "gate and up"};
  return kNames[static_cast<int>(order)];
}

/// Columns that padding is to: whole blocks for each consumer, and for four at least, of E2M1 whole slots of several rows, of integers
/// whole steps, or pages if these are put together.
int padding_unit(const PlanMatrix& matrix, int consumer_warps) {
  if (matrix.experts.axis == ExpertAxis::kColumns && matrix.format.has_scales())
    return matrix.format.page_columns();
  if (matrix.format.least_columns() > 0) return matrix.format.least_columns();
  const bool has_codes = matrix.format.type == WeightType::kE2m1;
  return std::max(kColumnBlock * consumer_warps,
                  has_codes ? kCodeSlotColumns : kColumnBlock * kLeastPaddingWarps);
}

/// How the facts say that a phase's matrix stands.
WeightFormat expected_format(const Plan& plan, const PlanPhase& phase) {
  constexpr int kRepeatedGroup = 128;
  const ModelFacts& facts = plan.facts;
  if (phase.output == OutputKind::kRouter) return {};
  const bool is_once = phase.layer_kind == plan.once();
  const MatrixRole role = phase.output == OutputKind::kRotary   ? kQkvMatrix
                          : phase.output == OutputKind::kSwiglu ? kGateUpMatrix
                          : phase.appends                       ? kOMatrix
                                                                : kDownMatrix;
  const auto layer = std::find_if(plan.layers.begin(), plan.layers.end(),
                                  [&](const Layer& each) { return each.kind == phase.layer_kind; });
  const bool is_further =
      is_once ? facts.lm_head_bits == facts.further_bits
              : (further_of_layer(facts, static_cast<int>(layer - plan.layers.begin())) & role) != 0;
  if (is_further && facts.further_e2m1 != 0) return {.type = WeightType::kE2m1, .group = facts.further_group};
  if (is_further) {
    return {.type = type_of_bits(facts.further_bits),
            .group = facts.further_group,
            .has_minima = facts.further_minima != 0,
            .block = facts.further_block};
  }
  const WeightFormat format = {.type = type_of_bits(is_once ? facts.lm_head_bits : facts.weight_bits)};
  if (!format.has_scales()) return format;
  if (facts.weight_e4m3 != 0) return {.type = WeightType::kE4m3, .group = facts.weight_group};
  // One scale for all columns is repeated.
  return {.type = format.type,
          .group = facts.weight_group > 0 ? facts.weight_group : kRepeatedGroup,
          .has_zeros = facts.weight_zeros != 0,
          .has_minima = facts.weight_minima != 0,
          .block = facts.weight_block};
}

std::string format_text(const WeightFormat& format) {
  if (!format.has_scales())
    return format.type == WeightType::kBf16 ? "bf16" : format.has_factors() ? "E2M1 in groups of 16" : "E2M1";
  if (format.has_float_scales()) return fmt::format("E4M3 in groups of {}", format.group);
  return fmt::format("integers of {} bits in groups of {}{}{}{}", format.bits(), format.group,
                     format.has_zeros ? " with zeros" : "", format.has_minima ? " with minima" : "",
                     format.block > 0 ? fmt::format(", blocks of {}", format.block) : "");
}

void check_format(const Plan& plan, const PlanPhase& phase, Report& report) {
  const PlanMatrix& matrix = plan.matrices[phase.matrix];
  const WeightFormat expected = expected_format(plan, phase);
  if (matrix.format == expected) return;
  report.refuse(Rule::kMatrixShape, "matrix {}: expected {}, got {}", matrix.name, format_text(expected),
                format_text(matrix.format));
}

/// Elements that a phase multiplies with.
int input_elements(const Plan& plan, const PlanPhase& phase) {
  if (phase.reads < 0) return 0;
  const int behind = phase.input == InputKind::kVector ? 0 : block_squares_elements(plan.facts);
  return plan.vectors[phase.reads].elements - behind;
}

void check_matrix(const Plan& plan, const PlanPhase& phase, Report& report) {
  const PlanMatrix& matrix = plan.matrices[phase.matrix];
  const OutputShape shape = output_shape(plan, phase);
  const Count counts[] = {
      {"rows", shape.rows, matrix.rows},
      {"tiles", ceil_divide(matrix.rows, kTileRows), matrix.num_tiles},
      {"tiles of a card", ceil_divide(ceil_divide(matrix.rows, kTileRows), plan.num_cards),
       matrix.card_tiles},
      {"columns, one of each element that is read", input_elements(plan, phase), matrix.columns},
      {"columns with padding", round_up(matrix.columns, padding_unit(matrix, plan.consumer_warps)),
       matrix.padded},
      {"as kind of layer", phase.layer_kind, matrix.layer_kind}};
  check_counts(Rule::kMatrixShape, "matrix " + matrix.name, counts, report);
  if (matrix.row_order != shape.row_order) {
    report.refuse(Rule::kMatrixShape, "matrix {}: expected {} rows, got {} ones", matrix.name,
                  order_name(shape.row_order), order_name(matrix.row_order));
  }
}

/// The vectors that a phase reads and writes.
void check_vectors(const Plan& plan, const PlanPhase& phase, Report& report) {
  const bool attention = phase.kind == PhaseKind::kAttention;
  if (attention && phase.reads >= 0) {
    const PlanVector& read = plan.vectors[phase.reads];
    const Count counts[] = {{"elements for attention to read",
                             qkv_elements(plan.facts) + squares_elements(plan.facts), read.elements}};
    check_counts(Rule::kVectorShape, read.name, counts, report);
  }
  if (phase.writes < 0) return;
  const PlanVector& written = plan.vectors[phase.writes];
  const OutputShape shape =
      attention ? OutputShape{0, RowOrder::kPlain, heads_elements(plan.facts), 4} : output_shape(plan, phase);
  const Count counts[] = {{"elements", shape.elements, written.elements},
                          {"bytes an element", shape.element_bytes, written.element_bytes}};
  check_counts(Rule::kVectorShape, written.name, counts, report);
  if (!attention && phase.output == OutputKind::kLogits && written.signatures != 0) {
    report.refuse(Rule::kVectorShape, "{}: expected no signatures beside a candidate of every CTA, got {}",
                  written.name, written.signatures);
  }
}

/// Layer 0 of the phase that begins a step reads the embedding, once it knows the token from the candidates. A
/// residual phase has no use for a norm's factor.
void check_input(const Plan& plan, const PlanPhase& phase, Report& report) {
  const auto refuse = [&](const std::string& expected) {
    report.refuse(Rule::kInputKind, "{}: expected {}", phase.name, expected);
  };
  const std::string candidates = vector_name(plan, plan.candidates());
  const bool begins = phase.first_layer_reads >= 0;
  const bool hidden = phase.kind == PhaseKind::kMatrix && phase.input == InputKind::kHidden;
  if (begins && phase.first_layer_reads != plan.candidates()) {
    refuse(fmt::format("layer 0 to read {}, got {}", candidates, vector_name(plan, phase.first_layer_reads)));
  }
  if (begins && !hidden)
    refuse(fmt::format("the embedding as input once {} are read, got another", candidates));
  if (hidden && !begins)
    refuse(fmt::format("{} to be read before the embedding, got nothing read", candidates));
  const bool normed = phase.input != InputKind::kVector;
  if (normed && (phase.kind == PhaseKind::kAttention || phase.output == OutputKind::kResidual)) {
    refuse("an input without norm, got a normed one");
  }
}

/// A norm's factor is of the whole input, so it comes in one chunk; and chunks are whole pages.
void check_chunks(const Plan& plan, Report& report) {
  int page_columns = kPageColumns;
  for (const PlanMatrix& matrix : plan.matrices)
    page_columns = std::max(page_columns, matrix.format.page_columns());
  if (plan.chunk_columns <= 0 || plan.chunk_columns % page_columns != 0) {
    report.refuse(Rule::kMatrixShape, "chunks: expected a multiple of {} columns, got {}", page_columns,
                  plan.chunk_columns);
  }
  for (const PlanPhase& phase : plan.phases) {
    if (phase.kind != PhaseKind::kMatrix || phase.input == InputKind::kVector) continue;
    const int padded = plan.matrices[phase.matrix].padded;
    if (padded <= plan.chunk_columns) continue;
    report.refuse(Rule::kMatrixShape,
                  "{}: expected its normed input of {} columns in one chunk, got chunks of {}", phase.name,
                  padded, plan.chunk_columns);
  }
}

}  // namespace

void check_formats(const Plan& plan, Report& report) {
  for (const PlanPhase& phase : plan.phases) {
    if (phase.kind == PhaseKind::kMatrix) check_format(plan, phase, report);
  }
}

void check_norms(const Plan& plan, Report& report) {
  const int num_norms = build_graph(plan.facts).num_norms();
  if (plan.num_norms != num_norms)
    report.refuse(Rule::kNormRow, "norms: expected {} rows, got {}", num_norms, plan.num_norms);
  std::vector<int> uses(num_norms, 0);
  const auto last = static_cast<int64_t>(uses.size()) - 1;
  const NormPlacement placement = norm_placement(plan.facts);
  const PlanPhase* writer = nullptr;  // of the residual stream, and the row that it names
  int64_t named = 0;
  for (const PhaseInstance& instance : step_sequence(plan)) {
    const PlanPhase& phase = plan.phases[instance.phase];
    // Of the residual stream: that is normed, if there are norms before blocks, or behind all of them.
    const bool reads = phase.input != InputKind::kVector;
    const bool normed = reads && (norms_before(placement) || phase.output == OutputKind::kLogits);
    const bool residual = phase.kind == PhaseKind::kMatrix && phase.output == OutputKind::kResidual;
    // What a block gave is normed by the row before: by who reads the stream next, or of several rows by a phase of its own.
    const bool norms_block = plan.rows > 1 ? phase.kind == PhaseKind::kNormBlock
                                           : reads && writer != nullptr && holds_blocks(placement);
    const bool weighs_block = norms_block && norms_after(placement);  // else it loses its mean
    const bool names = reads || residual || norms_block;
    const int64_t row = plan.layers[instance.layer].first_norm + int64_t{phase.norm};
    if (names && (phase.norm < 0 || row < (weighs_block ? 1 : 0) || row > last)) {
      report.refuse_once(phase.name, Rule::kNormRow,
                         fmt::format("{} (layer {}): expected a row of the norms of 0 to {}, got {}",
                                     phase.name, instance.layer, last, row));
    } else if (names) {
      if (normed && phase.routes < 0) ++uses[row];  // else the router has counted it
      if (weighs_block) ++uses[row - 1];
    } else if (phase.norm >= 0) {
      report.refuse(Rule::kNormRow, "{}: expected no row of the norms where nothing is normed, got {}",
                    phase.name, phase.norm);
    }
    if ((reads || norms_block) && writer != nullptr && named != row) {
      report.refuse_once(writer->name, Rule::kNormRow,
                         fmt::format("{}: expected row {} of the norms, which {} reads it with, got {}",
                                     writer->name, row, phase.name, named));
    }
    if (residual) writer = &phase, named = row;
  }
  for (size_t row = 0; row < uses.size(); ++row) {
    if (uses[row] == 1) continue;
    report.refuse_once("uses", Rule::kNormRow,
                       fmt::format("norms: row {}: expected one use, got {}", row, uses[row]));
  }
}

void check_shapes(const Plan& plan, Report& report) {
  for (const PlanPhase& phase : plan.phases) {
    if (phase.kind == PhaseKind::kMatrix) check_matrix(plan, phase, report);
    check_vectors(plan, phase, report);
    check_input(plan, phase, report);
  }
  check_chunks(plan, report);
  check_norms(plan, report);
}

}  // namespace soliton
