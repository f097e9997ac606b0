// Threads that work on grammars: in order within a line, the quick not behind the slow, and ended when nobody waits.
#include "runtime/server/grammar_workers.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>

#include "runtime/server/answer_mask.h"
#include "runtime/text/constrain/ebnf.h"

namespace soliton {
namespace {

using Line = GrammarWorkers::Line;
using Turn = GrammarWorkers::Turn;
using std::chrono::milliseconds;

const std::function<bool()> kWanted = [] { return false; };

/// At work until it is told to end; says so every millisecond.
class SlowTask {
 public:
  void operator()(Turn& turn) {
    began_ = true;
    while (!ends_ && turn.goes_on([this] { return is_unwanted_.load(); }))
      std::this_thread::sleep_for(milliseconds(1));
    ended_.set_value();
  }
  bool has_begun() const { return began_; }
  void end() { ends_ = true; }
  void give_up() { is_unwanted_ = true; }
  bool has_ended() { return future_.wait_for(std::chrono::seconds(20)) == std::future_status::ready; }

 private:
  std::atomic<bool> began_ = false;
  std::atomic<bool> ends_ = false;
  std::atomic<bool> is_unwanted_ = false;
  std::promise<void> ended_;
  std::future<void> future_ = ended_.get_future();
};

/// Waits for a task on a line of its own.
bool runs_at_once(GrammarWorkers& workers) {
  std::promise<void> ran;
  std::future<void> future = ran.get_future();
  workers.run(std::make_shared<Line>(), [&](Turn&) { ran.set_value(); });
  const bool has_run = future.wait_for(std::chrono::seconds(20)) == std::future_status::ready;
  if (!has_run) workers.stop();
  return has_run;
}

TEST(GrammarWorkers, RunALinesTasksInOrder) {
  GrammarWorkers workers({.num_quick = 3});
  const std::vector<std::shared_ptr<Line>> lines = {std::make_shared<Line>(), std::make_shared<Line>(),
                                                    std::make_shared<Line>()};
  std::vector<std::vector<int>> seen(lines.size());
  std::atomic<int> num_left = 300;
  std::promise<void> all;
  for (int i = 0; i < 300; ++i) {
    const size_t line = static_cast<size_t>(i) % lines.size();
    workers.run(lines[line], [&, i, line](Turn&) {
      seen[line].push_back(i);
      if (--num_left == 0) all.set_value();
    });
  }
  all.get_future().wait();
  workers.stop();
  for (size_t line = 0; line < lines.size(); ++line) {
    ASSERT_EQ(seen[line].size(), 100u);
    for (size_t i = 0; i < 100; ++i) EXPECT_EQ(seen[line][i], static_cast<int>(i * 3 + line));
  }
}

TEST(GrammarWorkers, SlowOnesLeaveRoomForQuickOnes) {
  GrammarWorkers workers({.num_quick = 2, .num_slow = 1, .quick_time = milliseconds(2)});
  std::vector<std::unique_ptr<SlowTask>> slow;
  for (int i = 0; i < 12; ++i) {
    slow.push_back(std::make_unique<SlowTask>());
    workers.run(std::make_shared<Line>(), std::ref(*slow.back()));
  }
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(runs_at_once(workers)) << i;
  for (const auto& task : slow) {
    while (!task->has_begun()) std::this_thread::sleep_for(milliseconds(1));
  }
  slow[7]->give_up();  // whether it has a place or waits for one
  EXPECT_TRUE(slow[7]->has_ended());
  for (const auto& task : slow) task->end();
  for (size_t i = 0; i < slow.size(); ++i) EXPECT_TRUE(i == 7 || slow[i]->has_ended());
}

// What was slow begins where the slow ones are, and is quick again when it has been.
TEST(GrammarWorkers, SlowLinesTakeNoQuickPlace) {
  GrammarWorkers workers({.num_quick = 1, .num_slow = 1, .quick_time = milliseconds(2)});
  const auto line = std::make_shared<Line>();
  SlowTask first;
  SlowTask second;
  SlowTask third;
  for (SlowTask* const task : {&first, &second, &third}) workers.run(line, std::ref(*task));
  while (!first.has_begun()) std::this_thread::sleep_for(milliseconds(1));
  std::this_thread::sleep_for(milliseconds(5));
  EXPECT_FALSE(second.has_begun());
  first.end();
  EXPECT_TRUE(first.has_ended());
  EXPECT_TRUE(runs_at_once(workers));
  second.end();
  third.end();
  EXPECT_TRUE(third.has_ended());
  EXPECT_TRUE(runs_at_once(workers));
}

TEST(GrammarWorkers, StopEndsWhatIsAtWorkAndRunsNothingMore) {
  GrammarWorkers workers({.num_quick = 1, .num_slow = 1, .quick_time = milliseconds(1)});
  SlowTask one;
  SlowTask other;
  workers.run(std::make_shared<Line>(), std::ref(one));
  workers.run(std::make_shared<Line>(), std::ref(other));
  const auto line = std::make_shared<Line>();
  bool has_run = false;
  while (!one.has_begun() || !other.has_begun()) std::this_thread::sleep_for(milliseconds(1));
  workers.stop();
  workers.run(line, [&](Turn&) { has_run = true; });
  EXPECT_TRUE(one.has_ended());
  EXPECT_TRUE(other.has_ended());
  EXPECT_FALSE(has_run);
}

TEST(GrammarWorkers, FreeWhatIsLargeThemselves) {
  struct Large {
    ~Large() { freed_by = std::this_thread::get_id(); }
    std::thread::id& freed_by;
  };
  std::thread::id freed_by;
  std::promise<std::shared_ptr<Large>> made;
  GrammarWorkers workers;
  workers.run(std::make_shared<Line>(),
              [&](Turn& turn) { made.set_value(turn.shared(std::make_unique<Large>(freed_by))); });
  std::shared_ptr<Large> large = made.get_future().get();
  large = nullptr;
  while (!runs_at_once(workers)) {
  }
  workers.stop();
  EXPECT_NE(freed_by, std::thread::id());
  EXPECT_NE(freed_by, std::this_thread::get_id());
}

// ---- Masks

std::shared_ptr<LazyVocabulary> letters() {
  return std::make_shared<LazyVocabulary>([] {
    std::vector<std::string> pieces;
    for (char c = 'a'; c <= 'z'; ++c) pieces.emplace_back(1, c);
    return std::make_shared<const constrain::Vocabulary>(pieces, 27);  // the last one ends
  });
}

std::shared_ptr<RequestGrammar> grammar(const std::string& text,
                                        std::shared_ptr<LazyVocabulary> vocabulary = letters()) {
  return std::make_shared<RequestGrammar>(constrain::parse_ebnf(text, "g"), std::move(vocabulary));
}

/// Waits for it.
void find(AnswerMask& mask, GrammarWorkers& workers, std::optional<int32_t> token) {
  std::promise<void> done;
  mask.find(workers, token, [&] { done.set_value(); });
  done.get_future().wait();
}

TEST(AnswerMask, GoesOnTokenByToken) {
  GrammarWorkers workers;
  const auto shared = grammar("root ::= \"a\" [bc]");
  for (int sample = 0; sample < 2; ++sample) {
    const auto mask = std::make_shared<AnswerMask>(shared, std::vector<int32_t>{26}, kWanted);
    find(*mask, workers, {});
    EXPECT_EQ(mask->allowed()[0], 1u);
    EXPECT_FALSE(mask->is_whole());
    find(*mask, workers, 0);
    EXPECT_EQ(mask->allowed()[0], 6u);
    find(*mask, workers, 1);
    EXPECT_TRUE(mask->is_whole());
  }
}

TEST(AnswerMask, SaysWhyThereIsNone) {
  GrammarWorkers workers;
  const auto shared = grammar("root ::= \"A\"");
  for (int sample = 0; sample < 2; ++sample) {
    const auto mask = std::make_shared<AnswerMask>(shared, std::vector<int32_t>{26}, kWanted);
    find(*mask, workers, {});
    ASSERT_TRUE(mask->failure());
    EXPECT_EQ(std::string(mask->failure()->what()),
              "g:1: root: expected some text that it can be, got none that ends");
  }
}

// While it waits and while it works; what is found for others of the grammar is right.
TEST(AnswerMask, IsGivenUp) {
  GrammarWorkers workers;
  std::promise<void> opens;
  std::promise<void> entered;
  const auto gated = std::make_shared<LazyVocabulary>([&] {
    entered.set_value();
    opens.get_future().wait();
    return letters()->get();
  });
  const auto shared = grammar("root ::= ([a-z]? [a-y]?){0,4096}", gated);
  std::promise<void> done;
  const auto mask = std::make_shared<AnswerMask>(shared, std::vector<int32_t>{26}, kWanted);
  mask->find(workers, {}, [&] { done.set_value(); });
  entered.get_future().wait();
  mask->give_up();
  opens.set_value();
  done.get_future().wait();
  EXPECT_TRUE(mask->allowed().empty());
  EXPECT_FALSE(mask->failure());
  const auto other = std::make_shared<AnswerMask>(shared, std::vector<int32_t>{26}, kWanted);
  find(*other, workers, {});
  EXPECT_EQ(other->allowed()[0], (1u << 27) - 1);
}

}  // namespace
}  // namespace soliton
