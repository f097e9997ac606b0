// Calls of the system that can fail, and how: what inject.cc and the tests have in common.
#pragma once

#include <cerrno>

namespace soliton::faults {

enum Kind { kMalloc, kRead, kWrite, kFsync, kMmap, kOpen, kRename, kThread, kNumKinds };

struct KindOfCall {
  const char* name;
  int error;
};
inline constexpr KindOfCall kKinds[kNumKinds] = {
    {"malloc", ENOMEM}, {"read", EIO},    {"write", ENOSPC}, {"fsync", EIO},
    {"mmap", ENOMEM},   {"open", EMFILE}, {"rename", EIO},   {"thread", EAGAIN},
};

}  // namespace soliton::faults
