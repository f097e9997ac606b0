// Calls of the system that fail while a request is answered: it is answered rightly or refused, the next one rightly, and if the
// server ends then with a line and a status that is documented.
#include <signal.h>

#include "faults/faulty_run.h"
#include "sanitized.h"
#include "server/http_client.h"
#include "server/program_fixture.h"

namespace soliton::faults {
namespace {

constexpr const char* kRequest =
    R"({"prompt": [1, 2, 3], "max_tokens": 3, "temperature": 0, "ignore_eos": true})";

class ServerFaults : public ServerProgram {
 protected:
  void SetUp() override {
    if (kSanitized) GTEST_SKIP() << "sanitizers have an allocator of their own";
    start({}, {kPreload, "SOLITON_FAULT_COUNTS=" + counts().string()});
  }
  std::filesystem::path counts() const { return folder_.path() / "counts"; }

  /// Of the answer what does not change from one to the next; "" if there is none.
  std::string ask() {
    try {
      HttpClient client(port_);
      client.ask("POST", "/v1/completions", kRequest, "Content-Type: application/json\r\n");
      const HttpAnswer answer = client.answer();
      return answer.status == 200 ? answer.json()["choices"].dump() : "";
    } catch (const std::exception&) {
      return "";
    }
  }
  void arm(Kind kind, int n) const {
    constexpr int kKindBit = 24;
    ::sigqueue(process_->pid(), SIGUSR2, {.sival_int = kind << kKindBit | n});
  }
  /// Whether it still serves; else it must have ended well.
  void start_again_if_it_ended() {
    if (::kill(process_->pid(), 0) == 0 && ask() == right_) return;
    const std::optional<Outcome> outcome = process_->wait_for(std::chrono::seconds(kMaxSeconds));
    ASSERT_TRUE(outcome) << "serves no more, and goes on";
    EXPECT_GE(outcome->status, 3) << outcome->err;
    EXPECT_LE(outcome->status, 9) << outcome->err;
    EXPECT_NE(outcome->err.find("\nsoliton-server: "), std::string::npos)
        << outcome->status << ": " << outcome->err;
    ++num_ends_;
    start({}, {kPreload, "SOLITON_FAULT_COUNTS=" + counts().string()});
  }

  std::string right_;
  int num_ends_ = 0;
};

TEST_F(ServerFaults, OfARequest) {
  right_ = ask();
  ASSERT_NE(right_, "");
  for (const Kind kind : {kMalloc, kRead, kWrite, kMmap, kOpen, kThread}) {
    for (int n = 1; n <= (long_tests() ? 50 : 2); ++n) {
      SCOPED_TRACE(fmt::format("{}:{}", kKinds[kind].name, n));
      arm(kind, n);
      const std::string answer = ask();
      EXPECT_TRUE(answer.empty() || answer == right_) << answer;
      start_again_if_it_ended();
      if (HasFailure() && !long_tests()) return;
    }
  }
  RecordProperty("ends", num_ends_);
}

}  // namespace
}  // namespace soliton::faults
