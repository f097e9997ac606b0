// The reading of patterns.
#include <utility>

#include "runtime/text/constrain/characters.h"
#include "runtime/text/constrain/pattern_reader.h"

namespace soliton::constrain {
namespace {

bool is_decimal(char32_t code) {
  return code >= '0' && code <= '9';
}

class PatternParser : PatternReader {
 public:
  PatternParser(std::string_view pattern, std::string_view place, Dialects dialects)
      : PatternReader(pattern, place, dialects) {}

  Expression run() {
    Expression found = read_choice(0);
    if (peek() != kEndOfText) throw unexpected("an alternative or the end");
    return found;
  }

 private:
  Expression read_choice(int depth) {
    if (depth > kMaxNesting)
      throw error(ExitCode::kOutOfMemory,
                  fmt::format("expected at most {} groups inside one another, got more", kMaxNesting));
    std::vector<Expression> alternatives;
    do {
      alternatives.push_back(read_sequence(depth));
    } while (take('|'));
    return choice(std::move(alternatives));
  }

  Expression read_sequence(int depth) {
    std::vector<Expression> parts;
    for (;;) {
      const char32_t c = peek();
      if (c == kEndOfText || c == '|' || (c == ')' && depth > 0)) return sequence(std::move(parts));
      if (c == '^' || c == '$') {
        take();
        parts.push_back(c == '^' ? Expression{.kind = Expression::kStart} : end());
        continue;
      }
      if (is_text_edge()) {  // of Python and its like; it is malformed in others
        take();
        parts.push_back(take() == 'A' ? Expression{.kind = Expression::kStart} : end());
        continue;
      }
      Expression part = read_part(depth);
      read_repetition(part);
      parts.push_back(std::move(part));
    }
  }

  bool is_text_edge() const {
    const std::string_view rest = pattern_.substr(position_);
    return rest.starts_with("\\A") || rest.starts_with("\\Z") || rest.starts_with("\\z");
  }
  /// Behind $. In some dialects a line break may stand there, if nothing is behind it.
  Expression end() const {
    Expression end{.kind = Expression::kEnd};
    if (dialects_ == Dialects::kAll) return end;
    if (is_behind_) throw unsupported("$ in what must not be there, inside an assertion that looks back");
    Expression line = sequence({codes({{'\n', '\n'}}), end});
    const bool is_last = pattern_.find_first_not_of(')', position_) == std::string_view::npos;
    return choice({std::move(end), is_last ? std::move(line) : asserted(std::move(line), false, false)});
  }

  Expression read_part(int depth) {
    const char32_t c = peek();
    switch (c) {
      case '(':
        return read_group(depth);
      case '[':
        return codes(read_class());
      case '.':
        take();
        return codes(taken(line_codes(), false));
      case '*':
      case '+':
      case '?':
      case ')':
        throw unexpected("something to repeat or an escape");
      case '\\': {
        const bool is_edge = pattern_.substr(position_).starts_with("\\b");
        if (is_edge || pattern_.substr(position_).starts_with("\\B")) return read_word_edge(!is_edge);
        return codes(read_escape());
      }
      default:
        take();
        return codes({{c, c}});
    }
  }

  Expression read_group(int depth) {
    take();
    if (take('?') && !take(':')) {
      for (const std::string_view mark : {"=", "!", "<=", "<!"}) {
        if (pattern_.substr(position_).starts_with(mark)) return read_assertion(mark, depth);
      }
      take('P');
      const bool is_named = peek() == '<';
      const size_t end = pattern_.find('>', position_);
      if (!is_named || end == std::string_view::npos) throw unsupported("a group of the kind (?");
      position_ = end + 1;
    }
    Expression inside = read_choice(depth + 1);
    if (!take(')')) throw unexpected("a )");
    return inside;
  }

  /// Behind (? and its mark. What must not be there is taken as any dialect has it where all are asked.
  Expression read_assertion(std::string_view mark, int depth) {
    position_ += mark.size();
    const bool is_behind = mark.starts_with('<');
    const bool is_negated = mark.ends_with('!');
    if (is_behind && is_asserting_) throw unsupported("an assertion (?< inside another one");
    const Dialects outside = std::exchange(dialects_, is_negated ? opposite(dialects_) : dialects_);
    const bool was_asserting = std::exchange(is_asserting_, true);
    const bool was_behind = std::exchange(is_behind_, is_behind || is_behind_);
    if (was_behind) throw unsupported("an assertion (? inside one that looks back");
    Expression inside = read_choice(depth + 1);
    dialects_ = outside;
    is_asserting_ = was_asserting;
    is_behind_ = was_behind;
    if (!take(')')) throw unexpected("a )");
    return asserted(std::move(inside), is_behind, is_negated);
  }
  static Expression asserted(Expression inside, bool is_behind, bool is_negated) {
    Expression assertion{.kind = is_behind ? Expression::kBehind : Expression::kAhead};
    assertion.is_negated = is_negated;
    assertion.parts.push_back(std::move(inside));
    return assertion;
  }

  /// \b: of the characters before and behind one is of a word; or \B: both are or none is.
  Expression read_word_edge(bool is_inside) {
    if (is_asserting_) throw unsupported("\\b inside an assertion");
    position_ += 2;
    const auto word = [&](bool is_behind, bool is_there) {
      const bool is_least = (dialects_ == Dialects::kAll) == is_there;
      const CodeSet& set = is_least ? word_codes().least : word_codes().most;
      return asserted(codes(set), is_behind, !is_there);
    };
    std::vector<Expression> ways;
    for (const bool is_before : {false, true})
      ways.push_back(sequence({word(true, is_before), word(false, is_before == is_inside)}));
    return choice(std::move(ways));
  }

  void read_repetition(Expression& part) {
    if (take('*')) {
      part = repeat(std::move(part), 0);
    } else if (take('+')) {
      part = repeat(std::move(part), 1);
    } else if (take('?')) {
      part = optional(std::move(part));
    } else if (repeats_by_number()) {
      take();
      const int min = read_count();
      int max = min;
      if (take(',')) max = peek() == '}' ? -1 : read_count();
      if (!take('}')) throw unexpected("a }");
      if (max >= 0 && max < min)
        throw error(ExitCode::kBadFile, "expected bounds that ascend, got a lower second one");
      part = repeat(std::move(part), min, max);
    } else {
      return;
    }
    take('?');  // whether it is the shortest match makes no difference here
    if (peek() == '*' || peek() == '+' || peek() == '?' || repeats_by_number())
      throw unexpected("one repetition");
  }

  /// Else a brace stands for itself.
  bool repeats_by_number() const {
    return peek() == '{' && position_ + 1 < pattern_.size() &&
           is_decimal(static_cast<unsigned char>(pattern_[position_ + 1]));
  }

  int read_count() {
    int count = 0;
    if (!is_decimal(peek())) throw unexpected("a number");
    while (is_decimal(peek())) {
      count = count * 10 + static_cast<int>(take() - '0');
      if (count > kMaxPatternRepetitions) {
        throw error(ExitCode::kOutOfMemory,
                    fmt::format("expected at most {} repetitions, got more", kMaxPatternRepetitions));
      }
    }
    return count;
  }

  bool is_asserting_ = false;  // inside an assertion
  bool is_behind_ = false;     // inside one that looks back
};

}  // namespace

Expression parse_text_pattern(std::string_view pattern, std::string_view place, Dialects dialects) {
  return PatternParser(pattern, place, dialects).run();
}

}  // namespace soliton::constrain
