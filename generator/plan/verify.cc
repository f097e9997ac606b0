#include "generator/plan/verify.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace soliton {
namespace {

// The distances that templates/ops/epilogue.cuh argues for: a vector read in phase r may be cleared from phase r + 1 on,
// and cleared in phase c it may be written again from phase c + 3 on.
constexpr int kReadToClear = 1;
constexpr int kClearToWrite = 3;
constexpr int kStepsUnrolled = 3;

class Verifier {
 public:
  explicit Verifier(const Plan& plan) : plan_(plan), sequence_(step_sequence(plan)) {}

  std::vector<Violation> run() {
    check_pages();
    check_weights();
    check_waits();
    if (plan_.sync == SyncMode::kSelfValidating) {
      for (int v = 0; v < static_cast<int>(plan_.vectors.size()); ++v) check_clears(v);
    }
    check_residual();
    check_memory();
    check_barriers();
    return std::move(violations_);
  }

 private:
  template <class... Args>
  void refuse(Rule rule, fmt::format_string<Args...> format, Args&&... args) {
    violations_.push_back({rule, fmt::format(format, std::forward<Args>(args)...)});
  }

  /// Every tile of every matrix phase has one reader, which reads it once.
  void check_pages() {
    for (const PlanPhase& phase : plan_.phases) {
      if (phase.matrix < 0) continue;
      const PlanMatrix& matrix = plan_.matrices[phase.matrix];
      std::vector<int> owner(matrix.num_tiles, -1);
      for (int cta = 0; cta < static_cast<int>(phase.runs.size()); ++cta) {
        const TileRun& run = phase.runs[cta];
        for (int i = 0; i < run.count; ++i) check_tile(phase, owner, run.first + i * run.stride, cta);
      }
      const auto skipped = std::find(owner.begin(), owner.end(), -1);
      if (skipped != owner.end()) {
        refuse(Rule::kPageSkipped, "{}: tile {}: expected one CTA that reads its pages, got none", phase.name,
               skipped - owner.begin());
      }
    }
  }

  void check_tile(const PlanPhase& phase, std::vector<int>& owner, int tile, int cta) {
    if (tile < 0 || tile >= static_cast<int>(owner.size())) {
      refuse(Rule::kPageOutOfRange, "{}: CTA {}: expected tiles 0 to {}, got {}", phase.name, cta, owner.size() - 1, tile);
    } else if (owner[tile] == cta) {
      refuse(Rule::kPageRepeated, "{}: tile {}: expected to be read once, CTA {} reads it again", phase.name, tile, cta);
    } else if (owner[tile] >= 0) {
      refuse(Rule::kPageTwoOwners, "{}: tile {}: expected one owner, got CTA {} and CTA {}", phase.name, tile,
             owner[tile], cta);
    } else {
      owner[tile] = cta;
    }
  }

  /// No two tiles of the packed weights share a byte.
  void check_weights() {
    std::vector<PlanRegion> regions;
    for (const PlanMatrix& matrix : plan_.matrices) {
      for (int copy = 0; copy < matrix.copies; ++copy) {
        regions.push_back({fmt::format("{}[{}]", matrix.name, copy), matrix.offset + copy * matrix.layer_stride,
                           matrix.layer_bytes()});
      }
    }
    check_regions(regions, plan_.weight_bytes, Rule::kWeightsOverlap, Rule::kWeightsOverlap, "packed weights");
  }

  /// Whoever reads a vector has waited for it, it was written in the phase before, and by or with the signature of
  /// every CTA.
  void check_waits() {
    const int count = static_cast<int>(sequence_.size());
    for (int i = 0; i < count; ++i) {
      const PlanPhase& phase = plan_.phases[sequence_[i].phase];
      const bool first = sequence_[i].layer == 0 && phase.first_layer_reads >= 0;
      const int reads = first ? phase.first_layer_reads : phase.reads;
      const int waits_for = first && phase.waits_for == phase.reads ? phase.first_layer_reads : phase.waits_for;
      if (reads != waits_for) {
        refuse(Rule::kReadWithoutWait, "{} (layer {}): reads {}, expected a wait for it, got a wait for {}", phase.name,
               sequence_[i].layer, vector_name(reads), vector_name(waits_for));
      }
      if (waits_for >= 0) check_writer(i, waits_for);
    }
  }

  void check_writer(int position, int vector) {
    const int count = static_cast<int>(sequence_.size());
    const PlanPhase& phase = plan_.phases[sequence_[position].phase];
    const PlanPhase& before = plan_.phases[sequence_[(position + count - 1) % count].phase];
    if (before.writes == vector) {
      check_all_write(before, vector);
      return;
    }
    const bool written = std::any_of(sequence_.begin(), sequence_.end(), [&](const PhaseInstance& instance) {
      return plan_.phases[instance.phase].writes == vector;
    });
    refuse(written ? Rule::kWaitTooEarly : Rule::kWaitUnsatisfied,
           "{} (layer {}): waits for {}, expected the phase before to write it, got {} which writes {}", phase.name,
           sequence_[position].layer, vector_name(vector), before.name, vector_name(before.writes));
  }

