// Printing, comparing and iterating, as Python does it.
#include "runtime/text/chat_template/value.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

namespace soliton::jinja {
namespace {

constexpr int kMaxPrintDepth = 2 * kMaxValueDepth;  // a namespace may contain itself
constexpr size_t kMaxPrintedBytes = kMaxOutputBytes;

template <class... Cases>
struct Overloaded : Cases... {
  using Cases::operator()...;
};

template <class... Cases>
Overloaded(Cases...) -> Overloaded<Cases...>;  // for clang before 17

int checked_depth(int depth) {
  if (depth > kMaxValueDepth)
    throw too_much("expected values nested at most {} deep, got more", kMaxValueDepth);
  return depth;
}

size_t checked_weight(size_t weight) {
  if (weight > kMaxWeight) throw too_much("expected values of at most {} parts, got more", kMaxWeight);
  return weight;
}

/// Equal for keys that Python holds equal. Throws for values that cannot be keys.
std::string key_of(const Value& key) {
  if (const Text* text = key.text()) return "s" + text->bytes();
  if (key.is_none()) return "n";
  if (key.is_undefined()) return "u";
  if (const auto integer = key.integer()) return fmt::format("i{}", *integer);
  if (const double* number = key.floating()) {
    constexpr double kBound = 9007199254740992.0;  // integers below are exact
    if (std::trunc(*number) == *number && std::abs(*number) < kBound) {
      return fmt::format("i{}", static_cast<int64_t>(*number));
    }
    return "f" + float_repr(*number);
  }
  const Sequence* sequence = key.sequence();
  if (sequence != nullptr && (sequence->kind == Sequence::kTuple || sequence->kind == Sequence::kRange)) {
    std::string joined = sequence->kind == Sequence::kTuple ? "t" : "r";
    for (const Value& item : sequence->items) {
      const std::string part = key_of(item);
      joined += fmt::format("{}:{}", part.size(), part);
    }
    return joined;
  }
  throw wrong("expected a key that can be looked up, got {}", key.type_name());
}

bool equal_lists(const std::vector<Value>& left, const std::vector<Value>& right) {
  return std::equal(left.begin(), left.end(), right.begin(), right.end(), equal);
}

bool equal_dicts(const Dict& left, const Dict& right) {
  if (left.entries().size() != right.entries().size()) return false;
  return std::all_of(left.entries().begin(), left.entries().end(), [&right](const Dict::Entry& entry) {
    const Value* other = right.find(entry.first);
    return other != nullptr && equal(entry.second, *other);
  });
}

bool equal_sequences(const Sequence& left, const Sequence& right) {
  if (left.kind != right.kind || left.kind == Sequence::kIterator || left.kind == Sequence::kValues)
    return &left == &right;
  if (left.kind == Sequence::kKeys || left.kind == Sequence::kItems) {  // sets
    return left.items.size() == right.items.size() &&
           std::is_permutation(left.items.begin(), left.items.end(), right.items.begin(), equal);
  }
  return equal_lists(left.items, right.items);
}

/// Writes repr().
class Printer {
 public:
  explicit Printer(Text& out) : out_(out) {}

  void print(const Value& value) {
    if (++depth_ > kMaxPrintDepth) throw too_much("expected a value nested less deep to print");
    if (out_.size() > kMaxPrintedBytes) throw too_much("expected at most {} printed bytes", kMaxPrintedBytes);
    std::visit(Overloaded{[this](None) { own("None"); }, [this](const Undefined&) { own("Undefined"); },
                          [this](bool truth) { own(truth ? "True" : "False"); },
                          [this](int64_t integer) { own(fmt::format("{}", integer)); },
                          [this](double number) { own(float_repr(number)); },
                          [this](const std::shared_ptr<const Text>& text) { print_text(*text); },
                          [this](const std::shared_ptr<const Sequence>& items) { print_sequence(*items); },
                          [this](const std::shared_ptr<const Dict>& dict) { print_dict(*dict); },
                          [this](const std::shared_ptr<Namespace>& names) {
                            own("<Namespace ");
                            print_dict(names->attributes);
                            own(">");
                          },
                          [this](const std::shared_ptr<const Callable>& function) {
                            if (function->attributes != nullptr) return print_macro(*function);
                            throw unsupported("expected a value to print, got function {}", function->name);
                          },
                          [this](const std::shared_ptr<Loop>& loop) {
                            own(fmt::format("<LoopContext {}/{}>", loop->index + 1, loop->items.size()));
                          }},
               value.storage());
    --depth_;
  }

