// One pass over the pattern, token by token. It knows where the last thing that can be repeated begins, which groups
// are open, and whether case counts: all that the differences depend on.
#include "runtime/text/tokenizer/pattern_syntax.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <span>
#include <vector>

#include "runtime/text/tokenizer/case_folds.h"
#include "runtime/text/tokenizer/pattern_classes.h"
#include "runtime/text/tokenizer/utf8.h"

namespace soliton::tokenization {
namespace {

// Limits, which keep the work in proportion to the pattern.
constexpr size_t kMaxGroups = 300;  // inside one another; PCRE2 takes fewer
constexpr int kMaxClasses = 50;     // inside one another
constexpr int kMaxStacked = 1000;

class Translator {
 public:
  Translator(std::string_view pattern, const JsonView& where) : pattern_(pattern), where_(where) {}

  std::string run() {
    groups_.push_back({});
    while (i_ < pattern_.size()) {
      const std::string_view rest = pattern_.substr(i_);
      if (rest[0] == '[') {
        read_class();
      } else if (rest[0] == '(') {
        open_group();
      } else if (rest[0] == ')') {
        close_group();
      } else if (const size_t length = quantifier_length()) {
        quantify(length);
      } else if (rest[0] == '\\') {
        escape();
      } else if (rest[0] == '|') {
        copy(1);
        state_ = State::kNothing;
        run_.clear();
      } else if (rest[0] == '^' || rest[0] == '$' || rest[0] == '.') {
        put(std::string(rest.substr(0, 1)), 1);
      } else {
        const Character next = first_character(rest);
        const bool is_brace = rest[0] == '{';  // of no interval: PCRE2's versions differ in what is one
        literal(next.code, (is_brace ? "\\" : "") + std::string(rest.substr(0, next.length)), next.length);
      }
    }
    close_options(groups_.front());
    return std::move(result_);
  }

 private:
  /// What stands last in the result.
  enum class State { kNothing, kAtom, kInterval, kRepeated };

  struct Group {
    size_t begin = 0;  // in the result
    bool ignores_case = false;
    int num_options = 0;  // groups opened for (?i) and the like, which hold to the end of this one
  };

  std::string_view at(size_t length) const { return pattern_.substr(i_, length); }
  void copy(size_t length) {
    result_ += at(length);
    i_ += length;
  }
  /// At least `length` bytes from here on, whole characters.
  std::string_view shown(size_t length) const {
    while (i_ + length < pattern_.size() &&
           (static_cast<unsigned char>(pattern_[i_ + length]) & 0xc0) == 0x80) {
      ++length;
    }
    return at(length);
  }
  Error refuse(std::string_view construct) const {
    return where_.error(ExitCode::kMismatch, "{} means something else to PCRE2: not supported",
                        in_quotes(construct));
  }

  /// Writes something that can be repeated for `length` bytes of the pattern. It ends a run of literals.
  void put(const std::string& atom, size_t length) {
    atom_begin_ = result_.size();
    result_ += atom;
    i_ += length;
    state_ = State::kAtom;
    run_.clear();
  }

  void literal(char32_t code, const std::string& written, size_t length) {
    std::u32string run = std::move(run_);
    put(written, length);
    if (!ignores_case_) return;
    run_ = std::move(run) + folded(code);
    for (const MultipleFold& fold : multiple_folds()) {
      if (!run_.ends_with(fold.folded)) continue;
      std::string text;
      append_character(text, fold.code);
      throw where_.error(ExitCode::kMismatch, "without case {} may be {}, but not to PCRE2: not supported",
                         in_quotes(to_utf8(fold.folded)), in_quotes(text));
    }
  }

  static std::string to_utf8(std::u32string_view codes) {
    std::string text;
    for (const char32_t code : codes) append_character(text, code);
    return text;
  }

  // ---- escapes ----

