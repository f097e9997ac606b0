// soliton.h for C++17: handles that close themselves, texts and vectors in place of buffers, exceptions in place of
// codes. What functions mean, and which threads may call them, stands there.
//
//   soliton::Model model("Qwen/Qwen2.5-7B-Instruct");
//   soliton::Session session(model);
//   std::cout << session.generate(model.render_chat(R"([{"role": "user", "content": "Hello!"}])")).text;
#ifndef SOLITON_HPP
#define SOLITON_HPP

#include <soliton.h>

#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace soliton {

/// What a call that fails throws. what() is soliton_last_error().
class Error : public std::runtime_error {
 public:
  explicit Error(soliton_status status) : std::runtime_error(soliton_last_error()), status_(status) {}
  soliton_status status() const noexcept { return status_; }

 private:
  soliton_status status_;
};

namespace detail {

inline void check(soliton_status status) {
  if (status != SOLITON_OK) throw Error(status);
}

/// What a function of soliton.h writes, asked for its size first: call(buffer, capacity, count).
template <class T, class Call>
std::vector<T> read(const Call& call, std::size_t num_behind = 0) {
  std::size_t count = 0;
  check(call(nullptr, 0, &count));
  std::vector<T> values(count + num_behind + 1);  // never empty: a capacity of 0 asks for the number
  check(call(values.data(), values.size(), &count));
  values.resize(count);
  return values;
}

}  // namespace detail

using Tokens = std::vector<std::int32_t>;

/// Told of each token as it comes; more is wanted as long as it returns true. What it throws comes out of the call that
/// it belongs to, after that text has ended.
using OnToken = std::function<bool(const soliton_token&)>;

struct ModelOptions {
  int device = 0;
  int context = 0;                // tokens of one text at most; 0: see soliton_model_options
  std::int64_t cache_tokens = 0;  // of all texts together; 0: see there
  std::string kernel = {};
  std::string chat_template = {};
  std::function<void(const std::string&)> log = {};  // must not throw
};

/// As soliton_options, of which Model::options() has what the model's files ask for.
struct Options {
  int max_tokens = 0;  // 0: as many as the context takes
  double temperature = 0;
  int top_k = 0;
  double top_p = 1;
  double min_p = 0;
  double repeat_penalty = 1;
  std::uint32_t seed = 0;
  bool logprobs = false;
  bool ignore_eos = false;
  std::vector<std::string> stops = {};
  std::string grammar = {};      // empty: none, as
  std::string json_schema = {};  // of this
};

/// What has become of one text.
struct Answer {
  std::string text = {};             // up to a stop, without it
  Tokens tokens = {};                // generated, with those of a stop
  std::vector<float> logprobs = {};  // [tokens], if Options::logprobs
  soliton_result result = {};
};

class Model {
 public:
  explicit Model(const std::string& folder, const ModelOptions& options = {}) {
    soliton_model_options read{};
    read.size = sizeof read;
    read.device = options.device;
    read.context = options.context;
    read.cache_tokens = options.cache_tokens;
    read.kernel = options.kernel.empty() ? nullptr : options.kernel.c_str();
    read.chat_template = options.chat_template.empty() ? nullptr : options.chat_template.c_str();
    read.log_data = const_cast<std::function<void(const std::string&)>*>(&options.log);
    if (options.log) {
      read.log = [](void* log, const char* line) {
        (*static_cast<std::function<void(const std::string&)>*>(log))(line);
      };
    }
    soliton_model* model = nullptr;
    detail::check(soliton_model_open(folder.c_str(), &read, &model));
    model_.reset(model);
  }

  soliton_model_info info() const {
    soliton_model_info info{};
    info.size = sizeof info;
    detail::check(soliton_model_get_info(model_.get(), &info));
    return info;
  }

  Options options() const {
    soliton_options read{};
    detail::check(soliton_options_init(model_.get(), &read, sizeof read));
    Options options;
    options.temperature = read.temperature;
    options.top_k = read.top_k;
    options.top_p = read.top_p;
    options.min_p = read.min_p;
    options.repeat_penalty = read.repeat_penalty;
    return options;
  }

