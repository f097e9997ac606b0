// One model from the hub into the cache.
#pragma once

#include <filesystem>

#include "runtime/hub/fetch_model.h"
#include "runtime/hub/hub_client.h"
#include "runtime/hub/repository.h"

namespace soliton::hub {

struct Times {
  Patience patience = {};
  Retries retries = {};
};

/// Downloads what the cache lacks, by the environment's settings, and returns the snapshot. Throws what fetch_model() does.
std::filesystem::path download(const CachedRepository& repository, const HubOptions& options,
                               const NeededFiles& needed, const Times& times = {});

}  // namespace soliton::hub
