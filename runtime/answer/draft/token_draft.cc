#include "runtime/answer/draft/token_draft.h"

#include "models/error.h"

namespace soliton {

AcceptedDraft accept_choices(const TokenDraft& draft, std::span<const int32_t> chosen) {
  const size_t rows = draft.tokens.size();
  const auto expect_rows = [&](const char* what, size_t found) {
    if (found == rows) return;
    throw Error(ExitCode::kInternal,
                fmt::format("draft: {}: expected {}, one a row, got {}", what, rows, found));
  };
  if (rows == 0) throw Error(ExitCode::kInternal, "draft: rows: expected at least 1, got 0");
  expect_rows("parents", draft.parents.size());
  expect_rows("chosen tokens", chosen.size());
  AcceptedDraft accepted{.path = {0}, .next_token = chosen[0]};
  // Children come after their parent, so one pass meets the whole path.
  for (int32_t row = 1; row < std::ssize(draft.tokens); ++row) {
    if (draft.parents[row] != accepted.path.back() || draft.tokens[row] != accepted.next_token) continue;
    accepted.path.push_back(row);
    accepted.next_token = chosen[row];
  }
  return accepted;
}

}  // namespace soliton
