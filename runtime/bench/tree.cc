#include "runtime/bench/tree.h"

#include <fmt/format.h>

#include <algorithm>

#include "layout/page.h"
#include "runtime/bench/measure.h"
#include "runtime/bench/tree_model.h"
#include "runtime/engine/tree/tree_shape.h"

namespace soliton {
namespace {

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

bool is_plain(const TreeSpec& spec) {
  return std::all_of(spec.nodes.begin(), spec.nodes.end(),
                     [](const TreeSpec::Node& node) { return node.draft.size() <= 1; });
}

/// Steps of one launch, in us. Those that decode plainly take place one behind the other: only differences
/// count. A step with drafts is alone in its launch.
std::vector<double> step_times(const TreeResult& result) {
  std::vector<double> times;
  const auto since = [](uint32_t from, uint32_t to) { return static_cast<double>(to - from) * 1e-3; };
  if (result.times_ns.size() == 1) return {since(result.began_ns, result.times_ns[0])};
  for (size_t i = 1; i < result.times_ns.size(); ++i)
    times.push_back(since(result.times_ns[i - 1], result.times_ns[i]));
  return times;
}

TreeSpec without_cache(const TreeSpec& spec) {
  TreeSpec empty{.name = spec.name};
  for (int row = 0; row < num_rows(spec); ++row) empty.nodes.push_back({.num_tokens = 1, .draft = {-1}});
  return empty;
}

/// What measured costs of the kernel say of a step; 0 if there are none, or of several cards.
double predict_step(const Engine& engine, const TreeSpec& spec, int num_steps) {
  const KernelLibrary& library = engine.library();
  const int kernel = engine.kernel_for_rows(num_rows(spec));
  const KernelCosts* costs = library.measured_costs(kernel);
  if (costs == nullptr || library.num_cards() > 1) return 0;
  return costs->other_us + attention_us(plan_tree(library, kernel, spec, num_steps),
                                        tree_shape(library, kernel), costs->attention, library.model().facts);
}

/// Steps over a tree that is built anew.
TreeResult decode_steps(Engine& engine, const TreeSpec& spec, int num_steps, uint64_t seed,
                        int timeline_step = -1) {
  engine.clear_tree();
  build_tree(engine.tree(), spec, num_steps);
  const std::vector<int32_t> tokens =
      random_prompt(num_rows(spec), engine.library().model().facts.vocabulary, seed);
  return engine.decode_tree({.tokens = tokens,
                             .num_steps = num_steps,
                             .wanted_bands = row_bands(0, spec.wanted_rows),
                             .timeline_step = timeline_step});
}

}  // namespace

TreeSteps time_steps(Engine& engine, const TreeSpec& spec, const TreeTest& test) {
  const int num_steps = is_plain(spec) ? test.num_steps : 1;
  std::vector<double> times;
  TreeSteps steps{.num_steps = num_steps};
  for (int repeat = 0; repeat <= test.repeats; ++repeat) {  // the first one warms up
    const TreeResult result = decode_steps(engine, spec, num_steps, test.seed + repeat);
    if (repeat == 0) continue;
    const std::vector<double> more = step_times(result);
    times.insert(times.end(), more.begin(), more.end());
    steps.page_reads = result.page_reads;
  }
  engine.reset_tree();
  steps.us = median(times);
  return steps;
}

Timeline record_timeline(Engine& engine, const TreeSpec& spec, const TreeTest& test) {
  const int num_steps = is_plain(spec) ? test.num_steps : 1;
  TreeResult result = decode_steps(engine, spec, num_steps, test.seed, num_steps / 2);
  engine.reset_tree();
  return {engine.library().descriptor(result.kernel), longest_path(spec) + num_steps / 2,
          std::move(result.timeline)};
}

TreeSpec unshared(const TreeSpec& spec) {
  TreeSpec apart{.name = spec.name};
  std::vector<int> path(spec.nodes.size());
  for (size_t i = 0; i < spec.nodes.size(); ++i) {
    const TreeSpec::Node& node = spec.nodes[i];
    path[i] = node.num_tokens + (node.parent < 0 ? 0 : path[node.parent]);
    std::vector<int> depth;  // of a draft's tokens: those before them in the draft are cached in the copy
    for (const int32_t parent : node.draft) {
      depth.push_back(parent < 0 ? 0 : depth[parent] + 1);
      apart.nodes.push_back({.num_tokens = path[i] + depth.back(), .draft = {-1}});
    }
  }
  return apart;
}

int64_t pool_tokens(const TreeSpec& spec, int num_steps) {
  return static_cast<int64_t>(num_pages_needed(spec, is_plain(spec) ? num_steps : 1)) * kKvPageTokens;
}

TreeMeasurement measure_tree(Engine& engine, const TreeSpec& spec, const TreeTest& test, double ceiling) {
  const ModelDescriptor& model = engine.library().model();
  TreeMeasurement at{.test = spec.name,
                     .rows = num_rows(spec),
                     .kernel_rows = engine.library().descriptor(engine.kernel_for_rows(num_rows(spec))).rows,
                     .unique_tokens = unique_tokens(spec),
                     .path_tokens = path_tokens(spec),
                     .longest_path = longest_path(spec)};
  const TreeSteps steps = time_steps(engine, spec, test);
  at.step_us = steps.us;
  at.predicted_us = predict_step(engine, spec, steps.num_steps);
  const int grown = is_plain(spec) ? test.num_steps / 2 * at.rows : 0;
  const double kv_bytes =
      static_cast<double>(at.unique_tokens + grown) * engine.library().card_kv().token_bytes();
  if (ceiling > 0) at.floor_us = (model.needed_weight_bytes + kv_bytes) / ceiling * 1e6;
  at.without_cache_us = time_steps(engine, without_cache(spec), test).us;
  if (ceiling > 0 && at.step_us > at.without_cache_us)
    at.attention_of_ceiling = kv_bytes / ((at.step_us - at.without_cache_us) * 1e-6) / ceiling;
  int64_t unique_pages = 0;
  for (const TreeSpec::Node& node : spec.nodes) {
    const int own = node.num_tokens + (node.draft.size() == 1 && is_plain(spec) ? test.num_steps - 1 : 0);
    unique_pages += ceil_divide(own, kKvPageTokens);
  }
  at.page_reads = static_cast<double>(steps.page_reads) /
                  static_cast<double>(unique_pages * engine.library().card_kv().num_kv_heads);
  const TreeSpec apart = unshared(spec);
  if (pool_tokens(apart, test.num_steps) <= static_cast<int64_t>(engine.tree().num_pages()) * kKvPageTokens)
    at.unshared_us = time_steps(engine, apart, test).us;
  if (engine.library().descriptor().rows == 1 &&
      at.longest_path + test.num_steps + 1 < model.facts.max_context) {
    const GenerationTest row{
        .tokens = test.num_steps, .depth = at.longest_path, .repeats = test.repeats, .seed = test.seed};
    at.one_row_us = measure_generation(engine, row, ceiling).p50_us;
    engine.set_position(0);
  }
  return at;
}

std::string tree_table(const std::vector<TreeMeasurement>& rows) {
  const auto us = [](double value) { return value > 0 ? fmt::format("{:.1f}", value) : std::string("-"); };
  const auto ratio = [](double a, double b) {
    return a > 0 && b > 0 ? fmt::format("{:.2f}", a / b) : std::string("-");
  };
  std::string text =
      "| tree | rows | of | unique tokens | path tokens | step us | predicted us | floor us | step / floor | "
      "without cache "
      "us | "
      "attention of S | pages read | unshared us | unshared / step | one row us | step / one row |\n"
      "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n";
  for (const TreeMeasurement& row : rows) {
    text += fmt::format(
        "| {} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {:.3f} | {} | {} | {} | {} |\n", row.test,
        row.rows, row.kernel_rows, row.unique_tokens, row.path_tokens, us(row.step_us), us(row.predicted_us),
        us(row.floor_us), ratio(row.step_us, row.floor_us), us(row.without_cache_us),
        row.attention_of_ceiling > 0 ? fmt::format("{:.1f}%", row.attention_of_ceiling * 100) : "-",
        row.page_reads, us(row.unshared_us), ratio(row.unshared_us, row.step_us), us(row.one_row_us),
        ratio(row.step_us, row.one_row_us));
  }
  return text;
}

}  // namespace soliton
