// The planner's knobs: what a flag of soliton-gen, a key of models/tuned/ and a dimension of the search of
// soliton-bench --tune stand for. A further knob is a further entry here.
#pragma once

#include <array>
#include <optional>
#include <variant>
#include <vector>

#include "generator/plan/plan.h"
#include "models/ranges.h"

namespace soliton {

struct Knob {
  const char* name;  // as a key and for --knobs: "num_ctas"
  const char* flag;  // "--ctas"
  const char* help;
  IntegerRange range;
  std::variant<int PlanChoices::*, std::optional<int> PlanChoices::*> choice;  // an int is 0 for no choice
  int Plan::*planned;                                                          // what comes of it
  std::vector<int> (*candidates)(const GpuSpec& gpu);                          // worth trying

  /// The value that was chosen, or nothing where the planner decides.
  std::optional<int> chosen(const PlanChoices& choices) const {
    if (const auto optional = std::get_if<1>(&choice)) return choices.**optional;
    const int value = choices.*std::get<0>(choice);
    return value == 0 ? std::nullopt : std::optional(value);
  }

  void choose(PlanChoices& choices, std::optional<int> value) const {
    if (const auto optional = std::get_if<1>(&choice)) {
      choices.** optional = value;
    } else {
      choices.*std::get<0>(choice) = value.value_or(0);
    }
  }
};

/// In the order in which they are searched: those that change the others' defaults come first.
inline constexpr std::array kKnobs = {
    Knob{.name = "num_ctas",
         .flag = "--ctas",
         .help = "Number of CTAs instead of the planner's choice",
         .range = {.min = 1, .max = 1024},
         .choice = &PlanChoices::num_ctas,
         .planned = &Plan::num_ctas,
         .candidates =
             [](const GpuSpec& gpu) {
               return std::vector{gpu.num_sms - 4, gpu.num_sms};
             }},
    Knob{.name = "window",
         .flag = "--window",
         .help = "Pages in flight per CTA instead of the GPU's default",
         .range = {.min = 1, .max = 64},
         .choice = &PlanChoices::window,
         .planned = &Plan::window,
         .candidates =
             [](const GpuSpec&) {
               return std::vector{2, 3, 4, 6};
             }},
    Knob{.name = "consumer_warps",
         .flag = "--consumer-warps",
         .help = "Consumer warps per CTA",
         .range = {.min = 1, .max = 29},  // with producer, epilogue and watch 1024 threads
         .choice = &PlanChoices::consumer_warps,
         .planned = &Plan::consumer_warps,
         .candidates =
             [](const GpuSpec&) {
               return std::vector{4, 8};
             }},
    Knob{.name = "ring_slots",
         .flag = "--ring-slots",
         .help = "Pages that the ring in shared memory holds",
         .range = {.min = 2, .max = 64},
         .choice = &PlanChoices::ring_slots,
         .planned = &Plan::ring_slots,
         .candidates =
             [](const GpuSpec&) {
               return std::vector{8, 10, 12, 13};
             }},
    Knob{.name = "min_pages_per_split",
         .flag = "--min-pages-per-split",
         .help = "KV pages that a CTA has at least when attention is split over CTAs",
         .range = {.min = 1, .max = 4096},
         .choice = &PlanChoices::min_pages_per_split,
         .planned = &Plan::min_pages_per_split,
         .candidates =
             [](const GpuSpec&) {
               return std::vector{1, 2, 3, 4};
             }},
    Knob{.name = "prefetch_pages",
         .flag = "--prefetch-pages",
         .help = "Pages brought into L2 while the ring is full; 0: none",
         .range = {.min = 0, .max = 1024},
         .choice = &PlanChoices::prefetch_pages,
         .planned = &Plan::prefetch_pages,
         .candidates =
             [](const GpuSpec&) {
               return std::vector{0, 8, 16, 32};
             }},
    Knob{.name = "producer_warps",
         .flag = "--producer-warps",
         .help = "Producer warps per CTA, where lanes copy",
         .range = {.min = 1, .max = 8},
         .choice = &PlanChoices::producer_warps,
         .planned = &Plan::producer_warps,
         .candidates =
             [](const GpuSpec& gpu) {
               const bool is_bulk = gpu.compute_capability >= kBulkCopyCapability;
               return is_bulk ? std::vector{1} : std::vector{2, 4};
             }},
    Knob{.name = "waiting_window",
         .flag = "--waiting-window",
         .help = "Of these while its consumers wait for other CTAs; one row, bulk copies",
         .range = {.min = 1, .max = 64},
         .choice = &PlanChoices::waiting_window,
         .planned = &Plan::waiting_window,
         .candidates =
             [](const GpuSpec&) {
               return std::vector{1, 2, 3};
             }},
};

/// A value of every knob, in the order of kKnobs.
using KnobValues = std::array<int, kKnobs.size()>;

inline KnobValues knob_values(const Plan& plan) {
  KnobValues values;
  for (size_t i = 0; i < kKnobs.size(); ++i) values[i] = plan.*kKnobs[i].planned;
  return values;
}

}  // namespace soliton
