// Lines that were typed in chats before, one a line, in a file that only its owner can read.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace soliton {

/// Lines that are remembered at most.
inline constexpr int kHistoryLines = 1000;

/// Several programs may write one file at the same time: lines are only ever added, as a whole. Where the file is a
/// link to /dev/null, or is none, nothing is kept.
class HistoryFile {
 public:
  /// Reads the last lines. Shortens a file that has grown far beyond them.
  explicit HistoryFile(std::filesystem::path path);

  const std::filesystem::path& path() const { return path_; }
  /// Valid UTF-8, the oldest first.
  const std::vector<std::string>& lines() const { return lines_; }
  /// Adds a line, unless it is the last one again or longer than is sensible. Makes file and folder if need be.
  std::error_code append(std::string_view line);

 private:
  std::filesystem::path path_;
  std::vector<std::string> lines_;  // those that were there
  std::string last_;
};

}  // namespace soliton
