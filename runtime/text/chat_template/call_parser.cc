// The arguments of calls, filters and tests, and the names in expressions that macros give a meaning to.
#include "runtime/text/chat_template/expression_parser.h"

namespace soliton::jinja {

std::string ExpressionParser::seen(std::string name) {
  special_names.caller = special_names.caller || name == "caller";
  special_names.varargs = special_names.varargs || name == "varargs";
  special_names.kwargs = special_names.kwargs || name == "kwargs";
  return name;
}

CallArguments ExpressionParser::arguments() {
  tokens_.expect_operator("(");
  CallArguments given;
  while (!tokens_.at_operator(")")) {
    const bool is_named =
        tokens_.at(Token::kName) && tokens_.next().kind == Token::kOperator && tokens_.next().text == "=";
    if (given.unpacked_named != nullptr) tokens_.fail_expecting("no argument behind \"**\"");
    if (tokens_.skip_operator("**")) {
      given.unpacked_named = expression();
    } else if (is_named) {
      std::string name = tokens_.take().text;
      tokens_.take();
      given.named.emplace_back(std::move(name), expression());
    } else {
      if (given.unpacked != nullptr) tokens_.fail_expecting("a named argument behind \"*\"");
      if (tokens_.skip_operator("*")) {
        given.unpacked = expression();
      } else {
        if (!given.named.empty()) tokens_.fail_expecting("a named argument");
        given.positional.push_back(expression());
      }
    }
    if (!tokens_.skip_operator(",")) break;
  }
  tokens_.expect_operator(")");
  return given;
}

}  // namespace soliton::jinja
