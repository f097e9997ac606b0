// See printing.h.
#include "models/printing.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <mutex>
#include <new>
#include <string>
#include <system_error>

#include "models/error.h"

namespace soliton {
namespace {

constexpr int kPatienceMs = 1000;  // with a reader of stderr that does not read

std::atomic<uint64_t> num_lost_lines = 0;

/// False for a pipe that nobody empties. A terminal that is stopped is waited for: its user sees why nothing happens.
bool takes_text(int fd) noexcept {
  if (::isatty(fd) == 1) return true;
  pollfd ready{.fd = fd, .events = POLLOUT, .revents = 0};
  return ::poll(&ready, 1, kPatienceMs) > 0;
}

bool write_line(std::string_view line) noexcept {
  if (!takes_text(STDERR_FILENO)) return false;
  // By one call where there is memory for it, so that lines of several processes do not mix.
  try {
    return write_all(STDERR_FILENO, std::string(line) + "\n");
  } catch (...) {
    return write_all(STDERR_FILENO, line) && write_all(STDERR_FILENO, "\n");
  }
}

/// Closed ones become /dev/null, opened such that what a program would do with it fails as it did.
void open_standard_files() noexcept {
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(fd, F_GETFD) >= 0 || errno != EBADF) continue;
    // Takes the lowest number that is free, which is this one.
    if (::open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) != fd) return;
  }
}

/// Takes no memory itself.
int report_memory(const char* name) noexcept {
  char text[120];
  std::snprintf(text, sizeof text, "%s: host memory: expected more than is free", name);
  say_line(text);
  return static_cast<int>(ExitCode::kOutOfMemory);
}

/// What is thrown, as an exit status and a line; runs within a handler.
int report(const char* name) {
  try {
    throw;
  } catch (const std::bad_alloc&) {
    return report_memory(name);
  } catch (const std::exception& thrown) {
    const Error error = as_error(thrown);
    say("{}: {}", name, error.what());
    return static_cast<int>(error.code());
  }
}

int report_or_memory(const char* name) noexcept {
  try {
    return report(name);
  } catch (...) {
    return report_memory(name);
  }
}

const char* program = "";

/// What is thrown where it cannot be caught ends the program as elsewhere: mostly want of memory, in a thread or within a
/// destructor, as JSON's take some. What lies on disks is whole at any moment.
[[noreturn]] void end_uncaught() noexcept {
  if (std::current_exception() != nullptr) ::_exit(report_or_memory(program));
  // On its way out of a function of a library that throws nothing, it believes: that takes memory, and nothing else fails.
  if (std::uncaught_exceptions() > 0) ::_exit(report_memory(program));
  std::abort();
}

}  // namespace

bool write_all(int fd, std::string_view text) noexcept {
  while (!text.empty()) {
    const ssize_t written = ::write(fd, text.data(), text.size());
    if (written > 0) {
      text.remove_prefix(static_cast<size_t>(written));
    } else if (written < 0 && errno == EAGAIN) {
      if (!takes_text(fd)) return false;
    } else if (written == 0 || errno != EINTR) {
      return false;
    }
  }
  return true;
}

void say_line(std::string_view line) noexcept {
  if (const uint64_t lost = num_lost_lines.exchange(0); lost > 0) {
    char text[80];
    std::snprintf(text, sizeof text, "[ %llu line%s before this could not be written ]",
                  static_cast<unsigned long long>(lost), lost == 1 ? "" : "s");
    if (!write_line(text)) num_lost_lines += lost;
  }
  if (!write_line(line)) ++num_lost_lines;
}

void print(std::string_view text) noexcept {
  std::fwrite(text.data(), 1, text.size(), stdout);
}

bool is_stdout_lost() noexcept {
  return std::ferror(stdout) != 0;
}

void flush_stdout() {
  if (std::fflush(stdout) != 0 || is_stdout_lost()) {
    throw Error(ExitCode::kNotFound, "stdout: expected to be written to, got an error");
  }
}

Error as_error(const std::exception& thrown) {
  if (const auto* error = dynamic_cast<const Error*>(&thrown)) return *error;
  if (const auto* error = dynamic_cast<const std::filesystem::filesystem_error*>(&thrown))
    return file_error(ExitCode::kNotFound, error->path1().string(), "{}", error->code().message());
  if (dynamic_cast<const std::bad_alloc*>(&thrown) != nullptr)
    return Error(ExitCode::kOutOfMemory, "host memory: expected more than is free");
  const auto* system = dynamic_cast<const std::system_error*>(&thrown);
  if (system != nullptr && system->code() == std::errc::resource_unavailable_try_again)
    return Error(ExitCode::kOutOfMemory, "threads: expected one more, got as many as the system allows");
  return Error(ExitCode::kInternal, fmt::format("internal error: {}", thrown.what()));
}

int run_program(const char* name, int (*run)(int, char**), int argc, char** argv) noexcept {
  program = name;
  std::set_terminate(end_uncaught);
  open_standard_files();
  std::signal(SIGPIPE, SIG_IGN);
  try {
    const int status = run(argc, argv);
    if (status == 0) flush_stdout();
    return status;
  } catch (...) {
    return report_or_memory(name);
  }
}

}  // namespace soliton
