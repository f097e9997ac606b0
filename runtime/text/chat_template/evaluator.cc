// Scopes are jinja2's: a for, a with, a macro and a block that is captured have one of their own, an if has
// none. A macro sees the scope it was defined in, as it is at the call. One thing is left out: if a scope
// assigns a name without reading it first, jinja2 hides the caller's variable of that name from macros and
// blocks inside, even before the assignment.
#include "runtime/text/chat_template/evaluator.h"

#include <algorithm>
#include <type_traits>

#include "runtime/text/chat_template/builtins.h"
#include "runtime/text/chat_template/calls.h"
#include "runtime/text/chat_template/operators.h"
#include "runtime/text/chat_template/scope.h"

namespace soliton::jinja {
namespace {

class Evaluator {
 public:
  Evaluator(Machine& machine, std::string_view name, std::map<std::string, Value> variables)
      : machine_(machine), name_(name) {
    auto globals = std::make_shared<Scope>();
    for (const auto& [function, value] : global_functions()) globals->variables.emplace(function, value);
    for (auto& [variable, value] : variables) globals->variables.insert_or_assign(variable, std::move(value));
    scope_ = std::make_shared<Scope>(Scope{std::move(globals), {}});
  }

  ~Evaluator() {
    // A macro is a variable of the scope that it keeps alive.
    for (const auto& scope : captured_) scope->variables.clear();
  }

  Text run(const Block& block) {
    try {
      Text text;
      out_ = &text;
      execute(block);
      return text;
    } catch (const Fault& fault) {
      throw file_error(fault.code(), fmt::format("{}:{}", name_, line_), "{}", fault.what());
    }
  }

  // ---- expressions ----

  Value operator()(const Constant& constant) { return constant.value; }

  Value operator()(const Name& name) {
    if (const Value* found = find(name.name)) return *found;
    if (name.name == "self") throw unsupported("expected a supported variable, got self");
    return Value::undefined(fmt::format("'{}' is undefined", name.name));
  }

  Value operator()(const ListLiteral& list) { return machine_.list(evaluate_all(list.items)); }
  Value operator()(const TupleLiteral& tuple) {
    machine_.budget().spend_bytes(tuple.items.size() * sizeof(Value));
    return Value::tuple(evaluate_all(tuple.items));
  }
  Value operator()(const DictLiteral& literal) {
    Dict dict;
    machine_.budget().spend_bytes(literal.entries.size() * sizeof(Dict::Entry));
    for (const auto& [key_expression, value_expression] : literal.entries) {
      Value key = evaluate(*key_expression);
      machine_.spend_steps(key.weight());
      dict.set(std::move(key), evaluate(*value_expression));
    }
    return dict;
  }

  Value operator()(const Attribute& attribute) {
    const Value object = evaluate(*attribute.object);
    return at_line([&] { return get_attribute(machine_, object, attribute.name); });
  }
  Value operator()(const Item& item) {
    const Value object = evaluate(*item.object);
    const Value key = evaluate(*item.key);
    return at_line([&] { return get_item(machine_, object, key); });
  }
  Value operator()(const Slice& slice) {
    const Value object = evaluate(*slice.object);
    const auto part = [this](const ExpressionPtr& bound) {
      return bound == nullptr ? Value() : evaluate(*bound);
    };
    const Value start = part(slice.start);
    const Value stop = part(slice.stop);
    const Value step = part(slice.step);
    return at_line([&] { return get_slice(machine_, object, start, stop, step); });
  }

  Value operator()(const Call& call) { return evaluate_call(call, nullptr); }

  Value operator()(const Filter& filter) {
    const Value value = filter.value == nullptr ? block_value_ : evaluate(*filter.value);
    const Arguments arguments = evaluate_arguments(filter.arguments);
    return at_line([&] { return apply_filter(machine_, filter.name, value, arguments); });
  }
  Value operator()(const Test& test) {
    const Value value = evaluate(*test.value);
    const Arguments arguments = evaluate_arguments(test.arguments);
    return at_line([&] { return Value(apply_test(machine_, test.name, value, arguments)); });
  }

