// For LD_PRELOAD: the n-th call of one kind fails as the system would let it fail, or ends the process on the spot.
//
//   SOLITON_FAULT=write:3         the third write() of the program fails: "No space left on device"
//   SOLITON_FAULT=write:3:kill    the process is killed where it would be made
//   SOLITON_FAULT_COUNTS=FILE     how many calls of each kind there were is written there at the end: "write 17"
//
// In a running program SIGUSR2 with the value kind * 2^24 + n, of a kind's index in kKinds, asks for the n-th call from then
// on. Calls before main() do not count. Programs that it starts have no such faults. Calls that libraries make within themselves are not seen.
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>

#include "faults/kinds.h"

extern "C" {
void* __libc_malloc(size_t bytes);
void* __libc_calloc(size_t count, size_t bytes);
void* __libc_realloc(void* memory, size_t bytes);
void* __libc_memalign(size_t alignment, size_t bytes);
}

namespace {

using namespace soliton::faults;

std::atomic<long> num_calls[kNumKinds];
std::atomic<long> chosen[kNumKinds];  // the call that fails; 0: none
bool has_begun = false;               // main()
bool kills = false;
const char* counts_file = nullptr;

/// Counts a call; true if it is to fail.
bool fails(Kind kind) {
  if (!has_begun) return false;
  const long call = ++num_calls[kind];
  if (call != chosen[kind].load(std::memory_order_relaxed)) return false;
  if (kills) syscall(SYS_kill, getpid(), SIGKILL);
  errno = kKinds[kind].error;
  return true;
}

void arm(int, siginfo_t* info, void*) {
  const int value = info->si_value.sival_int;
  for (int kind = 0; kind < kNumKinds; ++kind) chosen[kind] = 0;
  chosen[value >> 24] = num_calls[value >> 24] + (value & 0xffffff);
}

__attribute__((constructor)) void begin() {
  unsetenv("LD_PRELOAD");  // of what the program starts
  struct sigaction action {};
  action.sa_sigaction = arm;
  action.sa_flags = SA_SIGINFO | SA_RESTART;
  sigaction(SIGUSR2, &action, nullptr);
  counts_file = getenv("SOLITON_FAULT_COUNTS");
  const char* fault = getenv("SOLITON_FAULT");
  const char* colon = fault == nullptr ? nullptr : strchr(fault, ':');
  if (colon == nullptr) return;
  kills = strstr(colon, ":kill") != nullptr;
  for (int kind = 0; kind < kNumKinds; ++kind) {
    const size_t length = strlen(kKinds[kind].name);
    if (static_cast<size_t>(colon - fault) == length && strncmp(fault, kKinds[kind].name, length) == 0)
      chosen[kind] = atol(colon + 1);
  }
}

__attribute__((destructor)) void end() {
  if (counts_file == nullptr) return;
  const auto file =
      static_cast<int>(syscall(SYS_openat, AT_FDCWD, counts_file, O_WRONLY | O_CREAT | O_TRUNC, 0600));
  for (int kind = 0; kind < kNumKinds; ++kind) {
    char line[64];
    const int size = snprintf(line, sizeof line, "%s %ld\n", kKinds[kind].name, num_calls[kind].load());
    syscall(SYS_write, file, line, size);
  }
  syscall(SYS_close, file);
}

int (*real_main)(int, char**, char**) = nullptr;

int begin_main(int argc, char** argv, char** environment) {
  has_begun = true;
  return real_main(argc, argv, environment);
}

}  // namespace

