#include "runtime/hub/fetch_blob.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "models/kept_file.h"
#include "models/mapped_file.h"
#include "models/printing.h"

namespace soliton::hub {
namespace {

namespace fs = std::filesystem;

constexpr mode_t kAnyMode = 0666;  // without what the user's mask takes away

Error not_writable(const fs::path& path, int error) {
  std::error_code unknown;
  const fs::space_info space = fs::space(path.parent_path(), unknown);
  const std::string room =
      error == ENOSPC && !unknown
          ? fmt::format(" ({:.2f} GB are free)", static_cast<double>(space.available) * 1e-9)
          : "";
  return file_error(ExitCode::kNotFound, path.string(), "expected a file that can be written, got: {}{}",
                    std::strerror(error), room);
}

/// The lock by which Hugging Face's programs keep each other from fetching the same content. It ends with the process,
/// whatever ends that. Where the file system knows no locks there is none.
class DownloadLock {
 public:
  DownloadLock(const fs::path& path, const std::string& name, Progress* progress) {
    fs::create_directories(path.parent_path());
    do {
      file_.emplace(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, kAnyMode));
      if (file_->fd < 0) throw not_writable(path, errno);
    } while (lock(name, progress) && !is_at(path));
  }

 private:
  /// Whether there is a lock, which may be had only after a while.
  bool lock(const std::string& name, Progress* progress) const {
    if (::flock(file_->fd, LOCK_EX | LOCK_NB) == 0) return true;
    if (errno != EWOULDBLOCK) return false;
    const std::string line = fmt::format("Waiting for another program that downloads {}", name);
    if (progress != nullptr) {
      progress->note(line);
    } else {
      say_line(line);
    }
    int status = 0;
    do {
      status = ::flock(file_->fd, LOCK_EX);
    } while (status != 0 && errno == EINTR);
    return status == 0;
  }
  /// Whether nobody has removed the file since it was opened, as some do who give up their lock: others then lock another.
  bool is_at(const fs::path& path) const {
    struct stat mine {};
    struct stat theirs {};
    return ::fstat(file_->fd, &mine) == 0 && ::stat(path.c_str(), &theirs) == 0 &&
           mine.st_ino == theirs.st_ino && mine.st_dev == theirs.st_dev;
  }

  std::optional<OpenFile> file_;
};

/// A file that grows as its content comes, with the hash of what it has.
class IncompleteFile {
 public:
  IncompleteFile(const fs::path& path, const HubFile& wanted)
      : path_(path),
        wanted_(wanted),
        file_(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, kAnyMode)),
        checksum_(wanted.kind, wanted.size) {
    if (file_.fd < 0) throw not_writable(path_, errno);
    read_existing();
    num_found_ = size_;
  }

  uint64_t size() const { return size_; }
  /// Whether some of it was there before this object.
  bool has_found() const { return num_found_ > 0; }
  bool is_whole() const { return size_ == wanted_.size; }

  void add(std::string_view bytes) {
    if (bytes.size() > wanted_.size - size_) {
      begin_anew();
      throw bad_file(wanted_.name, "expected {} bytes, as the hub lists, got more", wanted_.size);
    }
    if (!write_all(file_.fd, bytes)) throw not_writable(path_, errno);
    checksum_.add(bytes);
    size_ += bytes.size();
  }
  /// Forgets what there is.
  void begin_anew() {
    if (::ftruncate(file_.fd, 0) != 0 || ::lseek(file_.fd, 0, SEEK_SET) != 0)
      throw not_writable(path_, errno);
    checksum_ = Checksum(wanted_.kind, wanted_.size);
    size_ = 0;
    num_found_ = 0;
  }
  /// Of a whole file: "expected ..., got ...", or nothing if its hash is right.
  std::string complaint() {
    const std::string hash = checksum_.finish();
    return hash == wanted_.hash
               ? ""
               : fmt::format("expected the hash {}, as the hub lists, got {}", wanted_.hash, hash);
  }

 private:
  void read_existing() {
    constexpr size_t kChunk = 1 << 20;
    std::vector<char> chunk(kChunk);
    struct stat status {};
    if (::fstat(file_.fd, &status) != 0 || !S_ISREG(status.st_mode)) throw not_writable(path_, EINVAL);
    if (static_cast<uint64_t>(status.st_size) > wanted_.size) return begin_anew();
    for (;;) {
      const ssize_t got = ::read(file_.fd, chunk.data(), chunk.size());
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) throw not_writable(path_, errno);
      if (got == 0) return;
      checksum_.add({chunk.data(), static_cast<size_t>(got)});
      size_ += static_cast<uint64_t>(got);
      if (size_ > wanted_.size) return begin_anew();
    }
  }

  const fs::path path_;
  const HubFile& wanted_;
  const OpenFile file_;
  Checksum checksum_;
  uint64_t size_ = 0;
  uint64_t num_found_ = 0;
};