  Value operator()(const Unary& unary) {
    const Value operand = evaluate(*unary.operand);
    return at_line([&]() -> Value {
      if (unary.op == UnaryOp::kNot) return !truthy(operand);
      const Value minus = negated(operand);
      return unary.op == UnaryOp::kMinus ? minus : negated(minus);
    });
  }
  Value operator()(const Binary& binary) {
    const Value left = evaluate(*binary.left);
    const Value right = evaluate(*binary.right);
    return at_line([&] { return arithmetic(machine_, binary.op, left, right); });
  }
  Value operator()(const Logical& logical) {
    Value left = evaluate(*logical.left);
    return truthy(left) == logical.is_and ? evaluate(*logical.right) : left;
  }
  Value operator()(const Concatenation& concatenation) {
    Text text;
    for (const ExpressionPtr& part : concatenation.parts) {
      const Value value = evaluate(*part);
      machine_.budget().spend_bytes(value.weight());
      at_line([&] { text.append(to_text(value)); });
    }
    return machine_.text(std::move(text));
  }
  Value operator()(const Comparison& comparison) {
    Value left = evaluate(*comparison.first);
    for (const auto& [op, operand] : comparison.rest) {
      Value right = evaluate(*operand);
      if (!at_line([&, op = op] { return compare(machine_, op, left, right); })) return false;
      left = std::move(right);
    }
    return true;
  }
  Value operator()(const Conditional& conditional) {
    if (truthy(evaluate(*conditional.condition))) return evaluate(*conditional.then);
    if (conditional.otherwise != nullptr) return evaluate(*conditional.otherwise);
    return Value::undefined("the condition is false and there is no else");
  }

  // ---- statements ----

  enum class Flow { kNext, kBreak, kContinue };

  Flow operator()(const Literal& literal) {
    write(literal.text);
    return Flow::kNext;
  }
  Flow operator()(const Output& output) {
    const Value value = evaluate(*output.value);
    at_line([&] {
      machine_.spend_steps(value.weight());
      value.text() != nullptr ? write(*value.text()) : write(to_text(value));
    });
    return Flow::kNext;
  }
  Flow operator()(const If& statement) {
    for (const auto& [condition, body] : statement.branches) {
      if (truthy(evaluate(*condition))) return execute(body);
    }
    return execute(statement.otherwise);
  }
  Flow operator()(const For& statement);
  Flow operator()(const Set& statement) {
    Value value = evaluate(*statement.value);
    at_line([&] { assign(statement.target, std::move(value)); });
    return Flow::kNext;
  }
  Flow operator()(const SetBlock& statement) {
    assign(statement.target, filtered(statement.filter, capture(statement.body)));
    return Flow::kNext;
  }
  Flow operator()(const std::shared_ptr<const Macro>& macro) {
    scope_->variables.insert_or_assign(macro->name, make_macro(*macro));
    return Flow::kNext;
  }
  Flow operator()(const CallBlock& statement) {
    const Value caller = make_macro(*statement.macro);
    const Value result = evaluate_call(std::get<Call>(statement.call->node), &caller);
    write(to_text(result));
    return Flow::kNext;
  }
  Flow operator()(const FilterBlock& statement) {
    write(to_text(filtered(statement.filter, capture(statement.body))));
    return Flow::kNext;
  }
  Flow operator()(const With& statement) {
    auto inner = std::make_shared<Scope>(Scope{scope_, {}});
    for (const auto& [target, expression] : statement.values) {
      Value value = evaluate(*expression);
      const Restored scope(scope_, inner);
      assign(target, std::move(value));
    }
    const Restored scope(scope_, std::move(inner));
    return execute(statement.body);
  }
  Flow operator()(const Generation& statement) {
    write(capture(statement.body));
    return Flow::kNext;
  }
  Flow operator()(const Break&) { return Flow::kBreak; }
  Flow operator()(const Continue&) { return Flow::kContinue; }

 private:
  Value evaluate(const Expression& expression) {
    const Machine::Level level(machine_);
    const Restored node_line(node_line_, expression.line);
    line_ = expression.line;
    machine_.spend_steps();
    return std::visit(*this, expression.node);
  }

  /// Does the work of the current node itself, after that of its parts, which have lines of their own.
  template <class Work>
  std::invoke_result_t<Work> at_line(Work work) {
    line_ = node_line_;
    return work();
  }

  Flow execute(const Block& block) {
    const Machine::Level level(machine_);
    for (const Statement& statement : block) {
      const Restored node_line(node_line_, statement.line);
      line_ = statement.line;
      machine_.spend_steps();
      if (const Flow flow = std::visit(*this, statement.node); flow != Flow::kNext) return flow;
    }
    return Flow::kNext;
  }

  const Value* find(const std::string& name) const {
    for (const Scope* scope = scope_.get(); scope != nullptr; scope = scope->parent.get()) {
      const auto found = scope->variables.find(name);
      if (found != scope->variables.end()) return &found->second;
    }
    return nullptr;
  }

  std::vector<Value> evaluate_all(const std::vector<ExpressionPtr>& expressions) {
    std::vector<Value> values;
    values.reserve(expressions.size());
    for (const ExpressionPtr& expression : expressions) values.push_back(evaluate(*expression));
    return values;
  }

