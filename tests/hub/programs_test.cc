// The programs before a hub: a model in one command, at a terminal and away from it.
#include "cli/terminal.h"
#include "hub/hub_fixture.h"

namespace soliton {
namespace {

using testing::HasSubstr;
using testing::Not;

const std::string kKernel = std::string(SOLITON_KERNELS) + "/tiny-stories-cpu.so";

/// The tiny model, as the hub has it.
class HubPrograms : public Hub {
 protected:
  HubPrograms() {
    const fs::path tiny = fs::path(SOLITON_SOURCE_DIR) / "models" / "tiny-stories";
    for (const char* name : {"tokenizer.json", "model.safetensors"})
      hub_.files[name].content = read_text(tiny / name);
  }
  std::vector<std::string> environment() const {
    return {"HF_HOME=" + folder_.path().string(), "HF_ENDPOINT=" + hub_.server.address()};
  }
  Outcome run(const std::string& program, const std::vector<std::string>& arguments) const {
    return Process(program, arguments, folder_.path(), environment()).wait();
  }
};

const std::vector<std::string> kChat = {"org/name", "-p", "Once upon", "-n", "1", "-k", kKernel};

TEST_F(HubPrograms, ChatInOneCommand) {
  const Outcome first = run("soliton-chat", kChat);
  EXPECT_EQ(first.status, 0) << first.err;
  EXPECT_THAT(first.err,
              HasSubstr("Downloading org/name to " + cache().string() + "\nDownload: 0.01 GB in "));
  const size_t num_requests = hub_.server.num_requests();
  const Outcome second = run("soliton-chat", kChat);
  EXPECT_EQ(second.out, first.out);
  EXPECT_THAT(second.err, Not(HasSubstr("Download")));
  EXPECT_EQ(hub_.server.num_requests(), num_requests);
  EXPECT_EQ(run("soliton-bench", {"org/name", "-n", "1", "-r", "1", "-k", kKernel}).status, 0);
}

TEST_F(HubPrograms, GenAndDoctorFetchWhatTheyRead) {
  const Outcome gen = run("soliton-gen", {"org/name", "--gpu", "h200", "--dry-run"});
  EXPECT_EQ(gen.status, 0) << gen.err;
  EXPECT_THAT(gen.out, HasSubstr("name"));
  EXPECT_EQ(hub_.server.num_requests("tokenizer.json"), 0u);
  const Outcome doctor = run("soliton-doctor", {"org/name"});
  EXPECT_EQ(doctor.status, 0) << doctor.out;
  EXPECT_THAT(doctor.out, HasSubstr("org/name runs here"));
  EXPECT_THAT(doctor.out, HasSubstr("; its weights, some 0.0 GB, are downloaded then"));
  EXPECT_EQ(hub_.server.num_requests("tokenizer.json"), 1u);
  EXPECT_EQ(hub_.server.num_requests("model.safetensors"), 0u);
  const Outcome typo = run("soliton-gen", {"models/absent.yaml", "--gpu", "h200"});
  EXPECT_THAT(typo.err, HasSubstr("models/absent.yaml: expected a readable file"));
}

TEST_F(HubPrograms, CtrlCEndsAtOnceAndTheNextRunGoesOn) {
  std::atomic<bool> stalls = true;
  hub_.on_storage = [&](const HubRequest& request) -> std::optional<HubReply> {
    if (!stalls || !request.path.ends_with("model.safetensors")) return std::nullopt;
    return HubReply{.body = weights().content, .stall_after = 1'000'000};
  };
  const fs::path part = incomplete("model.safetensors");
  for (const int signal : {SIGINT, SIGKILL}) {
    const Process chat("soliton-chat", kChat, folder_.path(), environment());
    std::error_code absent;
    const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (fs::file_size(part, absent) != 1'000'000 || absent) {
      ASSERT_LT(std::chrono::steady_clock::now(), limit) << chat.err_so_far();
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    chat.signal(signal);
    const std::optional<Outcome> outcome = chat.wait_for(std::chrono::seconds(5));
    ASSERT_TRUE(outcome);
    EXPECT_EQ(outcome->status, 128 + signal);
    EXPECT_FALSE(fs::exists(snapshot() / "model.safetensors"));
    if (signal == SIGINT) fs::remove(part);
  }
  stalls = false;
  EXPECT_EQ(run("soliton-chat", kChat).status, 0);
  EXPECT_EQ(hub_.storage.requests().back().header("range"), "bytes=1000000-");
}

TEST_F(HubPrograms, AtATerminalALargeModelIsAskedFor) {
  weights().listed_size = 1'500'000'000;
  const auto start = [&](const std::vector<std::string>& more) {
    std::vector<std::string> arguments = kChat;
    arguments.insert(arguments.end(), more.begin(), more.end());
    return std::make_unique<Terminal>("soliton-chat", arguments, folder_.path(), environment());
  };
  const auto declined = start({});
  ASSERT_TRUE(declined->wait_for("Download 1.50 GB of org/name to ")) << declined->shown();
  declined->type("\n");
  EXPECT_TRUE(declined->wait_for("declined")) << declined->shown();
  EXPECT_EQ(declined->wait(), static_cast<int>(ExitCode::kNotFound));
  EXPECT_EQ(hub_.server.num_requests("model.safetensors"), 0u);
  // What comes is less than the list says, and late enough for a bar.
  hub_.on_storage = [](const HubRequest&) -> std::optional<HubReply> {
    std::this_thread::sleep_for(std::chrono::milliseconds(150));
    return std::nullopt;
  };
  const auto agreed = start({});
  ASSERT_TRUE(agreed->wait_for("[y/N]")) << agreed->shown();
  agreed->type("y\n");
  EXPECT_TRUE(agreed->wait_for("% 0.0")) << "a bar: " << agreed->shown();
  agreed->wait();
  EXPECT_GE(hub_.server.num_requests("model.safetensors"), 1u);
  const auto unasked = start({"--yes"});
  unasked->wait();
  EXPECT_THAT(unasked->shown(), Not(HasSubstr("[y/N]")));
}

TEST_F(HubPrograms, LinesNameWhatIsWrong) {
  EXPECT_EQ(
      run("soliton-chat", {"org/other", "-p", "x"}).err,
      "soliton-chat: org/other: expected a folder, or a model at 127.0.0.1, got neither, or a private one, "
      "which needs HF_TOKEN\n");
  EXPECT_EQ(run("soliton-chat", {"org/name", "--revision", "..", "-p", "x"}).err,
            "soliton-chat: --revision: expected a branch, tag or commit, got \"..\"\n");
  EXPECT_EQ(
      run("soliton-bench", {".", "--revision", "main"}).err,
      "soliton-bench: --revision: expected a model that is named as on Hugging Face (org/name), got \".\"\n");
  const Outcome offline = run("soliton-server", {"org/name", "--offline", "--port", "0"});
  EXPECT_EQ(offline.status, static_cast<int>(ExitCode::kNotFound));
  EXPECT_THAT(offline.err, HasSubstr("nothing is downloaded with --offline\n"));
}

}  // namespace
}  // namespace soliton
