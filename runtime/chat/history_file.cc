#include "runtime/chat/history_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <utility>

#include "models/error.h"
#include "models/kept_file.h"
#include "models/printing.h"
#include "runtime/text/tokenizer/utf8.h"

namespace soliton {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxLineBytes = 1 << 14;
constexpr off_t kMaxFileBytes = 1 << 20;
constexpr size_t kMaxLines = 2 * kHistoryLines;  // in the file
constexpr mode_t kOwnerOnly = 0600;
constexpr mode_t kOwnersFolder = 0700;

std::error_code last_error() {
  return {errno, std::generic_category()};
}

/// An open file, and nothing if it cannot be opened or is no file.
class HistoryDescriptor {
 public:
  explicit HistoryDescriptor(int number) : number_(number) {}
  HistoryDescriptor(const HistoryDescriptor&) = delete;
  HistoryDescriptor& operator=(const HistoryDescriptor&) = delete;
  ~HistoryDescriptor() {
    if (number_ >= 0) ::close(number_);
  }
  int number() const { return number_; }
  bool is_file(struct stat& status) const {
    return number_ >= 0 && ::fstat(number_, &status) == 0 && S_ISREG(status.st_mode);
  }

 private:
  int number_;
};

HistoryDescriptor open_file(const fs::path& path, int flags) {
  // A pipe in its place must not block.
  return HistoryDescriptor(::open(path.c_str(), flags | O_CLOEXEC | O_NONBLOCK, kOwnerOnly));
}

/// The end of the file, from the start of a line on.
std::string read_end(int descriptor, off_t size) {
  const off_t begin = std::max<off_t>(size - kMaxFileBytes, 0);
  std::string text(static_cast<size_t>(size - begin), '\0');
  size_t num_read = 0;
  while (num_read < text.size()) {
    const ssize_t got = ::pread(descriptor, text.data() + num_read, text.size() - num_read,
                                begin + static_cast<off_t>(num_read));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    num_read += static_cast<size_t>(got);
  }
  text.resize(num_read);
  return begin == 0 ? text : text.substr(std::min(text.find('\n'), text.size() - 1) + 1);
}

/// Replaces the file by one with these lines; if that fails the long one stays.
void rewrite(const fs::path& path, const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text.append(line).append("\n");
  ::chmod(path.c_str(), kOwnerOnly);
  try {
    write_kept_file(path, text);
  } catch (const Error&) {
  }
}

/// Whether a line may stand there whose end could not be written: a further end does no harm.
bool may_end_within_line(int descriptor, off_t size) {
  char last = 0;
  return size > 0 && (::pread(descriptor, &last, 1, size - 1) != 1 || last != '\n');
}

}  // namespace

HistoryFile::HistoryFile(fs::path path) : path_(std::move(path)) {
  const HistoryDescriptor file = open_file(path_, O_RDONLY);
  struct stat status {};
  if (!file.is_file(status)) return;
  const std::string text = read_end(file.number(), status.st_size);
  size_t num_lines = 0;
  for (size_t begin = 0; begin < text.size(); ++num_lines) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    if (end > begin) lines_.push_back(tokenization::valid_utf8(text.substr(begin, end - begin)));
    begin = end + 1;
  }
  const size_t surplus = lines_.size() - std::min<size_t>(lines_.size(), kHistoryLines);
  lines_.erase(lines_.begin(), lines_.begin() + static_cast<ptrdiff_t>(surplus));
  if (!lines_.empty()) last_ = lines_.back();
  if (num_lines > kMaxLines || status.st_size > kMaxFileBytes) rewrite(path_, lines_);
}

std::error_code HistoryFile::append(std::string_view line) {
  if (line.empty() || line == last_ || line.size() > kMaxLineBytes) return {};
  std::error_code failed;
  const fs::path folder = path_.parent_path();
  fs::create_directories(folder.parent_path(), failed);
  if (failed) return failed;
  if (::mkdir(folder.c_str(), kOwnersFolder) != 0 && errno != EEXIST) return last_error();
  const HistoryDescriptor file = open_file(path_, O_RDWR | O_CREAT | O_APPEND);
  if (file.number() < 0) return last_error();
  struct stat status {};
  if (!file.is_file(status)) return {};
  const bool is_private = (status.st_mode & ~static_cast<mode_t>(S_IFMT) & ~kOwnerOnly) == 0;
  if (!is_private && ::fchmod(file.number(), kOwnerOnly) != 0) return last_error();
  const bool is_torn = may_end_within_line(file.number(), status.st_size);
  if (!write_all(file.number(), (is_torn ? "\n" : "") + std::string(line) + "\n")) return last_error();
  last_ = line;
  return {};
}

}  // namespace soliton
