#include "runtime/chat/open_generator.h"

#include <utility>

#include "runtime/answer/open_draft.h"
#include "runtime/answer/streaming_generator.h"

namespace soliton {

std::unique_ptr<Generator> open_generator(const Options& options, const TextSide& text,
                                          std::unique_ptr<Engine> engine, int context,
                                          std::shared_ptr<TokenGrammar> grammar) {
  if (options.window > 0) {
    return std::make_unique<StreamingGenerator>(std::move(engine),
                                                StreamingWindow{options.sinks, options.window});
  }
  std::unique_ptr<Drafter> draft_model = open_draft_model(options, text, context, *engine);
  return std::make_unique<EngineGenerator>(std::move(engine), context, std::move(grammar),
                                           std::move(draft_model));
}

}  // namespace soliton
