// One function for each level of precedence, loosest first.
#include "runtime/text/chat_template/expression_parser.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>

namespace soliton::jinja {
namespace {

int nesting(const ExpressionPtr& expression) {
  return expression == nullptr ? 0 : expression->nesting;
}

int nesting(const CallArguments& arguments) {
  int most = 0;
  for (const auto& argument : arguments.positional) most = std::max(most, nesting(argument));
  for (const auto& [name, argument] : arguments.named) most = std::max(most, nesting(argument));
  return most;
}

int nesting(const std::vector<ExpressionPtr>& items) {
  int most = 0;
  for (const ExpressionPtr& item : items) most = std::max(most, nesting(item));
  return most;
}

struct NestingBelow {
  int operator()(const Constant&) const { return 0; }
  int operator()(const Name&) const { return 0; }
  int operator()(const ListLiteral& list) const { return nesting(list.items); }
  int operator()(const TupleLiteral& tuple) const { return nesting(tuple.items); }
  int operator()(const DictLiteral& dict) const {
    int most = 0;
    for (const auto& [key, value] : dict.entries) most = std::max({most, nesting(key), nesting(value)});
    return most;
  }
  int operator()(const Attribute& attribute) const { return nesting(attribute.object); }
  int operator()(const Item& item) const { return std::max(nesting(item.object), nesting(item.key)); }
  int operator()(const Slice& slice) const {
    return std::max({nesting(slice.object), nesting(slice.start), nesting(slice.stop), nesting(slice.step)});
  }
  int operator()(const Call& call) const { return std::max(nesting(call.function), nesting(call.arguments)); }
  int operator()(const Filter& filter) const {
    return std::max(nesting(filter.value), nesting(filter.arguments));
  }
  int operator()(const Test& test) const { return std::max(nesting(test.value), nesting(test.arguments)); }
  int operator()(const Unary& unary) const { return nesting(unary.operand); }
  int operator()(const Binary& binary) const { return std::max(nesting(binary.left), nesting(binary.right)); }
  int operator()(const Logical& logical) const {
    return std::max(nesting(logical.left), nesting(logical.right));
  }
  int operator()(const Concatenation& concatenation) const { return nesting(concatenation.parts); }
  int operator()(const Comparison& comparison) const {
    int most = nesting(comparison.first);
    for (const auto& [op, operand] : comparison.rest) most = std::max(most, nesting(operand));
    return most;
  }
  int operator()(const Conditional& conditional) const {
    return std::max(
        {nesting(conditional.condition), nesting(conditional.then), nesting(conditional.otherwise)});
  }
};

/// The entry of `table` whose operator comes next, or null.
template <class Op, size_t kSize>
const Op* find_operator(const TokenStream& tokens,
                        const std::array<std::pair<std::string_view, Op>, kSize>& table) {
  for (const auto& [text, op] : table) {
    if (tokens.at_operator(text)) return &op;
  }
  return nullptr;
}

constexpr std::array<std::pair<std::string_view, CompareOp>, 6> kCompareOps = {
    {{"==", CompareOp::kEqual},
     {"!=", CompareOp::kNotEqual},
     {"<", CompareOp::kLess},
     {"<=", CompareOp::kLessEqual},
     {">", CompareOp::kGreater},
     {">=", CompareOp::kGreaterEqual}}};
constexpr std::array<std::pair<std::string_view, BinaryOp>, 2> kSumOps = {
    {{"+", BinaryOp::kAdd}, {"-", BinaryOp::kSubtract}}};
constexpr std::array<std::pair<std::string_view, BinaryOp>, 4> kProductOps = {{{"*", BinaryOp::kMultiply},
                                                                               {"/", BinaryOp::kDivide},
                                                                               {"//", BinaryOp::kFloorDivide},
                                                                               {"%", BinaryOp::kModulo}}};

/// Counts a level of recursion for as long as it lives.
class Level {
 public:
  explicit Level(int& depth) : depth_(depth) { ++depth_; }
  ~Level() { --depth_; }
  Level(const Level&) = delete;
  Level& operator=(const Level&) = delete;

