// Where the evaluator keeps variables, and what it does when it leaves a block, by an error too.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>

#include "runtime/text/chat_template/value.h"

namespace soliton::jinja {

struct Scope {
  std::shared_ptr<Scope> parent;
  std::map<std::string, Value> variables;
};

/// Restores a variable when the block around it ends.
template <class T>
class Restored {
 public:
  Restored(T& variable, T value) : variable_(variable), saved_(std::exchange(variable, std::move(value))) {}
  ~Restored() { variable_ = std::move(saved_); }
  Restored(const Restored&) = delete;
  Restored& operator=(const Restored&) = delete;

 private:
  T& variable_;
  T saved_;
};

/// Ends a loop: what it knows of others no longer matters, and could be itself or the scope that it is in.
class LoopEnd {
 public:
  explicit LoopEnd(Loop& loop) : loop_(loop) {}
  ~LoopEnd() {
    loop_.last_changed.reset();
    if (!loop_.recurse) return;
    loop_.recurse = [](const Value&) -> Value {
      throw unsupported("expected a loop to call that has not ended");
    };
  }
  LoopEnd(const LoopEnd&) = delete;
  LoopEnd& operator=(const LoopEnd&) = delete;

 private:
  Loop& loop_;
};

}  // namespace soliton::jinja