  /// `caller` is what a call block passes on, between the named arguments and those unpacked.
  Arguments evaluate_arguments(const CallArguments& given, const Value* caller = nullptr) {
    Arguments arguments;
    arguments.positional = evaluate_all(given.positional);
    for (const auto& [name, expression] : given.named)
      arguments.named.emplace_back(name, evaluate(*expression));
    if (caller != nullptr) arguments.named.emplace_back("caller", *caller);
    if (given.unpacked != nullptr) {
      const Value several = evaluate(*given.unpacked);
      for (Value& value : at_line([&] { return machine_.items(several); }))
        arguments.positional.push_back(std::move(value));
    }
    if (given.unpacked_named != nullptr) {
      const Value several = evaluate(*given.unpacked_named);
      at_line([&] { unpack_named(several, arguments); });
    }
    return arguments;
  }

  Value evaluate_call(const Call& call, const Value* caller) {
    const Value function = evaluate(*call.function);
    const Arguments arguments = evaluate_arguments(call.arguments, caller);
    return at_line([&] {
      function.require_defined();
      if (function.loop() != nullptr) return call_loop(*function.loop(), arguments);
      if (function.callable() == nullptr)
        throw wrong("expected a function to call, got {}", function.type_name());
      for (const Value& argument : arguments.positional) machine_.spend_steps(argument.weight());
      return function.callable()->body(machine_, arguments);
    });
  }

  void write(const Text& text) {
    machine_.budget().spend_bytes(text.size());
    out_->append(text);
    if (out_->size() > kMaxOutputBytes)
      throw too_much("expected at most {} bytes of text, got more", kMaxOutputBytes);
  }

  /// What `body` writes, in a scope of its own.
  Text capture(const Block& body) {
    Text text;
    const Restored out(out_, &text);
    const Restored scope(scope_, std::make_shared<Scope>(Scope{scope_, {}}));
    execute(body);
    return text;
  }

  Value filtered(const ExpressionPtr& filter, Text text) {
    Value value = machine_.text(std::move(text));
    if (filter == nullptr) return value;
    const Restored block_value(block_value_, std::move(value));
    return evaluate(*filter);
  }

  void assign(const Target& target, Value value) {
    if (target.is_tuple) {
      std::vector<Value> parts = machine_.items(value);
      if (parts.size() != target.parts.size()) {
        throw wrong("expected {} values to unpack, got {}", target.parts.size(), parts.size());
      }
      for (size_t i = 0; i < parts.size(); ++i) assign(target.parts[i], std::move(parts[i]));
    } else if (target.attribute.empty()) {
      scope_->variables.insert_or_assign(target.name, std::move(value));
    } else {
      const Value* found = find(target.name);
      if (found == nullptr) throw wrong("'{}' is undefined", target.name);
      Namespace* names = found->name_space();
      if (names == nullptr)
        throw wrong("expected a namespace to set {} of, got {}", target.attribute, found->type_name());
      machine_.budget().spend_bytes(sizeof(Dict::Entry));
      names->attributes.set(Value::own_text(target.attribute), std::move(value));
    }
  }

  Value make_macro(const Macro& macro) {
    captured_.push_back(scope_);
    machine_.budget().spend_bytes(sizeof(Callable) + sizeof(Scope) + sizeof(Dict));
    Callable result{macro.name, [this, &macro, scope = scope_](Machine&, const Arguments& arguments) {
                      return call_macro(macro, scope, arguments);
                    }};
    result.attributes = std::make_shared<const Dict>(macro_attributes(macro));
    return result;
  }

  Value call_loop(const Loop& loop, const Arguments& arguments);
  Flow run_loop(const For& statement, const Value& iterable, size_t depth);
  Text render_loop(const For& statement, const std::shared_ptr<Scope>& around, const Value& iterable,
                   size_t depth);
  void bind_further(const Macro& macro, const Arguments& arguments);
  Value call_macro(const Macro& macro, const std::shared_ptr<Scope>& defined_in, const Arguments& arguments);

