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
    if (is_abandoned_ || is_overrun_) return;
    news_.pieces += piece;
    is_overrun_ = news_.pieces.size() > kMostUntaken &&
                  std::chrono::steady_clock::now() - last_taken_ > kLongestUntaken;
    if (is_overrun_) std::string().swap(news_.pieces);
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

void PendingReply::hand_over(std::shared_ptr<PendingReply> other) {
  {
    const std::lock_guard lock(mutex_);
    if (!is_abandoned_) news_.other = other;
    on_abandon_ = {};
  }
  if (is_abandoned()) {
    other->abandon();
  } else {
    tell();
  }
}

bool PendingReply::is_abandoned() const {
  const std::lock_guard lock(mutex_);
  return is_abandoned_;
}

bool PendingReply::is_overrun() const {
  const std::lock_guard lock(mutex_);
  return is_overrun_;
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
  news_ = {.response = {},
           .is_stream = news.is_stream,
           .pieces = {},
           .is_complete = news.is_complete,
           .other = {}};
  last_taken_ = std::chrono::steady_clock::now();
  return news;
}

void PendingReply::abandon() {
  std::function<void()> call;
  std::shared_ptr<PendingReply> other;
  {
    const std::lock_guard lock(mutex_);
    is_abandoned_ = true;
    on_ready_ = {};
    if (!news_.is_complete) std::swap(call, on_abandon_);
    std::swap(other, news_.other);  // which nobody has taken
  }
  if (call) call();
  if (other) other->abandon();
}

/// The sender's function is called with the mutex held, so that abandon() ends all calls.
void PendingReply::tell() {
  const std::lock_guard lock(mutex_);
  if (on_ready_) on_ready_();
}

}  // namespace soliton
