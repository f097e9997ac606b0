// See strict_yaml.h. The document is walked pair by pair, because looking keys up would hide duplicates.
#include "models/strict_yaml.h"

#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <fstream>
#include <sstream>
#include <system_error>

namespace soliton {
namespace {

constexpr size_t kMaxFileBytes = 1 << 20;  // far beyond any spec; catches a weight file given by mistake
constexpr size_t kMaxShownBytes = 60;
constexpr const char* kTopLevel = "top level";

Error content_error(const std::string& file, int line, const std::string& key, const std::string& expected,
                    const std::string& got) {
  return Error(ExitCode::kBadFile,
               fmt::format("{}:{}: {}: expected {}, got {}", file, std::max(line, 1), key, expected, got));
}

Error unreadable(const std::string& file, const std::string& reason) {
  return Error(ExitCode::kNotFound, fmt::format("{}: expected a readable file, got: {}", file, reason));
}

int line_of(const YAML::Mark& mark) {
  return mark.line + 1;
}

/// Forgets what stands in documents, but where the last began.
class DocumentSkipper : public YAML::EventHandler {
 public:
  const YAML::Mark& last() const { return last_; }

  void OnDocumentStart(const YAML::Mark& mark) override { last_ = mark; }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark&, YAML::anchor_t) override {}
  void OnAlias(const YAML::Mark&, YAML::anchor_t) override {}
  void OnScalar(const YAML::Mark&, const std::string&, YAML::anchor_t, const std::string&) override {}
  void OnSequenceStart(const YAML::Mark&, const std::string&, YAML::anchor_t,
                       YAML::EmitterStyle::value) override {}
  void OnSequenceEnd() override {}
  void OnMapStart(const YAML::Mark&, const std::string&, YAML::anchor_t, YAML::EmitterStyle::value) override {
  }
  void OnMapEnd() override {}

 private:
  YAML::Mark last_ = YAML::Mark::null_mark();
};

/// The only document of the text. Not by YAML::LoadAll(), which makes documents without end of some text that is
/// none, such as a comma.
YAML::Node load_one_document(const std::string& text, const std::string& file) {
  std::istringstream stream(text);
  YAML::Parser parser(stream);
  DocumentSkipper skipper;
  if (!parser.HandleNextDocument(skipper)) {
    throw content_error(file, 1, kTopLevel, "a map of keys", "an empty file");
  }
  if (parser.HandleNextDocument(skipper)) {
    throw content_error(file, line_of(skipper.last()), kTopLevel, "one YAML document", "a second one");
  }
  return YAML::Load(text);
}

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

// "010", "-007", "00.5": YAML 1.1 has octal integers, readers differ, and nobody means them here.
bool has_leading_zero(std::string_view text) {
  if (text.starts_with('-')) text.remove_prefix(1);
  return text.size() > 1 && text[0] == '0' && is_digit(text[1]);
}

template <class Number>
std::optional<Number> convert_all(std::string_view text) {
  Number value = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failure != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

bool is_quoted(const YAML::Node& node) {
  return node.Tag() == "!";
}
bool is_tagged(const YAML::Node& node) {
  return !node.Tag().empty() && node.Tag() != "?" && !is_quoted(node);
}

std::string describe(const YAML::Node& node) {
  if (is_tagged(node)) return fmt::format("a value tagged {}", show_text(node.Tag()));
  switch (node.Type()) {
    case YAML::NodeType::Undefined:
    case YAML::NodeType::Null:
      return "nothing";
    case YAML::NodeType::Map:
      return "a map";
    case YAML::NodeType::Sequence:
      return "a list";
    case YAML::NodeType::Scalar:
      break;
  }
  return is_quoted(node) ? fmt::format("the quoted string {}", show_text(node.Scalar()))
                         : show_text(node.Scalar());
}

/// What yaml-cpp complains of, which may have a byte of the file in it: "unknown escape character: ".
std::string show_complaint(const std::string& message) {
  std::string shown;
  for (const char c : message) {
    const auto byte = static_cast<unsigned char>(c);
    shown += byte >= ' ' && byte < 0x7f ? std::string(1, c) : fmt::format("\\x{:02x}", byte);
  }
  return shown;
}

std::string read_text_file(const std::filesystem::path& path) {
  const std::string file = path.string();
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) throw unreadable(file, "a folder");
  errno = 0;
  std::ifstream stream(path, std::ios::binary);
  if (!stream) throw unreadable(file, std::generic_category().message(errno));
  std::string text(kMaxFileBytes + 1, '\0');
  stream.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (stream.bad()) throw unreadable(file, std::generic_category().message(errno));
  text.resize(static_cast<size_t>(stream.gcount()));
  if (text.size() > kMaxFileBytes) {
    throw content_error(file, 1, kTopLevel, fmt::format("at most {} bytes of YAML", kMaxFileBytes),
                        "a larger file");
  }
  return text;
}

}  // namespace

