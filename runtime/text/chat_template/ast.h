// The syntax tree of a template. Every node knows its line; nesting is bounded when the tree is built, so
// that walking it needs no checks of its own.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "runtime/text/chat_template/value.h"

namespace soliton::jinja {

struct Expression;
struct Statement;
using ExpressionPtr = std::unique_ptr<const Expression>;
using Block = std::vector<Statement>;

// ---- expressions ----

struct Constant {
  Value value;
};
struct Name {
  std::string name;
};
struct ListLiteral {
  std::vector<ExpressionPtr> items;
};
struct TupleLiteral {
  std::vector<ExpressionPtr> items;
};
struct DictLiteral {
  std::vector<std::pair<ExpressionPtr, ExpressionPtr>> entries;
};
/// object.name; prefers what the object's type has to what it contains.
struct Attribute {
  ExpressionPtr object;
  std::string name;
};
/// object[key]
struct Item {
  ExpressionPtr object;
  ExpressionPtr key;
};
/// object[start:stop:step]; parts that are left out are null.
struct Slice {
  ExpressionPtr object;
  ExpressionPtr start;
  ExpressionPtr stop;
  ExpressionPtr step;
};
struct CallArguments {
  std::vector<ExpressionPtr> positional;
  std::vector<std::pair<std::string, ExpressionPtr>> named;
  ExpressionPtr unpacked;        // *arguments; may be null
  ExpressionPtr unpacked_named;  // **arguments; may be null
};
struct Call {
  ExpressionPtr function;
  CallArguments arguments;
};
/// value|name(arguments); in a filter block and a filtered set, `value` is null: the text of the block.
struct Filter {
  ExpressionPtr value;
  std::string name;
  CallArguments arguments;
};
/// value is name(arguments)
struct Test {
  ExpressionPtr value;
  std::string name;
  CallArguments arguments;
};
enum class UnaryOp { kNot, kMinus, kPlus };
struct Unary {
  UnaryOp op;
  ExpressionPtr operand;
};
enum class BinaryOp { kAdd, kSubtract, kMultiply, kDivide, kFloorDivide, kModulo, kPower };
struct Binary {
  BinaryOp op;
  ExpressionPtr left;
  ExpressionPtr right;
};
/// left and right, left or right: the operand that decides is the value.
struct Logical {
  bool is_and;
  ExpressionPtr left;
  ExpressionPtr right;
};
/// a ~ b ~ c
struct Concatenation {
  std::vector<ExpressionPtr> parts;
};
enum class CompareOp { kEqual, kNotEqual, kLess, kLessEqual, kGreater, kGreaterEqual, kIn, kNotIn };
/// first op operand op operand ...; true if all neighbours compare so.
struct Comparison {
  ExpressionPtr first;
  std::vector<std::pair<CompareOp, ExpressionPtr>> rest;
};
/// then if condition else otherwise; `otherwise` may be null.
struct Conditional {
  ExpressionPtr condition;
  ExpressionPtr then;
  ExpressionPtr otherwise;
};

struct Expression {
  using Node =
      std::variant<Constant, Name, ListLiteral, TupleLiteral, DictLiteral, Attribute, Item, Slice, Call,
                   Filter, Test, Unary, Binary, Logical, Concatenation, Comparison, Conditional>;
  Node node;
  int line;
  int nesting;  // levels of expressions below, this one included
};

// ---- statements ----

/// What a set or for assigns to: a name, an attribute of a namespace, or several targets.
struct Target {
  std::string name;
  std::string attribute;      // empty: the name itself
  std::vector<Target> parts;  // if not empty, an iterable is dealt to them
  bool is_tuple = false;
};
struct Parameter {
  std::string name;
  ExpressionPtr fallback;  // null: undefined
};

struct Literal {
  Text text;
};
struct Output {
  ExpressionPtr value;
};
struct If {
  std::vector<std::pair<ExpressionPtr, Block>> branches;
  Block otherwise;
};
struct For {
  Target target;
  ExpressionPtr iterable;
  ExpressionPtr condition;  // of "for ... if"; may be null
  bool is_recursive = false;
  Block body;
  Block otherwise;
};
struct Set {
  Target target;
  ExpressionPtr value;
};
/// {% set x %}...{% endset %}; `filter` may be null.
struct SetBlock {
  Target target;
  ExpressionPtr filter;
  Block body;
};
/// The names that a macro's body reads and a call gives it a value for, besides its parameters.
struct SpecialNames {
  bool caller = false;
  bool varargs = false;
  bool kwargs = false;
};
struct Macro {
  std::string name;  // empty: the body of a call block
  std::vector<Parameter> parameters;
  SpecialNames takes;
  Block body;
};
/// {% call(parameters) function() %}...{% endcall %}; `macro` is the body, which the function gets as caller.
struct CallBlock {
  std::shared_ptr<const Macro> macro;
  ExpressionPtr call;
};
struct FilterBlock {
  ExpressionPtr filter;
  Block body;
};
struct With {
  std::vector<std::pair<Target, ExpressionPtr>> values;
  Block body;
};
/// {% generation %}: marks what a model would write; here only a scope.
struct Generation {
  Block body;
};
struct Break {};
struct Continue {};

struct Statement {
  using Node = std::variant<Literal, Output, If, For, Set, SetBlock, std::shared_ptr<const Macro>, CallBlock,
                            FilterBlock, With, Generation, Break, Continue>;
  Node node;
  int line;
};

}  // namespace soliton::jinja
