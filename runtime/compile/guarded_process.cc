// See guarded_process.h. What runs between fork() and exec() calls only what is safe in a signal handler: other threads may hold
// any lock at that moment.
#include "runtime/compile/guarded_process.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <string_view>

extern char** environ;

namespace soliton {
namespace {

constexpr int kNoStatus = 255;  // of the guard: there is none of the program
constexpr std::string_view kLanguage = "LC_ALL";

std::vector<char*> pointers(const std::vector<std::string>& words) {
  std::vector<char*> list;
  for (const std::string& word : words) list.push_back(const_cast<char*>(word.c_str()));
  list.push_back(nullptr);
  return list;
}

/// Messages of the program are looked at.
std::vector<std::string> english_environment() {
  std::vector<std::string> variables = {std::string(kLanguage) + "=C"};
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string_view text = *variable;
    if (!text.starts_with(std::string(kLanguage) + "=")) variables.emplace_back(text);
  }
  return variables;
}

/// All that is needed after fork(), when no memory can be taken.
struct Prepared {
  const char* log;
  char* const* program;
  char* const* environment;
  char* const* remove;  // the program that removes the folder
  pid_t parent;
};

[[noreturn]] void become_program(const Prepared& prepared) {
  ::setpgid(0, 0);
  struct sigaction usual {};
  usual.sa_handler = SIG_DFL;
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGPIPE, SIGCHLD}) ::sigaction(number, &usual, nullptr);
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  const int log = ::open(prepared.log, O_WRONLY | O_CREAT | O_TRUNC, 0600);
  const bool is_ready = log >= 0 && ::dup2(log, STDOUT_FILENO) >= 0 && ::dup2(log, STDERR_FILENO) >= 0;
  if (is_ready) ::execve(prepared.program[0], prepared.program, prepared.environment);
  ::_exit(kNoStatus);
}

[[noreturn]] void remove_folder(const Prepared& prepared, pid_t program) {
  ::kill(-program, SIGKILL);
  ::waitpid(program, nullptr, 0);
  ::execve(prepared.remove[0], prepared.remove, prepared.environment);
  ::_exit(kNoStatus);
}

/// Waits for the program or for the end of the parent, whichever comes first. In a group of its own, as Ctrl-C at a terminal is
/// for the parent alone.
[[noreturn]] void guard(const Prepared& prepared) {
  ::setpgid(0, 0);
  struct sigaction usual {};
  usual.sa_handler = SIG_DFL;
  ::sigaction(SIGCHLD, &usual, nullptr);
  sigset_t all;
  sigfillset(&all);
  ::sigprocmask(SIG_SETMASK, &all, nullptr);
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  const pid_t program = ::fork();
  if (program == 0) become_program(prepared);
  if (program < 0) ::_exit(kNoStatus);
  ::setpgid(program, program);                                           // whoever is first
  if (::getppid() != prepared.parent) remove_folder(prepared, program);  // it ended before prctl()
  sigset_t awaited;
  sigemptyset(&awaited);
  sigaddset(&awaited, SIGCHLD);
  sigaddset(&awaited, SIGTERM);
  while (true) {
    if (::sigwaitinfo(&awaited, nullptr) == SIGTERM) remove_folder(prepared, program);
    int status = 0;
    if (::waitpid(program, &status, WNOHANG) != program) continue;
    ::kill(-program, SIGKILL);  // what it has left running
    ::_exit(WIFEXITED(status) ? WEXITSTATUS(status) : kNoStatus);
  }
}

}  // namespace

int run_guarded(const std::vector<std::string>& line, const std::filesystem::path& log,
                const std::filesystem::path& folder) {
  const std::vector<std::string> variables = english_environment();
  const std::vector<std::string> removing = {"/bin/rm", "-rf", "--", folder.string()};
  const std::vector<char*> program = pointers(line);
  const std::vector<char*> environment = pointers(variables);
  const std::vector<char*> remove = pointers(removing);
  const Prepared prepared{.log = log.c_str(),
                          .program = program.data(),
                          .environment = environment.data(),
                          .remove = remove.data(),
                          .parent = ::getpid()};
  const pid_t child = ::fork();
  if (child == 0) guard(prepared);
  if (child < 0) return -1;
  int status = 0;
  pid_t ended = 0;
  do {
    ended = ::waitpid(child, &status, 0);
  } while (ended < 0 && errno == EINTR);
  const bool has_status = ended == child && WIFEXITED(status) && WEXITSTATUS(status) != kNoStatus;
  return has_status ? WEXITSTATUS(status) : -1;
}

}  // namespace soliton
