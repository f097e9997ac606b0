// Tokens in the middle of the main branch are forgotten: those behind move up, in their pages and in their positions.
#include <fmt/format.h>

#include <algorithm>

#include "runtime/engine/engine.h"
#include "runtime/engine/shift_keys.h"

namespace soliton {
namespace {

/// Of the tokens of a branch by itself, from `from` on to `to` on: runs that lie within a page, before and behind.
std::vector<TokenMove> moves_to(const std::vector<int32_t>& pages, int from, int end, int to) {
  std::vector<TokenMove> moves;
  while (from < end) {
    const int count =
        std::min({end - from, kKvPageTokens - from % kKvPageTokens, kKvPageTokens - to % kKvPageTokens});
    moves.push_back({.from_page = pages[static_cast<size_t>(from / kKvPageTokens)],
                     .from_token = from % kKvPageTokens,
                     .to_page = pages[static_cast<size_t>(to / kKvPageTokens)],
                     .to_token = to % kKvPageTokens,
                     .num_tokens = count});
    from += count;
    to += count;
  }
  return moves;
}

}  // namespace

/// Moves tokens from `first + count` on to `first` in the layers of one pool, and turns their keys.
void Engine::forget_in(const PoolPart& part, int first, int count, const KeyShift& shift) {
  const int num_tokens = position();
  const std::vector<TokenMove> moves = moves_to(part.pages, first + count, num_tokens, first);
  if (moves.empty() || part.kv.num_layers == 0) return;
  const int kept = num_tokens - count;
  const auto page_bytes = static_cast<size_t>(part.kv.page_offset(1, 0, 0));
  const Library& device = library_.functions();
  on_every_card([&](EngineCard& card) {
    auto* const pool = static_cast<unsigned char*>((card.pool.*part.pool)());
    library_.check(device.move_tokens(pool, &part.kv, moves.data(), static_cast<int>(moves.size())),
                   "move tokens");
    std::vector<unsigned char> page(page_bytes);
    for (int begin = first; begin < kept; begin = (begin / kKvPageTokens + 1) * kKvPageTokens) {
      const int page_begin = begin / kKvPageTokens * kKvPageTokens;
      unsigned char* const at =
          pool + part.kv.page_offset(part.pages[static_cast<size_t>(begin / kKvPageTokens)], 0, 0);
      library_.check(device.download(page.data(), at, page_bytes), "read keys");
      shift.turn(page.data(), part.kv, part.have_windows, begin - page_begin,
                 std::min(kKvPageTokens, kept - page_begin));
      library_.check(device.upload(at, page.data(), page_bytes), "write keys");
    }
  });
}

void Engine::forget(int first, int count) {
  const int num_tokens = position();
  if (first < 0 || count < 1 || first + count > num_tokens || tree_.branches().size() != 1) {
    throw Error(ExitCode::kInternal,
                fmt::format("forget: expected tokens of one branch of {}, got {} from {} on of {} branches",
                            num_tokens, count, first, tree_.branches().size()));
  }
  if (pages_.windows != 0 && pages_.windows < pages_.all) {
    throw Error(ExitCode::kInternal, fmt::format("forget: expected {} pages of layers with a window, got {}",
                                                 pages_.all, pages_.windows));
  }
  move_tokens();  // what is still to be done
  const KeyShift shift(library_.model().facts, count, context_);
  forget_in({.pages = tree_.page_table(main_), .kv = full_layers(library_), .pool = &KvPool::address}, first,
            count, shift);
  if (pages_.windows > 0) {
    forget_in({.pages = tree_.window_page_table(main_),
               .kv = window_layers(library_),
               .have_windows = true,
               .pool = &KvPool::windows},
              first, count, shift);
  }
  tree_.truncate(main_, num_tokens - count);
}

}  // namespace soliton