 private:
  int& depth_;
};

}  // namespace

// ---- tokens ----

Token TokenStream::take() {
  return tokens_[at(Token::kEnd) ? position_ : position_++];
}

bool TokenStream::skip_name(std::string_view name) {
  if (!at_name(name)) return false;
  ++position_;
  return true;
}

bool TokenStream::skip_operator(std::string_view text) {
  if (!at_operator(text)) return false;
  ++position_;
  return true;
}

Token TokenStream::expect_name() {
  if (!at(Token::kName)) fail_expecting("a name");
  return take();
}

void TokenStream::expect_name(std::string_view name) {
  if (!skip_name(name)) fail_expecting(in_quotes(name));
}

void TokenStream::expect_operator(std::string_view text) {
  if (!skip_operator(text)) fail_expecting(in_quotes(text));
}

void TokenStream::expect(Token::Kind kind, std::string_view text) {
  if (!at(kind)) fail_expecting(in_quotes(text));
  ++position_;
}

void TokenStream::fail(ExitCode code, int line, const std::string& message) const {
  throw file_error(code, fmt::format("{}:{}", name_, line), "{}", message);
}

void TokenStream::fail_expecting(std::string_view expected) const {
  fail(ExitCode::kBadFile, current().line,
       fmt::format("expected {}, got {}", expected, current().describe()));
}

// ---- expressions ----

ExpressionPtr ExpressionParser::make(int line, Expression::Node node) {
  const int levels = 1 + std::visit(NestingBelow{}, node);
  if (levels > kMaxNesting) {
    tokens_.fail(ExitCode::kOutOfMemory, line,
                 fmt::format("expected at most {} nested expressions, got more", kMaxNesting));
  }
  return std::make_unique<const Expression>(Expression{std::move(node), line, levels});
}

ExpressionPtr ExpressionParser::expression(bool with_conditional) {
  const Level level(depth_);
  int line = tokens_.current().line;
  if (depth_ > kMaxNesting) {
    tokens_.fail(ExitCode::kOutOfMemory, line,
                 fmt::format("expected at most {} nested expressions, got more", kMaxNesting));
  }
  ExpressionPtr result = either();
  while (with_conditional && tokens_.skip_name("if")) {
    ExpressionPtr condition = either();
    ExpressionPtr otherwise = tokens_.skip_name("else") ? expression() : nullptr;
    result = make(line, Conditional{std::move(condition), std::move(result), std::move(otherwise)});
    line = tokens_.current().line;
  }
  return result;
}

ExpressionPtr ExpressionParser::tuple(bool with_conditional, bool in_parentheses) {
  const int line = tokens_.current().line;
  const auto at_end = [this] {
    return tokens_.at(Token::kClose) || tokens_.at(Token::kCloseTag) || tokens_.at_operator(")");
  };
  std::vector<ExpressionPtr> items;
  bool is_tuple = false;
  while (!at_end()) {
    items.push_back(expression(with_conditional));
    if (!tokens_.skip_operator(",")) break;
    is_tuple = true;
  }
  if (!is_tuple && !items.empty()) return std::move(items.front());
  if (items.empty() && !in_parentheses) tokens_.fail_expecting("an expression");
  return make(line, TupleLiteral{std::move(items)});
}

ExpressionPtr ExpressionParser::either() {
  int line = tokens_.current().line;
  ExpressionPtr left = both();
  while (tokens_.skip_name("or")) {
    ExpressionPtr right = both();
    left = make(line, Logical{.is_and = false, .left = std::move(left), .right = std::move(right)});
    line = tokens_.current().line;
  }
  return left;
}

ExpressionPtr ExpressionParser::both() {
  int line = tokens_.current().line;
  ExpressionPtr left = negation();
  while (tokens_.skip_name("and")) {
    ExpressionPtr right = negation();
    left = make(line, Logical{.is_and = true, .left = std::move(left), .right = std::move(right)});
    line = tokens_.current().line;
  }
  return left;
}

ExpressionPtr ExpressionParser::negation() {
  const int line = tokens_.current().line;
  int count = 0;
  while (tokens_.skip_name("not")) ++count;
  ExpressionPtr result = comparison();
  for (; count > 0; --count) result = make(line, Unary{UnaryOp::kNot, std::move(result)});
  return result;
}

ExpressionPtr ExpressionParser::comparison() {
  const int line = tokens_.current().line;
  ExpressionPtr first = sum();
  std::vector<std::pair<CompareOp, ExpressionPtr>> rest;
  while (true) {
    if (const CompareOp* op = find_operator(tokens_, kCompareOps)) {
      tokens_.take();
      rest.emplace_back(*op, sum());
    } else if (tokens_.skip_name("in")) {
      rest.emplace_back(CompareOp::kIn, sum());
    } else if (tokens_.at_name("not") && tokens_.next().kind == Token::kName && tokens_.next().text == "in") {
      tokens_.take();
      tokens_.take();
      rest.emplace_back(CompareOp::kNotIn, sum());
    } else {
      break;
    }
  }
  if (rest.empty()) return first;
  return make(line, Comparison{std::move(first), std::move(rest)});
}

ExpressionPtr ExpressionParser::sum() {
  int line = tokens_.current().line;
  ExpressionPtr left = concatenation();
  while (const BinaryOp* op = find_operator(tokens_, kSumOps)) {
    tokens_.take();
    ExpressionPtr right = concatenation();
    left = make(line, Binary{*op, std::move(left), std::move(right)});
    line = tokens_.current().line;
  }
  return left;
}

ExpressionPtr ExpressionParser::concatenation() {
  const int line = tokens_.current().line;
  std::vector<ExpressionPtr> parts;
  do {
    parts.push_back(product());
  } while (tokens_.skip_operator("~"));
  if (parts.size() == 1) return std::move(parts.front());
  return make(line, Concatenation{std::move(parts)});
}

ExpressionPtr ExpressionParser::product() {
  int line = tokens_.current().line;
  ExpressionPtr left = power();
  while (const BinaryOp* op = find_operator(tokens_, kProductOps)) {
    tokens_.take();
    ExpressionPtr right = power();
    left = make(line, Binary{*op, std::move(left), std::move(right)});
    line = tokens_.current().line;
  }
  return left;
}

/// Groups from the left, as in jinja2 before it emits Python.
ExpressionPtr ExpressionParser::power() {
  int line = tokens_.current().line;
  ExpressionPtr left = unary();
  while (tokens_.skip_operator("**")) {
    ExpressionPtr right = unary();
    left = make(line, Binary{BinaryOp::kPower, std::move(left), std::move(right)});
    line = tokens_.current().line;
  }
  return left;
}

ExpressionPtr ExpressionParser::unary(bool with_filters) {
  const Level level(depth_);
  const int line = tokens_.current().line;
  if (depth_ > kMaxNesting) {
    tokens_.fail(ExitCode::kOutOfMemory, line,
                 fmt::format("expected at most {} nested expressions, got more", kMaxNesting));
  }
  ExpressionPtr result;
  if (tokens_.skip_operator("-")) {
    result = make(line, Unary{UnaryOp::kMinus, unary(false)});
  } else if (tokens_.skip_operator("+")) {
    result = make(line, Unary{UnaryOp::kPlus, unary(false)});
  } else {
    result = primary();
  }
  result = postfix(std::move(result));
  return with_filters ? filters_and_tests(std::move(result)) : std::move(result);
}

Value ExpressionParser::integer(const Token& token) const {
  const std::string_view text = token.text;
  const bool prefixed = text.size() > 1 && (text[1] | 0x20) >= 'a';
  const int base = !prefixed ? 10 : (text[1] | 0x20) == 'x' ? 16 : (text[1] | 0x20) == 'o' ? 8 : 2;
  const std::string_view digits = text.substr(prefixed ? 2 : 0);
  int64_t number = 0;
  const auto result = std::from_chars(digits.data(), digits.data() + digits.size(), number, base);
  if (result.ec != std::errc()) {
    tokens_.fail(ExitCode::kMismatch, token.line, "expected integers of 64 bits, got " + in_quotes(text));
  }
  return number;
}

ExpressionPtr ExpressionParser::primary() {
  const Token token = tokens_.current();
  if (tokens_.at_operator("[")) return list();
  if (tokens_.at_operator("{")) return dict();
  if (tokens_.skip_operator("(")) {
    ExpressionPtr inside = tuple(true, true);
    tokens_.expect_operator(")");
    return inside;
  }
  switch (token.kind) {
    case Token::kName:
      tokens_.take();
      if (token.text == "true" || token.text == "True") return make(token.line, Constant{true});
      if (token.text == "false" || token.text == "False") return make(token.line, Constant{false});
      if (token.text == "none" || token.text == "None") return make(token.line, Constant{});
      return make(token.line, Name{seen(token.text)});
    case Token::kString: {
      std::string text;
      while (tokens_.at(Token::kString)) text += tokens_.take().text;
      return make(token.line, Constant{Text(text, Origin::kTemplate)});
    }
    case Token::kInteger:
      tokens_.take();
      return make(token.line, Constant{integer(token)});
    case Token::kFloat:
      tokens_.take();
      return make(token.line, Constant{std::strtod(token.text.c_str(), nullptr)});
    default:
      tokens_.fail_expecting("an expression");
  }
}

ExpressionPtr ExpressionParser::list() {
  const int line = tokens_.take().line;
  std::vector<ExpressionPtr> items;
  while (!tokens_.at_operator("]")) {
    items.push_back(expression());
    if (!tokens_.skip_operator(",")) break;
  }
  tokens_.expect_operator("]");
  return make(line, ListLiteral{std::move(items)});
}

ExpressionPtr ExpressionParser::dict() {
  const int line = tokens_.take().line;
  DictLiteral literal;
  while (!tokens_.at_operator("}")) {
    ExpressionPtr key = expression();
    tokens_.expect_operator(":");
    literal.entries.emplace_back(std::move(key), expression());
    if (!tokens_.skip_operator(",")) break;
  }
  tokens_.expect_operator("}");
  return make(line, std::move(literal));
}

ExpressionPtr ExpressionParser::postfix(ExpressionPtr object) {
  while (true) {
    const int line = tokens_.current().line;
    if (tokens_.skip_operator(".")) {
      if (tokens_.at(Token::kInteger)) {
        object = make(line, Item{std::move(object), make(line, Constant{integer(tokens_.take())})});
      } else {
        object = make(line, Attribute{std::move(object), tokens_.expect_name().text});
      }
    } else if (tokens_.at_operator("[")) {
      object = subscript(std::move(object));
    } else if (tokens_.at_operator("(")) {
      object = make(line, Call{std::move(object), arguments()});
    } else {
      return object;
    }
  }
}

ExpressionPtr ExpressionParser::subscript(ExpressionPtr object) {
  const int line = tokens_.take().line;
  const auto part = [this]() -> ExpressionPtr {
    if (tokens_.at_operator(":") || tokens_.at_operator("]")) return nullptr;
    return expression();
  };
  ExpressionPtr start = part();
  ExpressionPtr result;
  if (tokens_.skip_operator(":")) {
    ExpressionPtr stop = part();
    ExpressionPtr step = tokens_.skip_operator(":") ? part() : nullptr;
    result = make(line, Slice{std::move(object), std::move(start), std::move(stop), std::move(step)});
  } else {
    if (start == nullptr) tokens_.fail_expecting("an expression");
    if (tokens_.at_operator(",")) {
      TupleLiteral keys;
      keys.items.push_back(std::move(start));
      while (tokens_.skip_operator(",")) keys.items.push_back(expression());
      start = make(line, std::move(keys));
    }
    result = make(line, Item{std::move(object), std::move(start)});
  }
  tokens_.expect_operator("]");
  return result;
}

ExpressionPtr ExpressionParser::filters_and_tests(ExpressionPtr value) {
  while (true) {
    const int line = tokens_.current().line;
    if (tokens_.at_operator("|")) {
      value = filters(std::move(value));
    } else if (tokens_.skip_name("is")) {
      value = test(std::move(value));
    } else if (tokens_.at_operator("(")) {
      value = make(line, Call{std::move(value), arguments()});
    } else {
      return value;
    }
  }
}

std::string ExpressionParser::dotted_name() {
  std::string name = tokens_.expect_name().text;
  while (tokens_.skip_operator(".")) name += "." + tokens_.expect_name().text;
  return name;
}

ExpressionPtr ExpressionParser::filters(ExpressionPtr value, bool first_is_bare) {
  while (first_is_bare || tokens_.skip_operator("|")) {
    first_is_bare = false;
    const int line = tokens_.current().line;
    std::string name = dotted_name();
    CallArguments given = tokens_.at_operator("(") ? arguments() : CallArguments{};
    value = make(line, Filter{std::move(value), std::move(name), std::move(given)});
  }
  return value;
}

/// Behind "is". A test may have one argument without parentheses: is divisibleby 3.
ExpressionPtr ExpressionParser::test(ExpressionPtr value) {
  const int line = tokens_.current().line;
  const bool negated = tokens_.skip_name("not");
  std::string name = dotted_name();
  CallArguments given;
  const bool ends = tokens_.at_name("else") || tokens_.at_name("or") || tokens_.at_name("and");
  if (tokens_.at_operator("(")) {
    given = arguments();
  } else if (tokens_.at_name("is")) {
    tokens_.fail_expecting("one test");
  } else if (!ends &&
             (tokens_.at(Token::kName) || tokens_.at(Token::kString) || tokens_.at(Token::kInteger) ||
              tokens_.at(Token::kFloat) || tokens_.at_operator("[") || tokens_.at_operator("{"))) {
    given.positional.push_back(postfix(primary()));
  }
  ExpressionPtr result = make(line, Test{std::move(value), std::move(name), std::move(given)});
  return negated ? make(line, Unary{UnaryOp::kNot, std::move(result)}) : std::move(result);
}

}  // namespace soliton::jinja
