#include "runtime/text/constrain/schema_numbers.h"

#include <charconv>
#include <cmath>
#include <numeric>

#include "runtime/text/constrain/text_machine.h"

namespace soliton::constrain {
namespace {

constexpr int kMostDigits = 15;
constexpr int64_t kMostRemainders = 2000;  // times digits behind the point: states of multiples
constexpr size_t kMostNumberStates = 20'000;

/// digits / 10^scale.
struct Decimal {
  int64_t digits;
  int scale;
};

/// Nothing if it has more than 18 digits, or that many behind the point.
std::optional<Decimal> decimal_of(const Schema& value) {
  constexpr int kMost = 18;
  if (!value.is_number()) return std::nullopt;
  const std::string text = value.dump();
  const size_t mark = std::min(text.find_first_of("eE"), text.size());
  int exponent = 0;
  if (mark < text.size()) exponent = std::atoi(text.c_str() + mark + 1);
  std::string digits = text.substr(0, mark);
  const size_t point = digits.find('.');
  if (point != std::string::npos) {
    exponent -= static_cast<int>(digits.size() - point - 1);
    digits.erase(point, 1);
  }
  while (exponent < 0 && digits.ends_with('0') && digits.size() > 1) {
    digits.pop_back();
    ++exponent;
  }
  if (exponent > kMost || exponent < -kMost) return std::nullopt;
  if (exponent > 0) digits.append(static_cast<size_t>(exponent), '0');
  Decimal made{0, std::max(0, -exponent)};
  const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), made.digits);
  if (read.ec != std::errc() || read.ptr != digits.data() + digits.size()) return std::nullopt;
  return made;
}

Expression number_digit(char first = '0', char last = '9') {
  return codes({{static_cast<char32_t>(first), static_cast<char32_t>(last)}});
}
Expression digits_from(int min) {
  return repeat(number_digit(), min);
}
Expression nothing() {
  return choice({});
}

// ---- Bounds that are fractions

/// A bound without its sign: the digits before the point, and those behind it without zeros at the end.
struct Magnitude {
  int64_t whole;
  std::string fraction;
};

Magnitude magnitude_of(const Decimal& decimal) {
  std::string digits = std::to_string(decimal.digits < 0 ? -decimal.digits : decimal.digits);
  const auto scale = static_cast<size_t>(decimal.scale);
  if (digits.size() <= scale) digits.insert(0, scale + 1 - digits.size(), '0');
  std::string fraction = digits.substr(digits.size() - scale);
  while (fraction.ends_with('0')) fraction.pop_back();
  return {std::stoll(digits.substr(0, digits.size() - scale)), fraction};
}

/// Digits that are not all zeros.
Expression zeros_and_more() {
  return sequence({repeat(text("0"), 0), number_digit('1', '9'), digits_from(0)});
}

/// Digits from `index` on that make as much as the fraction's or more.
Expression digits_above(const std::string& fraction, size_t index, bool is_open) {
  if (index == fraction.size()) return is_open ? zeros_and_more() : digits_from(0);
  const char own = fraction[index];
  std::vector<Expression> alternatives;
  alternatives.push_back(sequence({text({&own, 1}), digits_above(fraction, index + 1, is_open)}));
  if (own < '9')
    alternatives.push_back(sequence({number_digit(static_cast<char>(own + 1), '9'), digits_from(0)}));
  return choice(std::move(alternatives));
}
/// The same of as much or less.
Expression digits_below(const std::string& fraction, size_t index, bool is_open) {
  const char own = fraction[index];
  const bool is_last = index + 1 == fraction.size();
  std::vector<Expression> alternatives;
  if (!is_last)
    alternatives.push_back(sequence({text({&own, 1}), optional(digits_below(fraction, index + 1, is_open))}));
  if (is_last && !is_open) alternatives.push_back(sequence({text({&own, 1}), repeat(text("0"), 0)}));
  if (own > '0')
    alternatives.push_back(sequence({number_digit('0', static_cast<char>(own - 1)), digits_from(0)}));
  return choice(std::move(alternatives));
}

Expression any_fraction() {
  return optional(sequence({text("."), digits_from(1)}));
}
Expression magnitudes_above(const Magnitude& bound, bool is_open) {
  Expression behind = sequence(
      {text("."), bound.fraction.empty() ? zeros_and_more() : digits_above(bound.fraction, 0, is_open)});
  if (bound.fraction.empty() && !is_open) behind = any_fraction();
  return choice({sequence({text(std::to_string(bound.whole)), std::move(behind)}),
                 sequence({magnitudes_between(bound.whole + 1, kMaxJsonInteger), any_fraction()})});
}
Expression magnitudes_below(const Magnitude& bound, bool is_open) {
  Expression behind = optional(sequence(
      {text("."), bound.fraction.empty() ? repeat(text("0"), 1) : digits_below(bound.fraction, 0, is_open)}));
  if (bound.fraction.empty() && is_open) behind = nothing();
  return choice({sequence({text(std::to_string(bound.whole)), std::move(behind)}),
                 sequence({magnitudes_between(0, bound.whole - 1), any_fraction()})});
}

