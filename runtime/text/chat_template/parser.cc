// Statements. Tags of jinja2 that load other templates or turn on escaping are refused by name.
#include "runtime/text/chat_template/parser.h"

#include <algorithm>
#include <array>

#include "runtime/text/chat_template/expression_parser.h"

namespace soliton::jinja {
namespace {

using Ends = std::initializer_list<std::string_view>;

constexpr std::array<std::string_view, 7> kUnsupportedTags = {"autoescape", "block",   "extends", "from",
                                                              "import",     "include", "print"};

class Parser {
 public:
  Parser(std::string_view source, std::string_view name)
      : tokens_(tokenize(source, name), name), expressions_(tokens_) {}

  Block run() {
    Block block = statements({});
    if (!tokens_.at(Token::kEnd)) tokens_.fail_expecting("the end of the template");
    return block;
  }

 private:
  /// Up to a tag in `ends`, whose name is the next token then; without ends, up to the template's end.
  Block statements(Ends ends) {
    if (++depth_ > kMaxNesting) {
      tokens_.fail(ExitCode::kOutOfMemory, tokens_.current().line,
                   fmt::format("expected at most {} nested blocks, got more", kMaxNesting));
    }
    Block block;
    while (!tokens_.at(Token::kEnd)) {
      const Token token = tokens_.take();
      if (token.kind == Token::kText) {
        block.push_back({Literal{Text(token.text, Origin::kTemplate)}, token.line});
      } else if (token.kind == Token::kOpen) {
        block.push_back({Output{expressions_.tuple()}, token.line});
        tokens_.expect(Token::kClose, "}}");
      } else {
        const auto is_current = [this](std::string_view name) { return tokens_.at_name(name); };
        if (std::any_of(ends.begin(), ends.end(), is_current)) {
          --depth_;
          return block;
        }
        block.push_back(statement());
        tokens_.expect(Token::kCloseTag, "%}");
      }
    }
    if (ends.size() > 0) tokens_.fail_expecting(fmt::format("{{% {} %}}", fmt::join(ends, " or ")));
    --depth_;
    return block;
  }

  /// The rest of a tag and its statements up to one of `ends`; the name of that tag is taken and returned.
  std::pair<Block, std::string> body(Ends ends) {
    tokens_.skip_operator(":");
    tokens_.expect(Token::kCloseTag, "%}");
    Block block = statements(ends);
    return {std::move(block), tokens_.take().text};
  }

  Statement statement() {
    const Token tag = tokens_.expect_name();
    using Reader = Statement::Node (Parser::*)();
    static constexpr std::array<std::pair<std::string_view, Reader>, 10> kReaders = {
        {{"if", &Parser::read_if},
         {"for", &Parser::read_for},
         {"set", &Parser::read_set},
         {"macro", &Parser::read_macro},
         {"call", &Parser::read_call},
         {"filter", &Parser::read_filter},
         {"with", &Parser::read_with},
         {"generation", &Parser::read_generation},
         {"break", &Parser::read_break},
         {"continue", &Parser::read_continue}}};
    for (const auto& [name, reader] : kReaders) {
      if (tag.text == name) return {(this->*reader)(), tag.line};
    }
    if (std::find(kUnsupportedTags.begin(), kUnsupportedTags.end(), tag.text) != kUnsupportedTags.end()) {
      tokens_.fail(ExitCode::kMismatch, tag.line,
                   fmt::format("expected a supported tag, got \"{}\"", tag.text));
    }
    tokens_.fail(ExitCode::kBadFile, tag.line, fmt::format("expected a tag, got {}", in_quotes(tag.text)));
  }

  Statement::Node read_if() {
    If result;
    std::string end = "elif";
    while (end == "elif") {
      ExpressionPtr condition = expressions_.tuple(false);
      auto [block, next] = body({"elif", "else", "endif"});
      result.branches.emplace_back(std::move(condition), std::move(block));
      end = next;
    }
    if (end == "else") result.otherwise = body({"endif"}).first;
    return result;
  }

  Statement::Node read_for() {
    For result;
    result.target = target(false);
    tokens_.expect_name("in");
    result.iterable = expressions_.tuple(false);
    if (tokens_.skip_name("if")) result.condition = expressions_.expression();
    result.is_recursive = tokens_.skip_name("recursive");
    ++loops_;
    auto [block, end] = body({"endfor", "else"});
    --loops_;
    result.body = std::move(block);
    if (end == "else") result.otherwise = body({"endfor"}).first;
    return result;
  }

  Statement::Node read_set() {
    Target assigned = target(true);
    if (tokens_.skip_operator("=")) return Set{std::move(assigned), expressions_.tuple()};
    SetBlock result;
    result.target = std::move(assigned);
    result.filter = expressions_.filters(nullptr);
    result.body = body({"endset"}).first;
    return result;
  }

  Statement::Node read_macro() {
    auto macro = std::make_shared<Macro>();
    macro->name = tokens_.expect_name().text;
    macro->parameters = parameters();
    read_body(*macro, "endmacro");
    return std::shared_ptr<const Macro>(std::move(macro));
  }

