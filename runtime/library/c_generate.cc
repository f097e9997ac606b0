// soliton.h: sessions and trees.
#include <chrono>
#include <cmath>
#include <cstddef>
#include <deque>
#include <limits>
#include <set>

#include "runtime/library/handles.h"
#include "runtime/text/constrain/ebnf.h"
#include "runtime/text/constrain/json_schema.h"

namespace soliton {
namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kFirstOptionsBytes = offsetof(soliton_options, grammar);
constexpr float kNoLogprob = std::numeric_limits<float>::quiet_NaN();

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

// ---- Options

soliton_options default_options(const OpenModel& model) {
  const Sampling& sampling = model.text().sampling;
  return {.size = sizeof(soliton_options),
          .max_tokens = 0,
          .temperature = sampling.temperature,
          .top_k = sampling.top_k,
          .top_p = sampling.top_p,
          .min_p = sampling.min_p,
          .repeat_penalty = sampling.repeat_penalty,
          .seed = 0,
          .logprobs = 0,
          .ignore_eos = 0,
          .stops = nullptr,
          .num_stops = 0,
          .grammar = nullptr,
          .json_schema = nullptr};
}

void check_number(const char* name, double value, double min, double max) {
  if (value >= min && value <= max) return;  // not for NaN
  throw Error(ExitCode::kUsage,
              fmt::format("{}: expected a number from {} to {}, got {}", name, min, max, value));
}

Sampling read_sampling(const soliton_options& options) {
  check_number("max_tokens", options.max_tokens, 0, std::numeric_limits<int32_t>::max());
  check_number("temperature", options.temperature, 0, kMaxTemperature);
  check_number("top_k", options.top_k, 0, std::numeric_limits<int32_t>::max());
  check_number("top_p", options.top_p, 0, 1);
  check_number("min_p", options.min_p, 0, 1);
  check_number("repeat_penalty", options.repeat_penalty, kMinPenalty, kMaxPenalty);
  return {.temperature = options.temperature,
          .top_k = options.top_k,
          .top_p = options.top_p,
          .min_p = options.min_p,
          .repeat_penalty = options.repeat_penalty,
          .seed = options.seed,
          .logprobs = options.logprobs != 0};
}

AnswerStyle read_style(const OpenModel& model, const soliton_options& options) {
  AnswerStyle style = model.text().style;
  if (options.ignore_eos != 0) style.stop_tokens.clear();
  for (const char* stop : given_array(options.stops, options.num_stops, "stops")) {
    if (given(stop, "stops") == '\0') throw Error(ExitCode::kUsage, "stops: expected text, got \"\"");
    style.stops.emplace_back(stop);
  }
  return style;
}

/// Null without one.
std::shared_ptr<TokenGrammar> read_grammar(const OpenModel& model, const soliton_options& options) {
  if (options.grammar == nullptr && options.json_schema == nullptr) return {};
  if (options.grammar != nullptr && options.json_schema != nullptr)
    throw Error(ExitCode::kUsage, "json_schema: expected null beside a grammar, got both");
  return std::make_shared<TokenGrammar>(
      options.grammar != nullptr ? constrain::parse_ebnf(options.grammar, "grammar")
                                 : constrain::parse_json_schema(options.json_schema, "json_schema"),
      model.vocabulary());
}

// ---- Answers

/// The caller's function.
struct Callback {
  soliton_on_token function = nullptr;
  void* data = nullptr;
};

/// What all texts of a call have in common.
struct Request {
  Request(const OpenModel& open, const soliton_options* given_options, Callback function)
      : model(open),
        options(read_struct(given_options, "soliton_options", default_options(open), kFirstOptionsBytes)),
        sampling(read_sampling(options)),
        style(read_style(open, options)),
        grammar(read_grammar(open, options)),
        callback(function) {}

  const OpenModel& model;
  soliton_options options;
  Sampling sampling;
  AnswerStyle style;
  std::shared_ptr<TokenGrammar> grammar;  // null: any text
  Callback callback;
  Clock::time_point began = Clock::now();
};

/// One text of a call, as its tokens come.
class AnswerOfText {
 public:
  AnswerOfText(const Request& request, ForestText& text, int32_t branch)
      : request_(request),
        answer_(request.model.text().tokenizer, request.style),
        text_(text),
        branch_(branch) {
    result_.size = sizeof(soliton_result);
    result_.num_prompt = static_cast<int32_t>(text.tokens.size());
    const int64_t room = int64_t{request.model.context()} - result_.num_prompt + 1;
    const int wanted = request.options.max_tokens;
    max_tokens_ = static_cast<int>(wanted == 0 ? room : std::min<int64_t>(wanted, room));
  }

