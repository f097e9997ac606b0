// What answers in soliton-chat, as its flags say.
#pragma once

#include <memory>

#include "runtime/answer/generator.h"
#include "runtime/answer/model.h"

namespace soliton {

/// `context`: the engine's. Throws what open_draft_model() does, and Error (kMismatch) for a model whose text cannot be without
/// end.
std::unique_ptr<Generator> open_generator(const Options& options, const TextSide& text,
                                          std::unique_ptr<Engine> engine, int context,
                                          std::shared_ptr<TokenGrammar> grammar);

}  // namespace soliton
