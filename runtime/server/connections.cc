#include "runtime/server/connections.h"

#include <utility>

namespace soliton {

std::unique_ptr<Connections::Entry> Connections::enter(const std::string& client, Close close) {
  // What may fail comes first: nothing is counted that nobody gives back.
  auto entry = std::make_unique<Entry>(shared_from_this());
  Records record;
  record.push_back({.client = {}, .close = std::move(close)});
  const std::lock_guard lock(mutex_);
  if (!make_room_for_connection(client)) return nullptr;
  record.front().client = clients_.try_emplace(client).first;
  ++record.front().client->second.num_connections;
  ++num_connections_;
  entry->record_ = record.begin();
  entry->has_place_ = true;
  records_.splice(records_.end(), record);
  return entry;
}

/// Closes another one where a limit is reached, one of the client's own where that is the limit of one.
bool Connections::make_room_for_connection(const std::string& client) {
  const auto own = clients_.find(client);
  const size_t most_of_one = limits_.connections - limits_.connections / HttpLimits::kConnectionsForOthers;
  const bool one_has_too_many = own != clients_.end() && own->second.num_connections >= most_of_one;
  if (!one_has_too_many && num_connections_ < limits_.connections) return true;
  Record* const slow = longest_waiting(
      [&](const Record& record) { return record.is_at_rest && (!one_has_too_many || record.client == own); },
      [](const Client& each) { return each.num_connections; });
  if (slow != nullptr) close(*slow);
  return slow != nullptr;
}

size_t Connections::size() const {
  const std::lock_guard lock(mutex_);
  return records_.size();
}

/// Of those that may go, one of the client that has the largest share, and of its the one that has waited longest.
Connections::Record* Connections::longest_waiting(const std::function<bool(const Record&)>& may_go,
                                                  const std::function<size_t(const Client&)>& share) {
  Record* found = nullptr;
  for (Record& record : records_) {
    if (record.has_gone || !may_go(record)) continue;
    if (found == nullptr) {
      found = &record;
      continue;
    }
    const size_t most = share(found->client->second);
    const size_t own = share(record.client->second);
    if (own > most || (own == most && record.since < found->since)) found = &record;
  }
  return found;
}

/// What it has counts no more from now on, though it takes a moment until it is free.
void Connections::close(Record& record) {
  record.has_gone = true;
  --record.client->second.num_connections;
  --num_connections_;
  give_back(record.client, std::exchange(record.body_bytes, 0));
  record.close();
}

void Connections::leave(Records::iterator record) {
  const std::lock_guard lock(mutex_);
  if (!record->has_gone) {
    --record->client->second.num_connections;
    --num_connections_;
    give_back(record->client, record->body_bytes);
  }
  const Clients::iterator client = record->client;
  records_.erase(record);
  forget_if_empty(client);
}

/// Closes others whose bodies are coming until the limits hold again. Returns false if it should go itself.
bool Connections::make_room_for_body(const Record& record) {
  const size_t most_of_one = limits_.body_bytes * HttpLimits::kBodiesOfOne;
  const size_t most_of_all = limits_.body_bytes * HttpLimits::kBodiesOfAll;
  const auto share = [](const Client& client) { return client.body_bytes; };
  for (;;) {
    const bool one_has_too_much = record.client->second.body_bytes > most_of_one;
    if (!one_has_too_much && body_bytes_ <= most_of_all) return true;
    Record* const slow = longest_waiting(
        [&](const Record& other) {
          return other.is_at_rest && other.body_bytes > 0 &&
                 (!one_has_too_much || other.client == record.client);
        },
        share);
    if (slow == nullptr || slow == &record) return false;
    close(*slow);
  }
}

void Connections::give_back(Clients::iterator client, size_t body_bytes) {
  client->second.body_bytes -= body_bytes;
  body_bytes_ -= body_bytes;
}

void Connections::forget_if_empty(Clients::iterator client) {
  if (client->second.num_connections > 0 || client->second.body_bytes > 0) return;
  // One that has been closed and has not ended yet still refers to it.
  for (const Record& record : records_) {
    if (record.client == client) return;
  }
  clients_.erase(client);
}

Connections::Entry::~Entry() {
  if (has_place_) all_->leave(record_);
}

void Connections::Entry::rest() {
  const std::lock_guard lock(all_->mutex_);
  record_->is_at_rest = true;
  record_->since = Clock::now();
}

bool Connections::Entry::work() {
  const std::lock_guard lock(all_->mutex_);
  record_->is_at_rest = false;
  return !record_->has_gone;
}

bool Connections::Entry::grow(size_t body_bytes) {
  const std::lock_guard lock(all_->mutex_);
  if (record_->has_gone) return false;
  if (record_->body_bytes == 0) record_->since = Clock::now();
  record_->client->second.body_bytes += body_bytes - record_->body_bytes;
  all_->body_bytes_ += body_bytes - record_->body_bytes;
  record_->body_bytes = body_bytes;
  return all_->make_room_for_body(*record_);
}

Connections::KeptBody::~KeptBody() {
  if (bytes == 0) return;
  const std::lock_guard lock(all->mutex_);
  all->give_back(client, bytes);
  all->forget_if_empty(client);
}

std::shared_ptr<const void> Connections::Entry::keep_body() {
  // Before the lock: where there is no memory for it, nothing has changed.
  auto kept = std::make_shared<KeptBody>(all_, record_->client);
  const std::lock_guard lock(all_->mutex_);
  kept->bytes = std::exchange(record_->body_bytes, 0);
  return kept;
}

}  // namespace soliton
