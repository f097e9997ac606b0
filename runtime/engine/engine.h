// Decoding: one kernel library, one set of weights, one tree of branches, and launches that extend them. A
// single sequence of tokens is a tree with one branch.
//
//   engine.cc         memory, weights, positions; what became of a launch that failed
//   engine_decode.cc  requests: what is checked, which kernels do it, in how many launches
//   engine_launch.cc  one launch: what goes to the device, and what comes back while it runs
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "models/kv_pages.h"
#include "runtime/device/kernel_library.h"
#include "runtime/engine/engine_card.h"
#include "runtime/engine/launch_pace.h"
#include "runtime/engine/tree/kv_tree.h"
#include "runtime/engine/tree/tree_plan.h"
#include "runtime/weights/safetensors.h"

namespace soliton {

class KeyShift;
class Progress;

struct EngineOptions {
  int context = 4096;       // tokens of a branch at most
  int64_t pool_tokens = 0;  // that the KV pages hold; 0: those of one branch
  /// The same of layers with a window, at most; 0: what one branch needs, see window_reach(), or with pool_tokens as many
  /// as these. Where they are fewer, tokens that were taken back or forked from may have to be fed anew, see usable_tokens().
  int64_t window_tokens = 0;
  int window_slack = kWindowSlack;  // see window_reach(); no kernel may have more rows
  int device = 0;
  std::vector<int> cards = {};  // the devices of a kernel that spans several; empty: as many from `device` on
  uint64_t timeout_ms = 2000;   // bound of every wait inside the kernel
};

/// What one call decodes in the main branch.
struct DecodeRequest {
  std::span<const int32_t> tokens;            // fed first, at least one
  int max_tokens = 0;                         // to generate, at least one
  std::span<const int32_t> stop_tokens = {};  // end after one of these
  std::optional<RowSampling> sampling = {};   // how they are drawn; nothing: greedily
  std::span<const int32_t> past = {};         // tokens before these that a penalty counts too
  /// Tokens that may be chosen, of a single one: bit t % 32 of word t / 32 stands for token t, [ceil(vocabulary / 32)],
  /// one at least. Empty: any. Log-probabilities are then among these.
  std::span<const uint32_t> allowed = {};
  bool want_logits = false;    // of every generated token
  bool want_logprobs = false;  // the same
  int timeline_step = -1;      // the step whose timeline is wanted; -1: none
  uint32_t delay_seed = 0;     // who is delayed in a kernel compiled with SOLITON_FUZZ
};

struct DecodeResult {
  std::vector<int32_t> tokens;        // generated; the last one has not been fed
  std::vector<uint32_t> times_ns;     // device time at which each was chosen, modulo 2^32
  std::vector<float> logits;          // [tokens][vocabulary], if wanted
  std::vector<float> logprobs;        // [tokens], if wanted: by softmax(logits)
  std::vector<PhaseRecord> timeline;  // if wanted, see timeline_index()
  bool hit_stop_token = false;
};

/// What one call decodes on all live branches of the tree that have rows.
struct TreeRequest {
  std::span<const int32_t> tokens;             // [rows]: what each row feeds first, in the order of rows()
  int num_steps = 1;                           // at most; must be 1 if a branch has more than one new token
  std::span<const int32_t> stop_tokens = {};   // end after a step in which a row chose one of these
  std::span<const RowSampling> sampling = {};  // [rows], or empty: every row takes its best logit
  std::span<const std::vector<int32_t>> past = {};  // [rows], or empty: tokens that a penalty counts
  /// [rows], or empty: tokens that each may choose, as in DecodeRequest; a row's may be empty. Of one step.
  std::span<const std::span<const uint32_t>> allowed = {};
  bool want_logits = false;
  bool want_logprobs = false;
  bool skips_choice = false;  // one step that only fills the cache; its logits are not computed
  /// Bands of rows whose choices are wanted, of one step, a bit each (row_bands()): of others any token may be what they chose.
  /// Prompts take less time so.
  uint32_t wanted_bands = std::numeric_limits<uint32_t>::max();
  int timeline_step = -1;   // as in DecodeRequest
  uint32_t delay_seed = 0;  // likewise
  SliceRule rule = SliceRule::kBalanced;
  int min_rows = 0;  // that the kernel takes: the same kernel then for steps of more and of fewer rows
  /// A row that is the only one takes the kernel that decode() generates with, if its branch has a page table and
  /// min_rows allows it: faster, and other bits than those of the kernels for several rows.
  bool lone_row_alone = false;
  /// Once another thread sets it, a launch ends behind the step that it is at. With it on_step is told of every step that
  /// the kernel does, of those too that it did after on_step had wanted no more: nothing is done in vain.
  const std::atomic<bool>* interrupt = nullptr;
  std::function<void()> on_launch = {};  // called when a launch has begun, for what can be done meanwhile
};

struct TreeResult {
  int num_rows = 0;
  int num_steps = 0;                  // done
  std::vector<int32_t> chosen;        // [steps][rows]; empty if the choice was skipped
  uint32_t began_ns = 0;              // device time at which the last launch began, modulo 2^32
  std::vector<uint32_t> times_ns;     // [steps]: the same, when the step's choices were known
  std::vector<float> logits;          // [steps][rows][vocabulary], if wanted
  std::vector<float> logprobs;        // [steps][rows], if wanted
  std::vector<PhaseRecord> timeline;  // if wanted, see timeline_index()
  int kernel = 0;                     // that did it
  int64_t page_reads =
      0;  // KV pages of 64 tokens and one KV head that the last step read, a layer, on the first card
};

class Engine {
 public:
  /// Selects the device and makes the KV cache. Throws Error: kMismatch if the kernel does not fit the
  /// device, kOutOfMemory if the context does not fit the model or the memory.
  Engine(KernelLibrary library, const EngineOptions& options);
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  /// Loads a checkpoint, whose tensors were found by the kernel's facts. Their remarks are the caller's to say. Throws what
  /// load_weights() throws.
  void load(const ModelTensors& tensors, Progress* progress);
  /// The same; finds the tensors first, by the names of Llama. Throws what find_tensors() throws too.
  void load(const TensorSource& source, Progress* progress, const QuantizationConfig* quantization = nullptr);
  /// Weights from a seed, for measurements.
  void load_random(uint64_t seed);

