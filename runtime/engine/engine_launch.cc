// Launches of an engine: what goes to the device, and what comes back while a kernel runs. A kernel of one row
// and one of several differ in how they are told where keys and values are, put_branch() and put_tree(), and
// in nothing else.
#include <algorithm>
#include <atomic>
#include <bit>
#include <chrono>
#include <thread>

#include "layout/activations.h"
#include "models/error.h"
#include "runtime/engine/engine.h"
#include "runtime/engine/launch_signals.h"
#include "runtime/engine/tree/check_windows.h"
#include "runtime/engine/tree/tree_shape.h"

namespace soliton {
namespace {

bool has_stop_token(std::span<const int32_t> chosen, std::span<const int32_t> stop_tokens) {
  return std::find_first_of(chosen.begin(), chosen.end(), stop_tokens.begin(), stop_tokens.end()) !=
         chosen.end();
}

/// KV pages that a step of a plan reads.
int64_t pages_read(const TreePlan& plan, int step) {
  int64_t pages = 0;
  for (const TreeItem& item : plan.items) pages += num_pages(item, step);
  return pages;
}

/// Tells a kernel of `plan` which rows of a step of `num_rows` find their logits.
void put_wanted(const TreeRequest& request, const KernelPlan& plan, int num_rows, LaunchParams& params) {
  params.logits_block = 0;
  params.logits_bands = 0;
  const bool wants_more = request.want_logits || request.want_logprobs;
  const uint32_t wanted = request.wanted_bands & row_bands(0, num_rows);
  if (plan.rows < kMostBlockRows || wants_more || request.num_steps > 1 || wanted == 0) return;
  const int first = std::countr_zero(wanted);
  const int last = std::bit_width(wanted) - 1;
  const int block = first / kBands;
  if (row_blocks(plan.rows) > 1) {
    if (last / kBands != block) return;
    params.logits_block = static_cast<int16_t>(1 + block);
  }
  if (std::popcount(wanted) <= 2)
    params.logits_bands = static_cast<int16_t>(pack_bands(first % kBands, last % kBands));
}

/// Bytes from one address to another.
int64_t distance(const void* from, const void* to) {
  return static_cast<const std::byte*>(to) - static_cast<const std::byte*>(from);
}

}  // namespace

/// Does a request for which pages are reserved: in one launch, or in several where a plan holds for fewer steps than
/// wanted, or launches may not last long.
TreeResult Engine::run(const Run& run, const OnStep& on_step) {
  const TreeRequest& request = run.request;
  const int kernel_rows = library_.descriptor(run.kernel).rows;
  move_tokens();
  TreeResult result;
  result.kernel = run.kernel;
  result.num_rows = kernel_rows == 1 ? 1 : static_cast<int>(request.tokens.size());
  const bool draws = begin_sampling(request, result.num_rows);
  Run left = run;               // what no launch has done yet
  std::vector<int32_t> chosen;  // by the launch before
  while (true) {
    const Run launch = next_launch(left);
    const std::vector<LaunchParams> cards = prepare(launch, draws && !launch.request.skips_choice);
    const LaunchParams& params = cards[0];
    start(run.kernel, cards);
    if (request.on_launch) request.on_launch();
    const Followed done = follow(launch.request, kernel_rows, on_step, result);
    if (done.num_steps == launch.request.num_steps) note_time(launch, params, done.seconds, result);
    if (launch.request.want_logits) download_logits(run.kernel, done.num_steps, result);
    const int num_inputs = static_cast<int>(launch.request.tokens.size()) / result.num_rows;
    for (const SnapshotNode& node : snapshot_.nodes) {
      if (node.num_new == 1)
        tree_.append(snapshot_.rows[node.first_row].branch, num_inputs - 1 + done.num_steps);
      if (node.num_new == 1) tree_.note_written(snapshot_.rows[node.first_row].branch, done.num_forgotten);
    }
    int& timeline_step = left.request.timeline_step;
    timeline_step = std::max(-1, timeline_step - params.num_steps);
    if (launch.request.tokens.size() < left.request.tokens.size()) {  // it has fed the first of many
      left.request.tokens = left.request.tokens.subspan(launch.request.tokens.size());
      continue;
    }
    result.num_steps += done.num_steps;
    left.request.num_steps -= done.num_steps;
    if (left.request.num_steps == 0) result.page_reads = pages_read(plans_[0], done.num_steps - 1);
    if (!done.wanted || done.num_steps < launch.request.num_steps || left.request.num_steps == 0) break;
    chosen.assign(result.chosen.end() - result.num_rows, result.chosen.end());
    if (has_stop_token(chosen, request.stop_tokens)) break;
    left.request.tokens = chosen;
  }
  if (request.timeline_step >= 0) result.timeline = download_timeline();
  return result;
}

/// What the next launch does of a request, as long as launches may last and plans hold; plans it. A kernel of one row
/// takes many tokens, one a step: if it may not take all, it chooses none behind those that it takes.
Engine::Run Engine::next_launch(const Run& left) {
  Run launch = left;
  TreeRequest& request = launch.request;
  const int most = pace_.max_steps(left.kernel, !request.skips_choice);
  if (library_.descriptor(left.kernel).rows == 1) {
    const int num_inputs = static_cast<int>(request.tokens.size());
    if (num_inputs > most) {
      const int most_fed = std::min(pace_.max_steps(left.kernel, false), num_inputs - !request.skips_choice);
      request = {.tokens = request.tokens.first(most_fed),
                 .skips_choice = true,
                 .timeline_step = request.timeline_step,
                 .delay_seed = request.delay_seed};
    } else if (!request.skips_choice) {
      request.num_steps = std::min(request.num_steps, most - (num_inputs - 1));
    }
  } else {
    request.num_steps = std::min(request.num_steps, most);
  }
  request.num_steps = plan(launch, request.num_steps);
  return launch;
}

/// Lets the launches that follow know how long a step takes. While this one ran, the host may have been busy with
/// tokens: what the device says of its own time counts where that is less.
void Engine::note_time(const Run& launch, const LaunchParams& params, double seconds,
                       const TreeResult& result) {
  constexpr double kSecondsPerNs = 1e-9;
  const int num_outputs = launch.request.skips_choice ? 0 : launch.request.num_steps;
  if (num_outputs > 1) {
    const uint32_t ns = result.times_ns.back() - *(result.times_ns.end() - num_outputs);
    seconds = std::min(seconds, ns * kSecondsPerNs / (num_outputs - 1) * params.num_steps);
  }
  pace_.took(launch.kernel, !launch.request.skips_choice, params.num_steps, seconds);
}

// ---- Before a launch

/// Does what the tree owes to its changes, before a launch reads any of it.
void Engine::move_tokens() {
  const auto move = [&](const std::vector<TokenMove>& moves, const KvShape& shape,
                        void* (KvPool::*pool)() const) {
    if (moves.empty() || shape.num_layers == 0) return;
    on_every_card([&](EngineCard& card) {
      library_.check(library_.functions().move_tokens((card.pool.*pool)(), &shape, moves.data(),
                                                      static_cast<int>(moves.size())),
                     "move tokens");
    });
  };
  move(tree_.take_moves(), full_layers(library_), &KvPool::address);
  move(tree_.take_window_moves(), window_layers(library_), &KvPool::windows);
}

/// Takes the rows of the next launch from the tree and plans their attention. Returns the number of steps for
/// which the plan holds, at most num_steps.
int Engine::plan(const Run& run, int num_steps) {
  tree_.snapshot(snapshot_, run.only);
  const auto checked = [&](int steps) {
    const KvWindows& windows = tree_.windows();
    if (windows.window > 0) check_windows(snapshot_, windows.window, tree_.gone_page(), steps);
  };
  if (library_.descriptor(run.kernel).rows == 1) {
    plans_[0].items.clear();  // The kernel deals its one row itself.
    checked(static_cast<int>(run.request.tokens.size()) - (run.request.skips_choice ? 0 : 1) +
            (run.request.skips_choice ? 0 : num_steps));
    return num_steps;
  }
  // Each card has heads of its own. For how many steps plans hold does not depend on them.
  for (size_t card = 0; card < cards_.size(); ++card)
    planner(run.kernel, run.request.rule, static_cast<int>(card)).plan(snapshot_, num_steps, plans_[card]);
  checked(plans_[0].num_steps);
  return plans_[0].num_steps;
}

void Engine::plan_by(std::vector<std::optional<KernelCosts>> costs) {
  library_.set_measured_costs(std::move(costs));
  std::fill(planners_.begin(), planners_.end(), std::nullopt);
}

TreePlanner& Engine::planner(int kernel, SliceRule rule, int card) {
  std::optional<TreePlanner>& planner =
      planners_[kSliceRules * (card * library_.num_kernels() + kernel) + static_cast<int>(rule)];
  if (!planner) {
    planner.emplace(tree_shape(library_, kernel, card), library_.planned_costs(kernel),
                    SliceLimits{.rule = rule});
  }
  return *planner;
}

/// Uploads how the rows draw their tokens. Returns false if all take their best logit and no
/// probability is wanted: then there is nothing to upload.
bool Engine::begin_sampling(const TreeRequest& request, int num_rows) {
  std::vector<RowSampling> sampling(request.sampling.begin(), request.sampling.end());
  if (request.want_logprobs || !request.allowed.empty()) sampling.resize(static_cast<size_t>(num_rows));
  if (sampling.empty()) return false;
  on_every_card([&](EngineCard& card) {
    card.sampling.begin(library_, {.rows = sampling,
                                   .past = request.past,
                                   .allowed = request.allowed,
                                   .want_logprobs = request.want_logprobs});
  });
  return true;
}

/// Fills the workspace as the kernel expects it at its launch.
void Engine::clear_workspace(const EngineCard& card, const Descriptor& descriptor) {
  const Library& device = library_.functions();
  library_.check(device.fill(card.workspace.as<void>(), 0, static_cast<size_t>(descriptor.workspace_bytes)),
                 "clear the workspace");
  for (const WorkspaceRange& range : descriptor.missing.ranges) {
    if (range.bytes == 0) continue;
    library_.check(device.fill(card.workspace.as<std::byte>() + range.offset, kMissingByte,
                               static_cast<size_t>(range.bytes)),
                   "clear what says itself that it has arrived");
  }
  signals_.as<Signals>()[card.index] = {};
}

/// Makes sure that there is memory for what a launch puts out, and empties its records.
void Engine::make_room(const Descriptor& descriptor, const TreeRequest& request) {
  const Library& device = library_.functions();
  const size_t outputs = static_cast<size_t>(request.num_steps) * descriptor.rows;
  const size_t records = outputs + 1;  // the last one: of the launch's beginning
  if (records_.bytes() < records * sizeof(uint64_t))
    records_ = HostMemory(device, records * sizeof(uint64_t));
  std::fill_n(records_.as<uint64_t>(), records, kNoRecord);
  if (!request.want_logits) return;
  const size_t bytes = outputs * descriptor.model->facts.vocabulary * sizeof(float);
  on_every_card([&](EngineCard& card) {
    if (card.logits.bytes() < bytes) card.logits = DeviceMemory(device, bytes);
  });
}

/// What every launch is given on a card.
LaunchParams Engine::common_params(const EngineCard& card) const {
  LaunchParams params{};
  params.weights = card.weights->pages.as<void>();
  params.embedding = card.weights->embedding.as<uint16_t>();
  params.norms = card.weights->norms.as<uint16_t>();
  params.qkv_biases = card.weights->qkv_biases.as<float>();
  params.head_norms = card.weights->head_norms.as<uint16_t>();
  params.router_biases = card.weights->router_biases.as<float>();
  params.layer_biases = card.weights->layer_biases.as<float>();
  params.positions = card.weights->positions.as<int32_t>();
  params.rotary = card.rotary.as<float>();
  params.kv_pool = card.pool.address();
  params.window_pool = card.pool.windows();
  params.workspace = card.workspace.as<void>();
  params.records = records_.as<uint64_t>();
  params.stop_request = &signals_.as<Signals>()->stop_request;
  params.stall = &signals_.as<Signals>()[card.index].stall;
  params.card = card.index;
  params.timeout_ns = timeout_ns_;
  params.timeline_step = -1;
  return params;
}

/// Brings everything that a launch needs to the cards, in the order of each card's stream. Several cards write to one
/// another as soon as they run: before any does, all have cleared what the others write to.
std::vector<LaunchParams> Engine::prepare(const Run& launch, bool draws) {
  make_room(library_.descriptor(launch.kernel), launch.request);
  std::vector<LaunchParams> all(cards_.size());
  on_every_card([&](EngineCard& card) { all[card.index] = prepare_card(card, launch, draws); });
  if (cards_.size() == 1) return all;
  on_every_card([&](EngineCard& card) {
    library_.check(library_.functions().finish(), "prepare the launch");
    const LaunchParams& own = all[card.index];
    for (const EngineCard& other : cards_) {
      const LaunchParams& peer = all[other.index];
      all[card.index].peers[other.index] = {
          .workspace = distance(own.workspace, peer.workspace),
          .exchange = distance(own.sampling.exchange, peer.sampling.exchange),
          .logits = distance(own.sampling.logits, peer.sampling.logits)};
    }
  });
  return all;
}

LaunchParams Engine::prepare_card(EngineCard& card, const Run& launch, bool draws) {
  const TreeRequest& request = launch.request;
  const Descriptor& descriptor = library_.descriptor(launch.kernel);
  LaunchParams params = common_params(card);
  params.prefetch_ns = prefetch_ns(descriptor, library_.card().costs);
  params.logits = request.want_logits ? card.logits.as<float>() : nullptr;
  params.num_stop_tokens = static_cast<int32_t>(request.stop_tokens.size());
  params.delay_seed = request.delay_seed;
  card.input.clear();
  const size_t stops = card.input.add<int32_t>(request.stop_tokens);
  if (descriptor.rows == 1) {
    put_branch(card, request, params);
  } else {
    put_tree(card, launch.kernel, request, params);
  }
  params.stop_tokens = card.input.at<int32_t>(stops);
  if (request.timeline_step >= 0) prepare_timeline(card, launch, params);
  clear_workspace(card, descriptor);
  if (draws)
    params.sampling = card.sampling.prepare(library_, launch.kernel, request.num_steps * descriptor.rows);
  return params;
}

/// On every card, one right after the other: each launch is cooperative, so all CTAs of a card run at once or none, and
/// there is nothing else in the cards' streams. What no launch can promise is that the others run too: the kernel's
/// bounded waits see to that.
void Engine::start(int kernel, const std::vector<LaunchParams>& params) {
  const Library& device = library_.functions();
  for (size_t card = params.size(); card-- > 0;) {
    library_.enter_card(static_cast<int>(card));
    if (static_cast<int>(card) == lost_card_) continue;
    if (device.launch(kernel, &params[card], num_ctas(kernel)) == 0) continue;
    const std::string reason = device.last_error();
    for (size_t begun = params.size(); --begun > card;) {  // they wait for this one, as long as waits last
      library_.enter_card(static_cast<int>(begun));
      device.wait();
    }
    throw file_error(ExitCode::kDevice, library_.path(), "launch{}: {}",
                     params.size() == 1 ? "" : fmt::format(" on device {}", library_.card_devices()[card]),
                     reason);
  }
}

/// Of the launch on all cards.
LaunchState Engine::poll() const {
  LaunchState state = LaunchState::kDone;
  for (int card = library_.num_cards(); card-- > 0;) {
    library_.enter_card(card);
    const LaunchState of_card = library_.functions().poll();
    if (of_card == LaunchState::kFailed) return of_card;
    if (of_card == LaunchState::kRunning) state = of_card;
  }
  return state;
}

/// For a kernel of one row: any number of tokens, one a step, in a branch whose pages in order are the page
/// table.
void Engine::put_branch(EngineCard& card, const TreeRequest& request, LaunchParams& params) {
  const SnapshotRow& row = snapshot_.rows.at(0);
  std::vector<int32_t> input(request.tokens.begin(), request.tokens.end());
  // A step that an input token follows chooses none. Where none is to choose, one follows the last step too,
  // which is never fed.
  if (request.skips_choice) input.push_back(0);
  const size_t tokens = card.input.add<int32_t>(input);
  const size_t pages = card.input.add<int32_t>(tree_.page_table(row.branch));
  const size_t windows = card.input.add<int32_t>(
      tree_.windows().window > 0 ? tree_.window_page_table(row.branch) : std::vector<int32_t>());
  card.input.upload(library_);
  params.input_tokens = card.input.at<int32_t>(tokens);
  params.page_table = card.input.at<int32_t>(pages);
  params.window_pages = card.input.at<int32_t>(windows);
  params.num_input_tokens = static_cast<int32_t>(input.size());
  params.first_position = row.position;
  params.num_steps = params.num_input_tokens - 1 + (request.skips_choice ? 0 : request.num_steps);
}

/// For a kernel of several rows: a token a row, and the plan of their attention.
void Engine::put_tree(EngineCard& card, int kernel, const TreeRequest& request, LaunchParams& params) {
  const ModelFacts& facts = library_.model().facts;
  const TreePlan& plan = plans_[card.index];
  const size_t partial_bytes = sizeof(float) * static_cast<size_t>(plan.partials_per_head) *
                               library_.card_kv().num_kv_heads *
                               tree_partial_words(facts.num_heads / facts.num_kv_heads, facts.head_dim);
  if (card.partials.bytes() < partial_bytes)
    card.partials = DeviceMemory(library_.functions(), partial_bytes);
  if (partial_bytes > 0) {
    library_.check(library_.functions().fill(card.partials.as<void>(), kMissingByte, partial_bytes),
                   "clear the partial results");
  }
  const size_t tokens = card.input.add<int32_t>(request.tokens);
  const size_t first_item = card.input.add<int32_t>(plan.first_item);
  const size_t items = card.input.add<TreeItem>(plan.items);
  const size_t pages = card.input.add<int32_t>(plan.pages);
  const size_t windows = card.input.add<int32_t>(snapshot_.window_pages);
  const size_t rows = card.input.add<TreeRow>(plan.rows);
  const size_t merges = card.input.add<TreeMerge>(plan.merges);
  card.input.upload(library_);
  params.tree = plan.view();
  params.tree.first_item = card.input.at<int32_t>(first_item);
  params.tree.items = card.input.at<TreeItem>(items);
  params.tree.pages = card.input.at<int32_t>(pages);
  params.window_pages = card.input.at<int32_t>(windows);
  params.tree.rows = card.input.at<TreeRow>(rows);
  params.tree.merges = card.input.at<TreeMerge>(merges);
  params.partials = card.partials.as<float>();
  params.input_tokens = card.input.at<int32_t>(tokens);
  params.num_input_tokens = params.tree.num_rows;
  params.num_steps = request.num_steps;
  params.skips_choice = request.skips_choice ? 1 : 0;
  put_wanted(request, *library_.descriptor(kernel).plan, params.tree.num_rows, params);
}

/// Has the kernel record a step.
void Engine::prepare_timeline(EngineCard& card, const Run& launch, LaunchParams& params) {
  const Library& device = library_.functions();
  if (!device.timeline) {
    throw file_error(ExitCode::kMismatch, library_.path(),
                     "expected a kernel compiled with SOLITON_TIMELINE, got one without");
  }
  const KernelPlan& plan = *library_.descriptor(launch.kernel).plan;
  const size_t records =
      static_cast<size_t>(plan.recorded_phases()) * num_ctas(launch.kernel) * plan.working_warps();
  if (card.timeline.bytes() != records * sizeof(PhaseRecord))
    card.timeline = DeviceMemory(device, records * sizeof(PhaseRecord));
  library_.check(device.fill(card.timeline.as<void>(), 0, card.timeline.bytes()), "clear the timeline");
  params.timeline = card.timeline.as<PhaseRecord>();
  params.timeline_step = launch.request.timeline_step;
}

// ---- While a launch runs, and after it

/// Takes the steps' choices as the kernel writes them, until the launch has ended. If on_step wants no more, what the
/// kernel did meanwhile is forgotten, but for requests that another thread may interrupt.
Engine::Followed Engine::follow(const TreeRequest& request, int kernel_rows, const OnStep& on_step,
                                TreeResult& result) {
  const auto began = std::chrono::steady_clock::now();
  const auto record = [&](int step, int row) {
    return std::atomic_ref<uint64_t>(records_.as<uint64_t>()[step * kernel_rows + row])
        .load(std::memory_order_acquire);
  };
  const bool takes_all = request.interrupt != nullptr;
  bool wanted = true;
  const auto end_early = [&] {
    wanted = false;
    std::atomic_ref<uint32_t>(signals_.as<Signals>()->stop_request).store(1, std::memory_order_release);
  };
  int not_finite = -1;  // a row whose logits are not
  int done = 0;
  // Behind the last step the kernel ends at once, and a card needs no processor of the host's to do so.
  const bool emulated = library_.device().compute_capability == 0;
  auto last_news = began;
  const auto rest = [&] {
    const bool ends = !request.skips_choice && done == request.num_steps;
    if (emulated) {
      std::this_thread::sleep_for(emulated_idle_pause(std::chrono::steady_clock::now() - last_news));
    } else if (!ends) {
      std::this_thread::sleep_for(kIdlePause);
    }
  };
  for (bool running = true; running;) {
    const LaunchState state = poll();
    if (state == LaunchState::kFailed) throw_failure();
    running = state == LaunchState::kRunning;
    if (takes_all && wanted && request.interrupt->load(std::memory_order_relaxed)) end_early();
    bool idle = true;
    while ((wanted || takes_all) && not_finite < 0 && !request.skips_choice && done < request.num_steps) {
      int known = 0;
      while (known < result.num_rows && record(done, known) != kNoRecord) ++known;
      if (known < result.num_rows) break;
      idle = false;
      step_logprobs_.clear();
      for (int row = 0; row < result.num_rows; ++row) {
        if (record_token(record(done, row)) == kNotFiniteToken) not_finite = row;
      }
      if (not_finite >= 0) break;  // the kernel ends too
      for (int row = 0; row < result.num_rows; ++row) {
        result.chosen.push_back(record_token(record(done, row)));
        if (request.want_logprobs)
          step_logprobs_.push_back(cards_[0].sampling.logprob(done * kernel_rows + row));
      }
      result.logprobs.insert(result.logprobs.end(), step_logprobs_.begin(), step_logprobs_.end());
      result.times_ns.push_back(record_time_ns(record(done, 0)));
      ++done;
      const std::span<const int32_t> chosen(result.chosen.end() - result.num_rows, result.chosen.end());
      if (on_step && !on_step(chosen)) end_early();
    }
    if (!idle) {
      last_news = std::chrono::steady_clock::now();
    } else if (running) {
      rest();
    }
  }
  on_every_card([&](EngineCard&) { library_.check(library_.functions().wait(), "decode"); });
  if (not_finite >= 0) {
    const int inputs = static_cast<int>(request.tokens.size()) / result.num_rows;
    throw bad_file(weights_name_,
                   "expected finite logits, got NaN or infinity behind the token at position {}",
                   snapshot_.rows[not_finite].position + inputs - 1 + done);
  }
  int last_written = done;
  while (!request.skips_choice && last_written < request.num_steps && record(last_written, 0) != kNoRecord)
    ++last_written;
  if (last_written < request.num_steps) ++last_written;  // the one that it may have been at
  if (kernel_rows > 1) result.began_ns = record_time_ns(record(request.num_steps, 0));
  const std::chrono::duration<double> time = std::chrono::steady_clock::now() - began;
  return {.num_steps = request.skips_choice ? 1 : done,
          .num_forgotten = last_written - done,
          .wanted = wanted,
          .seconds = time.count()};
}

/// Adds the logits of the last num_steps steps to the result: of each step the lines of the rows that it had.
void Engine::download_logits(int kernel, int num_steps, TreeResult& result) {
  const Descriptor& descriptor = library_.descriptor(kernel);
  const size_t vocabulary = static_cast<size_t>(descriptor.model->facts.vocabulary);
  // Of a kernel whose rows are all in use, all steps are one array.
  const bool all_rows = result.num_rows == descriptor.rows;
  const size_t num_copies = all_rows ? 1 : num_steps;
  const size_t copy = vocabulary * result.num_rows * (all_rows ? num_steps : 1);
  const size_t before = result.logits.size();
  result.logits.resize(before + num_copies * copy);
  for (size_t i = 0; i < num_copies; ++i) {
    download_lines(i * vocabulary * descriptor.rows,
                   std::span(result.logits).subspan(before + i * copy, copy));
  }
}

/// Of whole lines. Each card has those of its own tiles.
void Engine::download_lines(size_t offset, std::span<float> lines) {
  const auto vocabulary = static_cast<size_t>(library_.model().facts.vocabulary);
  std::vector<float> own(cards_.size() == 1 ? 0 : lines.size());
  on_every_card([&](EngineCard& card) {
    float* to = cards_.size() == 1 ? lines.data() : own.data();
    library_.check(library_.functions().download(to, card.logits.as<float>() + offset, lines.size_bytes()),
                   "download logits");
    for (size_t i = 0; i < own.size(); ++i) {
      if (i % vocabulary / kTileRows % cards_.size() == static_cast<size_t>(card.index)) lines[i] = own[i];
    }
  });
}

std::vector<PhaseRecord> Engine::download_timeline() {
  const DeviceMemory& records = cards_[0].timeline;
  std::vector<PhaseRecord> timeline(records.bytes() / sizeof(PhaseRecord));
  library_.check(library_.functions().download(timeline.data(), records.as<void>(), records.bytes()),
                 "download the timeline");
  return timeline;
}

}  // namespace soliton
