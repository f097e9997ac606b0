// See strict_json.h. The handler builds the document itself, because the library's own builder keeps the last of two
// equal keys and has no limits.
#include "models/strict_json.h"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <numeric>
#include <vector>

#include "models/mapped_file.h"

namespace soliton {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

/// What is made of text that is no JSON, and of equal keys.
enum class Reading { kStrict, kIfJson };

/// Receives the parser's events and builds the document. Throws on what it refuses.
template <class Json>
class StrictBuilder final : public nlohmann::json_sax<Json> {
  using Base = nlohmann::json_sax<Json>;

 public:
  StrictBuilder(std::string_view path, const JsonLimits& limits, Reading reading)
      : path_(path), limits_(limits), reading_(reading) {}
  Json take() { return std::move(root_); }

  bool null() override { return scalar(nullptr); }
  bool boolean(bool value) override { return scalar(value); }
  bool number_integer(typename Base::number_integer_t value) override { return scalar(value); }
  bool number_unsigned(typename Base::number_unsigned_t value) override { return scalar(value); }
  bool number_float(typename Base::number_float_t value, const std::string&) override {
    return scalar(value);
  }
  bool string(std::string& value) override { return scalar(std::move(value)); }
  bool binary(typename Base::binary_t&) override { return false; }
  bool start_object(size_t) override { return start(true); }
  bool start_array(size_t) override { return start(false); }
  bool end_object() override { return end(object_of(open_.back())); }
  bool end_array() override { return end(std::move(open_.back().items)); }

  bool key(std::string& key) override {
    if (++num_members_ > limits_.members)
      throw bad_file(path_, "expected at most {} members of JSON objects, got more", limits_.members);
    open_.back().members.emplace_back(std::move(key), nullptr);
    return true;
  }

  bool parse_error(size_t, const std::string&, const json::exception& error) override {
    if (reading_ == Reading::kIfJson) return false;
    const std::string_view what = error.what();
    const size_t tag_end = what.find("] ");
    const auto message = tag_end == std::string_view::npos ? what : what.substr(tag_end + 2);
    throw bad_file(path_, "not valid JSON: {}", message.substr(0, kMaxMessageBytes));
  }

 private:
  static constexpr size_t kMaxMessageBytes = 200;
  /// A container whose end has not come. Members stand in a list until then: a vector of ordered_json's own members copies
  /// what is in them whenever it grows, as their keys are constant.
  struct Level {
    bool is_object;
    std::vector<std::pair<std::string, Json>> members = {};
    typename Json::array_t items = {};
  };

  /// Where the parser is; `last` is the name of the innermost member.
  std::string key_path(std::string_view last) const {
    constexpr size_t kMaxKeyBytes = 60;
    std::string path;
    for (const Level& level : open_) {
      if (!level.is_object) {
        path += fmt::format("[{}]", level.items.size());
        continue;
      }
      if (!path.empty()) path += '.';
      path += (&level == &open_.back() ? last : level.members.back().first).substr(0, kMaxKeyBytes);
    }
    return path;
  }

  /// Members by their names; of equal ones in their order. By sorting: whoever writes the keys of a hash table can make
  /// all of them collide.
  std::vector<size_t> sorted(const Level& level) const {
    const auto& members = level.members;
    std::vector<size_t> order(members.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
      const int compared = members[a].first.compare(members[b].first);
      return compared < 0 || (compared == 0 && a < b);
    });
    return order;
  }

  /// Leaves each name once, with its last value at its first place.
  void drop_equal(Level& level, const std::vector<size_t>& order) const {
    auto& members = level.members;
    std::vector<bool> is_dropped(members.size());
    for (size_t begin = 0, i = 1; i < order.size(); ++i) {
      if (members[order[i]].first != members[order[begin]].first) {
        begin = i;
        continue;
      }
      if (reading_ == Reading::kStrict)
        throw bad_file(path_, "{}: duplicate key", key_path(members[order[i]].first));
      members[order[begin]].second = std::move(members[order[i]].second);
      is_dropped[order[i]] = true;
    }
    if (std::find(is_dropped.begin(), is_dropped.end(), true) == is_dropped.end()) return;
    std::vector<std::pair<std::string, Json>> rest;
    for (size_t i = 0; i < members.size(); ++i) {
      if (!is_dropped[i]) rest.push_back(std::move(members[i]));
    }
    members = std::move(rest);
  }

  Json object_of(Level& level) const {
    drop_equal(level, sorted(level));
    typename Json::object_t object;
    if constexpr (std::is_same_v<Json, ordered_json>) object.reserve(level.members.size());
    for (auto& [key, value] : level.members) {
      if constexpr (std::is_same_v<Json, ordered_json>) {
        object.emplace_back(std::move(key), std::move(value));  // its own emplace() looks at all members
      } else {
        object.emplace(std::move(key), std::move(value));
      }
    }
    return object;
  }

  void count_value() {
    if (++num_values_ > limits_.values)
      throw bad_file(path_, "expected at most {} JSON values, got more", limits_.values);
  }

  bool place(Json&& value) {
    if (open_.empty()) {
      root_ = std::move(value);
    } else if (open_.back().is_object) {
      open_.back().members.back().second = std::move(value);
    } else {
      open_.back().items.push_back(std::move(value));
    }
    return true;
  }

