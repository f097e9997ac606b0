// Mapped files that lose bytes while they are read. Whoever cuts a file short, or a disk that fails, would end the
// process with SIGBUS; here such bytes read as zeros, and that some were lost is found out afterwards.
#pragma once

#include <cstddef>
#include <span>

namespace soliton {

struct MappingSlot;

/// Memory that a file is mapped to, watched and then unmapped. Any number of threads may read it, which costs them
/// nothing.
class WatchedMapping {
 public:
  /// Takes over what mmap() gave for `num_bytes`. The first one sets a handler of SIGBUS, which leaves all that is in no
  /// watched mapping to the handler before it.
  WatchedMapping(void* address, size_t num_bytes);
  WatchedMapping(const WatchedMapping&) = delete;
  WatchedMapping& operator=(const WatchedMapping&) = delete;
  ~WatchedMapping();

  std::span<const std::byte> bytes() const { return bytes_; }
  /// Whether zeros have been read where the file had nothing any more: in threads that have ended, or in this one.
  bool has_lost_bytes() const;

 private:
  const std::span<const std::byte> bytes_;
  MappingSlot* const slot_;
};

}  // namespace soliton