  /// The character of an escape that stands for one, and the escape's length.
  std::optional<Character> escaped_character() const {
    static constexpr std::string_view kLetters = "tnrfeav";
    static constexpr std::string_view kMeanings = "\t\n\r\f\x1b\a\v";
    const std::string_view rest = pattern_.substr(std::min(i_ + 1, pattern_.size()));
    if (rest.empty()) return std::nullopt;
    const char letter = rest[0];
    if (static_cast<unsigned char>(letter) >= 0x80 || !isalnum(letter)) {
      const Character next = first_character(rest);
      return Character{next.code, 1 + next.length};
    }
    if (const size_t known = kLetters.find(letter); known != kLetters.npos) {
      return Character{static_cast<char32_t>(kMeanings[known]), 2};
    }
    if (letter != 'x' && letter != 'u') return std::nullopt;
    const bool in_braces = letter == 'x' && rest.substr(1).starts_with('{');
    const size_t end = in_braces ? rest.find('}') : letter == 'x' ? 3 : 5;
    const size_t begin = in_braces ? 2 : 1;
    if (end == rest.npos || end > rest.size()) return std::nullopt;
    uint32_t code = 0;
    const auto parsed = std::from_chars(rest.data() + begin, rest.data() + end, code, 16);
    if (parsed.ec != std::errc() || parsed.ptr != rest.data() + end) return std::nullopt;
    // Two digits are a byte to Oniguruma, a character to PCRE2.
    const bool is_same = letter == 'u' || in_braces || code < 0x80;
    const bool is_character = code <= 0x10ffff && (code < 0xd800 || code >= 0xe000);
    if (!is_same || !is_character) return std::nullopt;
    return Character{code, 1 + end + (in_braces ? 1 : 0)};
  }

  void escape() {
    if (const std::optional<Character> character = escaped_character()) {
      return literal(character->code, fmt::format("\\x{{{:x}}}", static_cast<uint32_t>(character->code)),
                     character->length);
    }
    static constexpr std::array<NamedMembers, 3> kKinds = {
        {{"s", kSpace}, {"w", kWordAlone}, {"h", kHexDigit}}};
    const std::string_view two = at(2);
    if (two.size() < 2) return put("\\", 1);  // for PCRE2 to refuse
    const char letter = two[1];
    for (const NamedMembers& kind : kKinds) {
      const bool is_negative = letter == kind.name[0] - 'a' + 'A';
      if (letter == kind.name[0] || is_negative) {
        return put(fmt::format("[{}{}]", is_negative ? "^" : "", kind.members), 2);
      }
    }
    if (letter == 'p' || letter == 'P') {
      size_t length = 0;
      const std::string named = alone(property(length));
      return put(ignores_case_ ? "(?-i:" + named + ")" : named, length);  // to the reference case counts here
    }
    if (letter == 'b' || letter == 'B') return put(boundary(letter == 'b'), 2);
    if (letter == 'R') return put(R"((?>\r\n|[\n-\r\x{85}\x{2028}\x{2029}]))", 2);
    if (letter == 'C') return put("\\C", 2);  // PCRE2 refuses it itself, and says why
    if (std::string_view("AdDzZ").find(letter) == std::string_view::npos) throw refuse(shown(2));
    put(std::string(two), 2);
  }

  static std::string boundary(bool is_one) {
    const char* const form = is_one ? "(?:(?<=[{0}])(?![{0}])|(?<![{0}])(?=[{0}]))"
                                    : "(?:(?<=[{0}])(?=[{0}])|(?<![{0}])(?![{0}]))";
    return fmt::format(fmt::runtime(form), kWordAlone);
  }

  struct Property {
    std::string members;
    bool is_negative;

    bool is_one() const { return members.starts_with("\\p") && members.rfind("\\p") == 0; }
  };

  static std::string alone(const Property& property) {
    if (!property.is_one()) return fmt::format("[{}{}]", property.is_negative ? "^" : "", property.members);
    return (property.is_negative ? "\\P" : "\\p") + property.members.substr(2);
  }