  /// Feeds the text and says how to go on with it; a text without room is refused for its length.
  ForestRow begin(Forest& forest, uint32_t seed, const std::function<bool()>& goes_on) {
    result_.num_cached = forest.feed(text_, goes_on);
    ForestRow row{.text = &text_,
                  .max_tokens = max_tokens_,
                  .seed = seed,
                  .on_token = [this](const ChosenToken& token) { return take(token); }};
    if (request_.grammar) row.constraint.emplace(request_.grammar, request_.style.stop_tokens);
    return row;
  }

  /// After the last token.
  soliton_result finish(const ForestRow& row) {
    is_whole_ = row.is_whole;
    const std::string rest = answer_.finish();
    if (!rest.empty()) tell({-1}, rest);
    result_.finish = finish_reason();
    result_.logprob = request_.sampling.logprobs ? logprob_ : std::numeric_limits<double>::quiet_NaN();
    result_.total_s = seconds_since(request_.began);
    return result_;
  }
  bool callback_has_thrown() const { return callback_has_thrown_; }

 private:
  bool take(const ChosenToken& token) {
    if (result_.num_generated++ == 0) result_.first_token_s = seconds_since(request_.began);
    logprob_ += token.logprob.value_or(0);
    const std::string piece = answer_.push(token.id);
    is_unwanted_ = !tell(token, piece);
    const std::vector<int32_t>& stops = request_.style.stop_tokens;
    const bool is_stop = std::find(stops.begin(), stops.end(), token.id) != stops.end();
    return !is_unwanted_ && !is_stop && !answer_.hit_stop();
  }

  /// Returns whether more is wanted.
  bool tell(const ChosenToken& token, const std::string& piece) {
    if (request_.callback.function == nullptr) return true;
    const soliton_token told{.branch = branch_,
                             .id = token.id,
                             .logprob = token.logprob.value_or(kNoLogprob),
                             .text = piece.c_str(),
                             .text_bytes = piece.size()};
    try {
      return request_.callback.function(request_.callback.data, &told) == 0;
    } catch (...) {  // of a function in C++: no exception can pass through a launch
      callback_has_thrown_ = true;
      return false;
    }
  }

  soliton_finish finish_reason() const {
    const FinishReason reason = answer_.finish_reason(max_tokens_);
    if (reason == FinishReason::kStopText) return SOLITON_STOP_TEXT;
    if (reason == FinishReason::kStop) return SOLITON_STOP_TOKEN;
    if (is_unwanted_) return SOLITON_CALLBACK;
    if (is_whole_) return SOLITON_WHOLE;
    return reason == FinishReason::kLength ? SOLITON_LENGTH : SOLITON_CANCELLED;
  }