 private:
  void own(std::string_view text) { out_.append(text, Origin::kTemplate); }

  void print_text(const Text& text) {
    if (text.is_markup()) own("Markup(");
    const std::string& bytes = text.bytes();
    const bool double_quotes = bytes.find('\'') != std::string::npos && bytes.find('"') == std::string::npos;
    const char quote = double_quotes ? '"' : '\'';
    own({&quote, 1});
    size_t position = 0;
    std::string escaped;
    for (const Text::Run& run : text.runs()) {
      escaped.clear();
      while (position < run.end) append_escaped(escaped, next_character(bytes, position), quote);
      out_.append(escaped, run.origin);
    }
    own({&quote, 1});
    if (text.is_markup()) own(")");
  }

  static void append_escaped(std::string& bytes, char32_t character, char quote) {
    const auto code = static_cast<uint32_t>(character);
    if (character == static_cast<char32_t>(quote) || character == '\\') {
      bytes += '\\';
      bytes += static_cast<char>(character);
    } else if (character == '\n' || character == '\r' || character == '\t') {
      bytes += character == '\n' ? "\\n" : character == '\r' ? "\\r" : "\\t";
    } else if (is_printable(character)) {
      append_utf8(bytes, character);
    } else {
      bytes += code < 0x100     ? fmt::format("\\x{:02x}", code)
               : code < 0x10000 ? fmt::format("\\u{:04x}", code)
                                : fmt::format("\\U{:08x}", code);
    }
  }

  void print_items(const std::vector<Value>& items) {
    for (size_t i = 0; i < items.size(); ++i) {
      if (i > 0) own(", ");
      print(items[i]);
    }
  }

  void print_sequence(const Sequence& sequence) {
    static constexpr std::array<std::pair<std::string_view, std::string_view>, 7> kBrackets = {
        {{"[", "]"},
         {"(", ")"},
         {"", ""},
         {"", ""},
         {"dict_keys([", "])"},
         {"dict_values([", "])"},
         {"dict_items([", "])"}}};
    if (sequence.kind == Sequence::kIterator)
      throw unsupported("expected a value to print, got an iterator: add |list");
    if (sequence.kind == Sequence::kRange) {
      const auto& [start, stop, step] = sequence.range_bounds;
      return own(step == 1 ? fmt::format("range({}, {})", start, stop)
                           : fmt::format("range({}, {}, {})", start, stop, step));
    }
    const auto& [open, close] = kBrackets[sequence.kind];
    own(open);
    print_items(sequence.items);
    if (sequence.kind == Sequence::kTuple && sequence.items.size() == 1) own(",");
    own(close);
  }

  void print_macro(const Callable& macro) {
    own("<Macro ");
    macro.name.empty() ? own("anonymous") : print_text(Text(macro.name, Origin::kTemplate));
    own(">");
  }

  void print_dict(const Dict& dict) {
    own("{");
    for (size_t i = 0; i < dict.entries().size(); ++i) {
      if (i > 0) own(", ");
      print(dict.entries()[i].first);
      own(": ");
      print(dict.entries()[i].second);
    }
    own("}");
  }

