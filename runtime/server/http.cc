#include "runtime/server/http.h"

namespace soliton {

void PendingReply::finish(HttpResponse response) {
  {
    const std::lock_guard lock(mutex_);
    news_.response = std::move(response);
    news_.is_complete = true;
  }
  tell();
}

void PendingReply::begin_stream(HttpResponse head) {
  {
    const std::lock_guard lock(mutex_);
    news_.response = std::move(head);
    news_.is_stream = true;
  }
  tell();
}

void PendingReply::put(std::string_view piece) {
  {
    const std::lock_guard lock(mutex_);
    if (is_abandoned_) return;
    news_.pieces += piece;
  }
  tell();
}

void PendingReply::close() {
  {
    const std::lock_guard lock(mutex_);
    news_.is_complete = true;
  }
  tell();
}

void PendingReply::on_abandon(std::function<void()> call) {
  {
    const std::lock_guard lock(mutex_);
    if (!is_abandoned_) {
      on_abandon_ = std::move(call);
      return;
    }
  }
  call();
}

void PendingReply::on_ready(std::function<void()> call) {
  const std::lock_guard lock(mutex_);
  on_ready_ = std::move(call);
}

PendingReply::News PendingReply::take() {
  const std::lock_guard lock(mutex_);
  News news = std::move(news_);
  news_ = {.response = {}, .is_stream = news.is_stream, .pieces = {}, .is_complete = news.is_complete};
  return news;
}

void PendingReply::abandon() {
  std::function<void()> call;
  {
    const std::lock_guard lock(mutex_);
    is_abandoned_ = true;
    on_ready_ = {};
    if (!news_.is_complete) std::swap(call, on_abandon_);
  }
  if (call) call();
}

/// The sender's function is called with the mutex held, so that abandon() ends all calls.
void PendingReply::tell() {
  const std::lock_guard lock(mutex_);
  if (on_ready_) on_ready_();
}

}  // namespace soliton
