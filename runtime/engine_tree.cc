// The part of the engine that decodes several rows: branches of the tree, drafts, chunks of a prompt.
#include <algorithm>
#include <atomic>
#include <cstring>
#include <thread>

#include "layout/activations.h"
#include "models/error.h"
#include "runtime/engine.h"
#include "runtime/launch_signals.h"

namespace soliton {
namespace {

constexpr int kMinSliceTokens = 2 * kKvPageTokens;

/// Rows of an item such that it never touches more than max_query_tiles, wherever its first row is.
int max_item_rows(const Descriptor& descriptor) {
  const int group = descriptor.facts.num_heads / descriptor.facts.num_kv_heads;
  if (descriptor.max_query_tiles * kQueryRows >= descriptor.rows * group) return descriptor.rows;
  return std::max(1, ((descriptor.max_query_tiles - 1) * kQueryRows + 1) / group);
}

/// Appends an array to what is uploaded, 16-byte aligned; returns its offset.
template <class T>
size_t stage(std::vector<std::byte>& bytes, std::span<const T> values) {
  const size_t offset = bytes.size();
  bytes.resize((offset + values.size_bytes() + 15) / 16 * 16);
  if (!values.empty()) std::memcpy(bytes.data() + offset, values.data(), values.size_bytes());
  return offset;
}

}  // namespace

std::vector<SnapshotRow> Engine::rows() const {
  TreeSnapshot snapshot;
  tree_.snapshot(snapshot);
  return snapshot.rows;
}

int Engine::kernel_for_rows(int rows) const {
  for (int kernel = 0; kernel < library_.num_kernels(); ++kernel) {
    const int takes = library_.descriptor(kernel).rows;
    if (takes > 1 && takes >= rows) return kernel;
  }
  throw file_error(ExitCode::kMismatch, library_.path(),
                   "expected a kernel for {} rows a step, got one for {}", rows, max_rows());
}

/// For so many tokens of a prompt: the largest kernel that they fill, else the smallest that takes them all.
int Engine::kernel_for_prompt(int num_tokens) const {
  int best = -1;
  for (int kernel = 0; kernel < library_.num_kernels(); ++kernel) {
    const int takes = library_.descriptor(kernel).rows;
    if (takes > 1 && (best < 0 || takes <= num_tokens)) best = kernel;
  }
  return std::max(best, kernel_for_rows(std::min(num_tokens, max_rows())));
}

TreePlanner& Engine::planner(int kernel, SliceRule rule) {
  std::optional<TreePlanner>& planner = planners_[2 * kernel + static_cast<int>(rule)];
  if (!planner) {
    const Descriptor& descriptor = library_.descriptor(kernel);
    const ModelFacts& facts = descriptor.facts;
    planner.emplace(TreeShape{.num_ctas = descriptor.num_ctas,
                              .num_kv_heads = facts.num_kv_heads,
                              .heads_per_kv_head = facts.num_heads / facts.num_kv_heads,
                              .head_dim = facts.head_dim,
                              .kv_parts = kv_shape(facts).parts,
                              .max_item_rows = max_item_rows(descriptor),
                              .resident_tokens = descriptor.resident_tokens},
                    descriptor.tree_costs, SliceLimits{.rule = rule, .min_tokens = kMinSliceTokens});
  }
  return *planner;
}

/// Feeds a prompt in chunks of several rows; returns how many of its tokens. If all of them, the last chunk
/// chose the first token; never all if tokens are to be drawn, which a launch of one row does.
size_t Engine::feed_prompt(const DecodeRequest& request, DecodeResult& result) {
  const bool one_row = library_.descriptor().rows == 1;
  if (max_rows() == 1 || request.timeline_step >= 0 || (one_row && one_by_one_)) return 0;
  const size_t num_fed = request.tokens.size() - (draws(request) ? 1 : 0);
  size_t fed = 0;
  while (fed < num_fed) {
    const int left = static_cast<int>(num_fed - fed);
    if (left == 1 && one_row) break;
    const int rows = one_by_one_ ? 1 : std::min(left, library_.descriptor(kernel_for_prompt(left)).rows);
    std::vector<int32_t> parents(rows);
    for (int i = 0; i < rows; ++i) parents[i] = i - 1;
    tree_.draft(main_, parents);
    const bool is_last = rows == left && !draws(request);
    const TreeResult chunk = decode_tree({.tokens = request.tokens.subspan(fed, rows),
                                          .want_logits = is_last && request.want_logits,
                                          .skips_choice = !is_last,
                                          .delay_seed = request.delay_seed});
    if (rows > 1) {
      for (int i = 0; i < rows; ++i) parents[i] = i;
      tree_.accept(main_, parents);
    }
    fed += rows;
    if (!is_last) continue;
    result.tokens.push_back(chunk.chosen.back());
    result.times_ns.push_back(chunk.times_ns.back());
    if (request.want_logits) {
      result.logits.assign(chunk.logits.end() - library_.descriptor().facts.vocabulary, chunk.logits.end());
    }
  }
  return fed;
}

/// Generates in the main branch where there is no kernel of one row.
void Engine::decode_branch(const DecodeRequest& request, const std::function<bool(int32_t)>& on_token,
                           DecodeResult& result) {
  std::vector<RowSampling> sampling;
  if (draws(request)) sampling.push_back(request.sampling.value_or(RowSampling{}));
  const std::vector<int32_t> past = past_of(request);
  const TreeResult rest =
      decode_tree({.tokens = request.tokens,
                   .num_steps = request.max_tokens,
                   .stop_tokens = request.stop_tokens,
                   .sampling = sampling,
                   .past = {&past, 1},
                   .want_logits = request.want_logits,
                   .want_logprobs = request.want_logprobs,
                   .delay_seed = request.delay_seed},
                  [&](std::span<const int32_t> chosen) { return !on_token || on_token(chosen[0]); });
  result.tokens.insert(result.tokens.end(), rest.chosen.begin(), rest.chosen.end());
  result.times_ns.insert(result.times_ns.end(), rest.times_ns.begin(), rest.times_ns.end());
  result.logits.insert(result.logits.end(), rest.logits.begin(), rest.logits.end());
  result.logprobs = rest.logprobs;
  result.hit_stop_token = std::find(request.stop_tokens.begin(), request.stop_tokens.end(),
                                    result.tokens.back()) != request.stop_tokens.end();
}

/// Throws what decode_tree() throws of a request that does not fit the rows of snapshot_.
void Engine::check_tree_request(const TreeRequest& request) const {
  if (!weights_) throw Error(ExitCode::kInternal, "decode: expected weights to be loaded");
  check_tokens(request.tokens);
  const size_t rows = snapshot_.rows.size();
  if (rows == 0 || request.tokens.size() != rows) {
    throw Error(ExitCode::kInternal, fmt::format("decode: expected a token for each of {} rows, got {}", rows,
                                                 request.tokens.size()));
  }
  if (!request.sampling.empty() && request.sampling.size() != rows) {
    throw Error(ExitCode::kInternal, fmt::format("decode: expected sampling for each of {} rows, got {}",
                                                 rows, request.sampling.size()));
  }
  if (!request.past.empty() && request.past.size() != rows) {
    throw Error(ExitCode::kInternal, fmt::format("decode: expected past tokens for each of {} rows, got {}",
                                                 rows, request.past.size()));
  }
  const bool one_step =
      request.skips_choice || std::any_of(snapshot_.nodes.begin(), snapshot_.nodes.end(),
                                          [](const SnapshotNode& node) { return node.num_new > 1; });
  if (request.num_steps < 1 || (one_step && request.num_steps > 1)) {
    throw Error(ExitCode::kInternal, fmt::format("decode: steps: expected {}1, got {}",
                                                 one_step ? "" : "at least ", request.num_steps));
  }
  for (const SnapshotRow& row : snapshot_.rows) {
    if (row.position + request.num_steps <= context_) continue;
    throw Error(ExitCode::kOutOfMemory,
                fmt::format("context: expected at most {} tokens (see -c), got {} in branch {}", context_,
                            row.position + request.num_steps, row.branch));
  }
}

TreeResult Engine::decode_tree(const TreeRequest& request,
                               const std::function<bool(std::span<const int32_t>)>& on_step) {
  TreeResult result;
  tree_.snapshot(snapshot_);
  result.num_rows = static_cast<int>(snapshot_.rows.size());
  check_tree_request(request);
  const int kernel = kernel_for_rows(std::max(request.min_rows, result.num_rows));
  result.kernel = kernel;
  tree_.reserve(request.num_steps);
  move_tokens();
  std::vector<RowSampling> sampling(request.sampling.begin(), request.sampling.end());
  if (request.want_logprobs) sampling.resize(static_cast<size_t>(result.num_rows));
  if (!sampling.empty())
    sampling_.begin(library_,
                    {.rows = sampling, .past = request.past, .want_logprobs = request.want_logprobs});
  // A plan may hold for fewer steps than wanted: then another launch follows.
  std::vector<int32_t> tokens(request.tokens.begin(), request.tokens.end());
  TreeRequest part = request;
  while (result.num_steps < request.num_steps) {
    tree_.snapshot(snapshot_);
    planner(kernel, request.rule).plan(snapshot_, request.num_steps - result.num_steps, plan_);
    part.tokens = tokens;
    part.num_steps = plan_.num_steps;
    const int before = result.num_steps;
    LaunchParams params = prepare_tree(kernel, part);
    if (!sampling.empty())
      params.sampling =
          sampling_.prepare(library_, kernel, part.num_steps * library_.descriptor(kernel).rows);
    library_.check(library_.functions().launch(kernel, &params, num_ctas(kernel)), "launch");
    const bool wanted = follow_tree(part, library_.descriptor(kernel).rows, on_step, result);
    const int done = result.num_steps - before;
    if (request.want_logits) {
      const size_t vocabulary = static_cast<size_t>(library_.descriptor().facts.vocabulary);
      const size_t line = vocabulary * result.num_rows;
      result.logits.resize(result.num_steps * line);
      for (int step = 0; step < done; ++step) {
        const float* from = logits_.as<float>() + step * vocabulary * library_.descriptor(kernel).rows;
        library_.check(library_.functions().download(result.logits.data() + (before + step) * line, from,
                                                     line * sizeof(float)),
                       "download logits");
      }
    }
    for (const TreeItem& item : plan_.items)
      result.page_reads += done > 0 && result.num_steps >= request.num_steps ? num_pages(item, done - 1) : 0;
    for (const SnapshotNode& node : snapshot_.nodes) {
      if (node.num_new == 1) tree_.append(snapshot_.rows[node.first_row].branch, done);
    }
    if (!wanted || done < plan_.num_steps || request.skips_choice) break;
    tokens.assign(result.chosen.end() - result.num_rows, result.chosen.end());
    if (std::any_of(tokens.begin(), tokens.end(), [&](int32_t token) {
          return std::find(request.stop_tokens.begin(), request.stop_tokens.end(), token) !=
                 request.stop_tokens.end();
        })) {
      break;
    }
  }
  return result;
}

/// What the tree owes to its changes, before a launch reads any of it.
void Engine::move_tokens() {
  const std::vector<TokenMove> moves = tree_.take_moves();
  if (moves.empty()) return;
  const KvShape shape = kv_shape(library_.descriptor().facts);
  library_.check(
      library_.functions().move_tokens(pool_.address(), &shape, moves.data(), static_cast<int>(moves.size())),
      "move tokens");
}

LaunchParams Engine::prepare_tree(int kernel, const TreeRequest& request) {
  const Library& device = library_.functions();
  const Descriptor& descriptor = library_.descriptor(kernel);
  const ModelFacts& facts = descriptor.facts;
  staging_.clear();
  const auto view = plan_.view();
  const size_t first_item = stage<int32_t>(staging_, plan_.first_item);
  const size_t items = stage<TreeItem>(staging_, plan_.items);
  const size_t pages = stage<int32_t>(staging_, plan_.pages);
  const size_t rows = stage<TreeRow>(staging_, plan_.rows);
  const size_t merges = stage<TreeMerge>(staging_, plan_.merges);
  const size_t tokens = stage<int32_t>(staging_, request.tokens);
  const size_t stops = stage<int32_t>(staging_, request.stop_tokens);
  if (input_.bytes() < staging_.size()) input_ = DeviceMemory(device, 2 * staging_.size());
  library_.check(device.upload(input_.as<void>(), staging_.data(), staging_.size()), "upload the tree");
  const size_t partial_bytes = sizeof(float) * static_cast<size_t>(plan_.partials_per_head) *
                               facts.num_kv_heads *
                               tree_partial_words(facts.num_heads / facts.num_kv_heads, facts.head_dim);
  if (partials_.bytes() < partial_bytes) partials_ = DeviceMemory(device, partial_bytes);
  const size_t outputs = static_cast<size_t>(request.num_steps) * descriptor.rows + 1;
  if (records_.bytes() < outputs * sizeof(uint64_t))
    records_ = HostMemory(device, outputs * sizeof(uint64_t));
  std::fill_n(records_.as<uint64_t>(), outputs, kNoRecord);
  if (request.want_logits) {
    const size_t bytes = outputs * facts.vocabulary * sizeof(float);
    if (logits_.bytes() < bytes) logits_ = DeviceMemory(device, bytes);
  }
  clear_workspace(descriptor);

  const auto at = [&]<class T>(size_t offset, const T*) {
    return reinterpret_cast<const T*>(input_.as<std::byte>() + offset);
  };
  LaunchParams params = common_params();
  params.tree = {.first_item = at(first_item, view.first_item),
                 .items = at(items, view.items),
                 .pages = at(pages, view.pages),
                 .rows = at(rows, view.rows),
                 .merges = at(merges, view.merges),
                 .num_rows = view.num_rows,
                 .num_steps = view.num_steps,
                 .partials_per_head = view.partials_per_head};
  params.partials = partials_.as<float>();
  params.logits = request.want_logits ? logits_.as<float>() : nullptr;
  params.input_tokens = at(tokens, request.tokens.data());
  params.num_input_tokens = view.num_rows;
  params.stop_tokens = at(stops, request.stop_tokens.data());
  params.num_stop_tokens = static_cast<int32_t>(request.stop_tokens.size());
  params.num_steps = request.num_steps;
  params.skips_choice = request.skips_choice ? 1 : 0;
  params.delay_seed = request.delay_seed;
  return params;
}

/// Takes the steps' choices as the kernel writes them, until the launch has ended. False if on_step wants no
/// more: steps that the kernel did meanwhile are forgotten.
bool Engine::follow_tree(const TreeRequest& request, int rows,
                         const std::function<bool(std::span<const int32_t>)>& on_step, TreeResult& result) {
  const auto record = [&](int step, int row) {
    return std::atomic_ref<uint64_t>(records_.as<uint64_t>()[step * rows + row])
        .load(std::memory_order_acquire);
  };
  bool wanted = true;
  int done = 0;
  for (bool running = true; running;) {
    const LaunchState state = library_.functions().poll();
    if (state == LaunchState::kFailed) throw_failure();
    running = state == LaunchState::kRunning;
    bool idle = true;
    while (wanted && !request.skips_choice && done < request.num_steps) {
      int known = 0;
      while (known < result.num_rows && record(done, known) != kNoRecord) ++known;
      if (known < result.num_rows) break;
      idle = false;
      for (int row = 0; row < result.num_rows; ++row) {
        result.chosen.push_back(record_token(record(done, row)));
        if (request.want_logprobs) result.logprobs.push_back(sampling_.logprob(done * rows + row));
      }
      result.times_ns.push_back(record_time_ns(record(done, 0)));
      ++done;
      const std::span<const int32_t> chosen(result.chosen.end() - result.num_rows, result.chosen.end());
      if (on_step && !on_step(chosen)) {
        wanted = false;
        std::atomic_ref<uint32_t>(signals_.as<Signals>()->stop_request).store(1, std::memory_order_release);
      }
    }
    if (running && idle) std::this_thread::sleep_for(kIdlePause);
  }
  library_.check(library_.functions().wait(), "decode");
  result.began_ns = record_time_ns(record(request.num_steps, 0));
  result.num_steps += request.skips_choice ? 1 : done;
  return wanted;
}

}  // namespace soliton
