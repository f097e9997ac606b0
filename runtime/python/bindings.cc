// soliton.hpp as a module of Python, without more: soliton/__init__.py makes it pleasant. Whatever may wait for the device,
// destructors too, lets go of the GIL: see interpreter.h.
#include <interpreter.h>
#include <nanobind/nanobind.h>
#include <nanobind/stl/function.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <optional>
#include <soliton.hpp>
#include <utility>

namespace nb = nanobind;
using soliton::Answer;
using soliton::Options;
using soliton::Tokens;

namespace {

using interpreter::Released;

/// Around a call that may take long.
struct LongCall {
  const interpreter::Call call;
  const Released released;
};

/// A handle that is closed without the GIL.
template <class Handle>
class Owned {
 public:
  template <class... Args>
  explicit Owned(std::in_place_t, Args&&... args) {
    const LongCall call;
    handle_.emplace(std::forward<Args>(args)...);
    if constexpr (!std::is_same_v<Handle, soliton::Model>)
      handle_->ask(interpreter::Interrupts::ends, &interrupts_);
  }
  Owned(const Owned&) = delete;
  Owned& operator=(const Owned&) = delete;
  ~Owned() {
    const Released released;
    handle_.reset();
  }

  Handle& get() { return *handle_; }

  /// What act() returns, or what Ctrl-C has raised meanwhile.
  template <class Act>
  auto call(const Act& act) {
    try {
      auto result = [&] {
        const LongCall call;
        return act(*handle_);
      }();
      interrupts_.raise();
      return result;
    } catch (const soliton::Error&) {
      interrupts_.raise();
      throw;
    }
  }