/// Numbers from a bound on, or up to it.
Expression numbers_beyond(const Decimal& bound, bool is_open, bool is_low) {
  const Magnitude magnitude = magnitude_of(bound);
  const Expression all = magnitudes_above({0, ""}, false);
  const bool is_negative = bound.digits < 0;
  if (is_low == is_negative) {  // also all of the other sign
    Expression same = magnitudes_below(magnitude, is_open);
    if (is_low) return choice({all, sequence({text("-"), std::move(same)})});
    const Expression others = is_open && bound.digits == 0 ? magnitudes_above({0, ""}, true) : all;
    return choice({std::move(same), sequence({text("-"), others})});
  }
  Expression same = magnitudes_above(magnitude, is_open);
  return is_low ? same : sequence({text("-"), std::move(same)});
}

// ---- Multiples

/// Of digits / 10^scale: what the digits so far leave, for each number of digits behind the point.
Expression multiples_of(const Decimal& of) {
  auto graph = std::make_shared<StateGraph>();
  Expression all{.kind = Expression::kGraph};
  const auto count = static_cast<int>(of.digits);
  const auto state = [&](int behind, int remainder) { return 1 + behind * count + remainder; };
  const auto add = [&](int from, Expression part, int to) {
    graph->edges.push_back({from, to});
    all.parts.push_back(std::move(part));
  };
  // Digits before the point; then state(0, .) with a point is that of no digit behind it.
  graph->num_states = 1 + count * (of.scale + 2);
  add(0, optional(text("-")), state(0, 0));
  for (int behind = 0; behind <= of.scale + 1; ++behind) {
    for (int remainder = 0; remainder < count; ++remainder) {
      const int from = state(behind, remainder);
      // Digits that are not there are zeros.
      int64_t whole = remainder;
      for (int i = std::max(0, behind - 1); i < of.scale; ++i) whole = whole * 10 % count;
      if (whole == 0) graph->ends.push_back(from);
      if (behind == of.scale + 1) {
        add(from, text("0"), from);
        continue;
      }
      if (behind == 0) add(from, text("."), state(1, remainder));
      const int next = behind == 0 ? 0 : behind + 1;
      for (int value = 0; value < 10; ++value) {
        const auto rest = static_cast<int>((int64_t{remainder} * 10 + value) % count);
        const char written = static_cast<char>('0' + value);
        add(from, number_digit(written, written), state(next, rest));
      }
    }
  }
  all.graph = std::move(graph);
  return all;
}

// ---- Schemas

class NumberSchema {
 public:
  NumberSchema(const SchemaDocument& document, const Schema& schema, const std::string& path, bool is_integer)
      : document_(document), schema_(schema), path_(path), is_integer_(is_integer) {}

  Expression written(JsonRules& json) {
    find_bound(true);
    find_bound(false);
    find_multiples();
    if (schema_.contains("~fractions")) {
      if (is_integer_) throw none();
      rules_.push_back(
          {sequence({optional(text("-")), repeat(number_digit(), 1, 9), text("."), zeros_and_more()})});
      most_behind_ = std::min(most_behind_, 6);  // else a double may have no fraction
    }
    if (rules_.empty() && !low_ && !high_) return is_integer_ ? json.integer() : json.number();
    const Bound least = low_.value_or(Bound{-farthest_});
    const Bound most = high_.value_or(Bound{farthest_});
    if (least.value > most.value || (least.value == most.value && (least.is_open || most.is_open)))
      throw none();
    Expression between =
        is_integer_ ? integers_between(least.value, most.value) : numbers_between(least, most);
    if (rules_.empty()) return between;
    rules_.push_back({std::move(between)});
    if (!is_integer_) rules_.push_back({syntax()});
    static const CodeSet kCharacters = {{'-', '.'}, {'0', '9'}};
    const auto as_is = [](const CodeSet& set) { return codes(set); };
    std::optional<Expression> all = text_graph(rules_, {.most_states = kMostNumberStates}, kCharacters, as_is,
                                               [&](size_t steps) { document_.spend(steps, path_); });
    if (!all)
      throw document_.error(ExitCode::kOutOfMemory, member_path(path_, keyword_),
                            "expected one of fewer states, got too many with what stands beside it");
    if (all->kind == Expression::kChoice) throw none();
    return std::move(*all);
  }

 private:
  NoValue none() const { return document_.no_value(path_, "expected a number between the bounds, got none"); }
  Expression syntax() const {
    return sequence({optional(text("-")),
                     choice({text("0"), sequence({number_digit('1', '9'), digits_from(0)})}),
                     optional(sequence({text("."), repeat(number_digit(), 1, most_behind_)}))});
  }