  Text& out_;
  int depth_ = 0;
};

}  // namespace

Value::Value(Sequence sequence) : storage_(std::make_shared<const Sequence>(std::move(sequence))) {}
Value::Value(Dict dict) : storage_(std::make_shared<const Dict>(std::move(dict))) {}
Value::Value(Callable callable) : storage_(std::make_shared<const Callable>(std::move(callable))) {}

Value Value::undefined(std::string message) {
  Value value;
  value.storage_ = Undefined{std::make_shared<const std::string>(std::move(message))};
  return value;
}

Value Value::list(std::vector<Value> items) {
  return Sequence(Sequence::kList, std::move(items));
}

Value Value::tuple(std::vector<Value> items) {
  return Sequence(Sequence::kTuple, std::move(items));
}

Value Value::iterator(std::vector<Value> items) {
  return Sequence(Sequence::kIterator, std::move(items));
}

std::optional<int64_t> Value::integer() const {
  if (const bool* truth = boolean()) return *truth ? 1 : 0;
  if (const auto* integer = std::get_if<int64_t>(&storage_)) return *integer;
  return std::nullopt;
}

std::optional<double> Value::number() const {
  if (const double* number = floating()) return *number;
  if (const auto integral = integer()) return static_cast<double>(*integral);
  return std::nullopt;
}

int Value::depth() const {
  if (sequence() != nullptr) return sequence()->depth;
  if (dict() != nullptr) return dict()->depth();
  return callable() != nullptr ? callable()->depth : 0;
}

size_t Value::weight() const {
  constexpr size_t kBytesPerStep = 64;
  if (text() != nullptr) return 1 + text()->size() / kBytesPerStep + text()->runs().size();
  if (sequence() != nullptr) return sequence()->weight;
  if (dict() != nullptr) return dict()->weight();
  return name_space() != nullptr ? name_space()->attributes.weight() : 1;
}

std::string_view Value::type_name() const {
  static constexpr std::array<std::string_view, 7> kSequences = {
      "list", "tuple", "range", "generator", "dict_keys", "dict_values", "dict_items"};
  static constexpr std::array<std::string_view, 11> kNames = {"NoneType",  "Undefined", "bool",       "int",
                                                              "float",     "str",       "",           "dict",
                                                              "Namespace", "function",  "LoopContext"};
  return sequence() != nullptr ? kSequences[sequence()->kind] : kNames[storage_.index()];
}

bool Value::is_same(const Value& other) const {
  if (storage_.index() != other.storage_.index()) return false;
  if (is_none()) return true;
  if (boolean() != nullptr) return *boolean() == *other.boolean();
  if (text() != nullptr) {  // Python interns what a template compares
    if (text()->is_markup() || other.text()->is_markup()) return text() == other.text();
    return text()->bytes() == other.text()->bytes();
  }
  if (integer()) return *integer() == *other.integer();
  return sequence() == other.sequence() && dict() == other.dict() && name_space() == other.name_space() &&
         callable() == other.callable() && loop() == other.loop() && floating() == nullptr;
}

void Value::require_defined() const {
  if (const auto* undefined = std::get_if<Undefined>(&storage_)) throw wrong("{}", *undefined->message);
}

Sequence::Sequence(Kind sequence_kind, std::vector<Value> members)
    : kind(sequence_kind), items(std::move(members)) {
  for (const Value& item : items) {
    depth = checked_depth(std::max(depth, 1 + item.depth()));
    weight = checked_weight(weight + item.weight());
  }
}

const Value* Dict::find(const Value& key) const {
  const auto found = index_.find(key_of(key));
  return found == index_.end() ? nullptr : &entries_[found->second].second;
}

const Value* Dict::find(std::string_view key) const {
  const auto found = index_.find("s" + std::string(key));
  return found == index_.end() ? nullptr : &entries_[found->second].second;
}

void Dict::set(Value key, Value value) {
  depth_ = checked_depth(std::max({depth_, 1 + key.depth(), 1 + value.depth()}));
  weight_ = checked_weight(weight_ + key.weight() + value.weight());
  const auto [found, is_new] = index_.try_emplace(key_of(key), entries_.size());
  if (is_new) {
    entries_.emplace_back(std::move(key), std::move(value));
  } else {
    entries_[found->second].second = std::move(value);
  }
}

bool truthy(const Value& value) {
  return std::visit(
      Overloaded{[](None) { return false; }, [](const Undefined&) { return false; },
                 [](bool truth) { return truth; }, [](int64_t integer) { return integer != 0; },
                 [](double number) { return number != 0; },
                 [](const std::shared_ptr<const Text>& text) { return !text->empty(); },
                 [](const std::shared_ptr<const Sequence>& sequence) {
                   return sequence->kind == Sequence::kIterator || !sequence->items.empty();
                 },
                 [](const std::shared_ptr<const Dict>& dict) { return !dict->entries().empty(); },
                 [](const std::shared_ptr<Loop>& loop) { return !loop->items.empty(); },
                 [](const auto&) { return true; }},
      value.storage());
}

bool equal(const Value& left, const Value& right) {
  if (left.is_undefined() || right.is_undefined()) return left.is_undefined() && right.is_undefined();
  if (left.number() && right.number()) {
    if (left.integer() && right.integer()) return *left.integer() == *right.integer();
    return *left.number() == *right.number();
  }
  if (left.text() != nullptr && right.text() != nullptr) return left.text()->bytes() == right.text()->bytes();
  if (left.sequence() != nullptr && right.sequence() != nullptr)
    return equal_sequences(*left.sequence(), *right.sequence());
  if (left.dict() != nullptr && right.dict() != nullptr) return equal_dicts(*left.dict(), *right.dict());
  return left.is_same(right);
}

bool less(const Value& left, const Value& right) {
  left.require_defined();
  right.require_defined();
  if (left.integer() && right.integer()) return *left.integer() < *right.integer();
  if (left.number() && right.number()) return *left.number() < *right.number();
  if (left.text() != nullptr && right.text() != nullptr) return left.text()->bytes() < right.text()->bytes();
  const Sequence* a = left.sequence();
  const Sequence* b = right.sequence();
  if (a != nullptr && b != nullptr && a->kind == b->kind && a->kind <= Sequence::kTuple) {
    for (size_t i = 0; i < std::min(a->items.size(), b->items.size()); ++i) {
      if (!equal(a->items[i], b->items[i])) return less(a->items[i], b->items[i]);
    }
    return a->items.size() < b->items.size();
  }
  throw wrong("expected two values with an order, got {} and {}", left.type_name(), right.type_name());
}

std::string float_repr(double number) {
  if (std::isnan(number)) return "nan";
  if (std::isinf(number)) return number < 0 ? "-inf" : "inf";
  constexpr int kMinFixed = -4;  // exponents that Python writes without one
  constexpr int kMaxFixed = 15;
  std::array<char, 40> buffer;
  const auto scientific =
      std::to_chars(buffer.data(), buffer.data() + buffer.size(), number, std::chars_format::scientific);
  std::string text(buffer.data(), scientific.ptr);
  const int exponent = std::stoi(text.substr(text.find('e') + 1));
  if (exponent < kMinFixed || exponent > kMaxFixed) return text;  // both write e-05 and e+16
  const auto fixed =
      std::to_chars(buffer.data(), buffer.data() + buffer.size(), number, std::chars_format::fixed);
  text.assign(buffer.data(), fixed.ptr);
  return text.find('.') == std::string::npos ? text + ".0" : text;
}

Text to_text(const Value& value) {
  if (value.text() != nullptr) return *value.text();
  return value.is_undefined() ? Text() : to_repr(value);
}

Text to_repr(const Value& value) {
  Text text;
  Printer(text).print(value);
  return text;
}

std::vector<Value> iterate(const Value& value) {
  if (value.is_undefined()) return {};
  if (const Sequence* sequence = value.sequence()) {
    if (sequence->kind != Sequence::kIterator) return sequence->items;
    const auto next = sequence->items.begin() + static_cast<ptrdiff_t>(sequence->taken);
    sequence->taken = sequence->items.size();
    return {next, sequence->items.end()};
  }
  std::vector<Value> items;
  if (const Dict* dict = value.dict()) {
    for (const auto& [key, member] : dict->entries()) items.push_back(key);
  } else if (const Text* text = value.text()) {
    for (size_t begin = 0, end = 0; end < text->size(); begin = end) {
      next_character(text->bytes(), end);
      items.emplace_back(text->slice(begin, end));
    }
  } else {
    throw wrong("expected something to iterate over, got {}", value.type_name());
  }
  return items;
}

}  // namespace soliton::jinja
