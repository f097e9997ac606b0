// The hub's cache, which Soliton shares with Hugging Face's own programs:
//
//   HUB/models--org--name/refs/main            the commit that the branch had when it was looked up
//   HUB/models--org--name/snapshots/COMMIT/    config.json, ... : links to
//   HUB/models--org--name/blobs/HASH           the content of a file; HASH.incomplete while it is fetched
//   HUB/.locks/models--org--name/HASH.lock     held by who fetches it
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace soliton {

/// Where Hugging Face's programs keep what they download: HF_HUB_CACHE, else hub/ in HF_HOME, else huggingface/hub/ in
/// XDG_CACHE_HOME or ~/.cache. Need not exist; empty if none of these is set.
std::filesystem::path huggingface_hub();

/// HF_HOME, where the token of a user lies too; else huggingface/ in XDG_CACHE_HOME or ~/.cache. Empty if none is set.
std::filesystem::path huggingface_home();

/// A path in an environment variable, with ~ for the home folder; empty if it is not set.
std::filesystem::path path_from(const char* variable);

/// Whether it is "name" or "org/name", of the characters that Hugging Face allows.
bool is_repository(std::string_view text);

/// Whether it can be the name of a branch or tag, or a commit: parts between slashes, of letters, digits and ._-
bool is_revision(std::string_view text);

/// Whether it is a commit, of 40 hexadecimal digits.
bool is_commit(std::string_view text);

/// The places of one model in the cache. Nothing of it need exist.
class CachedRepository {
 public:
  explicit CachedRepository(const std::string& name);
  /// Of a folder of the cache whose name begins with models--.
  static CachedRepository of_folder(const std::filesystem::path& root);

  /// org/name.
  const std::string& name() const { return name_; }
  const std::filesystem::path& root() const { return root_; }
  /// Whether there is a snapshot of any commit.
  bool exists() const;

  std::filesystem::path ref(const std::string& revision) const { return root_ / "refs" / revision; }
  std::filesystem::path snapshot(const std::string& commit) const { return root_ / "snapshots" / commit; }
  std::filesystem::path blob(const std::string& hash) const { return root_ / "blobs" / hash; }
  std::filesystem::path incomplete(const std::string& hash) const {
    return root_ / "blobs" / (hash + ".incomplete");
  }
  std::filesystem::path lock(const std::string& hash) const;

  /// The commit of a revision as far as the cache knows it; empty if it does not.
  std::string commit_of(const std::string& revision) const;
  /// All that there are, sorted.
  std::vector<std::filesystem::path> snapshots() const;

 private:
  CachedRepository(std::string name, std::filesystem::path root)
      : name_(std::move(name)), root_(std::move(root)) {}

  std::string name_;
  std::filesystem::path root_;
};

/// Whether a folder is one of a model in the cache.
bool is_cached_model(const std::filesystem::path& folder);

/// The models in a cache, sorted by name.
std::vector<CachedRepository> cached_models(const std::filesystem::path& hub);

}  // namespace soliton