  /// \p{name}, \P{name} and \p{^name} here. Scripts are those of Script, where PCRE2 takes Script_Extensions.
  Property property(size_t& length) const {
    const size_t end = pattern_.find('}', i_);
    if (pattern_.substr(std::min(i_ + 2, pattern_.size()), 1) != "{" || end == pattern_.npos)
      throw refuse(shown(3));
    length = end + 1 - i_;
    std::string_view name = pattern_.substr(i_ + 3, end - i_ - 3);
    bool is_negative = pattern_[i_ + 1] == 'P';
    if (name.starts_with('^')) {
      is_negative = !is_negative;
      name.remove_prefix(1);
    }
    std::string plain;
    for (const char c : name) {
      if (isalpha(static_cast<unsigned char>(c))) {
        plain += static_cast<char>(tolower(c));
      } else if (c != '_' && c != ' ' && c != '-') {
        throw refuse(shown(length));
      }
    }
    if (const std::string_view members = named_members(plain, kNamed.size()); !members.empty()) {
      return {std::string(members), is_negative};
    }
    // Two letters are a category or one of its groups, anything longer a script or a property of its own.
    static constexpr std::array<std::string_view, 8> kProperties = {
        "any", "alphabetic", "uppercase", "lowercase", "whitespace", "ideographic", "emoji", "math"};
    const bool is_script =
        plain.size() > 2 && std::find(kProperties.begin(), kProperties.end(), plain) == kProperties.end();
    return {fmt::format("\\p{{{}{}}}", is_script ? "sc:" : "", name), is_negative};
  }

  // ---- classes ----

  /// A class, written anew. \W has no spelling inside one, so that it becomes an alternative.
  void read_class() {
    const size_t begin = i_++;
    const bool is_negative = at(1) == "^";
    if (is_negative) ++i_;
    std::string members;
    bool has_other = false;  // \W
    for (bool first = true; first || at(1) != "]"; first = false) {
      if (i_ >= pattern_.size()) {  // for PCRE2 to refuse
        i_ = begin;
        return put("[", pattern_.size() - begin);
      }
      if (at(2) == "\\W") {
        has_other = true;
        i_ += 2;
      } else {
        read_member(members);
      }
    }
    const std::string all = fmt::format("[{}]", members);
    std::string written = fmt::format("[{}{}]", is_negative ? "^" : "", members);
    if (has_other && is_negative)
      written = fmt::format("(?:{}[{}])", members.empty() ? "" : "(?!" + all + ")", kWord);
    if (has_other && !is_negative)
      written = fmt::format("(?:{}[^{}])", members.empty() ? "" : all + "|", kWord);
    put(written, 1);
  }

  void read_member(std::string& members) {
    static constexpr std::array<NamedMembers, 5> kKinds = {
        {{"s", kSpace}, {"S", R"(\P{White_Space})"}, {"w", kWord}, {"h", kHexDigit}, {"b", "\\x08"}}};
    if (at(2) == "[:") return read_named_class(members);
    if (at(1) == "[" && at(2) != "[^" && at(2) != "[]") return read_inner_class(members);
    if (const std::optional<char32_t> low = member_character()) return read_range(*low, members);
    const std::string_view two = at(2);
    if (two == "\\p" || two == "\\P") {
      size_t length = 0;
      const Property named = property(length);
      if (ignores_case_ || (named.is_negative && !named.is_one())) throw refuse(shown(length));
      members += named.is_negative ? alone(named) : named.members;
      i_ += length;
      return;
    }
    for (const NamedMembers& kind : kKinds) {
      if (two.substr(1) != kind.name) continue;
      if (ignores_case_ && two == "\\w") throw refuse("(?i)[\\w]");
      members += kind.members;
      i_ += 2;
      return;
    }
    if (two != "\\d" && two != "\\D") throw refuse(shown(2));
    members += two;
    i_ += 2;
  }

