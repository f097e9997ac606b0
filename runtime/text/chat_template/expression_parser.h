// The tokens of a template with a place among them, and the parser of expressions, which the parser of
// statements builds on.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/text/chat_template/ast.h"
#include "runtime/text/chat_template/lexer.h"

namespace soliton::jinja {

class TokenStream {
 public:
  TokenStream(std::vector<Token> tokens, std::string_view name) : tokens_(std::move(tokens)), name_(name) {}

  const Token& current() const { return tokens_[position_]; }
  /// The token behind the current one; the end is followed by the end.
  const Token& next() const { return tokens_[std::min(position_ + 1, tokens_.size() - 1)]; }
  /// The current token; moves on.
  Token take();
  bool at(Token::Kind kind) const { return current().kind == kind; }
  bool at(Token::Kind kind, std::string_view text) const { return at(kind) && current().text == text; }
  bool at_name(std::string_view name) const { return at(Token::kName, name); }
  bool at_operator(std::string_view text) const { return at(Token::kOperator, text); }
  bool skip_name(std::string_view name);
  bool skip_operator(std::string_view text);
  /// These take the token that has to come, and throw if it does not.
  Token expect_name();
  void expect_name(std::string_view name);
  void expect_operator(std::string_view text);
  void expect(Token::Kind kind, std::string_view text);

  [[noreturn]] void fail(ExitCode code, int line, const std::string& message) const;
  [[noreturn]] void fail_expecting(std::string_view expected) const;

 private:
  const std::vector<Token> tokens_;
  const std::string_view name_;
  size_t position_ = 0;
};

/// Recursive descent in jinja2's order of precedence.
class ExpressionParser {
 public:
  explicit ExpressionParser(TokenStream& tokens) : tokens_(tokens) {}

  ExpressionPtr expression(bool with_conditional = true);
  /// One expression, or several separated by commas, which are a tuple.
  ExpressionPtr tuple(bool with_conditional = true, bool in_parentheses = false);
  /// Those read since it was set.
  SpecialNames special_names;

  /// The filters here, the first without "|" if `first_is_bare`, applied to `value`, which may be null.
  ExpressionPtr filters(ExpressionPtr value, bool first_is_bare = false);

 private:
  ExpressionPtr either();
  ExpressionPtr both();
  ExpressionPtr negation();
  ExpressionPtr comparison();
  ExpressionPtr sum();
  ExpressionPtr concatenation();
  ExpressionPtr product();
  ExpressionPtr power();
  ExpressionPtr unary(bool with_filters = true);
  ExpressionPtr primary();
  ExpressionPtr list();
  ExpressionPtr dict();
  ExpressionPtr postfix(ExpressionPtr object);
  ExpressionPtr subscript(ExpressionPtr object);
  ExpressionPtr filters_and_tests(ExpressionPtr value);
  ExpressionPtr test(ExpressionPtr value);
  CallArguments arguments();
  Value integer(const Token& token) const;
  std::string dotted_name();
  /// The name, which is read here.
  std::string seen(std::string name);

  ExpressionPtr make(int line, Expression::Node node);

  TokenStream& tokens_;
  int depth_ = 0;  // of parentheses and the like
};

}  // namespace soliton::jinja
