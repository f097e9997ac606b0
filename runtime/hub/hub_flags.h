// The flags of programs that say what may be downloaded.
#pragma once

#include "runtime/hub/fetch_model.h"
#include "runtime/program/command_line.h"

namespace soliton {

inline void add_hub_flags(CLI::App& app, HubOptions& options) {
  app.add_option("--revision", options.revision,
                 "branch, tag or commit of a model that is named as on Hugging Face; else main")
      ->check(not_empty());
  app.add_flag("--offline", options.is_offline, "downloads nothing, as with HF_HUB_OFFLINE=1");
  app.add_flag("--yes", options.says_yes, "downloads more than 1 GB without asking");
}

}  // namespace soliton
