// Text out: TextWriter builds indented source text, write_folder() puts finished files on disk. Either all
// files of a folder change or none does, even if the program is killed, and a file whose text is the same as before
// keeps its time stamp, so that builds that depend on it do not run again.
#pragma once

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "models/error.h"

namespace soliton {

/// Builds text line by line at the current indentation.
class TextWriter {
 public:
  /// One formatted line; braces of the text itself are doubled, as fmt wants it.
  template <class... Args>
  void line(fmt::format_string<Args...> format, Args&&... args) {
    literal(fmt::format(format, std::forward<Args>(args)...));
  }

  /// Text as it is, one line or several; empty lines get no indentation.
  void literal(std::string_view text) {
    while (true) {
      const size_t end = text.find('\n');
      const std::string_view row = text.substr(0, end);
      if (!row.empty()) text_.append(kIndent * level_, ' ').append(row);
      text_ += '\n';
      if (end == std::string_view::npos) return;
      text.remove_prefix(end + 1);
      if (text.empty()) return;
    }
  }

  void blank() { text_ += '\n'; }

  /// Runs body() with everything it writes indented by one level more.
  template <class Body>
  void indented(Body&& body) {
    ++level_;
    body();
    --level_;
  }

  const std::string& text() const { return text_; }

 private:
  static constexpr size_t kIndent = 2;
  size_t level_ = 0;
  std::string text_;
};

namespace detail {

/// The text of a file, or nothing if it is no readable file.
inline std::optional<std::string> read_if_file(const std::filesystem::path& path) {
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(path, ignored)) return std::nullopt;
  try {
    std::ifstream stream(path, std::ios::binary);
    std::string text{std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
    return stream.is_open() ? std::optional(std::move(text)) : std::nullopt;
  } catch (const std::ios_base::failure&) {  // a disk that cannot be read
    return std::nullopt;
  }
}

inline Error not_writable(const std::filesystem::path& path, const std::string& reason) {
  return Error(ExitCode::kNotFound,
               fmt::format("{}: expected a place that can be written, got: {}", path.string(), reason));
}

/// A new folder that goes away with this object, with all in it and with the parents that were made for it,
/// unless something else has moved into these.
class StagingFolder {
 public:
  /// Makes `prefix`<process>-<n>, the first n that is free: two generators may run at once.
  explicit StagingFolder(const std::filesystem::path& prefix) {
    try {
      for (auto parent = prefix.parent_path(); !std::filesystem::exists(parent);
           parent = parent.parent_path()) {
        made_parents_.push_back(parent);
      }
      std::filesystem::create_directories(prefix.parent_path());
      int attempt = 0;
      do {
        path_ = fmt::format("{}{}-{}", prefix.string(), ::getpid(), attempt++);
      } while (!std::filesystem::create_directory(path_));
    } catch (...) {
      path_.clear();
      clean();
      throw;
    }
  }
  ~StagingFolder() { clean(); }
  StagingFolder(const StagingFolder&) = delete;
  StagingFolder& operator=(const StagingFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }

  void write(const std::string& name, const std::string& text) const {
    std::ofstream stream(path_ / name, std::ios::binary);
    stream.write(text.data(), static_cast<std::streamsize>(text.size()));
    stream.close();  // flushes: the last place where a full disk shows
    if (!stream) throw not_writable(path_.parent_path(), "writing " + name + " failed (disk full?)");
  }

 private:
  void clean() noexcept {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
    for (const auto& parent : made_parents_) std::filesystem::remove(parent, ignored);  // only if empty
  }

  std::filesystem::path path_;
  std::vector<std::filesystem::path> made_parents_;  // innermost first
};

/// Moves files over those of an existing folder; what was there before comes back unless keep() is reached.
class Replacement {
 public:
  Replacement(std::filesystem::path target, const std::filesystem::path& staging)
      : target_(std::move(target)), staging_(staging), backup_(staging / ".backup") {
    std::filesystem::create_directory(backup_);
  }
  ~Replacement() {
    std::error_code ignored;
    for (const auto& [name, existed] : replaced_) {
      if (existed) {
        std::filesystem::rename(backup_ / name, target_ / name, ignored);
      } else {
        std::filesystem::remove(target_ / name, ignored);
      }
    }
  }
  Replacement(const Replacement&) = delete;
  Replacement& operator=(const Replacement&) = delete;

