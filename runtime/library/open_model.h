// A model that a program has opened: its text side, which any thread may read, and an engine, which one thread at a
// time uses while it has the Turn.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "runtime/chat/model.h"
#include "runtime/library/forest.h"

namespace soliton {

struct OpenModelOptions {
  std::string model;  // as find_model() takes it
  int device = 0;
  int context = 0;           // 0: see choose_context()
  int64_t cache_tokens = 0;  // 0: see choose_pool_tokens()
  std::string kernel = {};
  std::string chat_template = {};
  std::function<void(const std::string&)> say;  // see Options
};

class OpenModel {
 public:
  /// Throws what opening a chat throws, with the names of these options in place of flags.
  explicit OpenModel(const OpenModelOptions& options);

  const TextSide& text() const { return parts_->text; }
  int context() const { return parts_->context; }
  int64_t cache_tokens() const { return parts_->forest.cache_tokens(); }
  const ModelDescriptor& descriptor() const { return parts_->engine->library().model(); }
  int max_rows() const { return parts_->engine->max_rows(); }

  /// The right to use the engine, as long as it lives.
  class Turn {
   public:
    /// Waits for it. Throws Error (kUsage) if this thread has it already, in a callback.
    explicit Turn(OpenModel& model);
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;
    ~Turn();

    Forest& forest() const { return model_.parts_->forest; }

   private:
    OpenModel& model_;
    std::lock_guard<std::mutex> lock_;
  };

  /// Gives texts back; in a callback, at the end of the turn that it belongs to.
  void release(std::vector<ForestText> texts);

 private:
  struct Parts {
    explicit Parts(const Options& options, int64_t cache_tokens);

    TextSide text;
    int context;
    std::unique_ptr<Engine> engine;
    Forest forest;
  };

  bool has_turn() const { return owner_.load() == std::this_thread::get_id(); }
  std::mutex& mutex_unless_owned();

  std::unique_ptr<Parts> parts_;
  std::mutex mutex_;
  std::atomic<std::thread::id> owner_ = {};
  std::vector<ForestText> released_;  // guarded by the turn
};

}  // namespace soliton
