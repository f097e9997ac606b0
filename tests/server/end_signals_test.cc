// How the server ends when it is told to, whatever its threads do.
#include "runtime/server/end_signals.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>

namespace soliton {
namespace {

using namespace std::chrono_literals;

constexpr int kStatus = 6;

/// What no signal wakes.
[[noreturn]] void hang() {
  for (;;) std::this_thread::sleep_for(1h);
}

void tell(int signal) {
  ::kill(::getpid(), signal);
}

class EndSignalsDeathTest : public testing::Test {
 protected:
  /// Shells start what runs behind them with SIGINT ignored.
  void SetUp() override { ::signal(SIGINT, SIG_DFL); }
};

TEST_F(EndSignalsDeathTest, EndTheProgramWhileItLoads) {
  const auto load = [](int signal) {
    const EndSignals signals;
    tell(signal);
    hang();
  };
  EXPECT_EXIT(load(SIGTERM), testing::KilledBySignal(SIGTERM), "");
  EXPECT_EXIT(load(SIGINT), testing::KilledBySignal(SIGINT), "");
}

TEST_F(EndSignalsDeathTest, EndAHungProgramAfterItsGrace) {
  const auto begin = std::chrono::steady_clock::now();
  const auto serve = [] {
    EndSignals signals;
    signals.hold(200ms);
    tell(SIGTERM);
    hang();
  };
  EXPECT_EXIT(serve(), testing::ExitedWithCode(0), "");
  EXPECT_GE(std::chrono::steady_clock::now() - begin, 200ms);
}

TEST_F(EndSignalsDeathTest, EndAHungProgramAtOnceAtTheSecond) {
  const auto serve = [](int second) {
    EndSignals signals;
    signals.hold(1h);
    tell(SIGTERM);
    while (!signals.wait(1ms)) {
    }
    const auto begin = std::chrono::steady_clock::now();
    std::thread([=] {
      std::this_thread::sleep_until(begin + EndSignals::kLastWords / 2);
      ::_exit(kStatus);  // too late
    }).detach();
    tell(second);
    hang();
  };
  EXPECT_EXIT(serve(SIGTERM), testing::ExitedWithCode(128 + SIGTERM), "");
  EXPECT_EXIT(serve(SIGINT), testing::ExitedWithCode(128 + SIGINT), "");
}

TEST_F(EndSignalsDeathTest, EndAHungProgramThatHasFailed) {
  const auto serve = [] {
    EndSignals signals;
    signals.hold(1h);
    signals.end(kStatus);
    hang();
  };
  EXPECT_EXIT(serve(), testing::ExitedWithCode(kStatus), "");
}

TEST_F(EndSignalsDeathTest, LeaveAProgramAloneThatEnds) {
  const auto serve = [] {
    {
      EndSignals signals;
      signals.hold(1h);
      tell(SIGTERM);
      while (!signals.wait(1ms)) {
      }
    }
    ::_exit(kStatus);
  };
  EXPECT_EXIT(serve(), testing::ExitedWithCode(kStatus), "");
}

}  // namespace
}  // namespace soliton
