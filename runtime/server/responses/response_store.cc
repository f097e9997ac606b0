#include "runtime/server/responses/response_store.h"

namespace soliton {

size_t ResponseStore::Kept::bytes() const {
  size_t size = id.size() + entry.scope.size() + entry.messages.size() + entry.response.size();
  for (const auto& [item_id, item] : entry.items) size += item_id.size() + item.size();
  return size;
}

void ResponseStore::put(const std::string& id, Entry entry) {
  Kept kept{id, std::move(entry)};
  const std::lock_guard lock(mutex_);
  if (const auto old = by_id_.find(id); old != by_id_.end()) drop(old->second);
  if (kept.bytes() > limits_.bytes) return;
  while (!kept_.empty() && (kept_.size() >= limits_.responses || bytes_ + kept.bytes() > limits_.bytes))
    drop(kept_.begin());
  bytes_ += kept.bytes();
  kept_.push_back(std::move(kept));
  const List::iterator last = std::prev(kept_.end());
  by_id_[id] = last;
  for (size_t i = 0; i < last->entry.items.size(); ++i) by_item_[last->entry.items[i].first] = {last, i};
}

std::optional<ResponseStore::Entry> ResponseStore::find(const std::string& id,
                                                        const std::string& scope) const {
  const std::lock_guard lock(mutex_);
  const auto found = by_id_.find(id);
  if (found == by_id_.end() || found->second->entry.scope != scope) return std::nullopt;
  return found->second->entry;
}

std::optional<std::string> ResponseStore::find_item(const std::string& id, const std::string& scope) const {
  const std::lock_guard lock(mutex_);
  const auto found = by_item_.find(id);
  if (found == by_item_.end() || found->second.first->entry.scope != scope) return std::nullopt;
  const auto& [kept, index] = found->second;
  return kept->entry.items[index].second;
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
  for (const auto& [id, item] : kept->entry.items) by_item_.erase(id);
  kept_.erase(kept);
}

}  // namespace soliton