extern "C" {

// What is done before main() cannot fail in a way that a program could answer.
int __libc_start_main(int (*main)(int, char**, char**), int argc, char** argv, void (*init)(), void (*fini)(),
                      void (*loader_fini)(), void* stack_end) {
  using Start = decltype(&__libc_start_main);
  real_main = main;
  const auto usual = reinterpret_cast<Start>(dlsym(RTLD_NEXT, "__libc_start_main"));
  return usual(begin_main, argc, argv, init, fini, loader_fini, stack_end);
}

void* malloc(size_t bytes) {
  return fails(kMalloc) ? nullptr : __libc_malloc(bytes);
}
void* calloc(size_t count, size_t bytes) {
  return fails(kMalloc) ? nullptr : __libc_calloc(count, bytes);
}
void* realloc(void* memory, size_t bytes) {
  return fails(kMalloc) ? nullptr : __libc_realloc(memory, bytes);
}
void* aligned_alloc(size_t alignment, size_t bytes) {
  return fails(kMalloc) ? nullptr : __libc_memalign(alignment, bytes);
}
int posix_memalign(void** memory, size_t alignment, size_t bytes) {
  if (fails(kMalloc)) return ENOMEM;
  *memory = __libc_memalign(alignment, bytes);
  return *memory == nullptr ? ENOMEM : 0;
}

ssize_t read(int fd, void* to, size_t bytes) {
  return fails(kRead) ? -1 : syscall(SYS_read, fd, to, bytes);
}
ssize_t pread(int fd, void* to, size_t bytes, off_t offset) {
  return fails(kRead) ? -1 : syscall(SYS_pread64, fd, to, bytes, offset);
}
ssize_t pread64(int fd, void* to, size_t bytes, off64_t offset) {
  return fails(kRead) ? -1 : syscall(SYS_pread64, fd, to, bytes, offset);
}

ssize_t write(int fd, const void* from, size_t bytes) {
  return fails(kWrite) ? -1 : syscall(SYS_write, fd, from, bytes);
}
ssize_t writev(int fd, const iovec* parts, int count) {
  return fails(kWrite) ? -1 : syscall(SYS_writev, fd, parts, count);
}

int fsync(int fd) {
  return fails(kFsync) ? -1 : static_cast<int>(syscall(SYS_fsync, fd));
}

void* mmap(void* address, size_t bytes, int protection, int flags, int fd, off_t offset) {
  if (fails(kMmap)) return MAP_FAILED;
  return reinterpret_cast<void*>(syscall(SYS_mmap, address, bytes, protection, flags, fd, offset));
}
void* mmap64(void* address, size_t bytes, int protection, int flags, int fd, off64_t offset) {
  return mmap(address, bytes, protection, flags, fd, offset);
}

int open(const char* path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  const mode_t mode = va_arg(rest, mode_t);
  va_end(rest);
  return fails(kOpen) ? -1 : static_cast<int>(syscall(SYS_openat, AT_FDCWD, path, flags, mode));
}
int open64(const char* path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  const mode_t mode = va_arg(rest, mode_t);
  va_end(rest);
  return fails(kOpen) ? -1 : static_cast<int>(syscall(SYS_openat, AT_FDCWD, path, flags, mode));
}
FILE* fopen64(const char* path, const char* mode) {
  static const auto usual =
      reinterpret_cast<FILE* (*)(const char*, const char*)>(dlsym(RTLD_NEXT, "fopen64"));
  return fails(kOpen) ? nullptr : usual(path, mode);
}
FILE* fopen(const char* path, const char* mode) {
  return fopen64(path, mode);
}

int rename(const char* from, const char* to) {
  return fails(kRename) ? -1 : static_cast<int>(syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0));
}
int renameat2(int from_folder, const char* from, int to_folder, const char* to, unsigned flags) noexcept {
  return fails(kRename) ? -1
                        : static_cast<int>(syscall(SYS_renameat2, from_folder, from, to_folder, to, flags));
}

int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*function)(void*),
                   void* argument) {
  using Create = int (*)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
  static const auto usual = reinterpret_cast<Create>(dlsym(RTLD_NEXT, "pthread_create"));
  return fails(kThread) ? EAGAIN : usual(thread, attributes, function, argument);
}

}  // extern "C"
