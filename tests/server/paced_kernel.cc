// A kernel library that computes nothing: the tokens of a step come a fixed time after those before, and no processor is
// busy meanwhile, as if a card did it. So a test sees what the server's own threads add, on any number of processors. All but
// the launches are those of the emulated kernel whose facts it has.
#include <dlfcn.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <thread>

#include "layout/library.h"
#include "layout/sampling.h"

namespace {

using namespace soliton;
using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kStep{20};
constexpr int32_t kToken = 7;  // wherever it may be chosen: one that has a text

const Library& emulated() {
  static const Library* const library = [] {
    void* const handle = ::dlopen(SOLITON_TEST_KERNELS "/micro-2-all.so", RTLD_NOW | RTLD_LOCAL);
    void* const symbol = handle == nullptr ? nullptr : ::dlsym(handle, kLibrarySymbol);
    if (symbol == nullptr) std::abort();
    return reinterpret_cast<LibraryFunction>(symbol)();
  }();
  return *library;
}

/// The launch under way: whoever asks for its state brings it up to the clock.
class PacedLaunch {
 public:
  void begin(int kernel, const LaunchParams& params) {
    params_ = params;
    rows_ = emulated().descriptors[kernel].rows;
    num_fed_ = rows_ == 1 ? params.num_input_tokens - 1 : 0;  // steps that choose nothing
    step_ = 0;
    begun_ = Clock::now();
    if (rows_ > 1) record(params.num_steps * rows_, 0);
  }

  LaunchState advance() {
    while (step_ < params_.num_steps && Clock::now() >= begun_ + (step_ + 1) * kStep) {
      const bool ends = !params_.skips_choice && step_ >= num_fed_ && choose(step_ - num_fed_);
      step_ = ends || is_told_to_stop() ? params_.num_steps : step_ + 1;
    }
    return step_ < params_.num_steps ? LaunchState::kRunning : LaunchState::kDone;
  }

 private:
  /// Returns whether one of the rows has a stop token.
  bool choose(int step) const {
    bool stops = false;
    const int32_t* const last = params_.stop_tokens + params_.num_stop_tokens;
    for (int row = 0; row < rows_; ++row) {
      const int32_t token = token_of(row);
      if (params_.sampling.logprobs != nullptr) params_.sampling.logprobs[step * rows_ + row] = -1;
      record(step * rows_ + row, token);
      stops = stops || std::find(params_.stop_tokens, last, token) != last;
    }
    return stops;
  }

  /// Else the next one that may be.
  int32_t token_of(int row) const {
    const SamplingView& view = params_.sampling;
    if (view.rows == nullptr || view.allowed == nullptr) return kToken;
    const uint16_t* const words = view.allowed + row * (sampling_line(view.vocabulary) / kTileRows);
    for (int32_t i = 0; i < view.vocabulary; ++i) {
      const int32_t token = (kToken + i) % view.vocabulary;
      if ((words[token / kTileRows] >> token % kTileRows & 1) != 0) return token;
    }
    return kToken;
  }

  void record(int output, int32_t token) const {
    const auto ns = static_cast<uint32_t>(Clock::now().time_since_epoch() / std::chrono::nanoseconds(1));
    std::atomic_ref(params_.records[output])
        .store(static_cast<uint64_t>(ns) << 32 | static_cast<uint32_t>(token), std::memory_order_release);
  }

  bool is_told_to_stop() const {
    return std::atomic_ref(*const_cast<uint32_t*>(params_.stop_request)).load(std::memory_order_acquire) != 0;
  }

  LaunchParams params_{};
  int rows_ = 1;
  int num_fed_ = 0;
  int step_ = 0;
  Clock::time_point begun_;
};

PacedLaunch launch;

}  // namespace

extern "C" const soliton::Library* soliton_library() {
  static Library library;
  library = emulated();
  library.launch = [](int kernel, const LaunchParams* params, int) {
    launch.begin(kernel, *params);
    return 0;
  };
  library.poll = [] { return launch.advance(); };
  library.wait = [] {
    while (launch.advance() == LaunchState::kRunning)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return 0;
  };
  return &library;
}
