// Those who wait: each client in a line of its own, and the lines take turns, so that one who asks for much delays
// another by one turn and not by all that he asked for.
#pragma once

#include <algorithm>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace soliton {

template <class T>
class FairQueue {
 public:
  void push(const std::string& client, T item) {
    std::deque<T>& line = lines_[client];
    if (line.empty()) turns_.push_back(client);
    line.push_back(std::move(item));
    ++size_;
  }
  /// Before all others: of one who had come to his turn already.
  void push_front(T item) {
    returned_.push_front(std::move(item));
    ++size_;
  }

  bool empty() const { return size_ == 0; }
  size_t size() const { return size_; }
  /// The next one; there must be one.
  T& front() { return returned_.empty() ? lines_.at(turns_.front()).front() : returned_.front(); }

  T pop() {
    --size_;
    if (!returned_.empty()) return take_first(returned_);
    const auto line = lines_.find(turns_.front());
    T item = take_first(line->second);
    if (line->second.empty()) {
      lines_.erase(line);
      turns_.pop_front();
    } else {
      turns_.splice(turns_.end(), turns_, turns_.begin());
    }
    return item;
  }

  /// The next one of a client who may have his turn now, of which the others keep theirs; nothing if there is none.
  std::optional<T> pop_of(const std::function<bool(const std::string& client)>& may) {
    const auto turn = std::ranges::find_if(turns_, may);
    if (turn == turns_.end()) return std::nullopt;
    turns_.splice(turns_.begin(), turns_, turn);
    return pop();
  }
  /// How many of a client wait.
  size_t size_of(const std::string& client) const {
    const auto line = lines_.find(client);
    return line == lines_.end() ? 0 : line->second.size();
  }

  /// Takes out those of whom this is true.
  std::vector<T> take_if(const std::function<bool(const T&)>& is_wanted) {
    std::vector<T> taken;
    take_if(returned_, is_wanted, taken);
    for (auto turn = turns_.begin(); turn != turns_.end();) {
      const auto line = lines_.find(*turn);
      take_if(line->second, is_wanted, taken);
      if (!line->second.empty()) {
        ++turn;
        continue;
      }
      lines_.erase(line);
      turn = turns_.erase(turn);
    }
    size_ -= taken.size();
    return taken;
  }

 private:
  static T take_first(std::deque<T>& line) {
    T item = std::move(line.front());
    line.pop_front();
    return item;
  }
  static void take_if(std::deque<T>& line, const std::function<bool(const T&)>& is_wanted,
                      std::vector<T>& taken) {
    std::deque<T> left;
    for (T& item : line) {
      if (is_wanted(item)) {
        taken.push_back(std::move(item));
      } else {
        left.push_back(std::move(item));
      }
    }
    line = std::move(left);
  }

  std::deque<T> returned_;
  std::map<std::string, std::deque<T>> lines_;  // none is empty
  std::list<std::string> turns_;                // of the lines
  size_t size_ = 0;
};

}  // namespace soliton