/// Lets the rest of the file come.
void receive(HubClient& client, const std::string& name, const std::string& commit, const HubFile& wanted,
             IncompleteFile& file, Progress* progress) {
  const auto begin_anew = [&] {
    if (progress != nullptr) progress->take_back(file.size());
    file.begin_anew();
  };
  const HttpGet::Receiver receiver{
      .begin =
          [&](const AnswerHead& head) {
            const uint64_t begin = head.status == 206 ? head.range_begin.value_or(0) : 0;
            if (begin == file.size()) return;
            begin_anew();  // the server does not take up where it should
            if (begin != 0) {
              throw ConnectionFailed(fmt::format("{}: expected {} from its beginning, got it from byte {}",
                                                 head.host, wanted.name, begin),
                                     true);
            }
          },
      .add =
          [&](std::string_view bytes) {
            file.add(bytes);
            if (progress != nullptr) progress->add(bytes.size());
          }};
  constexpr int kMostShortAnswers = 5;
  for (int i = 0; !file.is_whole(); ++i) {
    const uint64_t before = file.size();
    const AnswerHead head = client.fetch(
        name, commit, wanted.name, [&] { return file.size(); }, receiver);
    if (file.is_whole()) break;
    if (head.status != 200 && head.status != 206) begin_anew();  // no such range
    if (i == kMostShortAnswers) {
      throw file_error(ExitCode::kNotFound, name, "{}: expected {} bytes from {}, got {}", wanted.name,
                       wanted.size, head.host, std::max(before, file.size()));
    }
  }
}

uint64_t size_of(const fs::path& path) {
  std::error_code absent;
  const uint64_t size = fs::file_size(path, absent);
  return absent ? 0 : size;
}

}  // namespace

bool has_blob(const CachedRepository& repository, const HubFile& file) {
  std::error_code absent;
  const fs::path blob = repository.blob(file.hash);
  return fs::is_regular_file(blob, absent) && size_of(blob) == file.size;
}

uint64_t missing_bytes(const CachedRepository& repository, const HubFile& file) {
  if (has_blob(repository, file)) return 0;
  const uint64_t present = size_of(repository.incomplete(file.hash));
  return present <= file.size ? file.size - present : file.size;
}

void fetch_blob(HubClient& client, const CachedRepository& repository, const std::string& commit,
                const HubFile& file, Progress* progress) {
  const DownloadLock lock(repository.lock(file.hash), file.name, progress);
  if (has_blob(repository, file)) {  // by the program that had the lock
    if (progress != nullptr) progress->add_present(file.size);
    return;
  }
  const fs::path path = repository.incomplete(file.hash);
  fs::create_directories(path.parent_path());
  IncompleteFile content(path, file);
  if (progress != nullptr) progress->add_present(content.size());
  receive(client, repository.name(), commit, file, content, progress);
  std::string complaint = content.complaint();
  if (!complaint.empty() && content.has_found()) {  // what was there may have been wrong
    if (progress != nullptr) progress->take_back(content.size());
    content.begin_anew();
    receive(client, repository.name(), commit, file, content, progress);
    complaint = content.complaint();
  }
  if (!complaint.empty()) {
    ::unlink(path.c_str());
    throw bad_file(fmt::format("{}: {}", repository.name(), file.name), "{}", complaint);
  }
  move_kept_file(path, repository.blob(file.hash));
}

void link_blob(const CachedRepository& repository, const std::string& commit, const HubFile& file) {
  const fs::path place = repository.snapshot(commit) / file.name;
  fs::create_directories(place.parent_path());
  const fs::path target = repository.blob(file.hash).lexically_relative(place.parent_path());
  std::error_code absent;
  if (fs::read_symlink(place, absent) == target) return;
  const fs::path beside = place.parent_path() / fmt::format(".{}.{}", place.filename().string(), ::getpid());
  ::unlink(beside.c_str());
  if (::symlink(target.c_str(), beside.c_str()) != 0 || ::rename(beside.c_str(), place.c_str()) != 0) {
    const int error = errno;
    ::unlink(beside.c_str());
    throw file_error(ExitCode::kNotFound, place.string(), "expected a link that can be made, got: {}",
                     std::strerror(error));
  }
}

}  // namespace soliton::hub
