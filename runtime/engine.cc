#include "runtime/engine.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>

#include "layout/page.h"
#include "models/error.h"
#include "runtime/launch_signals.h"
#include "runtime/progress.h"
#include "runtime/rotary.h"

namespace soliton {
namespace {

constexpr uint64_t kNsPerMs = 1'000'000;

KernelLibrary with_device(KernelLibrary library, int device) {
  library.select_device(device);
  return library;
}

size_t most_workspace_bytes(const KernelLibrary& library) {
  int64_t most = 0;
  for (int i = 0; i < library.num_kernels(); ++i)
    most = std::max(most, library.descriptor(i).workspace_bytes);
  return static_cast<size_t>(most);
}

int num_pages(int context) {
  return ceil_divide(context, kKvPageTokens);
}

int pool_pages(const EngineOptions& options) {
  const int64_t tokens = std::max<int64_t>(options.context, options.pool_tokens);
  return static_cast<int>((tokens + kKvPageTokens - 1) / kKvPageTokens);
}

int checked_context(const KernelLibrary& library, const EngineOptions& options) {
  const int context = options.context;
  const ModelFacts& facts = library.descriptor().facts;
  if (context < 1 || context > facts.max_context) {
    throw Error(ExitCode::kOutOfMemory, fmt::format("context: expected 1 to {} tokens for {}, got {}",
                                                    facts.max_context, library.descriptor().model, context));
  }
  const int64_t needed = library.descriptor().weight_bytes + KvPool::bytes(facts, pool_pages(options));
  if (needed > library.device().free_bytes && library.device().free_bytes > 0) {
    throw Error(
        ExitCode::kOutOfMemory,
        fmt::format("device memory: expected {:.1f} GB for {} with a context of {}, got {:.1f} GB free",
                    needed * 1e-9, library.descriptor().model, context, library.device().free_bytes * 1e-9));
  }
  return context;
}

}  // namespace

Engine::Engine(KernelLibrary library, const EngineOptions& options)
    : library_(with_device(std::move(library), options.device)),
      timeout_ns_(options.timeout_ms * kNsPerMs),
      context_(checked_context(library_, options)),
      pool_(library_, pool_pages(options)),
      tree_(pool_pages(options)),
      main_(tree_.open()),
      rotary_(library_.functions(), static_cast<size_t>(num_pages(context_)) * kKvPageTokens *
                                        library_.descriptor().facts.head_dim * sizeof(float)),
      workspace_(library_.functions(), most_workspace_bytes(library_)),
      records_(library_.functions(), static_cast<size_t>(options.context) * sizeof(uint64_t)),
      signals_(library_.functions(), sizeof(Signals)),
      planners_(2 * static_cast<size_t>(library_.num_kernels())) {
  const std::vector<float> table =
      make_rotary_table(library_.descriptor().facts, num_pages(context_) * kKvPageTokens);
  library_.check(library_.functions().upload(rotary_.as<void>(), table.data(), table.size() * sizeof(float)),
                 "upload the rotary table");
}

void Engine::load(const TensorSource& source, Progress* progress, const QuantizationConfig* quantization) {
  weights_ = load_weights(library_, source, quantization, progress);
  for (const std::string& remark : weights_->remarks) fmt::print(stderr, "{}\n", remark);
}
void Engine::load_random(uint64_t seed) {
  weights_ = make_random_weights(library_, seed);
}

void Engine::set_position(int position) {
  if (position <= this->position()) {
    tree_.truncate(main_, position);
  } else {
    const int num_tokens = position - this->position();
    reserve(num_tokens);
    tree_.append(main_, num_tokens);
  }
}

void Engine::reset_tree() {
  clear_tree();
  main_ = tree_.open();
}

void Engine::clear_tree() {
  tree_ = KvTree(tree_.num_pages());
}

/// Pages for further tokens of the main branch.
void Engine::reserve(int num_tokens) {
  if (position() + num_tokens > context_) {
    throw Error(ExitCode::kOutOfMemory, fmt::format("context: expected at most {} tokens (see -c), got {}",
                                                    context_, position() + num_tokens));
  }
  tree_.reserve(num_tokens);
}

void Engine::randomise_cache(uint64_t seed) {
  constexpr float kBound = 1.0f;
  library_.check(library_.functions().fill_random(pool_.address(), pool_.num_bytes() / 2, kBound, seed),
                 "fill the KV cache");
}

int64_t Engine::needed_bytes(int position) const {
  const Descriptor& descriptor = library_.descriptor();
  return descriptor.needed_weight_bytes + position * kv_shape(descriptor.facts).token_bytes();
}

double Engine::measure_bandwidth(int repeats) const {
  double rate = 0;
  library_.check(library_.functions().measure_bandwidth(weights_->pages.as<void>(), weights_->pages.bytes(),
                                                        repeats, &rate),
                 "measure the bandwidth");
  return rate;
}

void Engine::check_request(const DecodeRequest& request) const {
  if (!weights_) throw Error(ExitCode::kInternal, "decode: expected weights to be loaded");
  if (request.tokens.empty()) throw Error(ExitCode::kUsage, "prompt: expected at least one token, got none");
  if (request.max_tokens < 1) {
    throw Error(ExitCode::kUsage, fmt::format("-n: expected at least 1 token, got {}", request.max_tokens));
  }
  check_tokens(request.tokens);
  check_tokens(request.past);
}

bool Engine::draws(const DecodeRequest& request) {
  return request.sampling.has_value() || request.want_logprobs;
}

std::vector<int32_t> Engine::past_of(const DecodeRequest& request) {
  std::vector<int32_t> past(request.past.begin(), request.past.end());
  past.insert(past.end(), request.tokens.begin(), request.tokens.end());
  return past;
}

void Engine::check_tokens(std::span<const int32_t> tokens) const {
  const int vocabulary = library_.descriptor().facts.vocabulary;
  for (const int32_t token : tokens) {
    if (token < 0 || token >= vocabulary) {
      throw Error(ExitCode::kMismatch,
                  fmt::format("prompt: expected tokens from 0 to {}, got {}", vocabulary - 1, token));
    }
  }
}

DecodeResult Engine::decode(const DecodeRequest& request, const std::function<bool(int32_t)>& on_token) {
  check_request(request);
  // For all launches, before the first one changes anything.
  reserve(static_cast<int>(request.tokens.size()) + request.max_tokens - 1);
  DecodeResult result;
  const size_t fed = feed_prompt(request, result);
  DecodeRequest rest = request;
  rest.tokens = request.tokens.subspan(fed);
  std::vector<int32_t> past(request.past.begin(), request.past.end());
  past.insert(past.end(), request.tokens.begin(), request.tokens.begin() + static_cast<ptrdiff_t>(fed));
  rest.past = past;
  if (!result.tokens.empty()) {
    result.hit_stop_token = std::find(request.stop_tokens.begin(), request.stop_tokens.end(),
                                      result.tokens[0]) != request.stop_tokens.end();
    const bool wanted = !on_token || on_token(result.tokens[0]);
    if (!wanted || result.hit_stop_token || request.max_tokens == 1) return result;
    rest.tokens = result.tokens;
    --rest.max_tokens;
  }
  const std::vector<int32_t> first(rest.tokens.begin(), rest.tokens.end());
  rest.tokens = first;
  if (library_.descriptor().rows == 1) {
    decode_row(rest, on_token, result);
  } else {
    decode_branch(rest, on_token, result);
  }
  return result;
}

/// One launch of the kernel of one row, whose tokens are added to the result.
void Engine::decode_row(const DecodeRequest& request, const std::function<bool(int32_t)>& on_token,
                        DecodeResult& result) {
  reserve(static_cast<int>(request.tokens.size()) + request.max_tokens -
          1);  // accepting a chunk gave it back
  LaunchParams params = prepare(request);
  if (draws(request)) {
    const RowSampling row = request.sampling.value_or(RowSampling{});
    const std::vector<int32_t> past = past_of(request);
    sampling_.begin(library_,
                    {.rows = {&row, 1}, .past = {&past, 1}, .want_logprobs = request.want_logprobs});
    params.sampling = sampling_.prepare(library_, 0, request.max_tokens);
  }
  library_.check(library_.functions().launch(0, &params, num_ctas(0)), "launch");
  const size_t before = result.tokens.size();
  follow(request, on_token, result);
  const size_t generated = result.tokens.size() - before;
  if (request.want_logits) {
    const size_t row = static_cast<size_t>(library_.descriptor().facts.vocabulary);
    result.logits.resize(result.tokens.size() * row);
    library_.check(library_.functions().download(result.logits.data() + before * row, logits_.as<void>(),
                                                 generated * row * sizeof(float)),
                   "download logits");
  }
  if (request.timeline_step >= 0) {
    result.timeline.resize(timeline_.bytes() / sizeof(PhaseRecord));
    library_.check(
        library_.functions().download(result.timeline.data(), timeline_.as<void>(), timeline_.bytes()),
        "download the timeline");
  }
  tree_.append(main_, static_cast<int>(request.tokens.size() + generated) - 1);
}

/// The workspace as a launch wants it.
void Engine::clear_workspace(const Descriptor& descriptor) {
  const Library& device = library_.functions();
  library_.check(device.fill(workspace_.as<void>(), descriptor.workspace_byte,
                             static_cast<size_t>(descriptor.workspace_bytes)),
                 "clear the workspace");
  library_.check(device.fill(workspace_.as<std::byte>() + descriptor.counter_offset, 0,
                             static_cast<size_t>(descriptor.counter_bytes)),
                 "clear the counters");
  *signals_.as<Signals>() = {};
}

/// What every launch is given.
LaunchParams Engine::common_params() const {
  LaunchParams params{};
  params.weights = weights_->pages.as<void>();
  params.embedding = weights_->embedding.as<uint16_t>();
  params.norms = weights_->norms.as<uint16_t>();
  params.qkv_biases = weights_->qkv_biases.as<float>();
  params.head_norms = weights_->head_norms.as<uint16_t>();
  params.positions = weights_->positions.as<int32_t>();
  params.rotary = rotary_.as<float>();
  params.kv_pool = pool_.address();
  params.workspace = workspace_.as<void>();
  params.records = records_.as<uint64_t>();
  params.stop_request = &signals_.as<Signals>()->stop_request;
  params.stall = &signals_.as<Signals>()->stall;
  params.timeout_ns = timeout_ns_;
  params.timeline_step = -1;
  return params;
}

/// Everything that a launch needs, in the order of the device's stream.
LaunchParams Engine::prepare(const DecodeRequest& request) {
  const Library& device = library_.functions();
  const Descriptor& descriptor = library_.descriptor();
  const int num_tokens = static_cast<int>(request.tokens.size());
  const std::span<const int32_t> pages = tree_.own_pages(main_);
  std::vector<int32_t> input(request.tokens.begin(), request.tokens.end());
  input.insert(input.end(), request.stop_tokens.begin(), request.stop_tokens.end());
  input.insert(input.end(), pages.begin(), pages.end());
  const size_t input_bytes = input.size() * sizeof(int32_t);
  if (input_.bytes() < input_bytes) input_ = DeviceMemory(device, input_bytes);
  library_.check(device.upload(input_.as<void>(), input.data(), input_bytes), "upload the prompt");
  if (request.want_logits) {
    const size_t bytes =
        static_cast<size_t>(request.max_tokens) * descriptor.facts.vocabulary * sizeof(float);
    if (logits_.bytes() < bytes) logits_ = DeviceMemory(device, bytes);
  }
  if (request.timeline_step >= 0) {
    if (!device.timeline) {
      throw file_error(ExitCode::kMismatch, library_.path(),
                       "expected a kernel compiled with SOLITON_TIMELINE, got one without");
    }
    const int warps = timeline_warps(descriptor.threads_per_cta);
    const size_t records =
        static_cast<size_t>(timeline_phases(descriptor.facts.num_layers)) * num_ctas(0) * warps;
    if (timeline_.bytes() == 0) timeline_ = DeviceMemory(device, records * sizeof(PhaseRecord));
    library_.check(device.fill(timeline_.as<void>(), 0, timeline_.bytes()), "clear the timeline");
  }
  move_tokens();
  clear_workspace(descriptor);
  std::fill_n(records_.as<uint64_t>(), request.max_tokens, kNoRecord);

  LaunchParams params = common_params();
  params.logits = request.want_logits ? logits_.as<float>() : nullptr;
  params.input_tokens = input_.as<int32_t>();
  params.stop_tokens = input_.as<int32_t>() + request.tokens.size();
  params.page_table = params.stop_tokens + request.stop_tokens.size();
  params.num_input_tokens = static_cast<int32_t>(request.tokens.size());
  params.num_stop_tokens = static_cast<int32_t>(request.stop_tokens.size());
  params.first_position = position();
  params.num_steps = num_tokens + request.max_tokens - 1;
  params.timeline = timeline_.as<PhaseRecord>();
  params.timeline_step = request.timeline_step;
  params.delay_seed = request.delay_seed;
  return params;
}

/// Takes tokens as the kernel writes them, until the launch has ended. False if on_token wants no more.
bool Engine::follow(const DecodeRequest& request, const std::function<bool(int32_t)>& on_token,
                    DecodeResult& result) {
  bool wanted = true;
  const size_t before = result.tokens.size();
  for (bool running = true; running;) {
    const LaunchState state = library_.functions().poll();
    if (state == LaunchState::kFailed) throw_failure();
    running = state == LaunchState::kRunning;
    bool idle = true;
    while (result.tokens.size() - before < static_cast<size_t>(request.max_tokens)) {
      const uint64_t record =
          std::atomic_ref<uint64_t>(records_.as<uint64_t>()[result.tokens.size() - before])
              .load(std::memory_order_acquire);
      if (record == kNoRecord) break;
      idle = false;
      if (!wanted) break;
      const int32_t token = record_token(record);
      result.tokens.push_back(token);
      result.times_ns.push_back(record_time_ns(record));
      if (request.want_logprobs)
        result.logprobs.push_back(sampling_.logprob(static_cast<int>(result.tokens.size() - before) - 1));
      result.hit_stop_token = std::find(request.stop_tokens.begin(), request.stop_tokens.end(), token) !=
                              request.stop_tokens.end();
      if (on_token && !on_token(token)) {
        wanted = false;
        std::atomic_ref<uint32_t>(signals_.as<Signals>()->stop_request).store(1, std::memory_order_release);
      }
    }
    if (running && idle) std::this_thread::sleep_for(kIdlePause);
  }
  library_.check(library_.functions().wait(), "decode");
  return wanted;
}

void Engine::throw_failure() const {
  library_.functions().wait();  // it failed: this only fetches the reason
  const StallReport& stall = signals_.as<Signals>()->stall;
  if (stall.valid == 0)
    throw file_error(ExitCode::kDevice, library_.path(), "{}", library_.functions().last_error());
  throw file_error(ExitCode::kDevice, library_.path(),
                   "kernel stalled: CTA {}, thread {} waited for {} (step {}, phase {}, index {}): expected "
                   "{:#x}, seen {:#x}",
                   stall.cta, stall.thread, wait_name(stall.site.kind), stall.site.step, stall.site.phase,
                   stall.site.index, stall.site.expected, stall.site.seen);
}

}  // namespace soliton