  /// Appends tokens to a branch without choosing any behind them: where the library has kernels of several
  /// rows, in chunks of as many as the largest takes, and else one after another in one launch. The lm_head
  /// is never computed. All other branches wait. The branch then has one new token a step, whatever its draft
  /// was before. Throws Error as decode() does; kInternal if the branch is none, or has no page table and there is
  /// no kernel of several rows.
  void feed(Branch branch, std::span<const int32_t> tokens);
  /// Feeds tokens to the main branch in one step of the kernel of the least rows that suffice, compiled with SOLITON_TIMELINE,
  /// and returns what its warps recorded: the embedding is the first phase. Throws Error as feed() does; kMismatch if the
  /// kernel records nothing.
  std::vector<PhaseRecord> record_step(std::span<const int32_t> tokens);

  /// Feeds tokens to the main branch and generates behind them: in one launch, or with launches before it that
  /// take the tokens in chunks, if the library has a kernel for that. All other branches wait. `on_token` is
  /// called for each token while a launch runs and ends it by returning false. Throws Error: kOutOfMemory,
  /// before anything is changed, if the context would be exceeded; kDevice, with the stuck wait if there is
  /// one, if the kernel fails.
  DecodeResult decode(const DecodeRequest& request, const std::function<bool(int32_t)>& on_token = {});

  /// The KV pages of this engine as a tree of branches. It has one branch, main_branch(), in which decode()
  /// feeds; fork it, open others, draft, prune: all that live and are not paused take part in decode_tree().
  KvTree& tree() { return tree_; }
  const KvTree& tree() const { return tree_; }
  Branch main_branch() const { return main_; }
  /// Frees all branches and begins with an empty main_branch(),
  void reset_tree();
  /// or with none.
  void clear_tree();
  /// Index of the kernel of the least rows, but more than one, that suffice for any. Throws Error (kMismatch).
  int kernel_for_rows(int rows) const;
  /// The same for rows of one prompt, max_prompt_rows() at most.
  int kernel_for_prompt(int rows) const;
  /// Tokens of the first of the steps that feed so many, 1 or more, of prompts; and of the last.
  size_t chunk_of(size_t num_tokens) const;
  size_t last_chunk_of(size_t num_tokens) const;

