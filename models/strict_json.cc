// See strict_json.h. The handler builds the document itself, because the library's own builder keeps the last of two
// equal keys and has no limits.
#include "models/strict_json.h"

#include <limits>
#include <nlohmann/json.hpp>
#include <vector>

#include "models/mapped_file.h"

namespace soliton {
namespace {

using nlohmann::json;

constexpr size_t kMaxJsonDepth = 64;
constexpr size_t kMaxJsonValues = 8'000'000;  // 4 times what the largest published vocabularies need

/// Receives the parser's events and builds the document. Throws on what it refuses.
class StrictBuilder final : public nlohmann::json_sax<json> {
 public:
  explicit StrictBuilder(std::string_view path) : path_(path) {}
  json take() { return std::move(root_); }

  bool null() override { return scalar(nullptr); }
  bool boolean(bool value) override { return scalar(value); }
  bool number_integer(number_integer_t value) override { return scalar(value); }
  bool number_unsigned(number_unsigned_t value) override { return scalar(value); }
  bool number_float(number_float_t value, const string_t&) override { return scalar(value); }
  bool string(string_t& value) override { return scalar(std::move(value)); }
  bool binary(binary_t&) override { return false; }
  bool start_object(size_t) override { return start(json::object()); }
  bool start_array(size_t) override { return start(json::array()); }
  bool end_object() override { return end(); }
  bool end_array() override { return end(); }

  bool key(string_t& key) override {
    Level& level = open_.back();
    auto& members = level.value->get_ref<json::object_t&>();
    const auto [member, inserted] = members.emplace(std::move(key), nullptr);
    level.key = &member->first;
    level.member = &member->second;
    if (!inserted) throw bad_file(path_, "{}: duplicate key", key_path());
    return true;
  }

  bool parse_error(size_t, const std::string&, const json::exception& error) override {
    const std::string_view what = error.what();
    const size_t tag_end = what.find("] ");
    const auto message = tag_end == std::string_view::npos ? what : what.substr(tag_end + 2);
    throw bad_file(path_, "not valid JSON: {}", message.substr(0, kMaxMessageBytes));
  }

 private:
  static constexpr size_t kMaxMessageBytes = 200;
  struct Level {
    json* value;
    const std::string* key = nullptr;  // the member being read, if an object
    json* member = nullptr;
  };

  std::string key_path() const {
    std::string path;
    for (const Level& level : open_) {
      if (level.value->is_array()) {
        path += fmt::format("[{}]", level.value->size());
      } else if (level.key != nullptr) {
        if (!path.empty()) path += '.';
        constexpr size_t kMaxKeyBytes = 60;
        path += level.key->substr(0, kMaxKeyBytes);
      }
    }
    return path;
  }

  json* place(json&& value) {
    if (++num_values_ > kMaxJsonValues) {
      throw bad_file(path_, "expected at most {} JSON values, got more", kMaxJsonValues);
    }
    if (open_.empty()) return &(root_ = std::move(value));
    const Level& parent = open_.back();
    if (!parent.value->is_array()) return &(*parent.member = std::move(value));
    parent.value->push_back(std::move(value));
    return &parent.value->back();
  }

  bool scalar(json&& value) {
    place(std::move(value));
    return true;
  }

  bool start(json&& container) {
    if (open_.size() == kMaxJsonDepth) {
      throw bad_file(path_, "expected JSON nested at most {} deep, got deeper", kMaxJsonDepth);
    }
    json* const placed = place(std::move(container));
    open_.push_back({.value = placed});
    return true;
  }

  bool end() {
    open_.pop_back();
    return true;
  }

  std::string_view path_;
  json root_;
  std::vector<Level> open_;
  size_t num_values_ = 0;
};

}  // namespace

json parse_json(std::string_view text, std::string_view path) {
  StrictBuilder builder(path);
  if (!json::sax_parse(text.begin(), text.end(), &builder)) throw bad_file(path, "not valid JSON");
  return builder.take();
}

json read_json(const std::filesystem::path& path) {
  const MappedFile file = MappedFile::open(path);
  if (file.text().size() > kMaxJsonBytes) {
    throw bad_file(file.path(), "expected at most {} bytes of JSON, got {}", kMaxJsonBytes,
                   file.text().size());
  }
  return file.read([&] { return parse_json(file.text(), file.path()); });
}

bool JsonView::is_null() const {
  return value_ == nullptr || value_->is_null();
}

bool JsonView::is_array() const {
  return value_ != nullptr && value_->is_array();
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