  bool scalar(Json&& value) {
    count_value();
    return place(std::move(value));
  }

  bool start(bool is_object) {
    count_value();
    if (open_.size() == limits_.depth)
      throw bad_file(path_, "expected JSON nested at most {} deep, got deeper", limits_.depth);
    open_.push_back({.is_object = is_object});
    return true;
  }

  bool end(Json&& container) {
    open_.pop_back();
    return place(std::move(container));
  }

  std::string_view path_;
  const JsonLimits limits_;
  const Reading reading_;
  Json root_;
  std::vector<Level> open_;
  size_t num_values_ = 0;
  size_t num_members_ = 0;
};

template <class Json>
std::optional<Json> parse(std::string_view text, std::string_view path, const JsonLimits& limits,
                          Reading reading) {
  if (text.size() > limits.bytes)
    throw bad_file(path, "expected at most {} bytes of JSON, got {}", limits.bytes, text.size());
  StrictBuilder<Json> builder(path, limits, reading);
  if (!Json::sax_parse(text.begin(), text.end(), &builder)) return std::nullopt;
  return builder.take();
}

}  // namespace

json parse_json(std::string_view text, std::string_view path, const JsonLimits& limits) {
  return parse<json>(text, path, limits, Reading::kStrict).value();
}

ordered_json parse_ordered_json(std::string_view text, std::string_view path, const JsonLimits& limits) {
  return parse<ordered_json>(text, path, limits, Reading::kStrict).value();
}

std::optional<ordered_json> parse_if_json(std::string_view text, std::string_view path,
                                          const JsonLimits& limits) {
  return parse<ordered_json>(text, path, limits, Reading::kIfJson);
}

json read_json(const std::filesystem::path& path) {
  const MappedFile file = MappedFile::open(path);
  return file.read([&] { return parse_json(file.text(), file.path()); });
}

bool JsonView::is_null() const {
  return value_ == nullptr || value_->is_null();
}

bool JsonView::is_array() const {
  return value_ != nullptr && value_->is_array();
}

bool JsonView::is_object() const {
  return value_ != nullptr && value_->is_object();
}

JsonView JsonView::operator[](std::string_view key) const {
  const auto& members = object().get_ref<const json::object_t&>();
  const auto member = members.find(key);
  std::string path = key_.empty() ? std::string(key) : fmt::format("{}.{}", key_, key);
  return {member == members.end() ? nullptr : &member->second, file_, std::move(path)};
}

JsonView JsonView::operator[](size_t index) const {
  if (index >= array_size()) throw error("expected at least {} elements, got {}", index + 1, array_size());
  return {&(*value_)[index], file_, fmt::format("{}[{}]", key_, index)};
}

size_t JsonView::array_size() const {
  if (!is_array()) throw unexpected("an array");
  return value_->size();
}

int64_t JsonView::integer() const {
  if (value_ == nullptr || !value_->is_number_integer()) throw unexpected("an integer");
  constexpr uint64_t kMaxSigned = std::numeric_limits<int64_t>::max();
  // Unsigned first: the library's conversion to int64_t would wrap.
  const bool fits = !value_->is_number_unsigned() || value_->get<uint64_t>() <= kMaxSigned;
  return fits ? value_->get<int64_t>() : static_cast<int64_t>(kMaxSigned);
}

int64_t JsonView::integer(int64_t min, int64_t max) const {
  const int64_t value = integer();
  const bool fits = !value_->is_number_unsigned() || value_->get<uint64_t>() == static_cast<uint64_t>(value);
  if (!fits || value < min || value > max) throw unexpected(fmt::format("an integer in [{}, {}]", min, max));
  return value;
}

double JsonView::number() const {
  if (value_ == nullptr || !value_->is_number()) throw unexpected("a number");
  return value_->get<double>();
}

double JsonView::number(double min, double max) const {
  const double value = number();
  if (!(value >= min && value <= max)) throw unexpected(fmt::format("a number in [{}, {}]", min, max));
  return value;
}

bool JsonView::boolean() const {
  if (value_ == nullptr || !value_->is_boolean()) throw unexpected("true or false");
  return value_->get<bool>();
}

const std::string& JsonView::string() const {
  if (value_ == nullptr || !value_->is_string()) throw unexpected("a string");
  return value_->get_ref<const std::string&>();
}

const json& JsonView::object() const {
  if (value_ == nullptr || !value_->is_object()) throw unexpected("an object");
  return *value_;
}

std::string JsonView::describe() const {
  if (value_ == nullptr) return "nothing";
  if (is_array()) return "an array";
  if (value_->is_object()) return "an object";
  if (value_->is_string()) return in_quotes(value_->get_ref<const std::string&>());
  return value_->dump();
}

Place JsonView::place() const {
  constexpr size_t kMaxKeyPathBytes = 200;
  return {.file = std::string(file_), .key = key_.substr(0, kMaxKeyPathBytes), .got = describe()};
}

Error JsonView::located(ExitCode code, std::string_view message) const {
  if (key_.empty()) return file_error(code, file_, "{}", message);
  return file_error(code, file_, "{}: {}", place().key, message);
}

Error JsonView::unexpected(std::string_view expected) const {
  return error("expected {}, got {}", expected, describe());
}

}  // namespace soliton
