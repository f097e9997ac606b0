// A model that a program has opened: its text side, which any thread may read, and an engine, which needs the Turn. There is
// one turn for all models of a process, as those of one kernel library have one stream and one launch at a time.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "runtime/answer/forest/forest.h"
#include "runtime/answer/model.h"
#include "runtime/device/cuda_driver.h"

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

/// Held by one thread of the process at a time.
class DeviceTurn {
 public:
  /// Waits for it. Throws Error (kUsage) if this thread has it already, in a callback.
  DeviceTurn();
  DeviceTurn(const DeviceTurn&) = delete;
  DeviceTurn& operator=(const DeviceTurn&) = delete;
  ~DeviceTurn();

  static bool is_of_this_thread();

 private:
  std::unique_lock<std::mutex> lock_;
};

class OpenModel {
 public:
  /// Throws what opening a chat throws, with the names of these options in place of flags.
  explicit OpenModel(const OpenModelOptions& options);
  ~OpenModel();

  const TextSide& text() const { return parts_->text; }
  int context() const { return parts_->context; }
  int64_t cache_tokens() const { return parts_->forest.cache_tokens(); }
  const ModelDescriptor& descriptor() const { return parts_->engine->library().model(); }
  int max_rows() const { return parts_->engine->max_rows(); }
  /// For grammars of answers. Made when it is asked for first; any thread.
  std::shared_ptr<const constrain::Vocabulary> vocabulary() const;

  /// The right to use the engine, as long as it lives. Its device is this thread's current one then.
  class Turn {
   public:
    /// Throws what DeviceTurn throws.
    explicit Turn(OpenModel& model);
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;
    ~Turn();

    Forest& forest() const { return model_.parts_->forest; }

   private:
    DeviceTurn turn_;
    OpenModel& model_;
    PrimaryContext::Current current_;
  };

  /// Gives texts back; in a callback of this model, at the end of the turn that it belongs to.
  void release(std::vector<ForestText> texts);

 private:
  struct Parts {
    explicit Parts(const Options& options, int64_t cache_tokens);

    TextSide text;
    int context;
    std::unique_ptr<Engine> engine;
    Forest forest;
  };

  const PrimaryContext* device() const { return device_ ? &*device_ : nullptr; }
  void release_now(std::vector<ForestText>& texts);

  std::optional<PrimaryContext> device_;  // nothing: the emulation
  mutable std::once_flag needs_vocabulary_;
  mutable std::shared_ptr<const constrain::Vocabulary> vocabulary_;
  std::unique_ptr<Parts> parts_;
  bool in_turn_ = false;                   // guarded by the turn, as is
  std::vector<ForestText> released_ = {};  // what is given back at its end
};

}  // namespace soliton
