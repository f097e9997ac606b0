#include "runtime/hub/fetch_model.h"

#include "runtime/hub/download.h"
#include "runtime/hub/hub_settings.h"

namespace soliton {

namespace {
void check_options(const std::string& model, const HubOptions& options) {
  if (options.revision.empty()) return;
  if (!names_repository(model)) {
    throw Error(ExitCode::kUsage, fmt::format("--revision: expected a model that is named as on Hugging Face "
                                              "(org/name), got {}",
                                              in_quotes(model)));
  }
  if (is_revision(options.revision)) return;
  throw Error(ExitCode::kUsage, fmt::format("--revision: expected a branch, tag or commit, got {}",
                                            in_quotes(options.revision)));
}

}  // namespace

std::filesystem::path fetch_model(const std::string& model, const HubOptions& options,
                                  const NeededFiles& needed) {
  check_options(model, options);
  if (!names_repository(model)) return find_model(model);
  const CachedRepository repository(model);
  const std::string revision = options.revision.empty() ? kMainRevision : options.revision;
  if (huggingface_hub().empty())
    throw Error(ExitCode::kNotFound, "HOME: expected a folder to download to, there or in HF_HOME, got none");
  if (const auto cached = find_cached(repository, revision, needed)) return *cached;
  const bool is_offline = options.is_offline || hub::read_settings().is_offline;
  if (!is_offline) return hub::download(repository, options, needed);
  // A tokenizer that is not there is missed by whoever reads it.
  const NeededFiles least{.text = false, .weights = needed.weights};
  if (const auto cached = find_cached(repository, revision, least)) return *cached;
  throw not_cached(
      repository, revision, least,
      fmt::format("nothing is downloaded with {}", options.is_offline ? "--offline" : "HF_HUB_OFFLINE"));
}

}  // namespace soliton