  Statement::Node read_call() {
    auto macro = std::make_shared<Macro>();
    if (tokens_.at_operator("(")) macro->parameters = parameters();
    CallBlock result;
    const Token begin = tokens_.current();
    result.call = expressions_.expression();
    if (!std::holds_alternative<Call>(result.call->node)) {
      tokens_.fail(ExitCode::kBadFile, begin.line, "expected a call, got " + begin.describe());
    }
    read_body(*macro, "endcall");
    result.macro = std::move(macro);
    return result;
  }

  Statement::Node read_filter() {
    ExpressionPtr filter = expressions_.filters(nullptr, true);
    return FilterBlock{std::move(filter), body({"endfilter"}).first};
  }

  Statement::Node read_with() {
    With result;
    while (!tokens_.at(Token::kCloseTag)) {
      if (!result.values.empty()) tokens_.expect_operator(",");
      Target assigned = target(false);
      tokens_.expect_operator("=");
      result.values.emplace_back(std::move(assigned), expressions_.expression());
    }
    result.body = body({"endwith"}).first;
    return result;
  }

  Statement::Node read_generation() { return Generation{function_body("endgeneration")}; }

  Statement::Node read_break() {
    require_loop("break");
    return Break{};
  }

  Statement::Node read_continue() {
    require_loop("continue");
    return Continue{};
  }

  void require_loop(std::string_view tag) {
    if (loops_ == 0)
      tokens_.fail(ExitCode::kBadFile, tokens_.current().line,
                   fmt::format("expected \"{}\" inside a loop", tag));
  }

  /// A body that runs on its own, so that no break in it ends a loop around it.
  Block function_body(std::string_view end) {
    const int outer_loops = std::exchange(loops_, 0);
    Block block = body({end}).first;
    loops_ = outer_loops;
    return block;
  }

  void read_body(Macro& macro, std::string_view end) {
    const SpecialNames outer = std::exchange(expressions_.special_names, {});
    const int line = tokens_.current().line;
    macro.body = function_body(end);
    SpecialNames& seen = expressions_.special_names;
    macro.takes = seen;
    seen = {outer.caller || seen.caller, outer.varargs || seen.varargs, outer.kwargs || seen.kwargs};
    for (const Parameter& parameter : macro.parameters) {
      if (parameter.name == "varargs") macro.takes.varargs = false;
      if (parameter.name == "kwargs") macro.takes.kwargs = false;
      if (parameter.name != "caller" || !macro.takes.caller) continue;
      if (parameter.fallback == nullptr) {
        tokens_.fail(ExitCode::kBadFile, line, "expected parameter \"caller\" to have a default, got none");
      }
      macro.takes.caller = false;
    }
  }

  std::vector<Parameter> parameters() {
    std::vector<Parameter> result;
    tokens_.expect_operator("(");
    while (!tokens_.at_operator(")")) {
      if (!result.empty()) tokens_.expect_operator(",");
      Parameter parameter{tokens_.expect_name().text, nullptr};
      if (tokens_.skip_operator("=")) {
        parameter.fallback = expressions_.expression();
      } else if (!result.empty() && result.back().fallback != nullptr) {
        tokens_.fail_expecting("a default, as the parameter before has one");
      }
      result.push_back(std::move(parameter));
    }
    tokens_.expect_operator(")");
    return result;
  }

  Target target(bool with_namespace) {
    Target first = single_target(with_namespace);
    if (!tokens_.at_operator(",")) return first;
    Target result;
    result.is_tuple = true;
    result.parts.push_back(std::move(first));
    while (tokens_.skip_operator(",") && tokens_.at(Token::kName) && !tokens_.at_name("in")) {
      result.parts.push_back(single_target(with_namespace));
    }
    return result;
  }

  Target single_target(bool with_namespace) {
    if (tokens_.skip_operator("(")) {
      if (++depth_ > kMaxNesting) tokens_.fail_expecting("a name to assign to");
      Target inside = target(with_namespace);
      --depth_;
      tokens_.expect_operator(")");
      return inside;
    }
    static constexpr std::array<std::string_view, 6> kConstants = {"true", "false", "none",
                                                                   "True", "False", "None"};
    const auto is_current = [this](std::string_view name) { return tokens_.at_name(name); };
    if (std::any_of(kConstants.begin(), kConstants.end(), is_current))
      tokens_.fail_expecting("a name to assign to");
    Target result;
    result.name = tokens_.expect_name().text;
    if (with_namespace && tokens_.skip_operator(".")) result.attribute = tokens_.expect_name().text;
    return result;
  }

  TokenStream tokens_;
  ExpressionParser expressions_;
  int depth_ = 0;  // of blocks and of targets in parentheses
  int loops_ = 0;  // around here
};

}  // namespace

Block parse(std::string_view source, std::string_view name) {
  if (source.size() > kMaxTemplateBytes) {
    throw file_error(ExitCode::kOutOfMemory, name, "expected at most {} bytes, got {}", kMaxTemplateBytes,
                     source.size());
  }
  if (!is_valid_utf8(source)) throw bad_file(name, "expected UTF-8, got other bytes");
  return Parser(source, name).run();
}

}  // namespace soliton::jinja
