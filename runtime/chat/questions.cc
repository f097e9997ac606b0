#include "runtime/chat/questions.h"

#include <algorithm>
#include <sstream>

#include "layout/page.h"
#include "models/error.h"
#include "runtime/answer/forest/forest.h"
#include "runtime/chat/answer_report.h"
#include "runtime/chat/console.h"
#include "runtime/chat/interrupt.h"
#include "runtime/chat/prompt_bar.h"
#include "runtime/chat/question.h"
#include "runtime/engine/common_tokens.h"

namespace soliton {
namespace {

using Tokens = std::vector<int32_t>;

constexpr size_t kMostTogether = 64;  // questions

bool is_blank(const std::string& line) {
  return line.find_first_not_of(" \t\r\n") == std::string::npos;
}

std::vector<Tokens> prompts_of(const Options& options, const TextSide& text, const DocumentQuestions& asked) {
  std::vector<Tokens> prompts;
  for (const std::string& question : asked.questions) {
    prompts.push_back(
        text.prompter.prompt({.system = options.system, .turns = {asked.document + "\n\n" + question}}));
  }
  return prompts;
}

/// First tokens that all have, but of none its last, which is fed by the step that answers.
int count_shared(const std::vector<Tokens>& prompts) {
  int shared = static_cast<int>(prompts[0].size()) - 1;
  for (const Tokens& prompt : prompts) {
    shared = std::min({shared, num_common_tokens(prompts[0], prompt), static_cast<int>(prompt.size()) - 1});
  }
  return shared;
}

/// The KV pages that questions take.
struct Pages {
  int of_document;
  int of_question;  // at most: its own, and a copy of the document's last one if that is not full

  Pages(int num_shared, size_t longest_prompt, int num_tokens)
      : of_document(ceil_divide(num_shared, kKvPageTokens)),
        of_question(ceil_divide(static_cast<int>(longest_prompt) -
                                    num_shared / kKvPageTokens * kKvPageTokens + num_tokens -
                                    1,  // the last is not fed
                                kKvPageTokens)) {}

  int64_t tokens(size_t num_questions) const {
    return (of_document + static_cast<int64_t>(num_questions) * of_question) * kKvPageTokens;
  }
  /// Questions that a cache has room for at once.
  size_t num_fitting(int64_t cache_tokens) const {
    const int64_t free_pages = cache_tokens / kKvPageTokens - of_document;
    return static_cast<size_t>(std::max<int64_t>(1, free_pages / of_question));
  }
};

/// The prompts and what becomes of them.
class Answers {
 public:
  Answers(const Options& options, const TextSide& text, const DocumentQuestions& asked,
          const std::vector<Tokens>& prompts, int num_tokens)
      : options_(options), text_(text), asked_(asked), prompts_(prompts), num_tokens_(num_tokens) {
    for (size_t i = 0; i < prompts.size(); ++i) streams_.push_back(open_stream(options, text, i));
  }

  /// Reads the document, then answers so many questions at a time.
  void decode(Forest& forest, int num_shared, size_t num_together) {
    PromptClock clock;
    ForestText document{.tokens = Tokens(prompts_[0].begin(), prompts_[0].begin() + num_shared + 1)};
    // Prompts share whole pages and what lies behind them, but nothing shorter than one.
    PromptBar bar;
    const auto wants_rest = [&] {
      bar.show(static_cast<size_t>(document.num_fed), document.tokens.size());
      return wants_more();
    };
    if (num_shared >= kKvPageTokens) forest.feed(document, wants_rest);
    bar.clear();
    num_shared_ = num_read_ = static_cast<size_t>(document.num_fed);
    clock.stop();
    timing_.prompt_s += clock.seconds();
    size_t next = 0;
    for (; next < prompts_.size() && wants_more(); next = std::min(next + num_together, prompts_.size()))
      decode_together(forest, next, std::min(num_together, prompts_.size() - next));
    for (; next < prompts_.size(); ++next) streams_[next].finish();
    forest.release(document);
  }

  AnswerReport report() {
    timing_.cached_tokens = timing_.prompt_tokens - std::min(timing_.prompt_tokens, num_read_);
    AnswerReport report{
        .timing = timing_,
        .json = {},
        .remark = fmt::format(" | {} questions, {} tokens read for all", prompts_.size(), num_shared_)};
    Json& list = report.json["answers"] = Json::array();
    for (size_t i = 0; i < streams_.size(); ++i) {
      Json json = {{"question", asked_.questions[i]}};
      json.update(json_of(streams_[i], options_, text_, num_tokens_));
      list.push_back(std::move(json));
      report.num_generated += streams_[i].num_generated();
      if (streams_[i].finish_reason(num_tokens_) == FinishReason::kInterrupted) report.was_interrupted = true;
    }
    return report;
  }