  /// A class inside another, whose members are its own.
  void read_inner_class(std::string& members) {
    const size_t begin = i_++;
    ++depth_;
    while (at(1) != "]") {
      if (i_ >= pattern_.size() || depth_ > kMaxClasses) {
        i_ = begin;
        throw refuse(shown(2));
      }
      read_member(members);
    }
    --depth_;
    ++i_;
  }

  /// A class of POSIX, such as [:alpha:].
  void read_named_class(std::string& members) {
    const size_t end = pattern_.find(":]", i_);
    const std::string_view name = end == pattern_.npos ? "" : pattern_.substr(i_ + 2, end - i_ - 2);
    const std::string_view named = named_members(name, kNumPosix);
    if (named.empty() || (ignores_case_ && name != "digit" && name != "space"))
      throw refuse(shown(name.size() + 4));
    members += named;
    i_ = end + 2;
  }

  /// The single character here, if it is one; i_ moves behind it.
  std::optional<char32_t> member_character() {
    if (at(1) == "[") throw refuse(shown(2));  // the complement of a class, or the end of a range
    if (at(2) == "&&") throw refuse("&&");     // an intersection
    std::optional<Character> character;
    if (at(2) == "\\b") {
      character = {'\b', 2};
    } else if (at(1) == "\\") {
      character = escaped_character();
    } else {
      character = first_character(pattern_.substr(i_));
    }
    if (!character) return std::nullopt;
    i_ += character->length;
    return character->code;
  }

  /// The rest of a range that begins with `low`, or `low` alone.
  void read_range(char32_t low, std::string& members) {
    char32_t high = low;
    members += written_member(low);
    const bool is_range = at(1) == "-" && i_ + 1 < pattern_.size() && pattern_[i_ + 1] != ']';
    if (is_range) {
      ++i_;
      const std::optional<char32_t> end = member_character();
      if (!end) throw refuse("-" + std::string(shown(2)));
      high = *end;
      members += "-" + written_member(high);
      if (at(1) == "-" && at(2) != "-]") throw refuse(shown(2));  // behind a range
    }
    if (!ignores_case_) return;
    for (const MultipleFold& fold : multiple_folds()) {
      if (fold.code < low || fold.code > high) continue;
      std::string text;
      append_character(text, fold.code);
      throw where_.error(ExitCode::kMismatch, "without case {} may be {}, but not to PCRE2: not supported",
                         in_quotes(text), in_quotes(to_utf8(fold.folded)));
    }
  }

  static std::string written_member(char32_t code) {
    std::string text;
    append_character(text, code);
    const bool is_plain = code >= 0x80 || isalnum(static_cast<int>(code));
    return is_plain ? text : fmt::format("\\x{{{:x}}}", static_cast<uint32_t>(code));
  }

  // ---- groups ----

  void open_group() {
    if (groups_.size() > kMaxGroups) return copy(pattern_.size() - i_);  // for PCRE2 to refuse
    if (at(2) == "(*") throw refuse(pattern_.substr(i_, pattern_.find(')', i_) + 1 - i_));  // a verb
    if (at(3) == "(?#") {
      while (i_ < pattern_.size() && pattern_[i_] != ')') i_ += pattern_[i_] == '\\' ? 2 : 1;
      i_ = std::min(i_ + 1, pattern_.size());
      return;
    }
    Group group{.begin = result_.size(), .ignores_case = ignores_case_, .num_options = 0};
    if (at(2) != "(?") {
      copy(1);
    } else if (at(3) == "(?<" && at(4) != "(?<=" && at(4) != "(?<!") {  // its name plays no part
      const size_t end = std::min(pattern_.find('>', i_), pattern_.size() - 1);
      result_ += "(?:";
      i_ = end + 1;
    } else {
      const size_t flags_end = std::min(pattern_.find_first_not_of("im-", i_ + 2), pattern_.size() - 1);
      const std::string_view flags = pattern_.substr(i_ + 2, flags_end - i_ - 2);
      const char kind = pattern_[flags_end];
      const bool known = std::string_view(":)=!<>").find(kind) != std::string_view::npos;
      if (!known || std::count(flags.begin(), flags.end(), '-') > 1 ||
          (!flags.empty() && kind != ':' && kind != ')')) {
        throw refuse(shown(flags_end + 1 - i_));
      }
      std::string written(flags);
      std::replace(written.begin(), written.end(), 'm', 's');  // a dot that takes line breaks
      const size_t minus = flags.find('-');
      if (flags.substr(0, minus).find('i') != flags.npos) ignores_case_ = true;
      if (minus != flags.npos && flags.find('i', minus) != flags.npos) ignores_case_ = false;
      i_ = flags_end + 1;
      if (kind == ')') {  // to the end of the group around it, all its further alternatives included
        ++groups_.back().num_options;
        result_ += "(?" + written + ":";
        state_ = State::kNothing;
        run_.clear();
        return;
      }
      result_ += "(?" + written + kind;
      if (kind == '<') copy(1);
    }
    groups_.push_back(group);
    state_ = State::kNothing;
    run_.clear();
  }

