// What the handles of soliton.h are, and how its functions begin and end: nothing that is thrown leaves them.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/library/open_model.h"
#include "runtime/library/soliton.h"

namespace soliton {

/// What the caller wants asked between launches.
struct Question {
  soliton_ends ends = nullptr;
  void* data = nullptr;

  bool goes_on() const {
    try {
      return ends == nullptr || ends(data) == 0;
    } catch (...) {  // of a function in C++: no exception can pass through a call of C
      return false;
    }
  }
};

}  // namespace soliton

struct soliton_model {
  std::shared_ptr<soliton::OpenModel> open;
};

struct soliton_session {
  std::shared_ptr<soliton::OpenModel> open;
  std::atomic<uint64_t> num_cancels = 0;  // each ends what is under way
  soliton::Question question = {};
};

struct soliton_tree {
  std::shared_ptr<soliton::OpenModel> open;
  std::vector<std::optional<soliton::ForestText>> texts =
      {};  // by branch; nothing: pruned. Guarded by the turn
  soliton::Question question = {};
};

namespace soliton {

/// For soliton_last_error().
soliton_status note_error(ExitCode code, std::string_view message) noexcept;

/// What becomes of a function that may throw.
template <class Act>
soliton_status guarded(const Act& act) noexcept {
  try {
    act();
    return SOLITON_OK;
  } catch (const Error& error) {
    return note_error(error.code(), error.what());
  } catch (const std::filesystem::filesystem_error& error) {
    return note_error(ExitCode::kNotFound, error.what());
  } catch (const std::bad_alloc&) {
    return note_error(ExitCode::kOutOfMemory, "host memory: expected more than is free");
  } catch (const std::exception& error) {
    return note_error(ExitCode::kInternal, error.what());
  } catch (...) {
    return note_error(ExitCode::kInternal, "expected an error that says what it is, got another one");
  }
}

/// Throws Error (kUsage) for null.
template <class T>
T& given(T* argument, const char* name) {
  if (argument == nullptr)
    throw Error(ExitCode::kUsage, fmt::format("{}: expected an address, got null", name));
  return *argument;
}

/// An array of the caller, which may be null if it is empty.
template <class T>
std::span<T> given_array(T* first, size_t count, const char* name) {
  if (count > 0) given(first, name);
  return {first, count};
}

/// Throws Error (kUsage) unless a struct's size is one that this version or an earlier one had; the first one had all
/// up to `first_size`.
inline void check_size(size_t size, size_t first_size, size_t size_now, const char* name) {
  if (size >= first_size && size <= size_now) return;
  throw Error(ExitCode::kUsage, fmt::format("{}.size: expected {}{}, got {}", name, size_now,
                                            first_size < size_now ? " or less" : "", size));
}

/// A struct of the caller's, with defaults for what it does not know or if it is null; its first version had so many bytes.
template <class Struct>
Struct read_struct(const Struct* given, const char* name, const Struct& defaults = {},
                   size_t first_size = sizeof(Struct)) {
  Struct read = defaults;
  if (given == nullptr) return read;
  check_size(given->size, first_size, sizeof(Struct), name);
  std::memcpy(static_cast<void*>(&read), given, given->size);
  return read;
}

/// Writes as much of a struct as the caller knows.
template <class Struct>
void write_struct(const Struct& value, Struct& to, size_t size) {
  std::memcpy(static_cast<void*>(&to), &value, size);
  to.size = size;
}

/// A result of so many elements to memory of the caller, as soliton.h has it; `num_behind` more are written than
/// counted.
template <class T>
void write_result(std::span<const T> values, T* to, size_t capacity, size_t* count, size_t num_behind = 0) {
  const size_t num_values = values.size() - num_behind;
  given(count, "count") = num_values;
  if (capacity == 0) return;
  given(to, "buffer");
  if (values.size() > capacity) {
    throw Error(ExitCode::kOutOfMemory,
                fmt::format("capacity: expected at least {}, got {}", values.size(), capacity));
  }
  std::copy(values.begin(), values.end(), to);
}

}  // namespace soliton
