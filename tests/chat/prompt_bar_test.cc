// The bar of a prompt, and lines on a terminal that are drawn over and over.
#include "runtime/chat/prompt_bar.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <pty.h>
#include <unistd.h>

#include <thread>

namespace soliton {
namespace {

std::string read_available(int fd) {
  std::string text(4096, '\0');
  const ssize_t size = ::read(fd, text.data(), text.size());
  text.resize(size > 0 ? static_cast<size_t>(size) : 0);
  return text;
}

/// A terminal of 60 columns.
class PromptBarTest : public testing::Test {
 protected:
  PromptBarTest() {
    const winsize size{.ws_row = 24, .ws_col = 60, .ws_xpixel = 0, .ws_ypixel = 0};
    EXPECT_EQ(::openpty(&reads_, &writes_, nullptr, nullptr, &size), 0);
    ::fcntl(reads_, F_SETFL, O_NONBLOCK);
  }
  ~PromptBarTest() override {
    ::close(reads_);
    ::close(writes_);
  }

  int reads_ = -1;
  int writes_ = -1;
};

TEST(PromptLine, SaysHowFarAndHowFast) {
  EXPECT_EQ(prompt_line(1024, 4096, 0, 0.5, 79),
            "Prompt [=======>                     ]  25% 1024/4096 tokens 2048 t/s 0:02 left");
  EXPECT_EQ(prompt_line(2048, 4096, 2048, 0, 79),
            "Prompt [====================>                   ]  50% 2048/4096 tokens 0 t/s");
  EXPECT_EQ(prompt_line(1024, 4096, 0, 0.5, 30), "Prompt  25%");
  EXPECT_EQ(prompt_line(0, 0, 0, 0, 30), "Prompt 100% 0/0 tokens 0 t/s");
}

TEST_F(PromptBarTest, ComesAfterAMomentAndGoes) {
  PromptBar bar(writes_);
  bar.show(0, 1000);
  bar.show(100, 1000);
  EXPECT_EQ(read_available(reads_), "");
  std::this_thread::sleep_for(std::chrono::milliseconds(320));
  bar.show(400, 1000);
  bar.show(500, 1000);  // too soon for another one
  const std::string shown = read_available(reads_);
  EXPECT_EQ(shown.find("\r\x1b[KPrompt ["), 0u) << shown;
  EXPECT_NE(shown.find("400/1000 tokens"), std::string::npos) << shown;
  EXPECT_EQ(shown.find("500"), std::string::npos) << shown;
  EXPECT_LE(shown.size(), 4u + 59u);
  bar.clear();
  bar.clear();
  EXPECT_EQ(read_available(reads_), "\r\x1b[K");
}

TEST(StatusLine, WritesNothingElsewhere) {
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_NONBLOCK), 0);
  {
    StatusLine line(ends[1]);
    EXPECT_FALSE(line.is_due());
    line.draw("something");
    line.clear();
  }
  EXPECT_EQ(read_available(ends[0]), "");
  close(ends[0]);
  close(ends[1]);
}

}  // namespace
}  // namespace soliton
