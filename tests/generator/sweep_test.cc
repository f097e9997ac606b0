// Every number of every plan that is shipped, and of plans of all other kinds, is changed by one, one at a time: the verifier
// refuses all but those that are free, each for a reason that stands here. So it does with every number that a kernel is
// compiled for.
#include <gtest/gtest.h>

#include <limits>
#include <map>
#include <set>

#include "long_tests.h"
#include "models/error.h"
#include "tests/generator/plan_fixture.h"
#include "tests/generator/plan_numbers.h"

namespace soliton {
namespace {

bool always(const Plan&) {
  return true;
}
bool has_one_row(const Plan& plan) {
  return plan.rows == 1;
}
bool has_several_rows(const Plan& plan) {
  return plan.rows > 1;
}
bool is_bf16(const Plan& plan) {
  return plan.facts.weight_bits == 16;
}
bool has_one_layer(const Plan& plan) {
  return plan.facts.num_layers == 1;
}

bool norms_behind_alone(const Plan& plan) {
  const NormPlacement placement = norm_placement(plan.facts);
  return placement == NormPlacement::kAfter || subtracts_means(placement);
}

/// Is the first layer the only one of its kind?
bool begins_alone(const Plan& plan) {
  return std::ranges::count(plan.layers, plan.layers[0].kind, &Layer::kind) == 1;
}

/// A number that may be another, in plans to which that applies. `name`: a '*' stands for one part of it.
struct Free {
  const char* name;
  const char* reason;
  bool (*applies)(const Plan& plan) = always;
};

constexpr Free kFree[] = {
    // What the model is, and not where its parts lie: the runtime makes what these facts say, the kernel is compiled for them.
    {"facts.max_context", "the longest context that the runtime takes"},
    {"facts.rope_kind", "how the runtime makes the table of rotations"},
    {"facts.rope_original_context", "how the runtime makes the table of rotations"},
    {"facts.rope_truncate", "how the runtime makes the table of rotations"},
    {"facts.rope_dims", "which dims of heads the runtime packs side by side"},
    {"facts.router_scores", "what the kernel makes of logits, which takes no room"},
    {"facts.router_bias", "what the kernel adds to scores, which lies beside the weights"},
    {"facts.expert_bias", "whether the kernel adds biases, which lie beside the weights"},
    {"facts.norm_bias", "whether the kernel adds biases, which lie beside the weights"},
    {"facts.ffn_bias", "whether the kernel adds biases, which lie beside the weights"},
    {"facts.o_bias", "whether the kernel adds biases, which lie beside the weights"},
    {"facts.sinks", "whether softmax starts with a score, which lies beside the weights"},
    {"facts.tied_lm_head", "which tensor the runtime packs"},
    {"facts.qkv_bias", "whether the kernel adds biases, which lie beside the weights"},
    {"facts.head_norm", "whether consumers norm heads on their way to shared memory", has_one_row},
    {"facts.head_norm_last", "when the kernel multiplies with weights, which takes no room"},
    {"facts.query_scale_context", "how the runtime makes the table of rotations"},
    {"facts.norm_offset", "what norms multiply with, which takes no room"},
    {"facts.norms",
     "a mean in place of a norm behind blocks, or the other way round, which takes as much room",
     norms_behind_alone},
    {"facts.activation", "what gates go through, which takes no room"},
    {"facts.kv_bits", "keys of bytes or of two parts, where shared memory has room for them", has_one_row},
    {"facts.weight_order", "whether writers place activations by a table"},
    {"facts.renormalised", "what the kernel multiplies with, which takes no room"},
    {"facts.weight_group", "of integers, which there are none of", is_bf16},
    {"facts.weight_zeros", "of integers, which there are none of", is_bf16},
    // Choices: each value is as sound as another, within bounds that are judged.
    {"copies", "who copies: what follows from it is judged, as far as it differs"},
    {"sync", "how phases learn of their input: what follows from it is judged", has_one_row},
    {"shares_registers", "whether workers take registers", has_several_rows},
    {"chunk_columns", "wider than the widest input", has_one_row},
    {"max_query_tiles", "fewer, as long as they hold the heads of a row", has_several_rows},
    {"max_splits", "up to one of each lane"},
    {"min_pages_per_split", "any that is positive"},
    {"prefetch_pages", "any: what comes into L2 ends with the next phase"},
    {"registers_per_thread", "fewer: a limit to the compiler"},
    {"phases.attention.window", "any up to the ring"},
    {"waiting_window", "any up to the window", has_one_row},
    {"phases.*.column_slices", "any power of two that divides the CTAs and whose sums have their room",
     has_several_rows},
    {"workspace.counters.offset", "further on: the last piece of the workspace, which ends with it"},
    // What nothing reads.
    {"phases.*.waits_for", "in layers that do not begin the step", has_one_layer},
    {"phases.qkv.waits_for", "the same, of the kind of the first layer", begins_alone},
    {"needed_weight_bytes", "said to people"},
    {"tile_slots", "of one row only", has_several_rows},
};

bool matches(std::string_view pattern, std::string_view name) {
  const size_t star = pattern.find('*');
  if (star == std::string_view::npos) return pattern == name;
  const std::string_view end = pattern.substr(star + 1);
  return name.starts_with(pattern.substr(0, star)) && name.ends_with(end) &&
         std::count(pattern.begin(), pattern.end(), '.') == std::count(name.begin(), name.end(), '.');
}

/// What a number is changed to: the next ones; with long tests also what is far.
template <class Number>
std::vector<Number> changes_of(Number value) {
  if constexpr (std::is_same_v<Number, bool>) {
    return {!value};
  } else if constexpr (std::is_enum_v<Number>) {
    return {static_cast<Number>(static_cast<int>(value) + 1),
            static_cast<Number>(static_cast<int>(value) - 1)};
  } else {
    std::vector<Number> changes = {value + 1, value - 1};
    if (!long_tests()) return changes;
    constexpr Number kFar = std::numeric_limits<int32_t>::max();
    for (const Number far : {Number{0}, value < kFar / 2 ? 2 * value : value, kFar, -kFar}) {
      if (far != value) changes.push_back(far);
    }
    return changes;
  }
}

struct SweptPlan {
  std::string name;
  Plan plan;
};

std::vector<int> shipped_rows(const std::string& folder) {
  if (folder.ends_with("-cpu")) return {1, 8};
  if (folder.starts_with("qwen3-30b")) return {1};
  if (folder.starts_with("tiny-stories-experts")) return {1, 8, 16, 32, 64};
  if (folder.starts_with("qwen")) return {1, 8, 64, 128, 256};
  if (folder.starts_with("tiny")) return {1, 8, 16, 32, 64, 128};
  return {1, 8, 16, 32, 64, 128, 256};
}

/// Those of generated/.
void add_shipped(std::vector<SweptPlan>& plans) {
  for (const auto& entry :
       std::filesystem::directory_iterator(std::filesystem::path(SOLITON_SOURCE_DIR) / "generated")) {
    if (!entry.is_directory()) continue;
    const std::string folder = entry.path().filename().string();
    const std::string model = folder.substr(0, folder.rfind('-'));
    const std::string gpu = folder.ends_with("-cpu") ? "cpu" : "h200";
    for (const int rows : shipped_rows(folder)) {
      PlanChoices choices = shipped_choices(model, gpu);
      choices.rows = rows;
      plans.push_back({fmt::format("{} of {} rows", folder, rows), shipped_plan(model, gpu, choices)});
    }
  }
}

/// Models of the kernels' tests, each with a shape that something depends on, and further ways to plan one.
void add_others(std::vector<SweptPlan>& plans) {
  const std::filesystem::path tests = std::filesystem::path(SOLITON_SOURCE_DIR) / "tests";
  const GpuSpec cpus = load_gpu_spec(tests / "gpus" / "many-cpus.yaml");
  const auto add = [&](const std::string& name, const ModelConfig& model, const GpuSpec& gpu,
                       const PlanChoices& choices) {
    try {
      plans.push_back({fmt::format("{} of {} rows", name, choices.rows), make_plan(model, gpu, choices)});
    } catch (const Error&) {  // not every model takes every number of rows
    }
  };
  for (const auto& entry : std::filesystem::directory_iterator(tests / "models")) {
    const ModelConfig model = load_model_config(entry.path());
    for (const int rows : {1, 8, 32, 64}) {
      add(model.name, model, cpus, {.rows = rows, .num_ctas = 3});
      add(model.name + " over two cards", model, cpus, {.rows = rows, .num_cards = 2, .num_ctas = 2});
    }
    add(model.name + " by the counter", model, cpus, {.rows = 1, .num_ctas = 3, .sync = SyncMode::kCounter});
  }
  for (const char* gpu : {"a100-80", "l4", "b200"}) {
    for (const char* model : {"llama-3.1-8b", "llama-3.1-8b-gptq"}) {
      for (const int rows : {1, 8, 32})
        add(fmt::format("{} on {}", model, gpu), shipped_model(model), shipped_gpu(gpu), {.rows = rows});
    }
  }
  for (const int cards : {3, 8}) {
    add(fmt::format("llama-3.1-8b over {} cards", cards), shipped_model("llama-3.1-8b"), shipped_gpu("h200"),
        {.rows = 8, .num_cards = cards});
  }
}

std::vector<SweptPlan> swept_plans() {
  std::vector<SweptPlan> plans;
  add_shipped(plans);
  add_others(plans);
  return plans;
}

/// Of the numbers of a plan the short run takes every kStride-th, in each plan others.
constexpr int kStride = 40;
constexpr int kRunStep = 1000;  // the first CTA's tiles, and the last's
constexpr int kLongRunStep = 16;

class Sweep {
 public:
  explicit Sweep(int index, size_t most_changes = std::numeric_limits<size_t>::max())
      : next_(index), most_changes_(most_changes) {}

