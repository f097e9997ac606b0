// A model folder as a chat needs it: its text side, which is cheap to open, and an engine with its weights.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "models/hf_config.h"
#include "runtime/answer/answer_text.h"
#include "runtime/answer/options.h"
#include "runtime/answer/prompter.h"
#include "runtime/engine/engine.h"

namespace soliton {

/// Stays where it is: the prompter refers to the tokenizer.
struct TextSide {
  explicit TextSide(const Options& options);
  TextSide(const TextSide&) = delete;
  TextSide& operator=(const TextSide&) = delete;

  HfConfig config;
  Tokenizer tokenizer;
  Prompter prompter;
  AnswerStyle style;
  Sampling sampling;  // the flags', else as the model's files say
};

/// Tokens that the KV cache is to hold: those of --ctx-size, else as many as the model has and the card's free memory
/// holds, but kDefaultContext at most, and without a card kEmulatedContext. Throws Error (kOutOfMemory) if the model has
/// fewer than --ctx-size, or the memory holds fewer. A model whose weights alone are too large is left to the engine.
int choose_context(const Options& options, const HfConfig& config, const std::optional<DeviceInfo>& card);
/// The same for the card that is here.
int choose_context(const Options& options, const HfConfig& config);

/// EngineOptions::pool_tokens of many sequences of such a context: those asked for, but a context and a page at least;
/// else (0) as many as the card's free memory holds beside a draft model, and in emulation, be it by a kernel that is named,
/// four contexts.
/// Throws Error (kOutOfMemory) if the memory holds fewer.
int64_t choose_pool_tokens(const Options& options, const HfConfig& config, int context, int64_t wanted,
                           const std::optional<DeviceInfo>& card);
/// The same for the card that is here.
int64_t choose_pool_tokens(const Options& options, const HfConfig& config, int context, int64_t wanted);

/// EngineOptions::window_tokens beside these, as choose_pool_tokens() counts on.
int64_t choose_window_tokens(const ModelFacts& facts, int64_t pool_tokens);

/// How many tokens are generated at most behind a prompt of so many: those asked for, else kDefaultTokens, or for one
/// answer by a chat template, and where it is asked for, as many as the context takes. Throws Error (kOutOfMemory) if
/// prompt and tokens do not fit.
int choose_num_tokens(const Options& options, const TextSide& text, size_t prompt_tokens, int context);

/// What is said of a context at the start: "4096 of the model's 131072 tokens, see -c".
std::string describe_context(const Options& options, int context, int model_context, bool emulated);

/// Lets an engine plan by the costs that soliton-bench --calibrate has kept for its library on this card, if it has. Throws
/// what read_measured_costs() throws.
void plan_by_kept_costs(Engine& engine);

/// Finds all tensors, then finds or makes the kernel, checks that it does what the flags ask for, and loads the weights,
/// less the tensor of --verify-without. `pool_tokens` and `window_tokens` are as in EngineOptions; of text without end all
/// windows are kept.
std::unique_ptr<Engine> open_engine(const Options& options, const HfConfig& config, int context,
                                    int64_t pool_tokens, int64_t window_tokens = 0);

}  // namespace soliton
