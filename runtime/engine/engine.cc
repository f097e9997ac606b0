#include "runtime/engine/engine.h"

#include <algorithm>
#include <future>
#include <limits>

#include "layout/e4m3.h"
#include "layout/page.h"
#include "layout/random.h"
#include "models/error.h"
#include "models/model_tables.h"
#include "runtime/engine/launch_signals.h"
#include "runtime/engine/rotary.h"
#include "runtime/program/progress.h"

namespace soliton {
namespace {

constexpr uint64_t kNsPerMs = 1'000'000;

KernelLibrary with_devices(KernelLibrary library, const EngineOptions& options) {
  if (options.cards.empty()) {
    library.select_device(options.device);
  } else {
    library.select_cards(options.cards);
  }
  return library;
}

size_t most_workspace_bytes(const KernelLibrary& library) {
  int64_t most = 0;
  for (int i = 0; i < library.num_kernels(); ++i)
    most = std::max(most, library.descriptor(i).workspace_bytes);
  return static_cast<size_t>(most);
}

/// Throws Error (kOutOfMemory) for more than can be numbered, be there memory or not.
PoolPages pool_pages(const KernelLibrary& library, const EngineOptions& options) {
  constexpr int64_t kMostTokens = int64_t{std::numeric_limits<int>::max()} * kKvPageTokens;
  const int64_t tokens = std::max<int64_t>(options.context, options.pool_tokens);
  if (tokens > kMostTokens) {
    throw Error(ExitCode::kOutOfMemory,
                fmt::format("KV pool: expected at most {} tokens, got {}", kMostTokens, tokens));
  }
  PoolPages pages = pages_of_sequence(library.model().facts, tokens, options.window_slack);
  if (pages.windows == 0) return pages;
  if (options.window_tokens > 0) {
    pages.windows = std::clamp(pages_of_tokens(options.window_tokens), pages.windows, pages.all);
  } else if (options.pool_tokens > 0) {
    pages.windows = pages.all;
  }
  return pages;
}

KvWindows windows_of(const KernelLibrary& library, const EngineOptions& options, const PoolPages& pages) {
  const ModelFacts& facts = library.model().facts;
  return {.window = longest_window(facts),
          .num_pages = static_cast<int>(pages.windows),
          .reach = window_reach(facts, options.window_slack)};
}

int checked_context(const KernelLibrary& library, const EngineOptions& options) {
  const int context = options.context;
  const ModelFacts& facts = library.model().facts;
  if (context < 1 || context > facts.max_context) {
    throw Error(ExitCode::kOutOfMemory, fmt::format("context: expected 1 to {} tokens for {}, got {}",
                                                    facts.max_context, library.model().name, context));
  }
  const int64_t needed = library.model().weight_bytes + model_tables(facts).bytes() +
                         KvPool::bytes(library, pool_pages(library, options)) +
                         context * rotary_token_bytes(facts);
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
    : library_(with_devices(std::move(library), options)),
      timeout_ns_(options.timeout_ms * kNsPerMs),
      context_(checked_context(library_, options)),
      pages_(pool_pages(library_, options)),
      pace_(library_.device().has_time_limit != 0, library_.num_kernels()),
      tree_(static_cast<int>(pages_.all), windows_of(library_, options, pages_)),
      main_(tree_.open()),
      records_(library_.functions(), static_cast<size_t>(options.context + 1) * sizeof(uint64_t)),
      signals_(library_.functions(), sizeof(Signals) * static_cast<size_t>(library_.num_cards())),
      planners_(kSliceRules * static_cast<size_t>(library_.num_kernels() * library_.num_cards())),
      plans_(static_cast<size_t>(library_.num_cards())) {
  const std::vector<float> table =
      make_rotary_table(library_.model().facts, round_up(context_, kKvPageTokens), context_);
  const Library& device = library_.functions();
  for (int i = 0; i < library_.num_cards(); ++i) {
    library_.enter_card(i);
    cards_.push_back({.index = i,
                      .pool = KvPool(library_, pages_),
                      .rotary = DeviceMemory(device, table.size() * sizeof(float)),
                      .workspace = DeviceMemory(device, most_workspace_bytes(library_))});
    library_.check(device.upload(cards_[i].rotary.as<void>(), table.data(), table.size() * sizeof(float)),
                   "upload the rotary table");
  }
  library_.enter_card(0);
}

/// Every card by a thread of its own, where there are several. An error of any is thrown once all have ended.
template <class Make>
void Engine::make_weights(const Make& make) {
  if (cards_.size() == 1) {
    cards_[0].weights = make(0);
    return;
  }
  std::vector<std::future<DeviceWeights>> makers;
  for (const EngineCard& card : cards_) {
    makers.push_back(std::async(std::launch::async, [&, index = card.index] {
      library_.enter_card(index);
      return make(index);
    }));
  }
  for (std::future<DeviceWeights>& maker : makers) maker.wait();
  for (size_t i = 0; i < cards_.size(); ++i) cards_[i].weights = makers[i].get();
}

void Engine::load(const ModelTensors& tensors, Progress* progress) {
  make_weights([&](int card) { return load_weights(library_, tensors, progress, card); });
  weights_name_ = tensors.source->path();
}
void Engine::load(const TensorSource& source, Progress* progress, const QuantizationConfig* quantization) {
  const ModelFacts& facts = library_.model().facts;
  load(find_tensors(source, quantization, facts, make_checkpoint(facts, Projections::kApart)), progress);
}
void Engine::load_random(uint64_t seed) {
  make_weights([&](int card) { return make_random_weights(library_, seed, card); });
  weights_name_ = "random weights";
}

void Engine::set_position(int position) {
  tree_.truncate(main_, usable_position(position));
  const int num_tokens = position - this->position();
  reserve(main_, num_tokens);
  tree_.append(main_, num_tokens);
}

void Engine::reset_tree() {
  clear_tree();
  main_ = tree_.open();
}

void Engine::clear_tree() {
  tree_ = KvTree(tree_.num_pages(), tree_.windows());
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
  const KvShape shape = library_.card_kv();
  if (shape.e4m3) return randomise_bytes(seed);
  on_every_card([&](EngineCard& card) {
    const RandomShare heads{shape.half_bytes(), card.index,
                            library_.num_cards()};  // keys and values of 2 bytes
    library_.check(
        library_.functions().fill_random(card.pool.address(), card.pool.num_bytes() / 2, kBound, seed, heads),
        "fill the KV cache");
  });
}

/// The same of a cache of bytes: what a page has of any layer is alike, as the host makes it.
void Engine::randomise_bytes(uint64_t seed) {
  constexpr int kExponent = 127 - 9;  // of values up to 1
  const KvShape shape = library_.card_kv().of_layers(1);
  const int64_t page_bytes = shape.page_offset(1, 0, 0);
  constexpr int64_t kMostBytes = 1 << 22;  // that are uploaded at once
  std::vector<unsigned char> pages(
      static_cast<size_t>(std::max<int64_t>(1, kMostBytes / page_bytes) * page_bytes));
  for (int64_t half = 0; half < std::ssize(pages); half += shape.half_bytes()) {
    unsigned char* const bytes = pages.data() + half;
    for (int i = 0; i < shape.half_bytes(); ++i) {
      const uint32_t code = random_bits(static_cast<uint64_t>(half + i), seed) & 0xff;
      bytes[i] = static_cast<unsigned char>((code & kE4m3Nan) == kE4m3Nan ? code - 1 : code);
    }
    for (int token = 0; token < kKvPageTokens; ++token)
      bytes[shape.exponent_offset(token)] = static_cast<unsigned char>(kExponent);
  }
  on_every_card([&](EngineCard& card) {
    auto* const pool = static_cast<unsigned char*>(card.pool.address());
    const auto num_bytes = static_cast<int64_t>(card.pool.num_bytes());
    for (int64_t at = 0; at < num_bytes; at += std::ssize(pages)) {
      const auto count = static_cast<size_t>(std::min<int64_t>(std::ssize(pages), num_bytes - at));
      library_.check(library_.functions().upload(pool + at, pages.data(), count), "fill the KV cache");
    }
  });
}

int64_t Engine::needed_bytes(int position) const {
  const ModelDescriptor& model = library_.model();
  return model.needed_weight_bytes + cached_bytes_read(model.facts, library_.card_kv(), position);
}

/// What has become of every card, that which is furthest behind first.
void Engine::throw_failure() const {
  const Library& device = library_.functions();
  const bool is_one = library_.num_cards() == 1;
  std::string reason;
  std::vector<std::pair<std::pair<uint32_t, uint32_t>, std::string>> stalls;  // by step and phase
  std::string others;
  for (int card = library_.num_cards(); card-- > 0;) {
    library_.enter_card(card);
    const std::string name = is_one ? "" : fmt::format("device {}: ", library_.card_devices()[card]);
    // Where it has failed this only fetches the reason; the others end when their waits have lasted too long.
    const bool failed = device.wait() != 0;
    if (failed || reason.empty()) reason = device.last_error();
    const StallReport& stall = signals_.as<Signals>()[card].stall;
    if (stall.valid != 0) {
      stalls.push_back(
          {{stall.site.step, stall.site.phase},
           fmt::format("{}CTA {}, thread {} waited for {} (step {}, phase {}, index {}): expected {:#x}, "
                       "seen {:#x}",
                       name, stall.cta, stall.thread, wait_name(stall.site.kind), stall.site.step,
                       stall.site.phase, stall.site.index, stall.site.expected, stall.site.seen)});
    } else {
      others += fmt::format("; {}{}", name, failed ? device.last_error() : "nothing is running there");
    }
  }
  if (stalls.empty()) {
    throw file_error(ExitCode::kDevice, library_.path(), "{}", is_one ? reason : others.substr(2));
  }
  std::sort(stalls.begin(), stalls.end());
  std::string text = stalls[0].second;
  for (size_t i = 1; i < stalls.size(); ++i) text += "; " + stalls[i].second;
  throw file_error(ExitCode::kDevice, library_.path(), "kernel stalled: {}{}", text, is_one ? "" : others);
}

}  // namespace soliton
