// The model of --draft beside the one that answers.
#pragma once

#include <memory>

#include "runtime/answer/draft/draft_model.h"
#include "runtime/answer/model.h"

namespace soliton {

/// Bytes that it takes of a card's memory with a context of so many tokens, or as many as it has.
int64_t draft_device_bytes(const Options& options, int context);

/// Throws Error: kMismatch if a token of it is another one than that of the same id in `text`; what HfConfig and Tokenizer
/// throw of its files. Before anything is loaded.
void check_draft_model(const Options& options, const TextSide& text);

/// Opens it as open_engine() does; null without --draft.
std::unique_ptr<DraftModel> open_draft_model(const Options& options, const TextSide& text, int context,
                                             const Engine& engine);

}  // namespace soliton
