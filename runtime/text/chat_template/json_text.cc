// The text that json.dumps would write, each string with its origin.
#include "runtime/text/chat_template/json_text.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

namespace soliton::jinja {
namespace {

using nlohmann::ordered_json;

Value read(Machine& machine, const ordered_json& json, int depth) {
  if (depth > kMaxValueDepth)
    throw too_much("expected JSON nested at most {} deep, got more", kMaxValueDepth);
  const auto text = [&machine](const std::string& bytes) {
    return machine.text(Text(to_valid_utf8(bytes), Origin::kMessage));
  };
  machine.spend_steps();
  switch (json.type()) {
    case ordered_json::value_t::boolean:
      return json.get<bool>();
    case ordered_json::value_t::number_integer:
      return json.get<int64_t>();
    case ordered_json::value_t::number_unsigned:
      if (json.get<uint64_t>() > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
        throw unsupported("expected integers of 64 bits, got {}", json.get<uint64_t>());
      }
      return static_cast<int64_t>(json.get<uint64_t>());
    case ordered_json::value_t::number_float:
      return json.get<double>();
    case ordered_json::value_t::string:
      return text(json.get_ref<const std::string&>());
    case ordered_json::value_t::array: {
      std::vector<Value> items;
      for (const ordered_json& item : json) items.push_back(read(machine, item, depth + 1));
      return machine.list(std::move(items));
    }
    case ordered_json::value_t::object: {
      Dict dict;
      for (const auto& [key, member] : json.items()) dict.set(text(key), read(machine, member, depth + 1));
      return dict;
    }
    default:
      return Value();
  }
}

class JsonWriter {
 public:
  JsonWriter(Machine& machine, const Arguments& arguments)
      : machine_(machine),
        given_("tojson", arguments, {"ensure_ascii", "indent", "separators", "sort_keys"}) {
    ensure_ascii_ = given_.truth_or(0, false);
    sort_keys_ = given_.truth_or(3, false);
    if (const Value* indent = given_.some(1)) {
      indented_ = true;
      if (indent->text() != nullptr) {
        indent_ = *indent->text();
      } else {
        const int64_t width = std::max<int64_t>(given_.integer_or(1, 0), 0);
        if (width > kMaxIndent)
          throw too_much("tojson: expected an indent of at most {}, got {}", kMaxIndent, width);
        indent_ = Text(std::string(static_cast<size_t>(width), ' '), Origin::kTemplate);
      }
      item_separator_ = Text(",", Origin::kTemplate);
    }
    if (const Value* separators = given_.some(2)) {
      const Sequence* pair = separators->sequence();
      const bool fits =
          pair != nullptr && pair->items.size() == 2 && pair->items[0].text() && pair->items[1].text();
      if (!fits) throw wrong("tojson: expected separators to be two strings");
      item_separator_ = *pair->items[0].text();
      key_separator_ = *pair->items[1].text();
    }
  }

  Text write(const Value& value) {
    write_value(value);
    return std::move(out_);
  }

 private:
  static constexpr int64_t kMaxIndent = 1000;

  void own(std::string_view text) { out_.append(text, Origin::kTemplate); }

  void write_value(const Value& value) {
    machine_.spend_steps();
    if (out_.size() > kMaxOutputBytes) throw too_much("tojson: expected at most {} bytes", kMaxOutputBytes);
    if (value.text() != nullptr) {
      write_string(*value.text());
    } else if (value.is_none() || value.number()) {
      own(scalar(value));
    } else if (value.dict() != nullptr) {
      write_dict(*value.dict());
    } else if (value.sequence() != nullptr && value.sequence()->kind <= Sequence::kTuple) {
      const auto& items = value.sequence()->items;
      write_members('[', ']', items.size(), [&](size_t i) { write_value(items[i]); });
    } else {
      throw wrong("tojson: expected a value that JSON has, got {}", value.type_name());
    }
  }