std::optional<int64_t> read_integer(std::string_view text) {
  if (has_leading_zero(text)) return std::nullopt;
  return convert_all<int64_t>(text);
}

std::optional<double> read_number(std::string_view text) {
  if (has_leading_zero(text)) return std::nullopt;
  const std::optional<double> value = convert_all<double>(text);
  return value && std::isfinite(*value) ? value : std::nullopt;
}

std::string describe_non_integer(std::string_view text) {
  const std::string shown = show_text(text);
  const std::string_view digits = text.starts_with('-') ? text.substr(1) : text;
  if (std::all_of(digits.begin(), digits.end(), is_digit)) {
    return has_leading_zero(text) ? shown + ", which could be octal" : shown;
  }
  return read_number(text) ? "the floating-point number " + shown : shown;
}

std::string show_text(std::string_view text) {
  const auto is_graphic = [](unsigned char c) { return c > ' ' && c != 0x7f; };
  if (!text.empty() && text.size() <= kMaxShownBytes && std::all_of(text.begin(), text.end(), is_graphic)) {
    return std::string(text);
  }
  size_t end = std::min(text.size(), kMaxShownBytes);
  // Never cut a UTF-8 sequence: step back over its continuation bytes.
  while (end < text.size() && end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;
  std::string shown = "\"";
  for (const char c : text.substr(0, end)) {
    if (c == '\n') {
      shown += "\\n";
    } else if (c == '"' || c == '\\') {
      shown += {'\\', c};
    } else if (c == ' ' || is_graphic(static_cast<unsigned char>(c))) {
      shown += c;
    } else {
      shown += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    }
  }
  return shown + (end < text.size() ? "...\"" : "\"");
}

std::string describe_choices(const std::vector<std::string>& choices) {
  return choices.size() == 1 ? choices.front() : fmt::format("one of {}", fmt::join(choices, ", "));
}

StrictYaml StrictYaml::load(const std::filesystem::path& path) {
  return parse(read_text_file(path), path.string());
}

StrictYaml StrictYaml::parse(const std::string& text, const std::string& file) {
  YAML::Node document;
  try {
    document.reset(load_one_document(text, file));
  } catch (const YAML::Exception& failure) {
    throw content_error(file, line_of(failure.mark), kTopLevel, "valid YAML",
                        "an error: " + show_complaint(failure.msg));
  }
  return StrictYaml(file, "", document, line_of(document.Mark()));
}

StrictYaml::StrictYaml(std::string file, std::string prefix, const YAML::Node& node, int line)
    : file_(std::move(file)), prefix_(std::move(prefix)), line_(line) {
  const std::string own_key = prefix_.empty() ? kTopLevel : prefix_.substr(0, prefix_.size() - 1);
  if (!node.IsMap() || is_tagged(node)) {
    throw content_error(file_, line_, own_key, "a map of keys", describe(node));
  }
  for (const auto& pair : node) {
    const YAML::Node& key = pair.first;
    const int key_line = line_of(key.Mark());
    if (!key.IsScalar()) {
      throw content_error(file_, key_line, own_key, "plain words as keys", describe(key) + " as a key");
    }
    if (const Entry* first = find(key.Scalar())) {
      throw content_error(file_, key_line, prefix_ + show_text(key.Scalar()), "this key once",
                          fmt::format("it again after line {}", first->line));
    }
    entries_.push_back({.key = key.Scalar(), .value = pair.second, .line = key_line});
  }
}

const StrictYaml::Entry* StrictYaml::find(std::string_view key) const {
  const auto entry = std::find_if(entries_.begin(), entries_.end(),
                                  [key](const Entry& candidate) { return candidate.key == key; });
  return entry == entries_.end() ? nullptr : &*entry;
}

Error StrictYaml::error(std::string_view key, const std::string& expected, const std::string& got) const {
  const Entry* entry = find(key);
  return content_error(file_, entry ? entry->line : line_, prefix_ + show_text(key), expected, got);
}

void StrictYaml::allow_keys(std::initializer_list<std::string_view> keys) const {
  for (const Entry& entry : entries_) {
    if (std::find(keys.begin(), keys.end(), entry.key) == keys.end()) {
      throw error(entry.key, describe_choices({keys.begin(), keys.end()}), "an unknown key");
    }
  }
}

std::string StrictYaml::plain_scalar(std::string_view key, const std::string& expected) const {
  const Entry* entry = find(key);
  if (!entry) throw error(key, expected, "no such key");
  if (!entry->value.IsScalar() || is_quoted(entry->value) || is_tagged(entry->value)) {
    throw error(key, expected, describe(entry->value));
  }
  return entry->value.Scalar();
}

std::string StrictYaml::text(std::string_view key) const {
  const Entry* entry = find(key);
  if (!entry) throw error(key, "a string", "no such key");
  if (!entry->value.IsScalar() || is_tagged(entry->value))
    throw error(key, "a string", describe(entry->value));
  if (entry->value.Scalar().empty()) throw error(key, "a string", "an empty one");
  return entry->value.Scalar();
}

std::string StrictYaml::text_choice(std::string_view key,
                                    std::initializer_list<std::string_view> choices) const {
  const std::string expected = describe_choices({choices.begin(), choices.end()});
  const std::string value = plain_scalar(key, expected);
  if (std::find(choices.begin(), choices.end(), value) == choices.end()) {
    throw error(key, expected, show_text(value));
  }
  return value;
}

int64_t StrictYaml::any_integer(std::string_view key, const std::string& expected) const {
  const std::string text = plain_scalar(key, expected);
  const std::optional<int64_t> value = read_integer(text);
  if (!value) throw error(key, expected, describe_non_integer(text));
  return *value;
}

bool StrictYaml::has_list(std::string_view key) const {
  const Entry* entry = find(key);
  return entry != nullptr && entry->value.IsSequence() && !is_tagged(entry->value);
}

/// Calls read() for the text of each element, until it gives nothing.
template <class Value>
std::vector<Value> StrictYaml::list(std::string_view key, const std::string& expected,
                                    std::optional<Value> (*read)(std::string_view)) const {
  std::vector<Value> values;
  for (const YAML::Node& each : find(key)->value) {
    const bool is_plain = each.IsScalar() && !is_quoted(each) && !is_tagged(each);
    const std::optional<Value> value = is_plain ? read(each.Scalar()) : std::nullopt;
    if (!value) throw error(key, expected + " in each place", describe(each));
    values.push_back(*value);
  }
  if (values.empty()) throw error(key, expected, "an empty list");
  return values;
}

std::vector<int64_t> StrictYaml::any_integers(std::string_view key, const std::string& expected) const {
  return list<int64_t>(key, expected, read_integer);
}

std::vector<double> StrictYaml::any_numbers(std::string_view key, const std::string& expected) const {
  if (!has_list(key)) plain_scalar(key, expected);  // throws if it is missing
  if (!has_list(key)) throw error(key, expected, "no list");
  return list<double>(key, expected, read_number);
}

int StrictYaml::integer(std::string_view key, const IntegerRange& range) const {
  const int64_t value = any_integer(key, range.describe());
  if (!range.contains(value)) throw error(key, range.describe(), place(key).got);
  return static_cast<int>(value);
}

int StrictYaml::integer_choice(std::string_view key, std::initializer_list<int> choices) const {
  const IntegerChoice choice = {choices};
  const int64_t value = any_integer(key, choice.describe());
  if (!choice.contains(value)) throw error(key, choice.describe(), place(key).got);
  return static_cast<int>(value);
}

double StrictYaml::any_number(std::string_view key, const std::string& expected) const {
  const std::string text = plain_scalar(key, expected);
  const std::optional<double> value = read_number(text);
  if (!value) throw error(key, expected, show_text(text));
  return *value;
}

double StrictYaml::number(std::string_view key, const NumberRange& range) const {
  const double value = any_number(key, range.describe());
  if (!range.contains(value)) throw error(key, range.describe(), place(key).got);
  return value;
}

Place StrictYaml::place(std::string_view key) const {
  const Entry* entry = find(key);
  return {.file = fmt::format("{}:{}", file_, entry->line),
          .key = prefix_ + entry->key,
          .got = show_text(entry->value.Scalar())};
}

bool StrictYaml::boolean(std::string_view key) const {
  const std::string value = plain_scalar(key, "true or false");
  if (value != "true" && value != "false") throw error(key, "true or false", show_text(value));
  return value == "true";
}

StrictYaml StrictYaml::map(std::string_view key) const {
  const Entry* entry = find(key);
  if (!entry) throw error(key, "a map of keys", "no such key");
  return StrictYaml(file_, fmt::format("{}{}.", prefix_, key), entry->value, entry->line);
}

std::string StrictYaml::name() const {
  constexpr size_t kMaxBytes = 128;  // with a card's name it is that of a folder
  const std::string name = text("name");
  const auto is_name_character = [](char c) {
    return is_digit(c) || (c >= 'a' && c <= 'z') || c == '.' || c == '-' || c == '_';
  };
  if (!std::all_of(name.begin(), name.end(), is_name_character)) {
    throw error("name", "lower-case letters, digits, '.', '-' and '_'", show_text(name));
  }
  // Neither a hidden file nor a flag.
  if (name.starts_with('.') || name.starts_with('-')) {
    throw error("name", "a letter or digit at its beginning", show_text(name));
  }
  if (name.empty() || name.size() > kMaxBytes) {
    throw error("name", fmt::format("from 1 to {} characters", kMaxBytes), fmt::format("{}", name.size()));
  }
  return name;
}

std::string StrictYaml::name_of_file() const {
  const std::string name = this->name();
  const std::string stem = std::filesystem::path(file_).stem().string();
  if (name != stem) throw error("name", fmt::format("{} as the file is called", show_text(stem)), name);
  return name;
}

}  // namespace soliton
