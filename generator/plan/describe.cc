// The plan as text for people, and the cost model behind its times.
#include <fmt/format.h>

#include <algorithm>

#include "generator/plan/kernel_plan.h"
#include "models/check.h"
#include "models/kv_pages.h"

namespace soliton {
namespace {

constexpr double kMicro = 1e6;

int busiest_tiles(const PlanPhase& phase) {
  int most = 0;
  for (const TileRun& run : phase.runs) most = std::max(most, run.count);
  return most;
}

int64_t phase_bytes(const Plan& plan, const PlanPhase& phase) {
  return phase.matrix < 0 ? 0 : plan.matrices[phase.matrix].token_bytes();
}

double read_us(const Plan& plan, double bytes) {
  return bytes / plan.limits.read_bandwidth_bytes_per_s * kMicro;
}

std::string vector_name(const Plan& plan, int vector) {
  return vector < 0 ? "-" : plan.vectors[vector].name;
}

/// A step without KV: the sum of its phases, and the least that their chain takes.
struct StepTime {
  struct Layers {
    int count = 0;
    double us = 0;  // of a layer
  };
  std::vector<Layers> kinds;  // the last stands once
  int num_phases = 0;
  double latency_us = 0;  // of a phase

  explicit StepTime(const Plan& plan)
      : kinds(static_cast<size_t>(plan.once()) + 1),
        num_phases(static_cast<int>(step_sequence(plan).size())),
        latency_us(plan.limits.phase_latency_us) {
    for (const Layer& layer : plan.layers) ++kinds[layer.kind].count;
    for (const PlanPhase& phase : plan.phases) kinds[phase.layer_kind].us += phase.predicted_us;
  }
  double sum_us() const {
    double sum = 0;
    for (const Layers& layers : kinds) sum += layers.count * layers.us;
    return sum;
  }
  double chain_us() const { return num_phases * latency_us; }

