// Runs of a program in which one call of the system fails, or at which it is killed: one for each call that it makes, or for
// some of them that lie evenly among all.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <sstream>

#include "cli/run_program.h"
#include "faults/kinds.h"
#include "long_tests.h"

namespace soliton::faults {

inline const std::string kPreload = "LD_PRELOAD=" + std::string(SOLITON_BINARY_DIR) + "/faults/inject.so";
inline constexpr int kMaxSeconds = 60;  // that a run may take, of which most take a tenth
inline constexpr int kKilled = 128 + SIGKILL;

/// A program with its arguments.
struct Command {
  std::string program;
  std::vector<std::string> arguments;
  std::filesystem::path folder;
  std::vector<std::string> environment = {};
};

inline Outcome run(const Command& command, const std::vector<std::string>& more = {}) {
  std::vector<std::string> environment = command.environment;
  environment.insert(environment.end(), more.begin(), more.end());
  const Process process(command.program, command.arguments, command.folder, environment);
  const std::optional<Outcome> outcome = process.wait_for(std::chrono::seconds(kMaxSeconds));
  EXPECT_TRUE(outcome) << "hangs: " << process.err_so_far();
  return outcome.value_or(Outcome{});
}

/// How many calls of each kind a run makes.
inline std::map<std::string, long> count_calls(const Command& command) {
  const TemporaryFolder folder;
  const std::filesystem::path file = folder.path() / "counts";
  run(command, {kPreload, "SOLITON_FAULT_COUNTS=" + file.string()});
  std::istringstream lines(read_text(file));
  std::map<std::string, long> counts;
  for (std::string kind; lines >> kind;) lines >> counts[kind];
  return counts;
}

/// Which of so many calls fail, one a run.
inline std::vector<long> choose(long num_calls, long most) {
  std::vector<long> chosen;
  const long count = std::min(num_calls, most);
  for (long i = 0; i < count; ++i) chosen.push_back(1 + (count == 1 ? 0 : i * (num_calls - 1) / (count - 1)));
  return chosen;
}

/// A program that met a fault says so in a line and with a status that is documented, or is right all the same.
inline void expect_sound(const Outcome& outcome, const Command& command, const std::string& right,
                         Kind kind) {
  if (outcome.status == 0) {
    EXPECT_EQ(outcome.out, right);
    return;
  }
  EXPECT_GE(outcome.status, 2);
  EXPECT_LE(outcome.status, 9) << outcome.err;
  if (kind == kWrite && outcome.err.empty()) return;  // it is the line that could not be written
  const size_t last = outcome.err.rfind('\n', outcome.err.size() - 2);
  const std::string line = outcome.err.substr(last == std::string::npos ? 0 : last + 1);
  EXPECT_TRUE(line.starts_with(command.program + ": ") && line.ends_with("\n")) << outcome.err;
}

/// Each kind of fault in turn; after each run `check` looks at what it has left.
struct Sweep {
  Command command;
  std::vector<Kind> kinds;
  std::string right;  // what it prints
  long most = 4;      // runs of a kind, in short tests
  long most_in_long = 2000;
  bool kills = false;  // instead of failing
  std::function<void()> prepare = [] {};
  std::function<void()> check = [] {};
};

inline void sweep(const Sweep& sweep) {
  sweep.prepare();
  const std::map<std::string, long> counts = count_calls(sweep.command);
  for (const Kind kind : sweep.kinds) {
    const long num_calls = counts.at(kKinds[kind].name);
    EXPECT_GT(num_calls, 0) << kKinds[kind].name << ": expected a kind that there is";
    for (const long n : choose(num_calls, long_tests() ? sweep.most_in_long : sweep.most)) {
      const std::string fault =
          fmt::format("SOLITON_FAULT={}:{}{}", kKinds[kind].name, n, sweep.kills ? ":kill" : "");
      SCOPED_TRACE(fmt::format("{} of {}", fault, num_calls));
      sweep.prepare();
      const Outcome outcome = run(sweep.command, {kPreload, fault});
      if (!sweep.kills || outcome.status != kKilled) expect_sound(outcome, sweep.command, sweep.right, kind);
      sweep.check();
      if (testing::Test::HasFailure() && !long_tests()) return;  // the first one says enough
    }
  }
}

}  // namespace soliton::faults