  const Request& request_;
  AnswerText answer_;
  ForestText& text_;
  int32_t branch_;
  int max_tokens_ = 0;
  soliton_result result_{};
  double logprob_ = 0;
  bool is_unwanted_ = false;
  bool is_whole_ = false;
  bool callback_has_thrown_ = false;
};

/// A text, and what the caller calls it.
struct NamedText {
  ForestText* text = nullptr;
  int32_t branch = 0;
};

std::vector<soliton_result> generate(const Request& request, Forest& forest, std::span<const NamedText> texts,
                                     const std::function<bool()>& goes_on = {}) {
  std::deque<AnswerOfText> answers;  // which stay where they are
  std::vector<ForestRow> rows;
  for (const NamedText& named : texts) {
    const uint32_t seed = request.options.seed + static_cast<uint32_t>(rows.size());
    answers.emplace_back(request, *named.text, named.branch);
    rows.push_back(answers.back().begin(forest, seed, goes_on));
  }
  forest.decode({.rows = rows,
                 .sampling = request.sampling,
                 .stop_tokens = request.style.stop_tokens,
                 .goes_on = goes_on});
  std::vector<soliton_result> results;
  for (size_t i = 0; i < rows.size(); ++i) {
    AnswerOfText& answer = answers[i];
    results.push_back(answer.finish(rows[i]));
    if (answer.callback_has_thrown())
      throw Error(ExitCode::kUsage, "on_token: expected a function that throws nothing, got an exception");
  }
  return results;
}

/// Results to an array of the caller, whose first element says how long each is.
void write_results(std::span<const soliton_result> results, soliton_result* to) {
  if (to == nullptr) return;
  const size_t size = to->size;
  check_size(size, sizeof(soliton_result), sizeof(soliton_result), "soliton_result");
  for (size_t i = 0; i < results.size(); ++i) {
    auto* const place = reinterpret_cast<soliton_result*>(reinterpret_cast<char*>(to) + i * size);
    write_struct(results[i], *place, size);
  }
}

// ---- Trees

ForestText& text_of(soliton_tree& tree, int32_t branch) {
  if (branch >= 0 && branch < std::ssize(tree.texts) && tree.texts[branch]) return *tree.texts[branch];
  throw Error(ExitCode::kUsage, fmt::format("branch: expected one of the tree, got {}", branch));
}

int32_t add_text(soliton_tree& tree, ForestText text) {
  const auto free = std::find(tree.texts.begin(), tree.texts.end(), std::nullopt);
  const auto branch = static_cast<int32_t>(free - tree.texts.begin());
  if (free == tree.texts.end()) tree.texts.emplace_back();
  tree.texts[branch] = std::move(text);
  return branch;
}

std::function<bool()> question_of(const soliton_tree& tree) {
  return [question = tree.question] { return question.goes_on(); };
}

std::vector<NamedText> texts_of(soliton_tree& tree, std::span<const int32_t> branches) {
  if (branches.empty()) throw Error(ExitCode::kUsage, "branches: expected at least one, got none");
  const std::set<int32_t> different(branches.begin(), branches.end());
  if (different.size() < branches.size())
    throw Error(ExitCode::kUsage, "branches: expected different ones, got one twice");
  std::vector<NamedText> texts;
  for (const int32_t branch : branches) texts.push_back({&text_of(tree, branch), branch});
  return texts;
}

std::span<const int32_t> given_tokens(const int32_t* tokens, size_t count) {
  if (count == 0) throw Error(ExitCode::kUsage, "tokens: expected at least one, got none");
  return given_array(tokens, count, "tokens");
}

}  // namespace
}  // namespace soliton

using namespace soliton;

soliton_status soliton_options_init(const soliton_model* model, soliton_options* options, size_t size) {
  return guarded([&] {
    const soliton_options defaults = default_options(*given(model, "model").open);
    check_size(size, kFirstOptionsBytes, sizeof(soliton_options), "soliton_options");
    write_struct(defaults, given(options, "options"), size);
  });
}

// ---- Sessions

soliton_status soliton_session_open(soliton_model* model, soliton_session** session) {
  if (session != nullptr) *session = nullptr;
  return guarded([&] {
    given(session, "session");
    *session = new soliton_session{given(model, "model").open};
  });
}

void soliton_session_close(soliton_session* session) {
  delete session;
}

soliton_status soliton_generate(soliton_session* session, const int32_t* tokens, size_t num_tokens,
                                const soliton_options* options, soliton_on_token on_token, void* data,
                                soliton_result* result) {
  return guarded([&] {
    const uint64_t num_cancels = given(session, "session").num_cancels;
    const Question question = session->question;
    const std::shared_ptr<OpenModel> model = session->open;
    const Request request(*model, options, {on_token, data});
    const std::span<const int32_t> prompt = given_tokens(tokens, num_tokens);
    if (result != nullptr) check_size(result->size, sizeof *result, sizeof *result, "soliton_result");
    ForestText text{.tokens = {prompt.begin(), prompt.end()}};
    const NamedText named{&text};
    const OpenModel::Turn turn(*model);
    try {
      write_results(
          generate(request, turn.forest(), {&named, 1},
                   [&] { return session->num_cancels.load() == num_cancels && question.goes_on(); }),
          result);
    } catch (...) {
      turn.forest().release(text);
      throw;
    }
    turn.forest().release(text);
  });
}

soliton_status soliton_session_ask(soliton_session* session, soliton_ends ends, void* data) {
  return guarded([&] { given(session, "session").question = {ends, data}; });
}

void soliton_cancel(soliton_session* session) {
  if (session != nullptr) ++session->num_cancels;
}

// ---- Trees

soliton_status soliton_tree_open(soliton_model* model, soliton_tree** tree) {
  if (tree != nullptr) *tree = nullptr;
  return guarded([&] {
    given(tree, "tree");
    *tree = new soliton_tree{given(model, "model").open};
  });
}

