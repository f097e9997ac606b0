#include "runtime/server/responses/response_store.h"

namespace soliton {

void ResponseStore::put(const std::string& id, Entry entry) {
  Kept kept{id, std::move(entry)};
  const std::lock_guard lock(mutex_);
  if (const auto old = by_id_.find(id); old != by_id_.end()) drop(old->second);
  if (kept.bytes() > limits_.bytes) return;
  while (!kept_.empty() && (kept_.size() >= limits_.responses || bytes_ + kept.bytes() > limits_.bytes))
    drop(kept_.begin());
  bytes_ += kept.bytes();
  kept_.push_back(std::move(kept));
  by_id_[id] = std::prev(kept_.end());
}

std::optional<ResponseStore::Entry> ResponseStore::find(const std::string& id,
                                                        const std::string& scope) const {
  const std::lock_guard lock(mutex_);
  const auto found = by_id_.find(id);
  if (found == by_id_.end() || found->second->entry.scope != scope) return std::nullopt;
  return found->second->entry;
}

bool ResponseStore::erase(const std::string& id, const std::string& scope) {
  const std::lock_guard lock(mutex_);
  const auto found = by_id_.find(id);
  if (found == by_id_.end() || found->second->entry.scope != scope) return false;
  drop(found->second);
  return true;
}

void ResponseStore::drop(List::iterator kept) {
  bytes_ -= kept->bytes();
  by_id_.erase(kept->id);
  kept_.erase(kept);
}

}  // namespace soliton
