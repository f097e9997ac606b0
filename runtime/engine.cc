#include "runtime/engine.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>

#include "runtime/error.h"
#include "runtime/progress.h"

namespace soliton {
namespace {

constexpr int kFilledByte = 0xff;
constexpr uint64_t kNsPerMs = 1'000'000;
constexpr std::chrono::microseconds kIdlePause{20};

/// What host and kernel tell each other beside the tokens.
struct Signals {
  StallReport stall;
  uint32_t stop_request;
};

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

int checked_context(const KernelLibrary& library, int context) {
  const ModelFacts& facts = library.descriptor().facts;
  if (context < 1 || context > facts.max_context) {
    throw Error(ExitCode::kOutOfMemory, fmt::format("context: expected 1 to {} tokens for {}, got {}",
                                                    facts.max_context, library.descriptor().model, context));
  }
  const int64_t needed = library.descriptor().weight_bytes + KvCache::pool_bytes(facts, context);
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
      cache_(library_, checked_context(library_, options.context)),
      rotary_(library_.functions(),
              static_cast<size_t>(options.context) * library_.descriptor().facts.head_dim * sizeof(float)),
      workspace_(library_.functions(), most_workspace_bytes(library_)),
      records_(library_.functions(), static_cast<size_t>(options.context) * sizeof(uint64_t)),
      signals_(library_.functions(), sizeof(Signals)) {
  const std::vector<float> table = make_rotary_table(library_.descriptor().facts, options.context);
  library_.check(library_.functions().upload(rotary_.as<void>(), table.data(), table.size() * sizeof(float)),
                 "upload the rotary table");
}

void Engine::load(const TensorSource& source, Progress* progress) {
  weights_ = load_weights(library_, source, progress);
}
void Engine::load_random(uint64_t seed) {
  weights_ = make_random_weights(library_, seed);
}

void Engine::set_position(int position) {
  cache_.truncate(position);
  cache_.reserve(position);
  position_ = position;
}

void Engine::randomise_cache(uint64_t seed) {
  constexpr float kBound = 1.0f;
  library_.check(library_.functions().fill_random(cache_.pool(), cache_.pool_bytes() / 2, kBound, seed),
                 "fill the KV cache");
}

int64_t Engine::needed_bytes(int position) const {
  const ModelFacts& facts = library_.descriptor().facts;
  const int64_t kv = 4ll * position * facts.num_layers * facts.num_kv_heads * facts.head_dim;
  return library_.descriptor().needed_weight_bytes + kv;
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
  for (const int32_t token : request.tokens) {
    if (token < 0 || token >= library_.descriptor().facts.vocabulary) {
      throw Error(ExitCode::kMismatch, fmt::format("prompt: expected tokens from 0 to {}, got {}",
                                                   library_.descriptor().facts.vocabulary - 1, token));
    }
  }
}

/// The kernel that feeds the request's tokens in the fewest steps, and of those the one with the fewest rows.
int Engine::choose_kernel(const DecodeRequest& request) const {
  if (one_by_one_ || request.timeline_step >= 0) return 0;
  const auto steps = [&](int kernel) {
    const size_t rows = static_cast<size_t>(library_.descriptor(kernel).rows);
    return (request.tokens.size() + rows - 1) / rows;
  };
  int best = 0;
  for (int kernel = 1; kernel < library_.num_kernels(); ++kernel) {
    if (steps(kernel) < steps(best)) best = kernel;
  }
  return best;
}

DecodeResult Engine::decode(const DecodeRequest& request, const std::function<bool(int32_t)>& on_token) {
  check_request(request);
  // For all launches, before the first one changes anything. Each then reserves what it needs itself.
  cache_.reserve(position_ + static_cast<int>(request.tokens.size()) + request.max_tokens - 1);
  DecodeResult result;
  const int kernel = choose_kernel(request);
  if (kernel == 0) {
    launch(0, request, on_token, result);
    return result;
  }
  DecodeRequest prompt = request;
  prompt.max_tokens = 1;
  const bool wanted = launch(kernel, prompt, on_token, result);
  if (!wanted || result.hit_stop_token || request.max_tokens == 1) return result;
  const int32_t first = result.tokens.front();
  DecodeRequest rest = request;
  rest.tokens = {&first, 1};
  rest.max_tokens = request.max_tokens - 1;
  launch(0, rest, on_token, result);
  return result;
}

/// One launch, whose tokens are added to the result. False if on_token wants no more.
bool Engine::launch(int kernel, const DecodeRequest& request, const std::function<bool(int32_t)>& on_token,
                    DecodeResult& result) {
  LaunchParams params{};
  prepare(kernel, request, params);
  library_.check(library_.functions().launch(kernel, &params, num_ctas(kernel)), "launch");
  const size_t before = result.tokens.size();
  const bool wanted = follow(request, on_token, result);
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
  position_ += static_cast<int>(request.tokens.size() + generated) - 1;
  cache_.truncate(position_);
  return wanted;
}

/// Everything that a launch needs, in the order of the device's stream.
void Engine::prepare(int kernel, const DecodeRequest& request, LaunchParams& params) {
  const Library& device = library_.functions();
  const Descriptor& descriptor = library_.descriptor(kernel);
  const int num_tokens = static_cast<int>(request.tokens.size());
  const int num_steps = (num_tokens + descriptor.rows - 1) / descriptor.rows + request.max_tokens - 1;
  cache_.reserve(position_ + num_tokens + request.max_tokens - 1);
  const size_t input_words = request.tokens.size() + request.stop_tokens.size();
  if (input_.bytes() < input_words * sizeof(int32_t))
    input_ = DeviceMemory(device, input_words * sizeof(int32_t));
  std::vector<int32_t> input(request.tokens.begin(), request.tokens.end());
  input.insert(input.end(), request.stop_tokens.begin(), request.stop_tokens.end());
  library_.check(device.upload(input_.as<void>(), input.data(), input_words * sizeof(int32_t)),
                 "upload the prompt");
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
        static_cast<size_t>(timeline_phases(descriptor.facts.num_layers)) * num_ctas(kernel) * warps;
    if (timeline_.bytes() == 0) timeline_ = DeviceMemory(device, records * sizeof(PhaseRecord));
    library_.check(device.fill(timeline_.as<void>(), 0, timeline_.bytes()), "clear the timeline");
  }
  library_.check(
      device.fill(workspace_.as<void>(), kFilledByte, static_cast<size_t>(descriptor.workspace_bytes)),
      "clear the workspace");
  library_.check(device.fill(workspace_.as<std::byte>() + descriptor.counter_offset, 0,
                             static_cast<size_t>(descriptor.counter_bytes)),
                 "clear the counters");
  *signals_.as<Signals>() = {};
  std::fill_n(records_.as<uint64_t>(), request.max_tokens, kNoRecord);

  params.weights = weights_->pages.as<void>();
  params.embedding = weights_->embedding.as<uint16_t>();
  params.norms = weights_->norms.as<uint16_t>();
  params.rotary = rotary_.as<float>();
  params.kv_pool = cache_.pool();
  params.page_table = cache_.device_table();
  params.workspace = workspace_.as<void>();
  params.logits = request.want_logits ? logits_.as<float>() : nullptr;
  params.forced_tokens = input_.as<int32_t>();
  params.stop_tokens = input_.as<int32_t>() + request.tokens.size();
  params.num_forced = static_cast<int32_t>(request.tokens.size());
  params.num_stop_tokens = static_cast<int32_t>(request.stop_tokens.size());
  params.first_position = position_;
  params.num_steps = num_steps;
  params.records = records_.as<uint64_t>();
  params.stop_request = &signals_.as<Signals>()->stop_request;
  params.stall = &signals_.as<Signals>()->stall;
  params.timeout_ns = timeout_ns_;
  params.timeline = timeline_.as<PhaseRecord>();
  params.timeline_step = request.timeline_step;
  params.delay_seed = request.delay_seed;
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