  Machine& machine_;
  const std::string_view name_;
  std::shared_ptr<Scope> scope_;
  std::vector<std::shared_ptr<Scope>> captured_;  // by macros
  Text* out_ = nullptr;
  Value block_value_;  // what the filters of a block begin with
  int line_ = 1;       // where an error is
  int node_line_ = 1;  // of the node that is evaluated
};

// ---- loops ----

Evaluator::Flow Evaluator::operator()(const For& statement) {
  const Value iterable = evaluate(*statement.iterable);
  if (!statement.is_recursive) return run_loop(statement, iterable, 0);
  write(render_loop(statement, scope_, iterable, 0));
  return Flow::kNext;
}

Evaluator::Flow Evaluator::run_loop(const For& statement, const Value& iterable, size_t depth) {
  std::vector<Value> items = at_line([&] { return machine_.items(iterable); });
  const auto inner_scope = [this] { return std::make_shared<Scope>(Scope{scope_, {}}); };
  if (statement.condition != nullptr) {
    std::erase_if(items, [&](const Value& item) {
      const Restored scope(scope_, inner_scope());
      assign(statement.target, item);
      return !truthy(evaluate(*statement.condition));
    });
  }
  const auto loop = std::make_shared<Loop>();
  loop->items = std::move(items);
  loop->depth = depth;
  const LoopEnd loop_end(*loop);
  if (statement.is_recursive) {
    loop->recurse = [this, &statement, depth, around = scope_](const Value& inside) {
      return machine_.text(render_loop(statement, around, inside, depth + 1));
    };
  }
  bool any_finished = false;
  for (; loop->index < loop->items.size(); ++loop->index) {
    machine_.spend_steps();
    const Restored scope(scope_, inner_scope());
    scope_->variables.emplace("loop", loop);
    line_ = node_line_;
    assign(statement.target, loop->items[loop->index]);
    const Flow flow = execute(statement.body);
    if (flow == Flow::kBreak) break;
    any_finished = any_finished || flow == Flow::kNext;
  }
  if (any_finished) return Flow::kNext;
  // As in jinja2, also if every turn was cut short by break or continue.
  const Restored scope(scope_, inner_scope());
  return execute(statement.otherwise);
}

/// A recursive loop is a function: it sees the scope around the loop, from wherever it is called.
Text Evaluator::render_loop(const For& statement, const std::shared_ptr<Scope>& around, const Value& iterable,
                            size_t depth) {
  Text text;
  const Restored out(out_, &text);
  const Restored node_line(node_line_, node_line_);
  const Restored scope(scope_, around);
  run_loop(statement, iterable, depth);
  return text;
}

Value Evaluator::call_loop(const Loop& loop, const Arguments& arguments) {
  const Parameters given("loop", arguments, {"iterable"}, 1);
  if (!loop.recurse) throw wrong("expected a recursive loop to call, got one that is not");
  return loop.recurse(*given[0]);
}

// ---- macros ----

/// What a call gives beyond the parameters: the caller, named and positional arguments.
void Evaluator::bind_further(const Macro& macro, const Arguments& arguments) {
  auto& variables = scope_->variables;
  Dict further;
  if (macro.takes.caller) variables.emplace("caller", Value::undefined("No caller defined"));
  for (const auto& [name, value] : arguments.named) {
    const auto has_name = [&name = name](const Parameter& parameter) { return parameter.name == name; };
    const auto parameter = std::find_if(macro.parameters.begin(), macro.parameters.end(), has_name);
    const auto index = static_cast<size_t>(parameter - macro.parameters.begin());
    if (index < macro.parameters.size() && index >= arguments.positional.size()) {
      variables.insert_or_assign(name, value);
    } else if (name == "caller" && macro.takes.caller) {
      if (!value.is_none()) variables.insert_or_assign(name, value);
    } else if (macro.takes.kwargs) {
      further.set(Value::own_text(name), value);
    } else {
      throw wrong("{}: expected no argument named {}", macro.name, in_quotes(name));
    }
  }
  if (macro.takes.kwargs) variables.emplace("kwargs", std::move(further));
  if (!macro.takes.varargs) return;
  const size_t used = std::min(arguments.positional.size(), macro.parameters.size());
  machine_.budget().spend_bytes((arguments.positional.size() - used) * sizeof(Value));
  const auto begin = arguments.positional.begin() + static_cast<ptrdiff_t>(used);
  variables.emplace("varargs", Value::tuple({begin, arguments.positional.end()}));
}

Value Evaluator::call_macro(const Macro& macro, const std::shared_ptr<Scope>& defined_in,
                            const Arguments& arguments) {
  const std::vector<Parameter>& parameters = macro.parameters;
  if (arguments.positional.size() > parameters.size() && !macro.takes.varargs) {
    throw wrong("{}: expected at most {} arguments, got {}", macro.name, parameters.size(),
                arguments.positional.size());
  }
  Text text;
  const Restored out(out_, &text);
  const Restored node_line(node_line_, node_line_);
  const Restored scope(scope_, std::make_shared<Scope>(Scope{defined_in, {}}));
  auto& variables = scope_->variables;
  for (size_t i = 0; i < std::min(arguments.positional.size(), parameters.size()); ++i)
    variables[parameters[i].name] = arguments.positional[i];
  bind_further(macro, arguments);
  for (const Parameter& parameter : parameters) {
    if (variables.contains(parameter.name)) continue;
    Value value = parameter.fallback != nullptr
                      ? evaluate(*parameter.fallback)
                      : Value::undefined(fmt::format("parameter '{}' was not provided", parameter.name));
    variables.emplace(parameter.name, std::move(value));
  }
  execute(macro.body);
  return machine_.text(std::move(text));
}

}  // namespace

Text render(Machine& machine, const Block& block, std::string_view name,
            std::map<std::string, Value> variables) {
  return Evaluator(machine, name, std::move(variables)).run(block);
}

}  // namespace soliton::jinja
