// Texts on one engine: what is cached of them is a branch each, and any number of them are decoded together. Between
// two calls no branch has a row; those in a call have one. One thread at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "runtime/answer/feed_prompt.h"
#include "runtime/answer/forest/prefix_cache.h"
#include "runtime/engine/chosen_token.h"
#include "runtime/engine/engine.h"
#include "runtime/engine/sampling.h"
#include "runtime/text/constrain/token_constraint.h"

namespace soliton {

/// Tokens, of which the last is never fed before something is decoded behind it.
struct ForestText {
  std::vector<int32_t> tokens = {};
  std::optional<Branch> branch = {};  // in use; nothing: nothing of it is
  int num_fed = 0;

  int num_to_feed() const { return static_cast<int>(tokens.size()) - 1 - num_fed; }
};

/// A text that decode() goes on with.
struct ForestRow {
  ForestText* text = nullptr;
  int max_tokens = 0;                                     // at least one
  uint32_t seed = 0;                                      // in place of the sampling's
  std::function<bool(const ChosenToken&)> on_token = {};  // ends the row, with this token, by returning false
  std::optional<TokenConstraint> constraint = {};         // what it may be; launches are of one token then
  std::span<const uint32_t> allowed = {};                 // the tokens that may be next, by that
  bool has_ended = false;
  bool is_whole = false;  // it has, as its grammar has nothing more
};

struct ForestRequest {
  std::span<ForestRow> rows;
  Sampling sampling = {};                     // of all
  std::span<const int32_t> stop_tokens = {};  // a launch ends behind one of these; the row by on_token
  std::function<bool()> goes_on = {};         // asked between launches and steps; all rows end by false
};

class Forest {
 public:
  /// The engine's tree is the forest's from now on. Its pool must hold `context` tokens, the most of a text, and a
  /// page.
  Forest(Engine& engine, int context);

  /// Throws Error (kMismatch) for ids that are none of the model's.
  void check_tokens(std::span<const int32_t> tokens) const;
  /// Finds what is cached of a text and feeds the rest, but for the last token. Returns how many tokens were cached.
  /// Throws Error: kOutOfMemory if the text does not fit the context, or what is in use leaves no room; kMismatch for
  /// tokens that are none; kUsage for an empty text. `goes_on` ends it between two chunks by returning false.
  int feed(ForestText& text, const std::function<bool()>& goes_on = {});
  /// A text that goes on from another one and shares what is cached of it, which is fed first, as feed() does.
  ForestText fork(ForestText& text, const std::function<bool()>& goes_on = {});
  /// Decodes behind texts: as many at once as the engine has rows for, and then the next ones. Tokens are added to the
  /// texts as they come. Throws as feed() does.
  void decode(const ForestRequest& request);
  /// [tokens]: logprobs of tokens behind a text, which stays as it is; fewer if `goes_on` ends it. Throws as feed() does.
  std::vector<float> score(ForestText& text, std::span<const int32_t> tokens,
                           const std::function<bool()>& goes_on = {});
  /// Nothing of the text is in use any more; what is cached of it is kept until its pages are wanted.
  void release(ForestText& text) noexcept;

  int64_t cache_tokens() const;

 private:
  void check(const ForestText& text, size_t num_further) const;
  void make_room(const PageNeed& need);
  void rest(ForestText& text);
  void decode_together(const ForestRequest& request, std::span<ForestRow> rows);
  int reserve_steps(std::span<ForestRow*> rows);
  void launch(const ForestRequest& request, std::span<ForestRow*> rows);
  bool take(ForestRow& row, const ChosenToken& token) const;
  void follow_grammar(ForestRow& row, bool has_end_tokens) const;
  std::vector<float> score_behind(ForestText& text, std::span<const int32_t> tokens,
                                  const std::function<bool()>& goes_on);
  void score_chunk(ForestText& text, std::span<const int32_t> inputs, std::span<const int32_t> wanted,
                   std::vector<float>& logprobs);
  template <class Act>
  auto on_device(const Act& act);

  Engine& engine_;
  int context_;
  PrefixCache cache_;
  FeedPace pace_;
  std::optional<Error> failure_;  // of the device: nothing can be done any more
};

}  // namespace soliton
