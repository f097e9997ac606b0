// Tokens that somebody expects behind a context, and what a step of the model says of them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace soliton {

/// The rows of a step: a tree in depth-first preorder, the likeliest child first. tokens[0], with parent -1,
/// is the last token of the context, which has not been fed yet; all others are drafted and descend from it.
struct TokenDraft {
  std::vector<int32_t> tokens;   // [row]
  std::vector<int32_t> parents;  // [row]: the row before, or an ancestor of it, or -1

  bool operator==(const TokenDraft&) const = default;
};

/// What decoding keeps of a draft.
struct AcceptedDraft {
  std::vector<int32_t> path;  // rows, from row 0 down: tokens that are now part of the context
  int32_t next_token = 0;     // chosen after the last of them, not fed yet

  bool operator==(const AcceptedDraft&) const = default;
};

/// Follows the model's choices down from row 0 for as long as they were drafted. `chosen` is [row]: the token
/// that the model chose after each row's token, the best one or one that it drew. Throws Error (kInternal) if there is
/// not one for each row or the draft has no row or not one parent for each token.
AcceptedDraft accept_choices(const TokenDraft& draft, std::span<const int32_t> chosen);

}  // namespace soliton
