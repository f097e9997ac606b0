// Conversations that clients of /v1/responses go on with by an id alone: the latest, in memory, within a bound.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace soliton {

/// Any thread may use it.
class ResponseStore {
 public:
  struct Limits {
    size_t responses = 1024;
    size_t bytes = 64 << 20;  // of all of them
  };
  struct Entry {
    std::string scope;                                            // of whoever may see it
    std::string messages;                                         // with the answer, as JSON
    std::string response;                                         // what was told, the same
    std::vector<std::pair<std::string, std::string>> items = {};  // of it: ids, and each as JSON
  };

  ResponseStore() = default;
  explicit ResponseStore(const Limits& limits) : limits_(limits) {}

  /// In place of the oldest ones where there is no room; what is too large by itself is not kept.
  void put(const std::string& id, Entry entry);
  /// Nothing if it is not there, or of another scope.
  std::optional<Entry> find(const std::string& id, const std::string& scope) const;
  /// An item of one of them, as JSON; nothing if it is not there, or of another scope.
  std::optional<std::string> find_item(const std::string& id, const std::string& scope) const;
  /// Returns whether it was there.
  bool erase(const std::string& id, const std::string& scope);

 private:
  struct Kept {
    std::string id;
    Entry entry;
    size_t bytes() const;
  };
  using List = std::list<Kept>;
  void drop(List::iterator kept);

  Limits limits_ = {};
  mutable std::mutex mutex_;
  List kept_;  // the oldest first; guarded by the mutex, as all below
  std::map<std::string, List::iterator> by_id_;
  std::map<std::string, std::pair<List::iterator, size_t>> by_item_;  // by the ids of items, and which it is
  size_t bytes_ = 0;
};

}  // namespace soliton