  /// `flags` is a sum of SOLITON_ADD_PREFIX and SOLITON_PARSE_SPECIAL.
  Tokens tokenize(std::string_view text, int flags = 0) const {
    return detail::read<std::int32_t>([&](std::int32_t* to, std::size_t capacity, std::size_t* count) {
      return soliton_tokenize(model_.get(), text.data(), text.size(), flags, to, capacity, count);
    });
  }
  /// A text that stands alone.
  Tokens prompt(std::string_view text) const { return tokenize(text, SOLITON_ADD_PREFIX); }

  std::string detokenize(const Tokens& tokens, bool skip_special = false) const {
    const int flags = skip_special ? SOLITON_SKIP_SPECIAL : 0;
    const std::vector<char> text = detail::read<char>(
        [&](char* to, std::size_t capacity, std::size_t* count) {
          return soliton_detokenize(model_.get(), tokens.data(), tokens.size(), flags, to, capacity, count);
        },
        1);
    return {text.begin(), text.end()};
  }

  /// All three are JSON; empty: none.
  Tokens render_chat(const std::string& messages, const std::string& tools = {},
                     const std::string& variables = {}) const {
    const auto or_null = [](const std::string& json) { return json.empty() ? nullptr : json.c_str(); };
    return detail::read<std::int32_t>([&](std::int32_t* to, std::size_t capacity, std::size_t* count) {
      return soliton_render_chat(model_.get(), messages.c_str(), or_null(tools), or_null(variables), to,
                                 capacity, count);
    });
  }

  soliton_model* get() const noexcept { return model_.get(); }

 private:
  struct Close {
    void operator()(soliton_model* model) const noexcept { soliton_model_close(model); }
  };
  std::unique_ptr<soliton_model, Close> model_;
};

namespace detail {

/// Options as C has them. Stays where it is, and so do they.
class COptions {
 public:
  explicit COptions(const Options& options) {
    options_.size = sizeof options_;
    for (const std::string& stop : options.stops) stops_.push_back(stop.c_str());
    options_.max_tokens = options.max_tokens;
    options_.temperature = options.temperature;
    options_.top_k = options.top_k;
    options_.top_p = options.top_p;
    options_.min_p = options.min_p;
    options_.repeat_penalty = options.repeat_penalty;
    options_.seed = options.seed;
    options_.logprobs = options.logprobs ? 1 : 0;
    options_.ignore_eos = options.ignore_eos ? 1 : 0;
    options_.stops = stops_.data();
    options_.num_stops = stops_.size();
    options_.grammar = options.grammar.empty() ? nullptr : options.grammar.c_str();
    options_.json_schema = options.json_schema.empty() ? nullptr : options.json_schema.c_str();
  }
  COptions(const COptions&) = delete;
  COptions& operator=(const COptions&) = delete;

  const soliton_options* get() const noexcept { return &options_; }

 private:
  soliton_options options_{};
  std::vector<const char*> stops_;
};

/// Gathers the answers of a call, and asks its OnToken.
class Collector {
 public:
  Collector(std::vector<std::int32_t> branches, bool wants_logprobs, const OnToken& on_token)
      : branches_(std::move(branches)),
        answers_(branches_.size()),
        wants_logprobs_(wants_logprobs),
        on_token_(on_token) {}

  static int take(void* self, const soliton_token* token) noexcept {
    auto& collector = *static_cast<Collector*>(self);
    try {
      return collector.add(*token) ? 0 : 1;
    } catch (...) {
      collector.thrown_ = std::current_exception();
      return 1;
    }
  }

  /// After the call, of which these are the results.
  std::vector<Answer> finish(soliton_status status, const std::vector<soliton_result>& results) {
    if (thrown_) std::rethrow_exception(thrown_);
    check(status);
    for (std::size_t i = 0; i < answers_.size(); ++i) answers_[i].result = results[i];
    return std::move(answers_);
  }

 private:
  bool add(const soliton_token& token) {
    std::size_t index = 0;
    while (branches_[index] != token.branch) ++index;
    Answer& answer = answers_[index];
    answer.text.append(token.text, token.text_bytes);
    if (token.id >= 0) {
      answer.tokens.push_back(token.id);
      if (wants_logprobs_) answer.logprobs.push_back(token.logprob);
    }
    return !on_token_ || on_token_(token);
  }