  /// Whether it is the turn of a number.
  bool takes_next() { return long_tests() || next_++ % kStride == 0; }

  /// Calls refused() with each change to the value, which it has in the end again.
  template <class Number, class Refused, class Accepted>
  void change(Number& value, const Refused& is_refused, const Accepted& accepted) {
    if (!takes_next()) return;
    const Number before = value;
    const std::vector<Number> changes = changes_of(before);
    for (size_t i = 0; i < std::min(changes.size(), most_changes_); ++i) {
      const Number changed = changes[i];
      value = changed;
      ++num_changes_;
      if (!is_refused()) accepted(static_cast<int64_t>(before), static_cast<int64_t>(changed));
      value = before;
    }
  }

  int num_changes() const { return num_changes_; }

 private:
  int next_;
  size_t most_changes_;  // of a number
  int num_changes_ = 0;
};

const Free* find_free(const Plan& plan, const std::string& name) {
  for (const Free& free : kFree) {
    if (matches(free.name, name) && free.applies(plan)) return &free;
  }
  return nullptr;
}

TEST(VerifySweep, RefusesEveryNumberThatIsNotFree) {
  std::set<const Free*> used;
  int index = 0;
  int num_changes = 0;
  for (auto& [plan_name, plan] : swept_plans()) {
    ASSERT_EQ(refusals(plan), "") << plan_name;
    Sweep sweep(index++);
    for_each_number(plan, long_tests() ? kLongRunStep : kRunStep, [&](const std::string& name, auto& value) {
      const Free* const free = find_free(plan, name);
      sweep.change(
          value, [&] { return !verify(plan).empty(); },
          [&](int64_t before, int64_t changed) {
            if (free != nullptr) {
              used.insert(free);
            } else {
              ADD_FAILURE() << plan_name << ": " << name << ": accepted as " << changed << " instead of "
                            << before;
            }
          });
    });
    num_changes += sweep.num_changes();
  }
  EXPECT_GT(num_changes, 1500);
  if (!long_tests()) return;  // some are only free to be something far
  for (const Free& free : kFree)
    EXPECT_TRUE(used.contains(&free)) << free.name << ": is not accepted any more";
}

TEST(VerifySweep, RefusesEveryNumberOfAKernelUnlikeThePlan) {
  int index = 0;
  for (const auto& [plan_name, plan] : swept_plans()) {
    const PlannedKernel planned(plan);
    KernelNumbers numbers(*planned);
    const KernelPlan& kernel = numbers.kernel;
    ASSERT_TRUE(verify(plan, kernel).empty()) << plan_name;
    Sweep sweep(index++, long_tests() ? SIZE_MAX : 1);  // whatever is unlike is refused, larger or smaller
    for_each_number(numbers, [&](const std::string& name, auto& value) {
      sweep.change(
          value, [&] { return !verify(plan, kernel).empty(); },
          [&](int64_t before, int64_t changed) {
            ADD_FAILURE() << plan_name << ": " << name << ": accepted as " << changed << " instead of "
                          << before;
          });
    });
  }
}

TEST(VerifySweep, SaysWhatIsUnlike) {
  const Plan plan = shipped_plan("tiny-stories", "cpu");
  const PlannedKernel planned(plan);
  KernelPlan kernel = *planned;
  ++kernel.slot_bytes;
  --kernel.regions[2].bytes;
  std::string text;
  for (const Violation& violation : verify(plan, kernel))
    text += fmt::format("{}: {}\n", rule_name(violation.rule), violation.message);
  EXPECT_EQ(text,
            "kernel unlike the plan: kernel: bytes of a slot: expected 16384 as in the plan, got 16385\n"
            "kernel unlike the plan: kernel: tiles: bytes: expected 1024 as in the plan, got 1023\n");
}

// The overrun that began this: a query tile more than lie beside an item's new tokens.
TEST(VerifySweep, AnItemHasRoomForItsQueryTiles) {
  Plan plan = shipped_plan("llama-3.1-8b", "h200", {.rows = 64});
  EXPECT_EQ(refusals(plan), "");
  ++plan.max_query_tiles;
  EXPECT_NE(refusals(plan).find("query tiles"), std::string::npos) << refusals(plan);
}

}  // namespace
}  // namespace soliton