 private:
  static bool wants_more() { return wants_answer(); }

  void decode_together(Forest& forest, size_t first, size_t count) {
    std::vector<ForestText> texts(count);
    std::vector<ForestRow> rows(count);
    PromptClock clock;
    for (size_t i = 0; i < count; ++i) {
      AnswerStream& stream = streams_[first + i];
      texts[i].tokens = prompts_[first + i];
      rows[i] = {.text = &texts[i],
                 .max_tokens = num_tokens_,
                 .seed = text_.sampling.seed,
                 .on_token = [this, &stream](const ChosenToken& token) {
                   stream.push(token);
                   ++timing_.generated;
                   const auto& stops = text_.style.stop_tokens;
                   const bool is_end = std::find(stops.begin(), stops.end(), token.id) != stops.end();
                   return !is_end && !stream.hit_stop() && wants_more();
                 }};
      const auto num_cached = static_cast<size_t>(forest.feed(texts[i], wants_more));
      timing_.prompt_tokens += texts[i].tokens.size();
      num_read_ += texts[i].tokens.size() - num_cached;
    }
    clock.stop();
    timing_.prompt_s += clock.seconds();
    PromptClock decoding;
    forest.decode({.rows = rows,
                   .sampling = text_.sampling,
                   .stop_tokens = text_.style.stop_tokens,
                   .goes_on = wants_more});
    decoding.stop();
    timing_.generation_s += decoding.seconds();
    for (ForestText& answered : texts) forest.release(answered);
    for (size_t i = first; i < first + count; ++i) show(i);
  }

  void show(size_t index) {
    AnswerStream& stream = streams_[index];
    stream.finish();
    if (shows_text(options_)) {
      print_answer(fmt::format("--- question {}: {}\n{}\n", index, asked_.questions[index], stream.text()));
    }
    note_logprobs(stream, options_, text_);
  }

  const Options& options_;
  const TextSide& text_;
  const DocumentQuestions& asked_;
  const std::vector<Tokens>& prompts_;
  int num_tokens_;
  std::vector<AnswerStream> streams_;
  size_t num_shared_ = 0;  // tokens of prompts that were fed for all of them; and in all:
  size_t num_read_ = 0;
  Timing timing_;
};

}  // namespace

DocumentQuestions read_document_questions(const Options& options) {
  DocumentQuestions asked{.document = load_prompt(options.document_file), .questions = {}};
  if (is_blank(asked.document)) throw bad_file(options.document_file, "expected a text, got blanks");
  std::istringstream lines(load_prompt(options.questions_file));
  for (std::string line; std::getline(lines, line);) {
    if (line.ends_with('\r')) line.pop_back();
    if (!is_blank(line)) asked.questions.push_back(std::move(line));
  }
  if (asked.questions.empty())
    throw bad_file(options.questions_file, "expected a question on a line, got blanks");
  return asked;
}

int answer_questions(const Options& options, const TextSide& text, const DocumentQuestions& asked) {
  const std::vector<Tokens> prompts = prompts_of(options, text, asked);
  const size_t longest =
      std::max_element(prompts.begin(), prompts.end(), [](const Tokens& a, const Tokens& b) {
        return a.size() < b.size();
      })->size();
  const int context = choose_context(options, text.config);
  const int num_tokens = choose_num_tokens(options, text, longest, context);
  const int num_shared = count_shared(prompts);
  const Pages pages(num_shared, longest, num_tokens);
  const int64_t wanted = pages.tokens(std::min(prompts.size(), kMostTogether));
  const int64_t most = choose_pool_tokens(options, text.config, context, 0);
  const int64_t least = round_up(context, kKvPageTokens) + kKvPageTokens;  // what a Forest needs
  const std::unique_ptr<Engine> engine =
      open_engine(options, text.config, context, std::min(most, std::max(least, wanted)));

  catch_interrupts();  // until here the first one ends the program
  const InterruptsEnd second_interrupt_ends;
  Forest forest(*engine, context);
  Answers answers(options, text, asked, prompts, num_tokens);
  answers.decode(forest, num_shared,
                 std::min({pages.num_fitting(forest.cache_tokens()), kMostTogether,
                           static_cast<size_t>(engine->max_rows())}));
  return print_report(answers.report(), options);
}

}  // namespace soliton