  std::string describe() const {
    std::string sum;
    for (size_t i = 0; i + 1 < kinds.size(); ++i)
      sum += fmt::format("{}{} layers of {:.2f} us", i == 0 ? "" : ", ", kinds[i].count, kinds[i].us);
    sum += fmt::format(" and {:.2f} us", kinds.back().us);
    if (sum_us() >= chain_us()) return sum;
    return fmt::format("{} phases of {} us, which is more than {}", num_phases, latency_us, sum);
  }
};

void describe_phases(const Plan& plan, std::string& text) {
  text += fmt::format("{:<10} {:>9} {:>6} {:>9} {:>12} {:>9}   {:<14} {}\n", "phase", "tiles", "most",
                      "first CTA", "bytes", "us", "reads", "writes");
  for (const PlanPhase& phase : plan.phases) {
    const int tiles = phase.matrix < 0 ? 0 : dealt_tiles(plan, phase);
    text += fmt::format("{:<10} {:>9} {:>6} {:>9} {:>12} {:>9.2f}   {:<14} {}\n", phase.name, tiles,
                        busiest_tiles(phase), phase.first_cta, phase_bytes(plan, phase), phase.predicted_us,
                        vector_name(plan, phase.reads), vector_name(plan, phase.writes));
  }
}

void describe_regions(const char* title, const std::vector<PlanRegion>& regions, std::string& text) {
  text += fmt::format("\n{}\n", title);
  for (const PlanRegion& region : regions) {
    text += fmt::format("  {:>8} .. {:>8}  {:>8}  {}\n", region.offset, region.offset + region.bytes,
                        region.bytes, region.name);
  }
}

}  // namespace

void predict(Plan& plan) {
  const double wait_us = plan.limits.phase_wait_us +
                         (plan.layer_format().has_scales() ? kDigitsWaitUs : 0.0) +
                         (plan.num_cards > 1 ? kCardsWaitUs : 0.0);
  for (PlanPhase& phase : plan.phases) {
    const double choice_us = phase.routes >= 0 ? kExpertsWaitUs : 0.0;
    phase.predicted_us = wait_us + choice_us + read_us(plan, static_cast<double>(phase_bytes(plan, phase)));
  }
}

double predicted_token_us(const Plan& plan, int64_t context) {
  // Each block of query heads reads its KV head's pages, all but the first block mostly out of L2: by how much longer a token
  // takes behind 6,000 tokens, Qwen3-30B-A3B's second block costs 0.36 of a read, GLM-4.5-Air's second and third 0.76 each.
  constexpr double kFurtherRead = 0.36;
  const StepTime step(plan);
  const int num_blocks = ceil_divide(plan.facts.num_heads / plan.facts.num_kv_heads, kHeadsPerBlock);
  const double reads = 1 + kFurtherRead * (num_blocks - 1);
  const double kv = read_us(plan, reads * static_cast<double>(cached_bytes_read(
                                              plan.facts, PlannedKernel(plan)->card_kv(), context)));
  return std::max(step.sum_us() + kv, step.chain_us());
}

std::string describe(const Plan& plan) {
  const ModelFacts& facts = plan.facts;
  const PlannedKernel kernel(plan);
  const int num_blocks = kernel->card_blocks();
  std::string text = fmt::format("{} on {}\n", plan.model, plan.gpu);
  text += plan.tuned.empty() ? "\n" : fmt::format("tuned: {}\n\n", plan.tuned);
  text += fmt::format(
      "{} layers, hidden {}, ffn {}, {} query heads, {} KV heads of {}, {} bits a key or value, vocabulary "
      "{}\n",
      facts.num_layers, facts.hidden, show_ffn(facts), facts.num_heads, facts.num_kv_heads, facts.head_dim,
      facts.kv_bits, facts.vocabulary);
  if (plan.num_cards > 1) {
    text += fmt::format(
        "a launch spans {} cards: tile t is the tile t / {} of card t % {}, KV head h its head h / {} "
        "likewise; bytes "
        "are of one card\n",
        plan.num_cards, plan.num_cards, plan.num_cards, plan.num_cards);
  }
  text += fmt::format(
      "{} row{} a step; {} CTAs of {} threads: {} {} warps, {}, {}, a watch; {} registers a thread "
      "at most\n",
      plan.rows, plan.rows == 1 ? "" : "s", plan.num_ctas, plan.threads(), plan.consumer_warps,
      plan.rows == 1 ? "consumer" : "worker",
      plan.copies == CopyKind::kBulk ? "a producer of bulk copies"
                                     : fmt::format("{} producers of copies by lanes", plan.producer_warps),
      plan.rows == 1 ? "an epilogue" : "an input loader", plan.registers_per_thread);
  text += fmt::format(
      "ring of {} pages of {} bytes, {} in flight{}, {} more into L2 while it is full; {} tile slots; "
      "synchronised by {}\n",
      plan.ring_slots, kernel->slot_bytes, plan.window,
      plan.waiting_window < plan.window ? fmt::format(" ({} while its consumers wait)", plan.waiting_window)
                                        : "",
      plan.prefetch_pages, plan.tile_slots,
      plan.sync == SyncMode::kSelfValidating ? "self-validating vectors" : "a grid counter");
  text += fmt::format(
      "weights a token: {} bytes needed, {} with padding; device memory: {} bytes, and {} a token of "
      "context\n"
      "predicted: {:.1f} us a token without KV: {}\n\n",
      plan.needed_weight_bytes, plan.weight_bytes, device_bytes(plan, 0), context_token_bytes(plan),
      predicted_token_us(plan, 0), StepTime(plan).describe());
  describe_phases(plan, text);
  if (plan.rows == 1)
    text += fmt::format(
        "\nAttention: {} head blocks; a block's cached pages are split over {} CTAs at most, {} pages each "
        "at "
        "least."
        "\nThe first {} phases happen in every layer{}, the last once a token. \"most\" is the busiest"
        " CTA's tiles.\n",
        num_blocks, std::clamp(plan.num_ctas / num_blocks, 1, plan.max_splits), plan.min_pages_per_split,
        plan.phases.size() - 1, plan.once() == 1 ? "" : " of their kind");
  if (plan.rows > 1) {
    text += fmt::format(
        "\nAttention: as the plan of the tree says; an item touches {} tiles of {} queries at most; one with "
        "more "
        "than {} reads {} tokens at most.\n",
        plan.max_query_tiles, plan.qkv_layout().tile_queries(), kernel->streamed_query_tiles(),
        kernel->resident_tokens());
  }
  describe_regions("shared memory", plan.shared, text);
  describe_regions("workspace", plan.workspace, text);
  text += "\nbarriers (slots x arrivals)\n";
  for (const PlanBarrier& barrier : plan.barriers) {
    text += fmt::format("  {:<16} {} x {}\n", barrier.name, barrier.slots, barrier.arrivals);
  }
  return text;
}

}  // namespace soliton
