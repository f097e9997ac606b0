// What fuzz targets share. A target is given bytes and passes them to a reader: an error that the reader means for
// the user is fine, anything else (another exception, a defect's exit code, a broken invariant) ends the program.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

#include "models/error.h"
#include "temporary_folder.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace soliton {

/// Ends the program unless `holds`.
inline void expect(bool holds, const char* what) {
  if (holds) return;
  fmt::print(stderr, "fuzz target: broken: {}\n", what);
  std::abort();
}

/// Runs `read`, in which errors for the user are fine; whether there was none.
template <class Read>
bool accepts(Read&& read) {
  try {
    read();
    return true;
  } catch (const Error& error) {
    expect(error.code() != ExitCode::kInternal, error.what());
    const std::string_view text = error.what();
    const auto is_control = [](unsigned char c) { return c < ' ' || c == 0x7f; };
    expect(!text.empty() && std::none_of(text.begin(), text.end(), is_control),
           "an error of one printable line");
    return false;
  }
}

/// A folder for the files that readers want, in memory where there is such a place.
class FuzzFolder {
 public:
  FuzzFolder() {
    std::error_code ignored;
    if (std::filesystem::is_directory("/dev/shm", ignored)) ::setenv("TMPDIR", "/dev/shm", 0);
    folder_ = std::make_unique<TemporaryFolder>();
  }
  const std::filesystem::path& path() const { return folder_->path(); }
  std::filesystem::path write(const std::string& name, std::string_view text) const {
    return folder_->write(name, text);
  }

 private:
  std::unique_ptr<TemporaryFolder> folder_;
};

/// One for the whole run.
inline const FuzzFolder& fuzz_folder() {
  static const FuzzFolder folder;
  return folder;
}

inline std::string_view as_text(const uint8_t* data, size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

}  // namespace soliton
