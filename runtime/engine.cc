#include "runtime/engine.h"

#include <algorithm>

#include "layout/page.h"
#include "models/error.h"
#include "models/model_tables.h"
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
  const ModelFacts& facts = library.model().facts;
  if (context < 1 || context > facts.max_context) {
    throw Error(ExitCode::kOutOfMemory, fmt::format("context: expected 1 to {} tokens for {}, got {}",
                                                    facts.max_context, library.model().name, context));
  }
  const int64_t needed = library.model().weight_bytes + model_tables(facts).bytes() +
                         KvPool::bytes(facts, pool_pages(options)) + context * rotary_token_bytes(facts);
  if (needed > library.device().free_bytes && library.device().free_bytes > 0) {
    throw Error(
        ExitCode::kOutOfMemory,
        fmt::format("device memory: expected {:.2f} GB for {} with a context of {}, got {:.2f} GB free",
                    needed * 1e-9, library.model().name, context, library.device().free_bytes * 1e-9));
  }
  return context;
}

}  // namespace

Engine::Engine(KernelLibrary library, const EngineOptions& options)
    : device_(options.device),
      library_(with_device(std::move(library), options.device)),
      timeout_ns_(options.timeout_ms * kNsPerMs),
      context_(checked_context(library_, options)),
      pace_(library_.device().has_time_limit != 0, library_.num_kernels()),
      pool_(library_, pool_pages(options)),
      tree_(pool_pages(options)),
      main_(tree_.open()),
      rotary_(library_.functions(), static_cast<size_t>(num_pages(context_) * kKvPageTokens *
                                                        rotary_token_bytes(library_.model().facts))),
      workspace_(library_.functions(), most_workspace_bytes(library_)),
      records_(library_.functions(), static_cast<size_t>(options.context + 1) * sizeof(uint64_t)),
      signals_(library_.functions(), sizeof(Signals)),
      planners_(2 * static_cast<size_t>(library_.num_kernels())) {
  const std::vector<float> table =
      make_rotary_table(library_.model().facts, num_pages(context_) * kKvPageTokens);
  library_.check(library_.functions().upload(rotary_.as<void>(), table.data(), table.size() * sizeof(float)),
                 "upload the rotary table");
}

void Engine::load(const ModelTensors& tensors, Progress* progress) {
  weights_ = load_weights(library_, tensors, progress);
  weights_name_ = tensors.source->path();
}
void Engine::load(const TensorSource& source, Progress* progress, const QuantizationConfig* quantization) {
  load(find_tensors(source, quantization, library_.model().facts), progress);
}
void Engine::load_random(uint64_t seed) {
  weights_ = make_random_weights(library_, seed);
  weights_name_ = "random weights";
}

void Engine::set_position(int position) {
  if (position <= this->position()) {
    tree_.truncate(main_, position);
  } else {
    const int num_tokens = position - this->position();
    reserve(main_, num_tokens);
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

/// Makes sure that a branch has pages and angles of the rotary embedding for further tokens.
void Engine::reserve(Branch branch, int num_tokens) {
  const int total = tree_.num_tokens(branch) + num_tokens;
  if (total > context_) {
    throw Error(ExitCode::kOutOfMemory,
                fmt::format("context: expected at most {} tokens (see -c), got {}", context_, total));
  }
  tree_.reserve(branch, num_tokens);
}

void Engine::randomise_cache(uint64_t seed) {
  constexpr float kBound = 1.0f;
  library_.check(library_.functions().fill_random(pool_.address(), pool_.num_bytes() / 2, kBound, seed),
                 "fill the KV cache");
}

int64_t Engine::needed_bytes(int position) const {
  const ModelDescriptor& model = library_.model();
  return model.needed_weight_bytes + position * kv_shape(model.facts).token_bytes();
}

}  // namespace soliton