  /// Decodes on the branches of the tree with the kernel of the least rows that suffice. A branch with one
  /// new token a step has then grown by num_steps tokens; one with a draft keeps it until KvTree::accept().
  /// `on_step` is called with each step's choices while the launch runs and ends it by returning false.
  /// Throws Error, before anything is changed: kMismatch if no kernel takes so many rows or a token is none,
  /// kOutOfMemory if pages are missing or a branch would exceed the context, kInternal if the request does not
  /// fit the rows; kDevice as decode().
  TreeResult decode_tree(const TreeRequest& request,
                         const std::function<bool(std::span<const int32_t>)>& on_step = {});
  /// [rows]: the logprobs of the tokens that on_token or on_step is being told of, if they are wanted; else empty.
  std::span<const float> step_logprobs() const { return step_logprobs_; }
  /// Rows of the next decode_tree(): which branch, and which of its new tokens.
  std::vector<SnapshotRow> rows() const;
  /// The most rows that a kernel of this library takes; 1 if there is none for several.
  int max_rows() const { return library_.max_rows(); }
  /// The same of one prompt.
  int max_prompt_rows() const { return library_.max_prompt_rows(); }

  /// Tokens fed so far: the position of the next one.
  int position() const { return tree_.num_tokens(main_); }
  /// Forgets everything from `position` on. For measurements, also moves to positions never fed, or that windows reach no
  /// more tokens of: usable_position() is one that can be gone on from.
  void set_position(int position);
  /// The last position up to `position` that all windows reach what was fed before of.
  int usable_position(int position) const { return tree_.usable_tokens(main_, position); }
  /// Forgets `count` tokens of the main branch, which is the only one, from number `first` on: those behind have the positions
  /// from `first` on then, and their keys are turned to these. What the model made of them when it saw the others stays as
  /// it was. Throws Error: kInternal for tokens that are not there, or if EngineOptions::window_tokens are not all; kDevice.
  void forget(int first, int count);
  /// Fills the cache with random keys and values, for measurements at positions never fed.
  void randomise_cache(uint64_t seed);

  /// Bytes that one token at `position` must read: weights and the keys and values before it. Of several cards, the one
  /// that reads the most.
  int64_t needed_bytes(int position) const;
  /// Launches with this many CTAs instead of the planned number. For tests of the bounded waits.
  void set_num_ctas(int num_ctas) { num_ctas_ = num_ctas; }
  /// From now on nothing is launched on this card of several, as if it had died. For the same tests.
  void lose_card(int card) { lost_card_ = card; }
  /// From now on decode() generates with this kernel of the library, which may be one of several rows, where it feeds
  /// prompts in chunks. Without this, with the first one.
  void generate_with(int kernel) { generating_kernel_ = kernel; }
  int generating_kernel() const { return generating_kernel_; }
  /// From now on prompts are fed one token a step even if the library has a kernel for several.
  void feed_one_by_one() { one_by_one_ = true; }

  /// From now on steps of several rows are planned by costs that were measured, see KernelLibrary::set_measured_costs().
  void plan_by(std::vector<std::optional<KernelCosts>> costs);

  /// For a thread that is not the one that made the engine: CUDA's current device is one of a thread. Throws Error.
  void enter_thread() { library_.select_cards(library_.card_devices()); }

  const KernelLibrary& library() const { return library_; }
  /// Tokens of a branch at most.
  int context() const { return context_; }
  /// Of keys and values, on one card.
  int64_t cache_bytes() const { return KvPool::bytes(library_, pages_); }
  /// Of these, those of layers with a window.
  int64_t window_cache_bytes() const {
    return cache_bytes() - full_layers(library_).page_offset(pages_.all, 0, 0);
  }

 private:
  void randomise_bytes(uint64_t seed);

  using OnStep = std::function<bool(std::span<const int32_t>)>;

  /// A request on the rows of one kernel, or what one launch does of it.
  struct Run {
    int kernel = 0;
    std::optional<Branch> only = {};  // whose rows they are, all other branches wait; nothing: all that live
    TreeRequest request;              // a kernel of one row takes any number of tokens, one a step
  };

