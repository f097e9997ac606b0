// soliton-chat: a chat at a terminal, or the answer to one prompt. Answers go to stdout as they are decoded,
// several samples when all have ended; everything else goes to stderr.
#include "models/weight_rounding.h"
#include "runtime/answer/open_draft.h"
#include "runtime/chat/answer_grammar.h"
#include "runtime/chat/console.h"
#include "runtime/chat/interrupt.h"
#include "runtime/chat/one_shot.h"
#include "runtime/chat/open_generator.h"
#include "runtime/chat/question.h"
#include "runtime/chat/questions.h"
#include "runtime/chat/repl.h"
#include "runtime/compile/places.h"
#include "runtime/doctor/report.h"
#include "runtime/hub/fetch_model.h"
#include "runtime/program/program.h"
#include "runtime/verify/verify.h"

namespace soliton {
namespace {

/// Throws Error (kUsage) for flags that ask for one answer.
void check_chat_flags(const Options& options) {
  for (const auto& [wanted, flag] :
       {std::pair(options.json, "--json"), std::pair(options.jsonl, "--jsonl"),
        std::pair(options.num_samples > 1, "--parallel"), std::pair(options.num_beams > 1, "--beams")}) {
    if (wanted) {
      throw Error(ExitCode::kUsage, fmt::format("{}: expected a prompt to be answered once, got none", flag));
    }
  }
}

void chat(const Options& options, const TextSide& text) {
  check_chat_flags(options);
  const int context = choose_context(options, text.config);
  std::shared_ptr<TokenGrammar> grammar = open_answer_grammar(options, text);
  std::unique_ptr<Engine> engine = open_engine(options, text.config, context, 0);
  const std::unique_ptr<Generator> generator =
      open_generator(options, text, std::move(engine), context, std::move(grammar));
  const bool is_chat = text.prompter.has_template();
  const std::optional<int> default_tokens =
      is_chat || options.fills_context ? std::nullopt : std::optional(Options::kDefaultTokens);
  Session session(text.tokenizer, text.prompter, *generator,
                  {.style = text.style,
                   .settings = {.sampling = text.sampling,
                                .num_tokens = options.num_tokens ? options.num_tokens : default_tokens},
                   .system = options.system});
  if (!is_chat) print_note("There is no chat template: each text is completed by itself.");
  catch_interrupts();  // until here the first one ends the program
  const std::filesystem::path state = state_folder();
  LineReader reader(state.empty() ? state : state / "history");
  Repl(session, reader).run();
}

/// Says in one line whether the kernel computes what the folder says.
int verify_kernel(const Options& options) {
  HfConfig config = HfConfig::open(options.model);
  round_weights(options.weights, config);
  const TensorSource source = TensorSource::open(options.model);
  const std::vector<int32_t> prompt = verification_prompt(config);
  const int context = static_cast<int>(prompt.size()) + kVerifiedTokens;
  const std::unique_ptr<Engine> engine = open_engine(options, config, context, 0);
  const Verdict verdict = verify(*engine, source, config, prompt);
  print(verdict.line + "\n");
  flush_stdout();
  return verdict.agrees ? 0 : static_cast<int>(ExitCode::kNotVerified);
}

int run(int argc, char** argv) {
  std::optional<Options> options = parse_options(argc, argv);
  if (!options) return 0;
  if (options->doctor) {
    const int status = print_doctor({.model = options->model,
                                     .hub = options->hub,
                                     .weights = options->weights,
                                     .device = options->device,
                                     .json = options->json});
    flush_stdout();
    return status;
  }
  options->model = fetch_model(options->model, options->hub).string();
  if (!options->draft.empty()) {
    options->hub.revision.clear();  // the model's
    options->draft = fetch_model(options->draft, options->hub).string();
  }
  if (options->verify) return verify_kernel(*options);
  if (!options->questions_file.empty()) {
    const DocumentQuestions asked = read_document_questions(*options);
    return answer_questions(*options, TextSide(*options), asked);
  }
  const std::optional<Conversation> question = read_question(*options);
  const TextSide text(*options);
  check_draft_model(*options, text);
  if (question) return answer_once(*options, text, *question);
  chat(*options, text);
  return 0;
}

}  // namespace
}  // namespace soliton

int main(int argc, char** argv) {
  return soliton::run_program("soliton-chat", soliton::run, argc, argv);
}
