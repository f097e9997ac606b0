#include "runtime/hub/download.h"

#include <unistd.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "models/hf_config.h"
#include "models/kept_file.h"
#include "models/mapped_file.h"
#include "models/printing.h"
#include "runtime/hub/fetch_blob.h"

namespace soliton::hub {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kSpareBytes = 64 << 20;  // of the disk, for the cache's folders and other programs

double gigabytes(uint64_t bytes) {
  return static_cast<double>(bytes) * 1e-9;
}

/// The nearest folder of a path that is there.
fs::path existing(fs::path path) {
  std::error_code ignored;
  while (!fs::exists(path, ignored) && path.has_relative_path()) path = path.parent_path();
  return path;
}

void check_space(const CachedRepository& repository, uint64_t bytes) {
  std::error_code unknown;
  const fs::space_info space = fs::space(existing(repository.root()), unknown);
  if (unknown || space.available >= bytes + kSpareBytes) return;
  throw file_error(
      ExitCode::kNotFound, repository.root().parent_path().string(),
      "expected {:.2f} GB of free space for {}, got {:.2f} GB (HF_HUB_CACHE names another folder)",
      gigabytes(bytes + kSpareBytes), repository.name(), gigabytes(space.available));
}

/// What is typed at the terminal, up to the end of the line.
std::string read_answer() {
  std::string line;
  for (char c = 0; ::read(STDIN_FILENO, &c, 1) == 1 && c != '\n';) line += c;
  return line;
}

/// Throws Error (kNotFound) if there is somebody to ask who declines.
void ask_user(const CachedRepository& repository, uint64_t bytes, const HubOptions& options) {
  const bool is_asked =
      bytes > kAskedBytes && !options.says_yes && ::isatty(STDIN_FILENO) == 1 && ::isatty(STDERR_FILENO) == 1;
  if (!is_asked) return;
  write_all(STDERR_FILENO, fmt::format("Download {:.2f} GB of {} to {}? [y/N] ", gigabytes(bytes),
                                       repository.name(), repository.root().parent_path().string()));
  const std::string answer = read_answer();
  if (answer == "y" || answer == "Y" || answer == "yes") return;
  throw file_error(ExitCode::kNotFound, repository.name(),
                   "expected to be downloaded, declined (--yes: unasked)");
}

/// One model on its way into the cache.
class Download {
 public:
  Download(const CachedRepository& repository, const HubOptions& options, const NeededFiles& needed,
           const Times& times)
      : repository_(repository),
        options_(options),
        needed_(needed),
        revision_(options.revision.empty() ? kMainRevision : options.revision),
        client_(read_settings(), times.patience, times.retries,
                [this](const std::string& line) { note(line); }) {}

  /// Returns the snapshot.
  fs::path run() {
    listing_ = client_.list(repository_.name(), revision_);
    const fs::path snapshot = repository_.snapshot(listing_.commit);
    const std::vector<HubFile> small = choose_small_files(listing_, needed_);
    check_space(repository_, missing_bytes_of(small));
    fetch(small);
    keep_ref();
    if (!needed_.weights) return snapshot;
    HfConfig::open(snapshot);  // throws what a program would after its weights have come
    const std::string index = has_index(listing_) ? load_text(snapshot / kWeightsIndex) : "";
    fetch_weights(choose_weights(listing_, index));
    return snapshot;
  }

 private:
  uint64_t missing_bytes_of(const std::vector<HubFile>& files) const {
    return std::accumulate(files.begin(), files.end(), uint64_t{0}, [&](uint64_t sum, const HubFile& file) {
      return sum + missing_bytes(repository_, file);
    });
  }

  void fetch(const std::vector<HubFile>& files) {
    for (const HubFile& file : files) {
      fetch_blob(client_, repository_, listing_.commit, file, progress_);
      link_blob(repository_, listing_.commit, file);
    }
  }

  void fetch_weights(const std::vector<HubFile>& files) {
    const uint64_t bytes = missing_bytes_of(files);
    ask_user(repository_, bytes, options_);
    check_space(repository_, bytes);
    const uint64_t total = std::accumulate(files.begin(), files.end(), uint64_t{0},
                                           [](uint64_t sum, const HubFile& file) { return sum + file.size; });
    say("Downloading {} to {}", repository_.name(), repository_.root().parent_path().string());
    Progress progress("Download", total);
    progress_ = &progress;
    fetch(files);
    progress.finish();
    progress_ = nullptr;
  }

  /// Remembers which commit the branch or tag had. Of a commit there is nothing to remember.
  void keep_ref() const {
    if (revision_ == listing_.commit) return;
    const fs::path ref = repository_.ref(revision_);
    fs::create_directories(ref.parent_path());
    write_kept_file(ref, listing_.commit);
  }

  void note(const std::string& line) const {
    if (progress_ != nullptr) {
      progress_->note(line);
    } else {
      say_line(line);
    }
  }

  const CachedRepository& repository_;
  const HubOptions& options_;
  const NeededFiles& needed_;
  const std::string revision_;
  Progress* progress_ = nullptr;
  HubClient client_;
  Listing listing_;
};

}  // namespace

fs::path download(const CachedRepository& repository, const HubOptions& options, const NeededFiles& needed,
                  const Times& times) {
  return Download(repository, options, needed, times).run();
}

}  // namespace soliton::hub
