// A built program at a terminal, as a user at the keyboard drives it: a pseudo-terminal that keeps what is
// shown.
#pragma once

#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace soliton {

class Terminal {
 public:
  /// Starts SOLITON_BINARY_DIR/program in `folder`, with `environment` ("NAME=value") added; or a shell script there
  /// that is given the command.
  Terminal(const std::string& program, std::vector<std::string> arguments,
           const std::filesystem::path& folder, std::vector<std::string> environment = {},
           const std::string& script = "") {
    arguments.insert(arguments.begin(), std::string(SOLITON_BINARY_DIR) + "/" + program);
    if (!script.empty()) arguments.insert(arguments.begin(), {"/bin/sh", script});
    std::vector<char*> argv;
    for (std::string& argument : arguments) argv.push_back(argument.data());
    argv.push_back(nullptr);
    const winsize size{.ws_row = 24, .ws_col = 80, .ws_xpixel = 0, .ws_ypixel = 0};
    pid_ = ::forkpty(&descriptor_, nullptr, nullptr, &size);
    if (pid_ < 0) throw std::runtime_error("forkpty failed");
    if (pid_ > 0) return;
    unsetenv("SOLITON_KERNELS");
    unsetenv("XDG_STATE_HOME");
    setenv("TERM", "xterm", 1);
    setenv("HOME", folder.c_str(), 1);
    setenv("LC_ALL", "C", 1);  // text is UTF-8 all the same
    for (std::string& variable : environment) putenv(variable.data());
    if (chdir(folder.c_str()) == 0) execv(argv[0], argv.data());
    _exit(kNotStarted);
  }
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;
  ~Terminal() {
    if (pid_ > 0) {
      kill(pid_, SIGKILL);
      waitpid(pid_, nullptr, 0);
    }
    close(descriptor_);
  }

  void type(std::string_view keys) {
    while (!keys.empty()) {
      const ssize_t written = write(descriptor_, keys.data(), keys.size());
      if (written < 0) throw std::runtime_error("the terminal is gone");
      keys.remove_prefix(static_cast<size_t>(written));
    }
  }

  /// Waits until `text` is shown behind what was waited for before. False if it never is.
  bool wait_for(std::string_view text) {
    const auto deadline = Clock::now() + kPatience;
    while (shown_.find(text, seen_) == std::string::npos) {
      if (!read_more(deadline)) return false;
    }
    before_ = shown_.substr(seen_, shown_.find(text, seen_) - seen_);
    seen_ = shown_.find(text, seen_) + text.size();
    return true;
  }
  /// Waits until the program has ended, or `text` is shown: true if it has ended.
  bool wait_for_end_or(std::string_view text) { return !wait_for(text); }
  /// What was shown before the text last waited for.
  const std::string& before() const { return before_; }
  /// All that has been shown.
  const std::string& shown() const { return shown_; }

  /// Whether the terminal shows what is typed, line by line, as a shell expects it.
  bool shows_typed() const {
    termios mode{};
    return tcgetattr(descriptor_, &mode) == 0 && (mode.c_lflag & ECHO) != 0 && (mode.c_lflag & ICANON) != 0;
  }

  void signal(int number) const { kill(pid_, number); }

  void resize(unsigned short columns) {
    const winsize size{.ws_row = 24, .ws_col = columns, .ws_xpixel = 0, .ws_ypixel = 0};
    ioctl(descriptor_, TIOCSWINSZ, &size);
  }

  /// Reads to the end; the exit status, 128 plus the signal that ended the program, or -1 if it goes on.
  int wait() {
    const auto deadline = Clock::now() + kPatience;
    while (read_more(deadline)) {
    }
    if (Clock::now() >= deadline) return -1;
    int status = 0;
    waitpid(pid_, &status, 0);
    pid_ = -1;
    constexpr int kSignalBase = 128;
    return WIFEXITED(status) ? WEXITSTATUS(status) : kSignalBase + WTERMSIG(status);
  }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::seconds kPatience{120};  // emulation on a busy machine
  static constexpr int kNotStarted = 126;

  /// False at the end of the output or at the deadline.
  bool read_more(Clock::time_point deadline) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now());
    pollfd output{.fd = descriptor_, .events = POLLIN, .revents = 0};
    if (left.count() <= 0 || poll(&output, 1, static_cast<int>(left.count())) <= 0) return false;
    char block[4096];
    const ssize_t got = read(descriptor_, block, sizeof block);
    if (got <= 0) return false;
    shown_.append(block, static_cast<size_t>(got));
    return true;
  }

  pid_t pid_ = -1;
  int descriptor_ = -1;
  std::string shown_;
  std::string before_;
  size_t seen_ = 0;  // bytes of shown_ that wait_for() has passed
};

}  // namespace soliton
