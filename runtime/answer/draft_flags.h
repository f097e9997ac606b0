// The flags of programs that say who drafts the tokens that a step checks.
#pragma once

#include "runtime/answer/options.h"
#include "runtime/program/command_line.h"

namespace soliton {

/// Once they have been read, set_default_drafts() says how many a draft model drafts where no flag does.
inline void add_draft_flags(CLI::App& app, Options& options) {
  begin_group(app, "Drafts");
  CLI::Option* lookup =
      app.add_option("--lookup", options.num_drafts,
                     "tokens to draft a step at most, from what followed earlier in the text; same "
                     "answer, sooner. Without it and --draft none are drafted")
          ->check(at_least(1));
  CLI::Option* draft =
      app.add_option(
             "--draft", options.draft,
             "folder or name of a small model with the same tokens, which drafts; same answer, sooner")
          ->check(not_empty())
          ->excludes(lookup);
  app.add_option("--draft-max", options.num_drafts,
                 fmt::format("tokens that it drafts a step at most; else {}", Options::kDefaultDrafts))
      ->check(at_least(1))
      ->needs(draft);
}

inline void set_default_drafts(Options& options) {
  if (!options.draft.empty() && options.num_drafts == 0) options.num_drafts = Options::kDefaultDrafts;
}

}  // namespace soliton