  /// A phase's output must show, for every CTA, that this CTA has had the phase's input.
  void check_all_write(const PlanPhase& phase, int vector) {
    const PlanVector& written = plan_.vectors[vector];
    if (written.signatures == plan_.num_ctas) return;
    if (written.signatures != 0) {
      refuse(Rule::kWaitUnsatisfied, "{}: expected 0 or {} signatures, got {}", written.name, plan_.num_ctas,
             written.signatures);
      return;
    }
    if (phase.output == OutputKind::kGreedy) {
      if (written.elements != plan_.num_ctas + 1) {
        refuse(Rule::kWaitUnsatisfied, "{}: expected {} offers and a stop word, got {} words", written.name,
               plan_.num_ctas, written.elements);
      }
      return;
    }
    for (int cta = 0; cta < plan_.num_ctas; ++cta) {
      const bool has_tile = cta < static_cast<int>(phase.runs.size()) && phase.runs[cta].count > 0;
      if (!has_tile) {
        refuse(Rule::kWaitUnsatisfied, "{}: CTA {} has no tile of {}, expected signatures, got none", written.name, cta,
               phase.name);
        return;
      }
    }
  }

  /// Clearing rules of one vector over several steps.
  void check_clears(int vector) {
    struct Event {
      int time;
      char what;  // 'w'rite, 'r'ead, 'c'lear
    };
    std::vector<Event> events;
    int time = 0;
    for (int step = 0; step < kStepsUnrolled; ++step) {
      for (const PhaseInstance& instance : sequence_) {
        const PlanPhase& phase = plan_.phases[instance.phase];
        const bool first = instance.layer == 0;
        const int reads = first && phase.first_layer_reads >= 0 ? phase.first_layer_reads : phase.reads;
        if (reads == vector) events.push_back({time, 'r'});
        const auto clears = [&](const std::vector<int>& list) {
          return std::find(list.begin(), list.end(), vector) != list.end();
        };
        if (clears(phase.clears) || (first && step > 0 && clears(phase.first_layer_clears))) events.push_back({time, 'c'});
        if (phase.writes == vector) events.push_back({time, 'w'});
        ++time;
      }
    }
    const std::string& name = plan_.vectors[vector].name;
    int last_read = -1;
    int last_write = -1;
    int last_clear = -1;
    for (const Event& event : events) {
      if (event.what == 'r') {
        last_read = event.time;
        if (last_clear > last_write && last_write >= 0) {
          refuse(Rule::kClearedWhileRead, "{}: cleared in phase {} and read in phase {}, written in phase {}", name,
                 last_clear, event.time, last_write);
          return;
        }
      } else if (event.what == 'c') {
        if (last_read >= 0 && event.time < last_read + kReadToClear) {
          refuse(Rule::kClearedWhileRead, "{}: cleared in phase {}, expected phase {} or later: it is read in phase {}",
                 name, event.time, last_read + kReadToClear, last_read);
          return;
        }
        if (last_write > last_read) {
          refuse(Rule::kClearedWhileRead, "{}: cleared in phase {} before anyone read what phase {} wrote", name,
                 event.time, last_write);
          return;
        }
        last_clear = event.time;
      } else {
        if (last_write >= 0 && last_clear < last_write) {
          refuse(Rule::kNotCleared, "{}: written in phases {} and {}, expected a phase between that clears it", name,
                 last_write, event.time);
          return;
        }
        if (last_write >= 0 && event.time < last_clear + kClearToWrite) {
          refuse(Rule::kClearedTooLate, "{}: cleared in phase {}, expected phase {} or earlier: it is written in phase {}",
                 name, last_clear, event.time - kClearToWrite, event.time);
          return;
        }
        last_write = event.time;
      }
    }
  }

  /// Phases that add to the residual stream deal its rows alike.
  void check_residual() {
    const PlanPhase* first = nullptr;
    for (const PlanPhase& phase : plan_.phases) {
      if (phase.kind != OpKind::kMatrix || phase.output != OutputKind::kResidual) continue;
      if (first == nullptr) first = &phase;
      for (int cta = 0; cta < static_cast<int>(std::min(phase.runs.size(), first->runs.size())); ++cta) {
        const TileRun& a = first->runs[cta];
        const TileRun& b = phase.runs[cta];
        if (a.count != b.count || (a.count > 0 && a.first != b.first) || (a.count > 1 && a.stride != b.stride)) {
          refuse(Rule::kResidualMoved, "{}: CTA {}: expected the tiles of {} (from {}, {} of them), got from {}, {}",
                 phase.name, cta, first->name, a.first, a.count, b.first, b.count);
          return;
        }
      }
    }
  }

