// The values of a template, with Python's meaning: what a variable may hold, and how values print, compare
// and iterate. As in the sandbox that transformers uses, only namespaces can be changed once made.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "runtime/text/chat_template/fault.h"
#include "runtime/text/chat_template/text.h"

namespace soliton::jinja {

class Machine;
class Value;
struct Sequence;
class Dict;
struct Namespace;
struct Callable;
struct Loop;

/// A name or attribute without a value: prints as nothing, is false and empty; other uses fail with
/// `message`.
struct Undefined {
  std::shared_ptr<const std::string> message;
};
struct None {};

class Value {
 public:
  using Storage =
      std::variant<None, Undefined, bool, int64_t, double, std::shared_ptr<const Text>,
                   std::shared_ptr<const Sequence>, std::shared_ptr<const Dict>, std::shared_ptr<Namespace>,
                   std::shared_ptr<const Callable>, std::shared_ptr<Loop>>;

  Value() = default;
  Value(Text text) : storage_(std::make_shared<const Text>(std::move(text))) {}
  Value(Sequence sequence);
  Value(Dict dict);
  Value(Callable callable);
  template <class T>
  requires(std::is_same_v<T, bool> || std::is_same_v<T, int64_t> || std::is_same_v<T, double> ||
           std::is_same_v<T, std::shared_ptr<Namespace>> || std::is_same_v<T, std::shared_ptr<Loop>>)
      Value(T value)
      : storage_(std::move(value)) {}

  static Value undefined(std::string message);
  /// Text that the engine itself made.
  static Value own_text(std::string_view text) { return Text(text, Origin::kTemplate); }
  static Value size(size_t count) { return static_cast<int64_t>(count); }
  static Value list(std::vector<Value> items);
  static Value tuple(std::vector<Value> items);
  /// What Python makes a generator or an iterator: gives its items once.
  static Value iterator(std::vector<Value> items);

  bool is_none() const { return std::holds_alternative<None>(storage_); }
  bool is_undefined() const { return std::holds_alternative<Undefined>(storage_); }
  /// Parts of the value, null if it is of another type.
  const bool* boolean() const { return std::get_if<bool>(&storage_); }
  const double* floating() const { return std::get_if<double>(&storage_); }
  const Text* text() const { return pointer<const Text>(); }
  const Sequence* sequence() const { return pointer<const Sequence>(); }
  const Dict* dict() const { return pointer<const Dict>(); }
  Namespace* name_space() const { return pointer<Namespace>(); }
  const Callable* callable() const { return pointer<const Callable>(); }
  Loop* loop() const { return pointer<Loop>(); }
  const Storage& storage() const { return storage_; }

  /// The integer, or a boolean as 0 or 1.
  std::optional<int64_t> integer() const;
  /// Any number, booleans too.
  std::optional<double> number() const;
  /// How deep the value nests; 0 for scalars.
  int depth() const;
  /// About how many steps it takes to walk through the value once; at least 1.
  size_t weight() const;
  /// Python's name of the type, such as "NoneType".
  std::string_view type_name() const;
  /// Whether both are the same object, as Python's `is` has it for singletons and containers.
  bool is_same(const Value& other) const;
  /// Throws the message of an undefined value.
  void require_defined() const;

 private:
  template <class T>
  T* pointer() const {
    const auto* held = std::get_if<std::shared_ptr<T>>(&storage_);
    return held == nullptr ? nullptr : held->get();
  }

  Storage storage_;
};

struct Sequence {
  enum Kind { kList, kTuple, kRange, kIterator, kKeys, kValues, kItems };

  Sequence(Kind kind, std::vector<Value> items);

  Kind kind;
  std::vector<Value> items;
  int depth = 1;
  size_t weight = 1;
  mutable size_t taken = 0;      // items that an iterator has given
  int64_t range_bounds[3] = {};  // start, stop, step, of a range
  bool is_group = false;         // a tuple whose parts are "grouper" and "list" too
};

/// Ordered as inserted. Keys as in Python: 1, 1.0 and true are the same key.
class Dict {
 public:
  using Entry = std::pair<Value, Value>;

  const std::vector<Entry>& entries() const { return entries_; }
  /// Null if the key is absent; throws if it is of a type that cannot be a key.
  const Value* find(const Value& key) const;
  const Value* find(std::string_view key) const;
  /// A key that is there keeps its place.
  void set(Value key, Value value);
  int depth() const { return depth_; }
  size_t weight() const { return weight_; }

 private:
  std::vector<Entry> entries_;
  // By key_of(). No hash table: whoever writes the keys can make all of them collide.
  std::map<std::string, size_t> index_;
  int depth_ = 1;
  size_t weight_ = 1;
};

struct Namespace {
  Dict attributes;
};

/// The arguments of a call.
struct Arguments {
  std::vector<Value> positional;
  std::vector<std::pair<std::string, Value>> named;
};

/// A function, macro or method bound to its object.
struct Callable {
  std::string name;
  std::function<Value(Machine&, const Arguments&)> body;
  int depth = 0;                                     // of the object that a method is bound to
  std::shared_ptr<const Dict> attributes = nullptr;  // of a macro
};

/// `loop` inside a for.
struct Loop {
  std::vector<Value> items;
  size_t index = 0;  // from 0
  size_t depth = 0;  // loops around this one that the recursion made
  std::optional<Value> last_changed;
  std::function<Value(const Value& iterable)> recurse;  // of a recursive loop
};

bool truthy(const Value& value);
/// Python's ==.
bool equal(const Value& left, const Value& right);
/// Python's <; throws on types without an order.
bool less(const Value& left, const Value& right);
/// Python's str(): text as it is, everything else as repr() has it.
Text to_text(const Value& value);
/// Python's repr().
Text to_repr(const Value& value);
/// Shortest digits that read back as the same number, in Python's form: 1.0, 1e+16, nan.
std::string float_repr(double number);
/// The items that a for over `value` sees; an iterator is empty afterwards. Throws if it is not iterable.
std::vector<Value> iterate(const Value& value);

}  // namespace soliton::jinja