  /// What has come of a launch.
  struct Followed {
    int num_steps = 0;      // that chose a token, or 1 for a launch that chooses none
    int num_forgotten = 0;  // further ones that the kernel may have done
    bool wanted = true;     // did on_step want more?
    double seconds = 0;     // that it took
  };

  // engine_decode.cc
  void check_tokens(std::span<const int32_t> tokens) const;
  void check_decode(const DecodeRequest& request) const;
  void check_tree(const TreeRequest& request) const;
  bool takes_chunks(const DecodeRequest& request) const;
  void feed_all(Branch branch, std::span<const int32_t> tokens, uint32_t delay_seed);
  TreeResult feed_chunk(Branch branch, const TreeRequest& request);
  void generate(const DecodeRequest& request, std::span<const int32_t> tokens,
                const std::function<bool(int32_t)>& on_token, DecodeResult& result);

  // engine_launch.cc
  TreeResult run(const Run& run, const OnStep& on_step = {});
  Run next_launch(const Run& left);
  void note_time(const Run& launch, const LaunchParams& params, double seconds, const TreeResult& result);
  bool begin_sampling(const TreeRequest& request, int num_rows);
  TreePlanner& planner(int kernel, SliceRule rule, int card);
  int plan(const Run& run, int num_steps);
  void move_tokens();
  void clear_workspace(const EngineCard& card, const Descriptor& descriptor);
  void make_room(const Descriptor& descriptor, const TreeRequest& request);
  LaunchParams common_params(const EngineCard& card) const;
  std::vector<LaunchParams> prepare(const Run& launch, bool draws);
  LaunchParams prepare_card(EngineCard& card, const Run& launch, bool draws);
  void put_branch(EngineCard& card, const TreeRequest& request, LaunchParams& params);
  void put_tree(EngineCard& card, int kernel, const TreeRequest& request, LaunchParams& params);
  void prepare_timeline(EngineCard& card, const Run& launch, LaunchParams& params);
  void start(int kernel, const std::vector<LaunchParams>& params);
  LaunchState poll() const;
  std::vector<PhaseRecord> download_timeline();
  void download_logits(int kernel, int num_steps, TreeResult& result);
  void download_lines(size_t offset, std::span<float> lines);
  Followed follow(const TreeRequest& request, int kernel_rows, const OnStep& on_step, TreeResult& result);
  [[noreturn]] void throw_failure() const;

  /// Pages of the main branch in one of a card's pools.
  struct PoolPart {
    std::vector<int32_t> pages;
    KvShape kv;
    bool have_windows = false;  // the layers that it has
    void* (KvPool::*pool)() const;
  };
  void forget_in(const PoolPart& part, int first, int count, const KeyShift& shift);

  void reserve(Branch branch, int num_tokens);
  template <class Make>
  void make_weights(const Make& make);
  /// Calls body(card) for every card, entered; then the first one is again.
  template <class Body>
  void on_every_card(const Body& body) {
    for (size_t i = cards_.size(); i-- > 0;) {
      library_.enter_card(static_cast<int>(i));
      body(cards_[i]);
    }
  }
  int num_ctas(int kernel) const { return num_ctas_.value_or(library_.descriptor(kernel).num_ctas); }

  KernelLibrary library_;
  uint64_t timeout_ns_;
  std::optional<int> num_ctas_;  // instead of the planned number
  int lost_card_ = -1;           // on which nothing is launched
  std::vector<float> step_logprobs_;
  bool one_by_one_ = false;
  int generating_kernel_ = 0;
  int context_;  // tokens
  PoolPages pages_;
  LaunchPace pace_;
  std::string weights_name_;  // where they are from, for errors
  std::vector<EngineCard> cards_;
  KvTree tree_;
  Branch main_;
  HostMemory records_;
  HostMemory signals_;                                // Signals, of each card
  std::vector<std::optional<TreePlanner>> planners_;  // [card][kernel][SliceRule]
  TreeSnapshot snapshot_;                             // The rows of the next launch,
  std::vector<TreePlan> plans_;  // and their attention in a kernel of several rows, by card.
};

}  // namespace soliton