  void replace(const std::string& name) {
    const bool existed = std::filesystem::exists(target_ / name);
    if (existed) {
      // A hard link keeps time stamps and leaves no moment without the file; some file systems have none.
      std::error_code failure;
      std::filesystem::create_hard_link(target_ / name, backup_ / name, failure);
      if (failure) std::filesystem::copy_file(target_ / name, backup_ / name);
    }
    std::filesystem::rename(staging_ / name, target_ / name);
    replaced_.emplace_back(name, existed);
  }

  void keep() { replaced_.clear(); }

 private:
  std::filesystem::path target_;
  std::filesystem::path staging_;
  std::filesystem::path backup_;
  std::vector<std::pair<std::string, bool>> replaced_;  // name, whether there was such a file before
};

/// A copy of the folder with the files changed takes its place in one step, so that who is killed, or reads
/// meanwhile, has all or none of them. False, and nothing is done, where no file is replaced or the copy would not
/// be the same: a folder of another user or with more than plain files, one that this program stands in, a mount
/// point; or where the system has no such step.
inline bool exchanged(const std::filesystem::path& target,
                      const std::map<std::string, std::string>& changed) {
  namespace fs = std::filesystem;
  std::optional<StagingFolder> staging;
  struct stat owned = {};
  struct stat own = {};
  bool replaces = false;
  try {
    if (fs::equivalent(target, fs::current_path())) return false;
    staging.emplace(target.parent_path() / ("." + target.filename().string() + "-"));
    if (::stat(target.c_str(), &owned) != 0 || ::stat(staging->path().c_str(), &own) != 0) return false;
    if (owned.st_uid != own.st_uid || owned.st_gid != own.st_gid) return false;
    fs::permissions(staging->path(), fs::status(target).permissions());
    for (const fs::directory_entry& entry : fs::directory_iterator(target)) {
      if (entry.is_symlink() || !entry.is_regular_file()) return false;
      const std::string name = entry.path().filename().string();
      if (changed.contains(name)) {
        replaces = true;
      } else {
        fs::create_hard_link(entry.path(), staging->path() / name);
      }
    }
    if (!replaces) return false;
  } catch (const fs::filesystem_error&) {
    return false;
  }
  for (const auto& [name, text] : changed) staging->write(name, text);
  return ::renameat2(AT_FDCWD, staging->path().c_str(), AT_FDCWD, target.c_str(), RENAME_EXCHANGE) == 0;
}

inline void write_changed(const std::filesystem::path& target,
                          const std::map<std::string, std::string>& changed) {
  if (!std::filesystem::exists(target)) {
    // A sibling: complete before it gets its name.
    const StagingFolder staging(target.parent_path() / ("." + target.filename().string() + "-"));
    for (const auto& [name, text] : changed) staging.write(name, text);
    std::filesystem::rename(staging.path(), target);
    return;
  }
  if (changed.size() > 1 && exchanged(target, changed)) return;
  // Within the folder, which may be a mount point: a rename never crosses file systems.
  const StagingFolder staging(target / ".soliton-gen-");
  for (const auto& [name, text] : changed) staging.write(name, text);
  Replacement replacement(target, staging.path());
  for (const auto& [name, text] : changed) replacement.replace(name);
  replacement.keep();
}

}  // namespace detail

/// Makes the files `name -> text` stand in `folder`, which is made if need be with all its parents. Other
/// files there are left alone, and so are files that already hold the same text. Returns the names of those
/// written. Throws Error (kNotFound) if that cannot be done; everything is then as it was before. Names are
/// plain file names.
inline std::vector<std::string> write_folder(const std::filesystem::path& folder,
                                             const std::map<std::string, std::string>& files) {
  for (const auto& [name, text] : files) {
    if (name.empty() || name.starts_with('.') || name.find('/') != std::string::npos) {
      throw Error(ExitCode::kInternal, fmt::format("write_folder: expected a file name, got \"{}\"", name));
    }
  }
  try {
    // Through symbolic links, so that a link to a folder stays one; "out/" and "." get a last component.
    std::filesystem::path target = std::filesystem::weakly_canonical(std::filesystem::absolute(folder));
    if (!target.has_filename()) target = target.parent_path();
    if (std::filesystem::exists(target) && !std::filesystem::is_directory(target)) {
      throw detail::not_writable(folder, "a file where the folder should be");
    }
    std::map<std::string, std::string> changed;
    std::vector<std::string> names;
    for (const auto& [name, text] : files) {
      if (detail::read_if_file(target / name) == text) continue;
      changed.emplace(name, text);
      names.push_back(name);
    }
    if (!changed.empty()) detail::write_changed(target, changed);
    return names;
  } catch (const std::filesystem::filesystem_error& failure) {
    throw detail::not_writable(folder, failure.code().message());
  }
}

}  // namespace soliton
