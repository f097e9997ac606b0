// What tests of refusals share: an action has to fail in one line, with a code.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "models/error.h"

namespace soliton {

/// Expects an Error of this code whose line begins with `start`.
inline void expect_refused(const std::function<void()>& action, ExitCode code, const std::string& start) {
  try {
    action();
    ADD_FAILURE() << "accepted; expected: " << start;
  } catch (const Error& error) {
    const std::string line = error.what();
    EXPECT_EQ(error.code(), code) << line;
    EXPECT_EQ(line.substr(0, start.size()), start);
    EXPECT_EQ(line.find('\n'), std::string::npos) << line;
  }
}

/// The same of an Error whose line has `fragment` somewhere.
inline void expect_error(const std::function<void()>& action, ExitCode code, const std::string& fragment) {
  try {
    action();
    ADD_FAILURE() << "no error; expected: " << fragment;
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << error.what();
    EXPECT_NE(std::string(error.what()).find(fragment), std::string::npos) << error.what();
    EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos) << "one line only";
  }
}

}  // namespace soliton
