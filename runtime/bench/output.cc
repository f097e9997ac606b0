#include "runtime/bench/output.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "models/error.h"
#include "models/kept_file.h"

namespace soliton {
namespace {

Error not_writable(const std::string& path, const std::string& reason) {
  return file_error(ExitCode::kNotFound, path, "expected a file that can be written, got: {}", reason);
}

}  // namespace

void check_writable(const std::string& path, bool make_folders) {
  std::filesystem::path folder = std::filesystem::absolute(path).parent_path();
  std::error_code ignored;
  while (make_folders && !std::filesystem::exists(folder, ignored) && folder.has_relative_path()) {
    folder = folder.parent_path();
  }
  if (std::filesystem::is_directory(path, ignored)) throw not_writable(path, "a folder");
  if (std::filesystem::is_regular_file(folder, ignored)) {
    throw not_writable(path, "a file where the folder should be");
  }
  if (::access(folder.c_str(), W_OK | X_OK) != 0) throw not_writable(path, std::strerror(errno));
}

void write_file(const std::string& path, const std::string& text) {
  std::error_code ignored;
  const bool is_special =
      std::filesystem::exists(path, ignored) && !std::filesystem::is_regular_file(path, ignored);
  if (!is_special) return write_kept_file(path, text);
  std::ofstream file(path);  // /dev/stdout cannot be replaced
  file << text;
  file.close();
  if (!file) throw not_writable(path, std::make_error_code(std::errc::io_error).message());
}

}  // namespace soliton
