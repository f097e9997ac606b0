#include "runtime/server/calls/call_gate.h"

#include <algorithm>

namespace soliton {
namespace {

enum class Match { kNo, kMaybe, kYes };

/// Whether a text begins with a word, or may when it goes on.
Match begins(std::string_view text, std::string_view word) {
  if (text.starts_with(word)) return Match::kYes;
  return word.starts_with(text) ? Match::kMaybe : Match::kNo;
}

std::string_view behind_space(std::string_view text) {
  return text.substr(std::min(text.find_first_not_of(kCallSpace), text.size()));
}

class CallGate : public GrammarGate {
 public:
  CallGate(const Tokenizer& tokenizer, std::shared_ptr<const CallGateSetup> setup)
      : tokenizer_(tokenizer),
        setup_(std::move(setup)),
        trigger_(setup_->marks.encoded(setup_->format.trigger)),
        may_open_(setup_->marks.encoded(setup_->format.may_open)) {
    if (setup_->reasoning) phase_ = setup_->reasoning->has_begun ? Phase::kInside : Phase::kBefore;
  }

  State push(int32_t token) override {
    held_ += setup_->marks.encoded(tokenizer_, token);
    if (phase_ == Phase::kBefore) look_for_reasoning();
    if (phase_ == Phase::kInside) pass_reasoning();
    if (phase_ != Phase::kBehind) return State::kClosed;
    return trigger_.empty() ? look_at_begin() : look_for_trigger();
  }

  std::string begun() override { return std::move(held_); }

 private:
  enum class Phase { kBefore, kInside, kBehind };  // of the reasoning

  void look_for_reasoning() {
    const std::string_view text = behind_space(held_);
    switch (begins(text, setup_->reasoning->open)) {
      case Match::kYes:
        held_.erase(0, held_.size() - text.size() + setup_->reasoning->open.size());
        phase_ = Phase::kInside;
        break;
      case Match::kNo:
        phase_ = Phase::kBehind;
        break;
      case Match::kMaybe:
        drop_space();
        break;
    }
  }

  void pass_reasoning() {
    const std::string& close = setup_->reasoning->close;
    const size_t end = held_.find(close);
    if (end != std::string::npos) phase_ = Phase::kBehind;
    // Of what has been looked at only what may begin the mark is kept.
    held_.erase(0, end != std::string::npos ? end + close.size()
                                            : held_.size() - std::min(held_.size(), close.size() - 1));
  }

  State look_for_trigger() {
    const size_t begin = held_.find(trigger_);
    held_.erase(
        0, begin != std::string::npos ? begin : held_.size() - std::min(held_.size(), trigger_.size() - 1));
    return begin == std::string::npos ? State::kClosed : State::kOpen;
  }

  /// Calls that are all of an answer.
  State look_at_begin() {
    drop_space();
    std::string_view text = held_;
    if (text.empty()) return State::kClosed;
    if (!may_open_.empty()) {
      const Match match = begins(text, may_open_);
      if (match == Match::kYes) return State::kOpen;
      if (match == Match::kMaybe) return State::kClosed;
    }
    switch (match_call(text)) {
      case Match::kYes:
        return State::kOpen;
      case Match::kMaybe:
        return State::kClosed;
      case Match::kNo:
        break;
    }
    return State::kNever;
  }

  /// What tells a call from other text: `{"name"`, or `[` and a function's name with its parenthesis.
  Match match_call(std::string_view text) const {
    const bool is_python = setup_->format.style == CallStyle::kPython;
    if (text[0] != (is_python ? '[' : '{')) return Match::kNo;
    text = behind_space(text.substr(1));
    if (!is_python) return begins(text, "\"name\"");
    Match best = Match::kNo;
    for (const std::string& name : setup_->names) best = std::max(best, begins(text, name + "("));
    return best;
  }

  void drop_space() { held_.erase(0, held_.size() - behind_space(held_).size()); }

  const Tokenizer& tokenizer_;
  std::shared_ptr<const CallGateSetup> setup_;
  std::string trigger_;
  std::string may_open_;
  std::string held_;  // bytes that matter yet
  Phase phase_ = Phase::kBehind;
};

}  // namespace

std::unique_ptr<GrammarGate> make_call_gate(const Tokenizer& tokenizer,
                                            std::shared_ptr<const CallGateSetup> setup) {
  return std::make_unique<CallGate>(tokenizer, std::move(setup));
}

}  // namespace soliton
