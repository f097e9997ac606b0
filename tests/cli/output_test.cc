// Programs whose stdout or stderr is full, closed or a pipe that nobody reads. What is said on stderr never ends one; an answer
// that stdout does not take is status 3, and a line where there is room for one.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <chrono>
#include <thread>

#include "cli/cli_fixture.h"

namespace soliton {
namespace {

class CliOutput : public Cli {
 protected:
  /// A program with flags, as a shell runs it with such redirections; what is left of its output.
  Outcome shell(const std::string& command, const std::string& redirections) const {
    const std::string line = fmt::format("cd {}; {}/{} > out 2> err {}", path().string(), SOLITON_BINARY_DIR,
                                         command, redirections);
    const int status = std::system(("bash -c '" + line + "'").c_str());
    return {WEXITSTATUS(status), read_text(path() / "out"), read_text(path() / "err")};
  }
  std::string chat_command(const std::string& more = "-p \"Once upon\" -n 2") const {
    return fmt::format("soliton-chat -m tiny-stories -k {} {}", kTinyKernel, more);
  }
};

constexpr const char* kLost = ": stdout: expected to be written to, got an error\n";

TEST_F(CliOutput, AFullOrClosedStderrEndsNoProgram) {
  for (const char* stderr_is : {"2> /dev/full", "2>&-"}) {
    SCOPED_TRACE(stderr_is);
    const Outcome chat = shell(chat_command(), stderr_is);
    EXPECT_EQ(chat.status, 0);
    EXPECT_EQ(chat.out, " a time\n");
    const Outcome bench =
        shell(fmt::format("soliton-bench --random-weights -k {} -r 1 -n 1 -p 1", kTinyKernel), stderr_is);
    EXPECT_EQ(bench.status, 0);
    EXPECT_NE(bench.out, "");
    EXPECT_EQ(shell("soliton-doctor", stderr_is).status, shell("soliton-doctor", "").status);
    EXPECT_EQ(shell(fmt::format("soliton-gen {} --gpu h100 --dry-run", kTinyModel), stderr_is).status, 0);
  }
}

TEST_F(CliOutput, ErrorsKeepTheirStatusWithoutStderr) {
  for (const char* stderr_is : {"2> /dev/full", "2>&-", "2>&- >&- <&-"}) {
    SCOPED_TRACE(stderr_is);
    EXPECT_EQ(shell("soliton-chat --no-such-flag", stderr_is).status, kUsage);
    EXPECT_EQ(shell("soliton-server --no-such-flag", stderr_is).status, kUsage);
    EXPECT_EQ(shell("soliton-bench --no-such-flag", stderr_is).status, kUsage);
    EXPECT_EQ(shell("soliton-gen --no-such-flag", stderr_is).status, kUsage);
    EXPECT_EQ(shell("soliton-doctor /no/such/model", stderr_is).status, kNotFound);
  }
}

TEST_F(CliOutput, AnAnswerThatStdoutDoesNotTakeIsAnError) {
  for (const char* stdout_is : {"> /dev/full", ">&-"}) {
    SCOPED_TRACE(stdout_is);
    for (const std::string program :
         {"soliton-chat", "soliton-server", "soliton-bench", "soliton-gen", "soliton-doctor"}) {
      SCOPED_TRACE(program);
      const Outcome help = shell(program + " --help", stdout_is);
      EXPECT_EQ(help.status, kNotFound);
      EXPECT_EQ(help.err, program + kLost);
    }
    const Outcome gen = shell(fmt::format("soliton-gen {} --gpu h100 --dry-run", kTinyModel), stdout_is);
    EXPECT_EQ(gen.status, kNotFound);
    EXPECT_EQ(gen.err, std::string("soliton-gen") + kLost);
    const Outcome chat = shell(chat_command(), stdout_is);
    EXPECT_EQ(chat.status, kNotFound);
    EXPECT_TRUE(chat.err.ends_with(std::string("soliton-chat") + kLost)) << chat.err;
  }
}

// Closed standard files, of which the model's would take the place.
TEST_F(CliOutput, NoFileOfTheModelIsWrittenTo) {
  const std::string weights = read_text(model() / "model.safetensors");
  EXPECT_EQ(shell(chat_command(), ">&- 2>&- <&-").status, kNotFound);
  EXPECT_EQ(read_text(model() / "model.safetensors"), weights);
}

// As | head does: the answer ends although it has no other end.
TEST_F(CliOutput, AReaderThatLeavesEndsTheAnswer) {
  const Outcome chat =
      shell(chat_command("-p Once --ignore-eos --jsonl") + " 2> err | head -1", "; exit ${PIPESTATUS[0]}");
  EXPECT_EQ(chat.status, kNotFound);
  EXPECT_TRUE(read_text(path() / "err").ends_with(std::string("soliton-chat") + kLost));
  const Outcome talk = shell(chat_command() + " 2> err | true", "; exit ${PIPESTATUS[0]}");
  EXPECT_EQ(talk.status, kNotFound);
}

/// A port that is free now.
int free_port() {
  const int fd = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  ::bind(fd, reinterpret_cast<sockaddr*>(&address), size);
  ::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size);
  ::close(fd);
  return ntohs(address.sin_port);
}

/// Whether a server answers there within half a minute.
bool answers(int port) {
  for (int i = 0; i < 300; ++i) {
    const std::string ask = fmt::format(
        "bash -c 'exec 3<>/dev/tcp/127.0.0.1/{} && "
        "printf \"GET /health HTTP/1.0\\r\\n\\r\\n\" >&3 && grep -q 200 <&3' 2> /dev/null",
        port);
    if (std::system(ask.c_str()) == 0) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  return false;
}

TEST_F(CliOutput, AServerServesAndEndsWithoutStderr) {
  for (const char* redirections : {"2> /dev/full > /dev/full", "2>&- >&- <&-"}) {
    SCOPED_TRACE(redirections);
    const int port = free_port();
    const std::string command = fmt::format("soliton-server tiny-stories -k {} --port {}", kTinyKernel, port);
    int status = -1;
    std::thread server(
        [&] { status = shell(command, fmt::format("{} & echo $! > pid; wait $!", redirections)).status; });
    EXPECT_TRUE(answers(port));
    const std::string pid = read_text(path() / "pid");
    EXPECT_EQ(std::system(("kill -TERM " + pid).c_str()), 0);
    server.join();
    EXPECT_EQ(status, 0);
  }
}

}  // namespace
}  // namespace soliton
