// What every other pass relies on beside its numbers: indices that point somewhere, one attention and one greedy phase, one
// matrix for each matrix phase, and all barriers and pieces of memory.
#include <algorithm>
#include <map>

#include "generator/plan/verify_passes.h"
#include "layout/library.h"

namespace soliton {
namespace {

/// The parts called `name`.
template <class Part>
int count_named(const std::vector<Part>& parts, const std::string& name) {
  return static_cast<int>(
      std::count_if(parts.begin(), parts.end(), [&](const Part& p) { return name == p.name; }));
}

/// The generated constants and the pieces of the workspace are told apart by name.
template <class Part>
void check_names(const char* what, const std::vector<Part>& parts, Report& report) {
  for (const Part& part : parts) {
    const int count = count_named(parts, part.name);
    if (count > 1) report.refuse(Rule::kNameRepeated, "{}: expected one {}, got {}", part.name, what, count);
  }
}

void check_index(const PlanPhase& phase, const char* role, int index, int least, size_t size,
                 Report& report) {
  if (index >= least && index < static_cast<int>(size)) return;
  report.refuse(Rule::kIndexOutOfRange, "{}: {}: expected an index of {} to {}, got {}", phase.name, role,
                least, static_cast<int>(size) - 1, index);
}

void check_indices(const Plan& plan, Report& report) {
  const size_t vectors = plan.vectors.size();
  for (const PlanPhase& phase : plan.phases) {
    check_index(phase, "matrix", phase.matrix, -1, plan.matrices.size(), report);
    check_index(phase, "reads", phase.reads, -1, vectors, report);
    check_index(phase, "reads in layer 0", phase.first_layer_reads, -1, vectors, report);
    check_index(phase, "waits for", phase.waits_for, -1, vectors, report);
    check_index(phase, "writes", phase.writes, -1, vectors, report);
    check_index(phase, "routes", phase.routes, -1, vectors, report);
  }
  const int least_squares = plan.rows > 1 ? 0 : -1;
  const int most_squares = plan.rows > 1 ? static_cast<int>(vectors) - 1 : -1;
  if (plan.squares < least_squares || plan.squares > most_squares) {
    report.refuse(Rule::kIndexOutOfRange, "squares: expected a vector of {} to {}, got {}", least_squares,
                  most_squares, plan.squares);
  }
  const bool norms_blocks = plan.rows > 1 && holds_blocks(norm_placement(plan.facts));
  for (const int index : {plan.block, plan.block_squares}) {
    const bool is_index = index >= 0 && index < static_cast<int>(vectors);
    if (norms_blocks ? is_index : index == -1) continue;
    report.refuse(Rule::kIndexOutOfRange, "block: expected {}, got {}",
                  norms_blocks ? "two vectors, where norms follow blocks" : "no vector", index);
  }
}

void check_matrix_use(const Plan& plan, Report& report) {
  for (const PlanPhase& phase : plan.phases) {
    const bool needs = phase.kind == PhaseKind::kMatrix;
    if (needs != (phase.matrix >= 0)) {
      report.refuse(Rule::kMatrixUse, "{}: expected {} matrix, got {}", phase.name, needs ? "a" : "no",
                    needs ? "none" : "one");
    }
  }
  for (int matrix = 0; matrix < static_cast<int>(plan.matrices.size()); ++matrix) {
    const auto users = std::count_if(plan.phases.begin(), plan.phases.end(),
                                     [&](const PlanPhase& phase) { return phase.matrix == matrix; });
    if (users != 1) {
      report.refuse(Rule::kMatrixUse, "matrix {}: expected one phase that uses it, got {}",
                    plan.matrices[matrix].name, users);
    }
  }
}

/// The code of attention is one for all kinds of layers: the first phase of its kind says what it exchanges.
void check_alike(const PlanPhase& first, const PlanPhase& phase, Report& report) {
  if (phase.reads == first.reads && phase.writes == first.writes) return;
  report.refuse(Rule::kStepShape, "{}: expected to read and write what {} does, got other vectors",
                phase.name, first.name);
}

/// One attention phase in every kind of layers; and behind the layers one phase, the greedy choice.
void check_step(const Plan& plan, Report& report) {
  std::map<int, int> attentions;  // in each kind of layers
  for (int kind = 0; kind < plan.once(); ++kind) attentions[kind] = 0;
  std::map<PhaseKind, const PlanPhase*> first;
  for (size_t i = 0; i < plan.phases.size(); ++i) {
    const PlanPhase& phase = plan.phases[i];
    const bool last = i + 1 == plan.phases.size();
    const bool once = phase.layer_kind == plan.once();
    const bool greedy = phase.kind == PhaseKind::kMatrix && phase.output == OutputKind::kLogits;
    if (phase.kind != PhaseKind::kMatrix && !is_beside_matrix(phase.kind))
      check_alike(*first.try_emplace(phase.kind, &phase).first->second, phase, report);
    if (phase.kind == PhaseKind::kAttention) ++attentions[phase.layer_kind];
    if (greedy != last || once != last) {
      report.refuse(Rule::kStepShape, "{}: expected {}, got {} of {}", phase.name,
                    last ? "the last phase to choose a token, once" : "a phase of every layer",
                    greedy ? "a choice" : "no choice", once ? "the step" : "every layer");
    }
    if (i > 0 && phase.layer_kind < plan.phases[i - 1].layer_kind) {
      report.refuse(Rule::kStepShape, "{}: expected a kind of layer from {} on, got {}", phase.name,
                    plan.phases[i - 1].layer_kind, phase.layer_kind);
    }
  }
  for (const auto& [kind, count] : attentions) {
    if (count != 1) report.refuse(Rule::kStepShape, "step: expected one attention phase, got {}", count);
  }
}

/// The pieces of these names, each once, and no others.
template <class Piece, class Needed>
void check_set(const char* where, const std::vector<Piece>& pieces, const std::vector<Needed>& needed,
               Report& report) {
  for (const Needed& each : needed) {
    const int count = count_named(pieces, each.name);
    if (count != 1)
      report.refuse(Rule::kPieceMissing, "{}: expected one {}, got {}", where, each.name, count);
  }
  for (const Piece& piece : pieces) {
    if (count_named(needed, piece.name) == 0) {
      report.refuse(Rule::kPieceMissing, "{}: expected no {}, got one", where, piece.name);
    }
  }
}

/// The kernel knows pieces by their number.
template <class Piece, class Rules>
void check_order(const char* where, const std::vector<Piece>& pieces, const Rules& rules, Report& report) {
  for (size_t i = 0; i < pieces.size() && i < rules.size(); ++i) {
    if (pieces[i].name == rules[i].name) continue;
    report.refuse(Rule::kPieceMissing, "{}: expected {} as number {}, got {}", where, rules[i].name, i,
                  pieces[i].name);
    return;
  }
}

/// The runtime packs matrices in the order of the model's graph, and layers are of its kinds.
void check_graph(const Plan& plan, Report& report) {
  const Graph graph = build_graph(plan.facts);
  if (plan.matrices.size() != graph.matrices.size()) {
    report.refuse(Rule::kPieceMissing, "matrices: expected {}, got {}", graph.matrices.size(),
                  plan.matrices.size());
    return;
  }
  for (size_t i = 0; i < graph.matrices.size(); ++i) {
    if (plan.matrices[i].name == graph.matrices[i].name) continue;
    report.refuse(Rule::kPieceMissing, "matrices: expected {} as number {}, got {}", graph.matrices[i].name,
                  i, plan.matrices[i].name);
    return;
  }
  for (size_t layer = 0; layer < graph.layers.size(); ++layer) {
    if (plan.layers[layer].kind == graph.layers[layer]) continue;
    report.refuse(Rule::kMatrixShape, "layer {}: expected one of kind {}, got {}", layer, graph.layers[layer],
                  plan.layers[layer].kind);
    return;
  }
}

/// The library says what it knows of at least one card, and of no more than there is room for.
void check_cards(const Plan& plan, Report& report) {
  if (!plan.cards.empty() && plan.cards.size() <= kMaxCards) return;
  report.refuse(Rule::kNumberOutOfRange, "cards: expected 1 to {}, got {}", kMaxCards, plan.cards.size());
}

}  // namespace

void check_structure(const Plan& plan, Report& report) {
  check_names("vector", plan.vectors, report);
  check_names("matrix", plan.matrices, report);
  check_names("phase", plan.phases, report);
  check_indices(plan, report);
  check_matrix_use(plan, report);
  check_step(plan, report);
  check_cards(plan, report);
  if (std::ssize(plan.layers) == int64_t{plan.facts.num_layers} + 1) check_graph(plan, report);
}

void check_pieces(const Plan& plan, Report& report) {
  const PlannedKernel kernel(plan);
  check_set("barriers", plan.barriers, needed_barriers(*kernel), report);
  check_order("barriers", plan.barriers, needed_barriers(*kernel), report);
  check_set("shared memory", plan.shared, needed_regions(*kernel), report);
  check_order("shared memory", plan.shared, needed_regions(*kernel), report);
  check_set("workspace", plan.workspace, needed_workspace(plan), report);
}

}  // namespace soliton
