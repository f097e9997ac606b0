// What a conversation needs of an engine: tokens behind a prompt. Of a prompt that begins as the text of the
// last call did, only the rest is fed.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "runtime/answer/draft/drafter.h"
#include "runtime/engine/chosen_token.h"
#include "runtime/engine/engine.h"
#include "runtime/engine/sampling.h"
#include "runtime/text/constrain/token_constraint.h"

namespace soliton {

struct GenerateRequest {
  std::span<const int32_t> prompt;            // at least one token
  int max_tokens = 0;                         // to generate, at least one
  std::span<const int32_t> stop_tokens = {};  // end with one of these
  Sampling sampling = {};
  /// Asked while the prompt is fed, which ends by false: no token then; and while it is found what a grammar lets follow,
  /// which ends the answer.
  std::function<bool()> goes_on = {};
  /// Told how many tokens of the prompt the cache holds: before it is fed, and after each step but the last.
  std::function<void(size_t num_fed)> on_fed = {};
};

struct Generated {
  std::vector<int32_t> tokens;  // none if the prompt was not fed to its end
  bool hit_stop_token = false;
  size_t num_cached = 0;           // first tokens of the prompt that had been fed already
  size_t first_step = 1;           // of the tokens, those that the step gave which ended the prompt
  size_t num_steps = 0;            // with drafts
  std::vector<uint32_t> times_ns;  // device times of steps, modulo 2^32
};

/// What the statistics say of drafts; empty without them.
std::string drafts_remark(const Generated& generated);

/// Tests put a script in an engine's place.
class Generator {
 public:
  virtual ~Generator() = default;

  using OnToken = std::function<bool(const ChosenToken&)>;
  static constexpr int kNoEnd = std::numeric_limits<int>::max() / 2;  // more than any text has

  /// Calls `on_token` for each token, which ends the generation by returning false. The prompt and max_tokens
  /// must fit into context(), but for the last token, which is not fed.
  virtual Generated generate(const GenerateRequest& request, const OnToken& on_token) = 0;
  /// Tokens that can be kept, or kNoEnd.
  virtual int context() const = 0;
  /// Throws Error (kUsage), naming the flag, if the tokens cannot be chosen so.
  virtual void check(const Sampling& sampling) const = 0;
};

/// Generates in an engine's main branch, and knows which tokens it holds.
class EngineGenerator : public Generator {
 public:
  /// `context` is that of the engine, whose tree must be empty. Answers are texts of the grammar, if it is not null, and
  /// decoded a token a launch. Drafts are the draft model's, if there is one, else looked up in the text.
  EngineGenerator(std::unique_ptr<Engine> engine, int context, std::shared_ptr<TokenGrammar> grammar = {},
                  std::unique_ptr<Drafter> draft_model = {});

  Generated generate(const GenerateRequest& request, const OnToken& on_token) override;
  int context() const override { return context_; }
  void check(const Sampling& sampling) const override;

  Engine& engine() { return *engine_; }

 private:
  bool feed(const GenerateRequest& request);
  Generated decode_plainly(const GenerateRequest& request, const OnToken& on_token);
  Generated decode_by_grammar(const GenerateRequest& request, const OnToken& on_token);
  void follow_grammar(const GenerateRequest& request, const OnToken& on_token, Generated& generated);
  Generated decode_drafts(const GenerateRequest& request, const OnToken& on_token);

  std::unique_ptr<Engine> engine_;
  int context_;
  std::shared_ptr<TokenGrammar> grammar_;
  const char* drafts_flag_;
  std::unique_ptr<Drafter> drafter_;
  std::vector<int32_t> cached_;  // tokens that the main branch holds
};

/// Throws Error (kUsage), naming the flag, if the library has no kernel of enough rows for so many drafts a step.
void check_rows(const char* flag, int num_drafts, const KernelLibrary& library);

}  // namespace soliton