  void check_regions(std::vector<PlanRegion> regions, int64_t limit, Rule overlap, Rule exceeded, const char* where) {
    std::sort(regions.begin(), regions.end(),
              [](const PlanRegion& a, const PlanRegion& b) { return a.offset < b.offset; });
    for (size_t i = 0; i < regions.size(); ++i) {
      const int64_t end = regions[i].offset + regions[i].bytes;
      if (i + 1 < regions.size() && end > regions[i + 1].offset) {
        refuse(overlap, "{}: {} ends at {}, expected before {} which begins at {}", where, regions[i].name, end,
               regions[i + 1].name, regions[i + 1].offset);
      }
      if (end > limit) {
        refuse(exceeded, "{}: {} ends at byte {}, expected at most {}", where, regions[i].name, end, limit);
      }
    }
  }

  void check_memory() {
    check_regions(plan_.shared, plan_.limits.max_shared_bytes_per_block, Rule::kSharedOverlap, Rule::kSharedExceeded,
                  "shared memory");
    std::vector<PlanRegion> workspace;
    for (const PlanVector& vector : plan_.vectors) workspace.push_back({vector.name, vector.offset, vector.bytes()});
    workspace.push_back(plan_.workspace_region("partials"));
    workspace.push_back(plan_.workspace_region("counters"));
    check_regions(workspace, plan_.workspace_bytes(), Rule::kWorkspaceOverlap, Rule::kWorkspaceOverlap, "workspace");
    if (plan_.threads() > plan_.limits.max_threads_per_block) {
      refuse(Rule::kThreadsExceeded, "threads per CTA: expected at most {}, got {}", plan_.limits.max_threads_per_block,
             plan_.threads());
    }
    const int registers = plan_.registers_per_thread;
    if (registers > plan_.limits.max_registers_per_thread ||
        static_cast<int64_t>(registers) * plan_.threads() > plan_.limits.registers_per_sm) {
      refuse(Rule::kRegistersExceeded, "registers: expected at most {} a thread and {} an SM, got {} x {} threads",
             plan_.limits.max_registers_per_thread, plan_.limits.registers_per_sm, registers, plan_.threads());
    }
    if (plan_.num_ctas < 1 || plan_.num_ctas > plan_.limits.num_sms) {
      refuse(Rule::kTooManyCtas, "CTAs: expected 1 to {}, one per SM, got {}", plan_.limits.num_sms, plan_.num_ctas);
    }
  }

  /// A wait by parity is sound for a waiter at most one phase away from its barrier.
  void check_barriers() {
    for (const PlanBarrier& barrier : plan_.barriers) {
      if (barrier.arrivals != barrier.arrivers) {
        refuse(Rule::kBarrierCount, "{}: expected a count of {}, one of each thread that arrives, got {}", barrier.name,
               barrier.arrivers, barrier.arrivals);
      }
      if (barrier.lead > barrier.slots) {
        refuse(Rule::kParityTwoAhead, "{}: a thread may be {} uses ahead, expected as many barriers, got {}",
               barrier.name, barrier.lead, barrier.slots);
      }
    }
    if (plan_.window < 1 || plan_.window > plan_.ring_slots) {
      refuse(Rule::kParityTwoAhead, "window: expected 1 to {} pages in flight, one per slot, got {}", plan_.ring_slots,
             plan_.window);
    }
    if (plan_.page_stride > 1 && plan_.ring_slots % plan_.page_stride != 0) {
      refuse(Rule::kParityTwoAhead, "ring: a consumer that goes on by {} pages skips phases of a slot, expected a multiple"
                                    " of {} slots, got {}", plan_.page_stride, plan_.page_stride, plan_.ring_slots);
    }
  }

  std::string vector_name(int vector) const { return vector < 0 ? "nothing" : plan_.vectors[vector].name; }

  const Plan& plan_;
  std::vector<PhaseInstance> sequence_;
  std::vector<Violation> violations_;
};

}  // namespace

const char* rule_name(Rule rule) {
  constexpr const char* kNames[] = {
      "page skipped", "page repeated", "page with two owners", "page out of range", "wait unsatisfied", "wait too early",
      "read without wait", "not cleared", "cleared while read", "cleared too late", "shared memory overlap",
      "shared memory exceeded", "workspace overlap", "registers exceeded", "threads exceeded", "too many CTAs",
      "parity two ahead", "barrier count", "residual moved", "weights overlap"};
  return kNames[static_cast<int>(rule)];
}

std::vector<Violation> verify(const Plan& plan) { return Verifier(plan).run(); }

}  // namespace soliton
