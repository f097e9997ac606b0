// Downloads into the cache: what lies there afterwards, and what is asked for.
#include <sys/file.h>

#include "hub/hub_fixture.h"

namespace soliton {
namespace {

using testing::HasSubstr;

TEST_F(Hub, FillsTheCacheInTheLayoutThatOthersShare) {
  for (const char* other : {"README.md", "pytorch_model.bin", "original/consolidated.00.pth",
                            "name.Q4_K_M.gguf", "consolidated.safetensors", "onnx/model.onnx"}) {
    hub_.files[other] = {.content = "unneeded"};
  }
  EXPECT_EQ(fetch_model("org/name", {}), snapshot());
  for (const auto& [name, file] : hub_.files) {
    const bool is_needed = file.content != "unneeded";
    EXPECT_EQ(fs::exists(snapshot() / name), is_needed) << name;
    EXPECT_EQ(hub_.server.num_requests("/" + name), is_needed ? 1u : 0u) << name;
    if (!is_needed) continue;
    EXPECT_EQ(fs::read_symlink(snapshot() / name), "../../blobs/" + file.hash()) << name;
    EXPECT_EQ(read_text(snapshot() / name), file.content) << name;
  }
  EXPECT_EQ(read_text(root() / "refs" / "main"), FakeHub::kCommit);
  EXPECT_TRUE(fs::exists(cache() / ".locks" / "models--org--name" / (weights().hash() + ".lock")));
  // Then it is there, with the hub or without, and nothing is asked for.
  const size_t num_requests = hub_.server.num_requests();
  EXPECT_EQ(fetch_model("org/name", {}), snapshot());
  EXPECT_EQ(find_model("org/name"), snapshot());
  EXPECT_EQ(hub_.server.num_requests(), num_requests);
}

TEST_F(Hub, ShardsAreThoseOfTheIndex) {
  hub_.files.erase("model.safetensors");
  hub_.files["consolidated.safetensors"] = {.content = "twice", .is_large = true};
  for (const char* shard : {"model-1.safetensors", "model-2.safetensors", "model-3.safetensors"})
    hub_.files[shard] = {.content = shard, .is_large = true};
  hub_.files["model.safetensors.index.json"] = {
      .content = R"({"weight_map": {"a": "model-1.safetensors", "b": "model-2.safetensors"}})"};
  EXPECT_EQ(download(), snapshot());
  EXPECT_EQ(read_text(snapshot() / "model-2.safetensors"), "model-2.safetensors");
  for (const char* other : {"model-3.safetensors", "consolidated.safetensors"})
    EXPECT_FALSE(fs::exists(snapshot() / other)) << other;
  EXPECT_EQ(find_model("org/name"), snapshot());
}

TEST_F(Hub, OnlyWhatAProgramReadsIsFetched) {
  download({}, {.text = false, .weights = false});
  EXPECT_TRUE(fs::exists(snapshot() / "config.json"));
  EXPECT_FALSE(fs::exists(snapshot() / "tokenizer.json"));
  download({}, {.weights = false});
  EXPECT_TRUE(fs::exists(snapshot() / "tokenizer.json"));
  EXPECT_FALSE(fs::exists(snapshot() / "model.safetensors"));
  EXPECT_EQ(hub_.server.num_requests("config.json"), 3u);  // tokenizer_, generation_
  // Without a tokenizer that is needed there is nothing to do.
  hub_.files.erase("tokenizer.json");
  hub_.files["tokenizer.model"] = {.content = "x"};
  EXPECT_EQ(refusal(ExitCode::kMismatch),
            "org/name: expected tokenizer.json among its files, got tokenizer.model alone");
}

TEST_F(Hub, AModelThatCannotRunIsRefusedBeforeItsWeightsCome) {
  hub_.files["config.json"].content = R"({"architectures": ["BertModel"]})";
  EXPECT_THAT(refusal(ExitCode::kMismatch), HasSubstr("BertModel"));
  EXPECT_EQ(hub_.server.num_requests("model.safetensors"), 0u);
  weights().content.clear();
  hub_.files.erase("model.safetensors");
  hub_.files["name.Q8_0.gguf"] = {.content = "x"};
  EXPECT_EQ(refusal(ExitCode::kMismatch),
            "org/name: expected model.safetensors among its files, got name.Q8_0.gguf");
}

TEST_F(Hub, TheTokenGoesToTheHubAlone) {
  set("HF_TOKEN", "hf_secret\n");
  expect_downloaded();
  for (const HubRequest& request : hub_.server.requests())
    EXPECT_EQ(request.header("authorization"), "Bearer hf_secret") << request.path;
  EXPECT_EQ(hub_.storage.num_requests("/stored/model.safetensors"), 1u);
  for (const HubRequest& request : hub_.storage.requests())
    EXPECT_EQ(request.header("authorization"), "") << request.path;
}

TEST_F(Hub, TheTokenIsNotSentInTheClear) {
  // A proxy, which curl's own variables name, sees what goes to other machines.
  set("HF_TOKEN", "hf_secret");
  set("http_proxy", hub_.server.address());
  set("HF_ENDPOINT", "http://hub.test/mirror/");
  download({}, {.text = false, .weights = false});
  ASSERT_GE(hub_.server.num_requests(), 2u);
  for (const HubRequest& request : hub_.server.requests()) {
    EXPECT_THAT(request.path, testing::StartsWith("http://hub.test/mirror/"));
    EXPECT_EQ(request.header("authorization"), "");
  }
}

TEST_F(Hub, TheTokenOfALoginIsFound) {
  write_text(folder_.path() / "token", "hf_login\n");
  EXPECT_EQ(hub::read_settings().token, "hf_login");
  set("HF_HUB_DISABLE_IMPLICIT_TOKEN", "1");
  EXPECT_EQ(hub::read_settings().token, "");
  ::unsetenv("HF_HUB_DISABLE_IMPLICIT_TOKEN");
  write_text(folder_.path() / "token", "two\nlines");
  EXPECT_THAT(refusal(ExitCode::kUsage), HasSubstr("token: expected a token of at most"));
  set("HF_TOKEN", "hf_secret\r\nX-Other: header");
  const std::string said = refusal(ExitCode::kUsage);
  EXPECT_THAT(said, HasSubstr("HF_TOKEN: expected a token of at most"));
  EXPECT_THAT(said, testing::Not(HasSubstr("hf_secret")));
  set("HF_TOKEN", "x");
  for (const char* endpoint : {"huggingface.co", "ftp://huggingface.co", "https://"}) {
    set("HF_ENDPOINT", endpoint);
    EXPECT_THAT(refusal(ExitCode::kUsage), HasSubstr("HF_ENDPOINT: expected an address such as https://"));
  }
  EXPECT_EQ(hub_.server.num_requests(), 0u);
}

TEST_F(Hub, ARevisionHasItsOwnCommit) {
  hub_.revision = "refs%2Fpr%2F1";
  const HubOptions options{.revision = "refs/pr/1"};
  EXPECT_EQ(fetch_model("org/name", options), snapshot());
  EXPECT_EQ(read_text(root() / "refs" / "refs" / "pr" / "1"), FakeHub::kCommit);
  EXPECT_FALSE(fs::exists(root() / "refs" / "main"));
  const size_t num_requests = hub_.server.num_requests();
  EXPECT_EQ(fetch_model("org/name", options), snapshot());
  EXPECT_EQ(fetch_model("org/name", {.revision = FakeHub::kCommit}), snapshot());
  EXPECT_EQ(hub_.server.num_requests(), num_requests);
  EXPECT_EQ(refusal(ExitCode::kUsage, {.revision = "v2"}),
            "--revision: expected a branch, tag or commit of org/name, got \"v2\"");
  for (const char* revision : {"../main", "a//b", "-x", "a b", "/etc", "x/.."}) {
    EXPECT_THROW(fetch_model("org/name", {.revision = revision}), Error) << revision;
  }
  EXPECT_THROW(fetch_model(folder_.path(), {.revision = "main"}), Error) << "a folder has none";
  EXPECT_EQ(hub_.server.num_requests(), num_requests + 1);
}

TEST_F(Hub, OfflineNothingIsAskedFor) {
  const auto said = [&](const HubOptions& options) {
    try {
      return fetch_model("org/name", options).string();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::kNotFound);
      return std::string(error.what());
    }
  };
  const std::string missing = "org/name: expected a folder, or a model in " + cache().string() +
                              ", found neither; nothing is downloaded with ";
  EXPECT_EQ(said({.is_offline = true}), missing + "--offline");
  for (const char* value : {"1", "TRUE", "on", "yes"}) {
    set("HF_HUB_OFFLINE", value);
    EXPECT_EQ(said({}), missing + "HF_HUB_OFFLINE");
  }
  EXPECT_EQ(hub_.server.num_requests(), 0u);
  set("HF_HUB_OFFLINE", "0");
  EXPECT_EQ(said({}), snapshot());
  fs::remove(snapshot() /
             "tokenizer.json");  // as downloads of others leave it, and not every program needs it
  EXPECT_EQ(said({.is_offline = true}), snapshot());
}

TEST_F(Hub, AnotherProgramsDownloadIsWaitedFor) {
  fs::create_directories(cache() / ".locks" / "models--org--name");
  fs::create_directories(root() / "blobs");
  const fs::path path = cache() / ".locks" / "models--org--name" / (weights().hash() + ".lock");
  const int other = ::open(path.c_str(), O_RDWR | O_CREAT, 0600);
  ASSERT_EQ(::flock(other, LOCK_EX), 0);
  std::thread thread([&] {
    while (hub_.server.num_requests("tokenizer.json") == 0) std::this_thread::yield();
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    EXPECT_EQ(hub_.server.num_requests("model.safetensors"), 0u);
    write_text(blob("model.safetensors"), weights().content);
    ::unlink(path.c_str());  // as some do who give their lock up
    ::close(other);
  });
  expect_downloaded();
  thread.join();
  EXPECT_EQ(hub_.server.num_requests("model.safetensors"), 0u);
  EXPECT_TRUE(fs::exists(path));
}

TEST_F(Hub, ADiskWithoutRoomIsNotFilled) {
  weights().listed_size = uint64_t{1} << 50;
  EXPECT_THAT(refusal(ExitCode::kNotFound), HasSubstr(" GB of free space for org/name, got "));
  EXPECT_EQ(hub_.server.num_requests("model.safetensors"), 0u);
}

TEST_F(Hub, LinksOfOthersAreReplaced) {
  fs::create_directories(snapshot());
  fs::create_symlink("../../blobs/absent", snapshot() / "config.json");
  write_text(snapshot() / "model.safetensors", "old");
  expect_downloaded();
  EXPECT_EQ(read_text(snapshot() / "config.json"), hub_.files["config.json"].content);
}

}  // namespace
}  // namespace soliton