 private:
  interpreter::Interrupts interrupts_;
  std::optional<Handle> handle_;
};

using Model = Owned<soliton::Model>;
using Session = Owned<soliton::Session>;
using Tree = Owned<soliton::Tree>;

/// Asks the function of Python, if it is none but None.
soliton::OnToken on_token(const nb::object& function) {
  return [&function, is_none = function.is_none()](const soliton_token& token) {
    if (interpreter::is_ending()) return false;
    if (is_none) return true;
    const nb::gil_scoped_acquire acquired;
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
    const nb::object wanted =
        function(token.branch, token.id, nb::str(token.text, token.text_bytes), token.logprob);
    return wanted.is_none() || nb::cast<bool>(wanted);
  };
}

void construct(Model* model, const std::string& folder, int device, int context, std::int64_t cache_tokens,
               const std::string& kernel, const std::string& chat_template, const nb::object& log) {
  soliton::ModelOptions options;
  options.device = device;
  options.context = context;
  options.cache_tokens = cache_tokens;
  options.kernel = kernel;
  options.chat_template = chat_template;
  std::optional<nb::python_error> failure;
  options.log = [&](const std::string& line) {
    if (interpreter::is_ending()) return;
    const nb::gil_scoped_acquire acquired;
    try {
      if (!log.is_none() && !failure) log(line);
    } catch (nb::python_error& error) {
      failure.emplace(std::move(error));
    }
  };
  new (model) Model(std::in_place, folder, options);
  if (!failure) return;
  model->~Model();
  throw std::move(*failure);
}

Answer generate(Session& session, const Tokens& prompt, const Options& options, const nb::object& function) {
  const soliton::OnToken told = on_token(function);
  return session.call([&](soliton::Session& open) { return open.generate(prompt, options, told); });
}

std::vector<Answer> decode(Tree& tree, const std::vector<std::int32_t>& branches, const Options& options,
                           const nb::object& function) {
  const soliton::OnToken told = on_token(function);
  return tree.call([&](soliton::Tree& open) { return open.decode(branches, options, told); });
}

/// soliton.Error has the status beside the message.
void translate(const std::exception_ptr& thrown, void* type) {
  try {
    std::rethrow_exception(thrown);
  } catch (const soliton::Error& error) {
    const nb::object instance = nb::handle(static_cast<PyObject*>(type))(error.what());
    instance.attr("status") = static_cast<int>(error.status());
    PyErr_SetObject(static_cast<PyObject*>(type), instance.ptr());
  }
}

void add_values(nb::module_& module) {
  nb::class_<Options>(module, "Options")
      .def(nb::init<>())
      .def_rw("max_tokens", &Options::max_tokens)
      .def_rw("temperature", &Options::temperature)
      .def_rw("top_k", &Options::top_k)
      .def_rw("top_p", &Options::top_p)
      .def_rw("min_p", &Options::min_p)
      .def_rw("repeat_penalty", &Options::repeat_penalty)
      .def_rw("seed", &Options::seed)
      .def_rw("logprobs", &Options::logprobs)
      .def_rw("ignore_eos", &Options::ignore_eos)
      .def_rw("stops", &Options::stops)
      .def_rw("grammar", &Options::grammar)
      .def_rw("json_schema", &Options::json_schema);
  nb::class_<Answer>(module, "Answer")
      .def_ro("text", &Answer::text)
      .def_ro("tokens", &Answer::tokens)
      .def_ro("logprobs", &Answer::logprobs)
      .def_prop_ro("finish", [](const Answer& answer) { return static_cast<int>(answer.result.finish); })
      .def_prop_ro("num_prompt", [](const Answer& answer) { return answer.result.num_prompt; })
      .def_prop_ro("num_cached", [](const Answer& answer) { return answer.result.num_cached; })
      .def_prop_ro("num_generated", [](const Answer& answer) { return answer.result.num_generated; })
      .def_prop_ro("first_token_s", [](const Answer& answer) { return answer.result.first_token_s; })
      .def_prop_ro("total_s", [](const Answer& answer) { return answer.result.total_s; });
  nb::class_<soliton_model_info>(module, "Info")
      .def_ro("context", &soliton_model_info::context)
      .def_ro("vocabulary", &soliton_model_info::vocabulary)
      .def_ro("max_rows", &soliton_model_info::max_rows)
      .def_prop_ro("has_chat_template",
                   [](const soliton_model_info& info) { return info.has_chat_template != 0; })
      .def_prop_ro("is_emulated", [](const soliton_model_info& info) { return info.is_emulated != 0; })
      .def_ro("cache_tokens", &soliton_model_info::cache_tokens);
}

void add_model(nb::module_& module) {
  const auto released = nb::call_guard<LongCall>();
  nb::class_<Model>(module, "Model")
      .def("__init__", construct, nb::arg("folder"), nb::arg("device"), nb::arg("context"),
           nb::arg("cache_tokens"), nb::arg("kernel"), nb::arg("chat_template"), nb::arg("log").none())
      .def("info", [](Model& model) { return model.get().info(); })
      .def("options", [](Model& model) { return model.get().options(); })
      .def(
          "tokenize",
          [](Model& model, const std::string& text, int flags) { return model.get().tokenize(text, flags); },
          released)
      .def(
          "detokenize",
          [](Model& model, const Tokens& tokens, bool skip_special) {
            return model.get().detokenize(tokens, skip_special);
          },
          released)
      .def(
          "render_chat",
          [](Model& model, const std::string& messages, const std::string& tools,
             const std::string& variables) { return model.get().render_chat(messages, tools, variables); },
          released);
}

void add_decoding(nb::module_& module) {
  const auto released = nb::call_guard<LongCall>();
  nb::class_<Session>(module, "Session")
      .def("__init__",
           [](Session* session, Model& model) { new (session) Session(std::in_place, model.get()); })
      .def("generate", generate, nb::arg("prompt"), nb::arg("options"), nb::arg("on_token").none())
      .def("cancel", [](Session& session) { session.get().cancel(); });
  nb::class_<Tree>(module, "Tree")
      .def("__init__", [](Tree* tree, Model& model) { new (tree) Tree(std::in_place, model.get()); })
      .def(
          "add", [](Tree& tree, const Tokens& tokens) { return tree.get().add(tokens); }, released)
      .def("fork",
           [](Tree& tree, std::int32_t branch, std::size_t count) {
             return tree.call([&](soliton::Tree& open) { return open.fork(branch, count); });
           })
      .def(
          "append",
          [](Tree& tree, std::int32_t branch, const Tokens& tokens) { tree.get().append(branch, tokens); },
          released)
      .def(
          "prune", [](Tree& tree, std::int32_t branch) { tree.get().prune(branch); }, released)
      .def(
          "tokens", [](Tree& tree, std::int32_t branch) { return tree.get().tokens(branch); }, released)
      .def("decode", decode, nb::arg("branches"), nb::arg("options"), nb::arg("on_token").none())
      .def("score", [](Tree& tree, std::int32_t branch, const Tokens& tokens) {
        return tree.call([&](soliton::Tree& open) { return open.score(branch, tokens); });
      });
}

}  // namespace

NB_MODULE(_soliton, module) {
  const nb::exception<soliton::Error> error(module, "Error", PyExc_RuntimeError);
  nb::register_exception_translator(translate, error.ptr());
  interpreter::register_end();
  module.def("version", [] { return std::string(soliton_version()); });
  module.attr("ADD_PREFIX") = static_cast<int>(SOLITON_ADD_PREFIX);
  module.attr("PARSE_SPECIAL") = static_cast<int>(SOLITON_PARSE_SPECIAL);
  add_values(module);
  add_model(module);
  add_decoding(module);
}