void soliton_tree_close(soliton_tree* tree) {
  if (tree == nullptr) return;
  guarded([&] {
    std::vector<ForestText> texts;
    for (std::optional<ForestText>& text : tree->texts) {
      if (text) texts.push_back(std::move(*text));
    }
    tree->open->release(std::move(texts));
  });
  delete tree;
}

soliton_status soliton_tree_ask(soliton_tree* tree, soliton_ends ends, void* data) {
  return guarded([&] { given(tree, "tree").question = {ends, data}; });
}

soliton_status soliton_tree_add(soliton_tree* tree, const int32_t* tokens, size_t num_tokens,
                                int32_t* branch) {
  return guarded([&] {
    const std::span<const int32_t> text = given_tokens(tokens, num_tokens);
    given(branch, "branch");
    const OpenModel::Turn turn(*given(tree, "tree").open);
    turn.forest().check_tokens(text);
    *branch = add_text(*tree, {.tokens = {text.begin(), text.end()}});
  });
}

soliton_status soliton_tree_fork(soliton_tree* tree, int32_t branch, size_t count, int32_t* new_branches) {
  return guarded([&] {
    if (count == 0) throw Error(ExitCode::kUsage, "count: expected at least 1, got 0");
    given(new_branches, "new_branches");
    const OpenModel::Turn turn(*given(tree, "tree").open);
    std::vector<ForestText> forked;
    try {
      while (forked.size() < count)
        forked.push_back(turn.forest().fork(text_of(*tree, branch), question_of(*tree)));
    } catch (...) {
      for (ForestText& text : forked) turn.forest().release(text);
      throw;
    }
    for (size_t i = 0; i < count; ++i) new_branches[i] = add_text(*tree, std::move(forked[i]));
  });
}

soliton_status soliton_tree_append(soliton_tree* tree, int32_t branch, const int32_t* tokens,
                                   size_t num_tokens) {
  return guarded([&] {
    const std::span<const int32_t> added = given_tokens(tokens, num_tokens);
    const OpenModel::Turn turn(*given(tree, "tree").open);
    turn.forest().check_tokens(added);
    std::vector<int32_t>& text = text_of(*tree, branch).tokens;
    text.insert(text.end(), added.begin(), added.end());
  });
}

soliton_status soliton_tree_prune(soliton_tree* tree, int32_t branch) {
  return guarded([&] {
    const OpenModel::Turn turn(*given(tree, "tree").open);
    turn.forest().release(text_of(*tree, branch));
    tree->texts[branch].reset();
  });
}

soliton_status soliton_tree_tokens(const soliton_tree* tree, int32_t branch, int32_t* tokens, size_t capacity,
                                   size_t* count) {
  return guarded([&] {
    const OpenModel::Turn turn(*given(tree, "tree").open);
    write_result<int32_t>(text_of(const_cast<soliton_tree&>(*tree), branch).tokens, tokens, capacity, count);
  });
}

soliton_status soliton_tree_decode(soliton_tree* tree, const int32_t* branches, size_t num_branches,
                                   const soliton_options* options, soliton_on_token on_token, void* data,
                                   soliton_result* results) {
  return guarded([&] {
    OpenModel& model = *given(tree, "tree").open;
    const Request request(model, options, {on_token, data});
    if (results != nullptr) check_size(results->size, sizeof *results, sizeof *results, "soliton_result");
    const OpenModel::Turn turn(model);
    const std::vector<NamedText> texts = texts_of(*tree, given_array(branches, num_branches, "branches"));
    write_results(generate(request, turn.forest(), texts, question_of(*tree)), results);
  });
}

soliton_status soliton_tree_score(soliton_tree* tree, int32_t branch, const int32_t* tokens,
                                  size_t num_tokens, float* logprobs) {
  return guarded([&] {
    const std::span<const int32_t> continuation = given_tokens(tokens, num_tokens);
    given(logprobs, "logprobs");
    const OpenModel::Turn turn(*given(tree, "tree").open);
    const std::vector<float> scores =
        turn.forest().score(text_of(*tree, branch), continuation, question_of(*tree));
    if (scores.size() < continuation.size())
      throw Error(ExitCode::kUsage, "score: expected to go on to the end, got ended by the caller");
    std::copy(scores.begin(), scores.end(), logprobs);
  });
}
