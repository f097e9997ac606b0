// What the built-in operators, filters, tests and functions share: the budget of one rendering, the clock,
// and the arguments of a call.
#pragma once

#include <ctime>
#include <functional>
#include <initializer_list>
#include <memory>
#include <string_view>
#include <vector>

#include "runtime/text/chat_template/value.h"

namespace soliton::jinja {

class Machine {
 public:
  explicit Machine(std::function<std::tm()> clock) : clock_(std::move(clock)) {}
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;
  ~Machine();

  Budget& budget() { return budget_; }
  std::tm now() const { return clock_(); }
  void spend_steps(size_t count = 1) { budget_.spend_steps(count); }

  /// Values that the budget pays for.
  Value text(Text text);
  Value list(std::vector<Value> items);
  /// iterate(), paid for.
  std::vector<Value> items(const Value& value);
  /// An empty namespace. The machine empties it in the end, as it may contain itself.
  std::shared_ptr<Namespace> make_namespace();

  /// Counts an evaluation inside another for as long as it lives; throws if there are too many.
  class Level {
   public:
    explicit Level(Machine& machine);
    ~Level() { --machine_.depth_; }
    Level(const Level&) = delete;
    Level& operator=(const Level&) = delete;

   private:
    Machine& machine_;
  };

 private:
  Budget budget_;
  std::function<std::tm()> clock_;
  int depth_ = 0;
  std::vector<std::shared_ptr<Namespace>> namespaces_;
};

/// The arguments of a call by the function's parameters. Throws if there are more, unknown or too few.
class Parameters {
 public:
  /// The first `required` of `names` have to be given.
  Parameters(std::string_view function, const Arguments& arguments,
             std::initializer_list<std::string_view> names, size_t required = 0);

  /// Null if the argument is not given.
  const Value* operator[](size_t index) const { return values_[index]; }
  /// The argument, which is text.
  const Text& text(size_t index) const;
  int64_t integer_or(size_t index, int64_t fallback) const;
  bool truth_or(size_t index, bool fallback) const;
  /// Null if it is not given or none.
  const Value* some(size_t index) const;

 private:
  std::string_view function_;
  std::vector<std::string_view> names_;
  std::vector<const Value*> values_;
};

}  // namespace soliton::jinja