  static std::string scalar(const Value& value) {
    if (value.is_none()) return "null";
    if (const bool* truth = value.boolean()) return *truth ? "true" : "false";
    if (const auto integer = value.integer()) return std::to_string(*integer);
    const double number = *value.number();
    if (std::isnan(number)) return "NaN";
    if (std::isinf(number)) return number < 0 ? "-Infinity" : "Infinity";
    return float_repr(number);
  }

  void write_dict(const Dict& dict) {
    std::vector<const Dict::Entry*> entries;
    for (const Dict::Entry& entry : dict.entries()) entries.push_back(&entry);
    if (sort_keys_) {
      machine_.spend_steps(dict.weight());
      std::stable_sort(entries.begin(), entries.end(),
                       [](const Dict::Entry* a, const Dict::Entry* b) { return less(a->first, b->first); });
    }
    write_members('{', '}', entries.size(), [&](size_t i) {
      const Value& key = entries[i]->first;
      if (key.text() != nullptr) {
        write_string(*key.text());
      } else if (key.is_none() || key.number()) {
        own("\"" + scalar(key) + "\"");
      } else {
        throw wrong("tojson: expected keys that JSON has, got {}", key.type_name());
      }
      out_.append(key_separator_);
      write_value(entries[i]->second);
    });
  }

  template <class WriteMember>
  void write_members(char open, char close, size_t count, WriteMember write_member) {
    own({&open, 1});
    ++depth_;
    for (size_t i = 0; i < count; ++i) {
      if (i > 0) out_.append(item_separator_);
      new_line();
      write_member(i);
    }
    --depth_;
    if (count > 0) new_line();
    own({&close, 1});
  }

  void new_line() {
    if (!indented_) return;
    own("\n");
    for (int i = 0; i < depth_; ++i) out_.append(indent_);
    machine_.budget().spend_bytes(static_cast<size_t>(depth_) * indent_.size());
  }

  void write_string(const Text& text) {
    machine_.budget().spend_bytes(text.size());
    own("\"");
    std::string escaped;
    size_t position = 0;
    for (const Text::Run& run : text.runs()) {
      escaped.clear();
      while (position < run.end) append_escaped(escaped, next_character(text.bytes(), position));
      out_.append(escaped, run.origin);
    }
    own("\"");
  }

  void append_escaped(std::string& bytes, char32_t character) const {
    static constexpr std::string_view kEscaped = "\"\\\n\r\t\f\b";
    static constexpr std::string_view kLetters = "\"\\nrtfb";
    const auto code = static_cast<uint32_t>(character);
    const size_t known = code < 0x80 ? kEscaped.find(static_cast<char>(code)) : std::string_view::npos;
    if (known != std::string_view::npos) {
      bytes += '\\';
      bytes += kLetters[known];
    } else if (code >= 0x10000 && ensure_ascii_) {
      bytes += fmt::format("\\u{:04x}\\u{:04x}", 0xd800 + ((code - 0x10000) >> 10), 0xdc00 + (code & 0x3ff));
    } else if (code < ' ' || (code > 0x7e && ensure_ascii_)) {
      bytes += code == 0x7f ? "\x7f" : fmt::format("\\u{:04x}", code);
    } else {
      append_utf8(bytes, character);
    }
  }

  Machine& machine_;
  const Parameters given_;
  bool ensure_ascii_ = false;
  bool sort_keys_ = false;
  bool indented_ = false;
  Text indent_;
  Text item_separator_{", ", Origin::kTemplate};
  Text key_separator_{": ", Origin::kTemplate};
  int depth_ = 0;
  Text out_;
};

}  // namespace

Value from_json(Machine& machine, const ordered_json& json) {
  return read(machine, json, 0);
}

Value to_json(Machine& machine, const Value& value, const Arguments& arguments) {
  return machine.text(JsonWriter(machine, arguments).write(value));
}

}  // namespace soliton::jinja