  void close_options(const Group& group) { result_.append(static_cast<size_t>(group.num_options), ')'); }

  void close_group() {
    copy(1);
    run_.clear();
    if (groups_.size() < 2) return;  // for PCRE2 to refuse
    const Group group = groups_.back();
    groups_.pop_back();
    close_options(group);
    ignores_case_ = group.ignores_case;
    atom_begin_ = group.begin;
    state_ = State::kAtom;
  }

  // ---- quantifiers ----

  /// Bytes of the quantifier here without what follows it; 0 if there is none.
  size_t quantifier_length() const {
    const std::string_view rest = pattern_.substr(i_);
    if (std::string_view("*+?").find(rest[0]) != std::string_view::npos) return 1;
    if (rest[0] != '{') return 0;
    const size_t end = rest.find_first_not_of("0123456789", 1);
    if (end == rest.npos) return 0;
    if (rest[end] == '}') return end > 1 ? end + 1 : 0;
    if (rest[end] != ',') return 0;
    const size_t last = rest.find_first_not_of("0123456789", end + 1);
    return last != rest.npos && rest[last] == '}' && last > 2 ? last + 1 : 0;
  }

  /// To the reference {n}? and {n,m}+ repeat what is repeated; to PCRE2 they are lazy and possessive.
  void quantify(size_t length) {
    if (state_ == State::kRepeated) throw refuse(pattern_.substr(i_ - 1, length + 1));
    if (state_ == State::kInterval) {
      if (++num_stacked_ > kMaxStacked) throw refuse(shown(length));
      result_.insert(atom_begin_, "(?:");
      result_ += ')';
    }
    const bool is_interval = pattern_[i_] == '{';
    const bool is_fixed = is_interval && at(length).find(',') == std::string_view::npos;
    if (at(2) == "{,") {
      result_ += "{0";
      ++i_;
      --length;
    }
    copy(length);
    run_.clear();
    const bool is_lazy = at(1) == "?" && !is_fixed;
    const bool is_possessive = at(1) == "+" && !is_interval;
    if (is_lazy || is_possessive) copy(1);
    if (state_ == State::kNothing) return;  // for PCRE2 to refuse
    state_ = is_interval && !is_lazy ? State::kInterval : State::kRepeated;
  }

  std::string_view pattern_;
  const JsonView& where_;
  size_t i_ = 0;
  std::string result_;
  State state_ = State::kNothing;
  size_t atom_begin_ = 0;
  std::vector<Group> groups_;  // open ones, the whole pattern first
  bool ignores_case_ = false;
  int depth_ = 0;        // of classes inside classes
  int num_stacked_ = 0;  // intervals that repeat intervals
  std::u32string run_;   // of literals so far, folded; kept where case does not count
};

}  // namespace

std::string to_pcre2(std::string_view pattern, const JsonView& where) {
  return Translator(pattern, where).run();
}

}  // namespace soliton::tokenization
