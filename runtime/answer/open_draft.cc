#include "runtime/answer/open_draft.h"

#include <algorithm>
#include <filesystem>

#include "models/error.h"
#include "models/gguf.h"
#include "runtime/make/make_kernel.h"
#include "runtime/make/model_memory.h"
#include "runtime/program/progress.h"

namespace soliton {
namespace {

namespace fs = std::filesystem;

/// What of the options goes for the draft model.
Options options_of_draft(const Options& options) {
  Options draft;
  draft.model = options.draft;
  draft.context = options.context;
  draft.device = options.cards.empty() ? options.device : options.cards.front();
  draft.ignore_stop = true;  // nobody asks it where an answer ends
  draft.say = options.say;
  return draft;
}

}  // namespace

void check_draft_model(const Options& options, const TextSide& text) {
  if (options.draft.empty()) return;
  HfConfig::open(options.draft);  // throws
  const Tokenizer& tokenizer = text.tokenizer;
  const Tokenizer draft = Tokenizer::open(options.draft);
  // Some ids may be of one of them alone, behind all others.
  const int num_common = std::min(tokenizer.vocabulary_size(), draft.vocabulary_size());
  for (int id = 0; id < num_common; ++id) {
    if (draft.piece(id) == tokenizer.piece(id) && draft.is_special(id) == tokenizer.is_special(id)) continue;
    throw file_error(ExitCode::kMismatch, tokenizer_file(options.draft).string(),
                     "expected the tokens of {}, got another one with id {}", options.model, id);
  }
}

int64_t draft_device_bytes(const Options& options, int context) {
  const ModelFacts facts = HfConfig::open(options.draft).facts;
  return device_bytes(facts, std::min(context, facts.max_context));
}

std::unique_ptr<DraftModel> open_draft_model(const Options& options, const TextSide& text, int context,
                                             const Engine& engine) {
  if (options.draft.empty()) return nullptr;
  const Options draft = options_of_draft(options);
  const HfConfig config = HfConfig::open(draft.model);
  const int draft_context = std::min(context, config.facts.max_context);
  if (!options.say) print_progress_line(fmt::format("Draft model: {}", draft.model));
  std::unique_ptr<Engine> drafting = open_engine(draft, config, draft_context, 0);
  const auto bytes = [](const Engine& of) { return static_cast<double>(of.needed_bytes(0)); };
  const double cost = bytes(*drafting) / bytes(engine);
  return std::make_unique<DraftModel>(std::move(drafting), draft_context, text.config.facts.vocabulary, cost);
}

}  // namespace soliton