  /// The nearest of minimum and exclusiveMinimum, or those of the other end. Whole ones are bounds, fractions rules.
  void find_bound(bool is_low) {
    for (const bool is_open : {false, true}) {
      const char* const keyword =
          is_low ? (is_open ? "exclusiveMinimum" : "minimum") : (is_open ? "exclusiveMaximum" : "maximum");
      if (!schema_.contains(keyword)) continue;
      const std::string at = member_path(path_, keyword);
      const Schema& value = schema_[keyword];
      if (!value.is_number())
        throw document_.error(ExitCode::kBadFile, at, "expected a number, got {}", value.type_name());
      const auto most = static_cast<double>(kMaxJsonInteger);
      const double number = value.get<double>();
      if (std::abs(number) > most) {
        if (is_low == (number < 0)) continue;  // no bound for the numbers that are written
        throw document_.no_value(at, "expected at {} {}, got {}", is_low ? "most" : "least",
                                 is_low ? most : -most, value.dump());
      }
      const double whole = is_low ? std::ceil(number) : std::floor(number);
      if (whole != number && !is_integer_) add_fraction(value, keyword, is_open, is_low);
      if (whole != number && !is_integer_) continue;
      Bound found{static_cast<int64_t>(whole), is_open && whole == number};
      if (is_integer_ && found.is_open) found = {found.value + (is_low ? 1 : -1)};
      std::optional<Bound>& nearest = is_low ? low_ : high_;
      const bool is_nearer = !nearest ||
                             (is_low ? found.value > nearest->value : found.value < nearest->value) ||
                             (found.value == nearest->value && found.is_open);
      if (is_nearer) nearest = found;
    }
  }
  void add_fraction(const Schema& value, const char* keyword, bool is_open, bool is_low) {
    const std::optional<Decimal> decimal = decimal_of(value);
    if (!decimal) throw document_.unsupported(path_, keyword, "of so many digits");
    rules_.push_back({numbers_beyond(*decimal, is_open, is_low)});
    keyword_ = keyword;
    // No more digits than a double tells apart: who reads one must not read the bound.
    const auto num_whole = static_cast<int>(std::to_string(magnitude_of(*decimal).whole).size());
    if (is_open) most_behind_ = std::max(1, std::min(most_behind_, kMostDigits - num_whole));
  }

  void find_multiples() {
    static const Schema kNone = Schema::array();
    for (const Schema& of : schema_.contains("~multiples") ? schema_["~multiples"] : kNone) {
      const std::string at = member_path(path_, "multipleOf");
      if (!of.is_number() || of <= 0)
        throw document_.error(ExitCode::kBadFile, at, "expected a number above 0, got {}", of.dump());
      std::optional<Decimal> decimal = decimal_of(of);
      if (decimal && is_integer_) {  // whole multiples of 2.5 are those of 5
        const auto one = static_cast<int64_t>(std::pow(10, decimal->scale));
        decimal = Decimal{decimal->digits / std::gcd(decimal->digits, one), 0};
      }
      if (decimal && decimal->digits == 1 && decimal->scale == 0 && is_integer_) continue;
      if (!decimal || decimal->digits > kMostRemainders ||
          decimal->digits * (decimal->scale + 1) > kMostRemainders)
        throw document_.unsupported(path_, "multipleOf", "as " + of.dump());
      rules_.push_back({multiples_of(*decimal)});
      keyword_ = "multipleOf";
      // Each digit has states of its own for all that is left.
      const int64_t num_digits = std::max<int64_t>(6, 4000 / decimal->digits);
      if (num_digits < kMostDigits) farthest_ = static_cast<int64_t>(std::pow(10, num_digits)) - 1;
    }
  }

  const SchemaDocument& document_;
  const Schema& schema_;
  const std::string& path_;
  bool is_integer_;
  std::optional<Bound> low_;
  std::optional<Bound> high_;
  int64_t farthest_ = kMaxJsonInteger;  // from 0, where there is no bound
  int most_behind_ = kMostDigits;       // the point
  std::vector<TextRule> rules_;
  std::string keyword_;  // of the last rule
};

}  // namespace

std::optional<bool> is_multiple(const Schema& value, const Schema& of) {
  std::optional<Decimal> number = decimal_of(value);
  std::optional<Decimal> unit = decimal_of(of);
  if (!number || !unit || unit->digits == 0) return std::nullopt;
  for (auto [one, other] : {std::pair(&*number, &*unit), std::pair(&*unit, &*number)}) {
    for (; one->scale < other->scale; ++one->scale) {
      if (std::abs(one->digits) > kMaxJsonInteger * 100) return std::nullopt;
      one->digits *= 10;
    }
  }
  return number->digits % unit->digits == 0;
}

Expression number_of(const SchemaDocument& document, JsonRules& json, const Schema& schema,
                     const std::string& path, bool is_integer) {
  return NumberSchema(document, schema, path, is_integer).written(json);
}

}  // namespace soliton::constrain
