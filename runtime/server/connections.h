// Who is connected, and what of memory the bodies of each client take. Where there is no more room, slow ones lose: of the
// client that has the most, the connection that has waited longest for its client's bytes is closed. So nobody is locked
// out by others who do nothing, and a limit of all together cannot be used up by one.
#pragma once

#include <chrono>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "runtime/server/http_limits.h"

namespace soliton {

/// Any thread may use it.
class Connections : public std::enable_shared_from_this<Connections> {
 public:
  using Close = std::function<void()>;
  class Entry;

  explicit Connections(const HttpLimits& limits) : limits_(limits) {}

  /// One more of a client, which is at rest. `close` is called, by any thread and at most once, when it has to go for
  /// others; it must neither wait nor call back. Null: there is no room, as all that could be closed are at work.
  std::unique_ptr<Entry> enter(const std::string& client, Close close);
  /// Those that are open; the ones that have been closed count until they end.
  size_t size() const;

 private:
  using Clock = std::chrono::steady_clock;

  struct Client {
    size_t num_connections = 0;
    size_t body_bytes = 0;
  };
  using Clients = std::map<std::string, Client>;  // those that have something

  struct Record {
    Clients::iterator client;
    Close close;
    Clock::time_point since = Clock::now();  // that it waits for its client, or its body has been coming
    size_t body_bytes = 0;
    bool is_at_rest = true;
    bool has_gone = false;  // closed: it does not count any more
  };
  using Records = std::list<Record>;

  /// The room of a body that has been read, until this goes.
  struct KeptBody {
    std::shared_ptr<Connections> all;
    Clients::iterator client;
    size_t bytes = 0;

    KeptBody(std::shared_ptr<Connections> all, Clients::iterator client)
        : all(std::move(all)), client(client) {}
    KeptBody(const KeptBody&) = delete;
    KeptBody& operator=(const KeptBody&) = delete;
    ~KeptBody();
  };

  bool make_room_for_connection(const std::string& client);
  Record* longest_waiting(const std::function<bool(const Record&)>& may_go,
                          const std::function<size_t(const Client&)>& share);
  void close(Record& record);
  void leave(Records::iterator record);
  bool make_room_for_body(const Record& record);
  void give_back(Clients::iterator client, size_t body_bytes);
  void forget_if_empty(Clients::iterator client);

  const HttpLimits limits_;
  mutable std::mutex mutex_;
  Clients clients_;  // guarded by the mutex, as all below
  Records records_;
  size_t num_connections_ = 0;  // of all clients
  size_t body_bytes_ = 0;
};

/// A connection's place, which it has as long as this lives. One thread at a time uses it.
class Connections::Entry {
 public:
  /// Without a place as yet.
  explicit Entry(std::shared_ptr<Connections> all) : all_(std::move(all)) {}
  Entry(const Entry&) = delete;
  Entry& operator=(const Entry&) = delete;
  ~Entry();

  /// From now on it waits for its client, and may be closed.
  void rest();
  /// It has a whole request, and stays. Returns false if it had to go before.
  bool work();
  /// The body that is coming has so many bytes by now. Returns false if there is no room for them.
  bool grow(size_t body_bytes);
  /// The body goes on to take its room until what is returned goes; a next one may come.
  std::shared_ptr<const void> keep_body();

 private:
  friend class Connections;

  std::shared_ptr<Connections> all_;
  bool has_place_ = false;
  Records::iterator record_ = {};
};

}  // namespace soliton
