// What users are shown.
#include "models/error.h"

#include <gtest/gtest.h>

namespace soliton {
namespace {

TEST(Error, IsOnePrintableLine) {
  EXPECT_STREQ(Error(ExitCode::kUsage, "a\n\x1b[31mb\x7f").what(), "a\\x0a\\x1b[31mb\\x7f");
  EXPECT_EQ(in_quotes("abc", 3), "\"abc\"");
  EXPECT_EQ(in_quotes("ab\xc3\xa9", 3), "\"ab...\"");
  EXPECT_STREQ(bad_file("f", "expected {}, got {}", 1, 2).what(), "f: expected 1, got 2");
}

}  // namespace
}  // namespace soliton
