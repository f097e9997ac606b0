// The content of one file, from the hub into the cache.
#pragma once

#include "runtime/hub/hub_client.h"
#include "runtime/hub/repository.h"
#include "runtime/program/progress.h"

namespace soliton::hub {

/// Whether the cache has the whole content of a file.
bool has_blob(const CachedRepository& repository, const HubFile& file);

/// Bytes of a file that are still to come.
uint64_t missing_bytes(const CachedRepository& repository, const HubFile& file);

/// Downloads the content of a file unless it is there. It grows beside its place, where another download, by Hugging Face's
/// programs too, goes on with what is there; and moves there once its size and hash are right. Meanwhile other programs
/// that want it wait, and this one for them. Throws Error: kNotFound as HubClient::fetch() does, and if the file cannot be
/// written; kBadFile if the content is not what the hub lists.
void fetch_blob(HubClient& client, const CachedRepository& repository, const std::string& commit,
                const HubFile& file, Progress* progress);

/// Has the name of a file in the snapshot lead to its content, whatever was there.
void link_blob(const CachedRepository& repository, const std::string& commit, const HubFile& file);

}  // namespace soliton::hub