  std::vector<std::int32_t> branches_;
  std::vector<Answer> answers_;
  bool wants_logprobs_;
  const OnToken& on_token_;
  std::exception_ptr thrown_;
};

inline std::vector<soliton_result> results(std::size_t count) {
  soliton_result result{};
  result.size = sizeof result;
  return std::vector<soliton_result>(count, result);
}

}  // namespace detail

class Session {
 public:
  explicit Session(const Model& model) {
    soliton_session* session = nullptr;
    detail::check(soliton_session_open(model.get(), &session));
    session_.reset(session);
  }

  /// As the model's files ask for.
  Answer generate(const Tokens& prompt, const OnToken& on_token = {}) {
    return generate(prompt, nullptr, false, on_token);
  }
  /// See soliton_generate().
  Answer generate(const Tokens& prompt, const Options& options, const OnToken& on_token = {}) {
    return generate(prompt, detail::COptions(options).get(), options.logprobs, on_token);
  }
  /// From any thread.
  void cancel() noexcept { soliton_cancel(session_.get()); }
  /// See soliton_session_ask().
  void ask(soliton_ends ends, void* data) { detail::check(soliton_session_ask(session_.get(), ends, data)); }

 private:
  struct Close {
    void operator()(soliton_session* session) const noexcept { soliton_session_close(session); }
  };

  Answer generate(const Tokens& prompt, const soliton_options* options, bool wants_logprobs,
                  const OnToken& on_token) {
    detail::Collector collector({0}, wants_logprobs, on_token);
    std::vector<soliton_result> results = detail::results(1);
    const soliton_status status = soliton_generate(session_.get(), prompt.data(), prompt.size(), options,
                                                   detail::Collector::take, &collector, results.data());
    return std::move(collector.finish(status, results)[0]);
  }

  std::unique_ptr<soliton_session, Close> session_;
};

class Tree {
 public:
  using Branch = std::int32_t;

  explicit Tree(const Model& model) {
    soliton_tree* tree = nullptr;
    detail::check(soliton_tree_open(model.get(), &tree));
    tree_.reset(tree);
  }

  /// See soliton_tree_ask().
  void ask(soliton_ends ends, void* data) { detail::check(soliton_tree_ask(tree_.get(), ends, data)); }

  Branch add(const Tokens& tokens) {
    Branch branch = 0;
    detail::check(soliton_tree_add(tree_.get(), tokens.data(), tokens.size(), &branch));
    return branch;
  }
  std::vector<Branch> fork(Branch branch, std::size_t count) {
    std::vector<Branch> branches(count);
    detail::check(soliton_tree_fork(tree_.get(), branch, count, branches.data()));
    return branches;
  }
  void append(Branch branch, const Tokens& tokens) {
    detail::check(soliton_tree_append(tree_.get(), branch, tokens.data(), tokens.size()));
  }
  void prune(Branch branch) { detail::check(soliton_tree_prune(tree_.get(), branch)); }

  Tokens tokens(Branch branch) const {
    return detail::read<std::int32_t>([&](std::int32_t* to, std::size_t capacity, std::size_t* count) {
      return soliton_tree_tokens(tree_.get(), branch, to, capacity, count);
    });
  }

  /// [branches]: what each goes on with. See soliton_tree_decode().
  std::vector<Answer> decode(const std::vector<Branch>& branches, const Options& options,
                             const OnToken& on_token = {}) {
    const detail::COptions read(options);
    detail::Collector collector(branches, options.logprobs, on_token);
    std::vector<soliton_result> results = detail::results(branches.size());
    const soliton_status status =
        soliton_tree_decode(tree_.get(), branches.data(), branches.size(), read.get(),
                            detail::Collector::take, &collector, results.data());
    return collector.finish(status, results);
  }

  /// [tokens]: see soliton_tree_score().
  std::vector<float> score(Branch branch, const Tokens& tokens) {
    std::vector<float> logprobs(tokens.size());
    detail::check(soliton_tree_score(tree_.get(), branch, tokens.data(), tokens.size(), logprobs.data()));
    return logprobs;
  }

 private:
  struct Close {
    void operator()(soliton_tree* tree) const noexcept { soliton_tree_close(tree); }
  };
  std::unique_ptr<soliton_tree, Close> tree_;
};

}  // namespace soliton

#endif
