// Networks that fail, hubs that refuse or lie, and files that were left half done.
#include <sys/resource.h>

#include <csignal>

#include "hub/hub_fixture.h"

namespace soliton {
namespace {

using testing::EndsWith;
using testing::HasSubstr;

/// The starts of the ranges that were asked for of the weights, of whole files "all".
std::vector<std::string> ranges(const FakeHub& hub) {
  std::vector<std::string> starts;
  for (const HubRequest& request : hub.storage.requests()) {
    if (!request.path.ends_with("model.safetensors")) continue;
    const std::optional<size_t> begin = request.begin();
    starts.push_back(begin ? std::to_string(*begin) : "all");
  }
  return starts;
}

bool asks_for_weights(const HubRequest& request) {
  return request.path.ends_with("model.safetensors");
}

TEST_F(Hub, GoesOnWhereAConnectionBroke) {
  size_t num_broken = 0;
  hub_.on_storage = [&](const HubRequest& request) -> std::optional<HubReply> {
    if (!asks_for_weights(request) || num_broken == 2) return std::nullopt;
    HubReply reply = FakeHub::part(request, weights().content);
    reply.cut_after = ++num_broken * 100'000;
    return reply;
  };
  expect_downloaded();
  EXPECT_EQ(ranges(hub_), (std::vector<std::string>{"all", "100000", "300000"}));
}

TEST_F(Hub, GoesOnAfterSilence) {
  stall_ = std::chrono::seconds(1);
  hub_.on_storage = [&](const HubRequest& request) -> std::optional<HubReply> {
    if (!asks_for_weights(request) || request.begin()) return std::nullopt;
    return HubReply{.body = weights().content, .stall_after = 1000};
  };
  expect_downloaded();
  EXPECT_EQ(ranges(hub_), (std::vector<std::string>{"all", "1000"}));
}

TEST_F(Hub, GivesUpInTheEndAndKeepsWhatCame) {
  hub_.on_storage = [&](const HubRequest& request) -> std::optional<HubReply> {
    if (!asks_for_weights(request)) return std::nullopt;
    HubReply reply = FakeHub::part(request, weights().content);
    reply.cut_after = 1000;
    return reply;
  };
  EXPECT_THAT(refusal(ExitCode::kNotFound), HasSubstr("127.0.0.1: "));
  EXPECT_EQ(ranges(hub_), (std::vector<std::string>{"all", "1000", "2000"}));
  EXPECT_FALSE(fs::exists(snapshot() / "model.safetensors"));
  EXPECT_FALSE(fs::exists(blob("model.safetensors")));
  EXPECT_EQ(fs::file_size(incomplete("model.safetensors")), 3000u);
  hub_.on_storage = [](const HubRequest&) { return std::nullopt; };
  expect_downloaded();
  EXPECT_EQ(ranges(hub_).back(), "3000");
}

TEST_F(Hub, WhatOthersHaveLeftIsGoneOnWithIfItIsRight) {
  fs::create_directories(root() / "blobs");
  const std::string& content = weights().content;
  write_text(incomplete("model.safetensors"), content.substr(0, 200'000));
  expect_downloaded();
  EXPECT_EQ(ranges(hub_), std::vector<std::string>{"200000"});
  for (const std::string& wrong : {std::string(200'000, 'x'), std::string(content.size(), 'x')}) {
    fs::remove(blob("model.safetensors"));
    write_text(incomplete("model.safetensors"), wrong);
    expect_downloaded();
    EXPECT_EQ(ranges(hub_).back(), "all");
  }
  fs::remove(blob("model.safetensors"));
  const size_t num_requests = ranges(hub_).size();
  write_text(incomplete("model.safetensors"), content);  // all but its name
  expect_downloaded();
  EXPECT_EQ(ranges(hub_).size(), num_requests);
  fs::remove(blob("model.safetensors"));
  write_text(incomplete("model.safetensors"), content + "more");
  expect_downloaded();
  EXPECT_EQ(ranges(hub_).back(), "all");
}

TEST_F(Hub, ServersThatKnowNoRangesStartAnew) {
  const std::string& content = weights().content;
  const std::vector<HubReply> replies = {
      {.body = content},
      {.status = 416},
      {.status = 206, .body = content.substr(5), .headers = "Content-Range: bytes 5-9/9\r\n"},
      {.status = 206, .body = content}};  // without saying of what
  for (const HubReply& reply : replies) {
    hub_.on_storage = [&](const HubRequest& request) -> std::optional<HubReply> {
      return request.begin() && asks_for_weights(request) ? std::optional(reply) : std::nullopt;
    };
    fs::create_directories(root() / "blobs");
    fs::remove(blob("model.safetensors"));
    write_text(incomplete("model.safetensors"), content.substr(0, 1000));
    expect_downloaded();
  }
}

TEST_F(Hub, WhatIsNotWhatTheHubListsGetsNoName) {
  const std::string good = weights().content;
  const std::string hash = weights().hash();
  const auto expect_refused = [&](const std::string& sent, ExitCode code, const std::string& reason) {
    hub_.on_storage = [&](const HubRequest& request) -> std::optional<HubReply> {
      return asks_for_weights(request) ? std::optional(HubReply{.body = sent}) : std::nullopt;
    };
    EXPECT_THAT(refusal(code), HasSubstr(reason));
    EXPECT_FALSE(fs::exists(blob("model.safetensors"))) << reason;
    EXPECT_FALSE(fs::exists(snapshot() / "model.safetensors")) << reason;
  };
  std::string changed = good;
  changed.back() = 'x';
  expect_refused(changed, ExitCode::kBadFile, "expected the hash " + hash + ", as the hub lists, got ");
  EXPECT_FALSE(fs::exists(incomplete("model.safetensors")));
  expect_refused(good + "x", ExitCode::kBadFile,
                 "expected " + std::to_string(good.size()) + " bytes, as the hub lists, got more");
  expect_refused(good.substr(0, 1000), ExitCode::kNotFound, "bytes from 127.0.0.1, got 1000");
  // Small files are checked too, by git's hash.
  hub_.files["config.json"].listed_hash = std::string(40, 'b');
  fs::remove_all(root());
  EXPECT_THAT(refusal(ExitCode::kBadFile), HasSubstr("config.json: expected the hash bbbbb"));
}

TEST_F(Hub, AFileThatCannotGrowIsKeptAsFarAsItCame) {
  const auto old = std::signal(SIGXFSZ, SIG_IGN);
  rlimit before{};
  ::getrlimit(RLIMIT_FSIZE, &before);
  const rlimit limit{.rlim_cur = 200'000, .rlim_max = before.rlim_max};
  ::setrlimit(RLIMIT_FSIZE, &limit);
  const std::string said = refusal(ExitCode::kNotFound);
  ::setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, old);
  EXPECT_EQ(said, incomplete("model.safetensors").string() +
                      ": expected a file that can be written, got: File too large");
  EXPECT_EQ(fs::file_size(incomplete("model.safetensors")), 200'000u);
  expect_downloaded();
  EXPECT_EQ(ranges(hub_).back(), "200000");
}

TEST_F(Hub, RefusalsAreExplained) {
  struct Refusal {
    std::string token;
    HubReply reply;
    ExitCode code;
    std::string line;
  };
  const std::string at = " at 127.0.0.1";
  const std::string licence = hub_.server.address() + "/org/name";
  const std::vector<Refusal> refusals = {
      {"",
       {.status = 401, .headers = "X-Error-Code: RepoNotFound\r\n"},
       ExitCode::kNotFound,
       "org/name: expected a folder, or a model" + at +
           ", got neither, or a private one, which needs HF_TOKEN"},
      {"hf_x",
       {.status = 404, .headers = "X-Error-Code: RepoNotFound\r\n"},
       ExitCode::kNotFound,
       "org/name: expected a folder, or a model" + at + ", got neither that HF_TOKEN may read"},
      {"hf_x",
       {.status = 401, .headers = "X-Error-Message: Invalid credentials\r\n"},
       ExitCode::kNotFound,
       "(127.0.0.1 says: \"Invalid credentials\")"},
      {"",
       {.status = 401, .headers = "X-Error-Code: GatedRepo\r\nX-Error-Message: Access\x1b is restricted\r\n"},
       ExitCode::kNotFound,
       "org/name: gated: expected HF_TOKEN of an account that has accepted the licence at " + licence +
           ", got none (127.0.0.1 says: \"Access\\x1b is restricted\")"},
      {"hf_x",
       {.status = 403, .headers = "X-Error-Code: GatedRepo\r\n"},
       ExitCode::kNotFound,
       "at " + licence + ", got one that may not read it"},
      {"", {.status = 404}, ExitCode::kNotFound, "org/name: expected a model" + at + ", got 404"},
      {"", {.status = 429}, ExitCode::kNotFound, "127.0.0.1: expected an answer, got 429, too many requests"},
      {"",
       {.status = 503, .headers = "Retry-After: 3600\r\n"},
       ExitCode::kNotFound,
       "got 503; it asks for 3600 s"},
  };
  for (const Refusal& each : refusals) {
    set("HF_TOKEN", each.token);
    hub_.on = [&](const HubRequest&) { return std::optional(each.reply); };
    EXPECT_THAT(refusal(each.code), HasSubstr(each.line));
  }
  // A page of an error that does not end is left.
  hub_.on = [&](const HubRequest&) {
    return std::optional(
        HubReply{.status = 404, .body = std::string(20'000'000, 'x'), .stall_after = 2'000'000});
  };
  EXPECT_THAT(refusal(ExitCode::kNotFound), HasSubstr(", got 404"));
  // Also of files, where the list is free.
  hub_.on = [&](const HubRequest& request) -> std::optional<HubReply> {
    if (request.path.find("/resolve/") == std::string::npos) return std::nullopt;
    return HubReply{.status = 401, .headers = "X-Error-Code: GatedRepo\r\n"};
  };
  set("HF_TOKEN", "");
  EXPECT_THAT(refusal(ExitCode::kNotFound), HasSubstr("accepted the licence at " + licence + ", got none"));
}

TEST_F(Hub, TheNearestModelOfTheCacheIsNamed) {
  fs::create_directories(cache() / "models--org--nane" / "snapshots");
  hub_.on = [](const HubRequest&) {
    return std::optional(HubReply{.status = 401, .headers = "X-Error-Code: RepoNotFound\r\n"});
  };
  EXPECT_THAT(refusal(ExitCode::kNotFound), EndsWith("which needs HF_TOKEN; did you mean org/nane?"));
}

TEST_F(Hub, WhatMayPassIsTriedAgain) {
  for (const int status : {429, 500, 503}) {
    size_t num_asked = 0;
    hub_.on = [&](const HubRequest&) -> std::optional<HubReply> {
      return ++num_asked <= 2 ? std::optional(HubReply{.status = status, .headers = "Retry-After: 0\r\n"})
                              : std::nullopt;
    };
    fs::remove_all(root());
    expect_downloaded();
    num_asked = 0;
    hub_.on = [&](const HubRequest&) { return ++num_asked, std::optional(HubReply{.status = status}); };
    refusal(ExitCode::kNotFound);
    EXPECT_EQ(num_asked, 3u);
  }
}

TEST_F(Hub, WhereThereIsNoHubItIsSaidAtOnce) {
  std::string nowhere;
  {
    const FakeServer gone([](const HubRequest&) { return HubReply{}; });
    nowhere = gone.address();
  }
  set("HF_ENDPOINT", nowhere);
  EXPECT_THAT(refusal(ExitCode::kNotFound), testing::StartsWith("127.0.0.1: "));
  // Redirections end, too.
  set("HF_ENDPOINT", hub_.server.address());
  hub_.on = [&](const HubRequest&) {
    return std::optional(HubReply{.status = 302, .headers = "Location: /again\r\n"});
  };
  EXPECT_THAT(refusal(ExitCode::kNotFound), EndsWith("expected at most 10 redirections, got more"));
  for (const char* elsewhere : {"file:///etc/passwd", "gopher://127.0.0.1/", "ftp://127.0.0.1/"}) {
    hub_.on = [&](const HubRequest&) {
      return std::optional(
          HubReply{.status = 302, .headers = std::string("Location: ") + elsewhere + "\r\n"});
    };
    EXPECT_THAT(refusal(ExitCode::kNotFound), HasSubstr("rotocol")) << elsewhere;
  }
}

TEST_F(Hub, ListsThatAreNoneAreRefused) {
  const std::string sha = std::string(R"("sha": ")") + FakeHub::kCommit + "\"";
  const auto with_file = [&](const std::string& file) {
    return "{" + sha + R"(, "siblings": [{)" + file + "}]}";
  };
  const std::string blob = R"("size": 2, "blobId": ")" + std::string(40, 'a') + "\"";
  const std::vector<std::pair<std::string, std::string>> lists = {
      {"<html>", "not valid JSON"},
      {R"({"sha": "../../etc"})", "sha: expected a commit of 40 hexadecimal digits, got \"../../etc\""},
      {"{" + sha + "}", "siblings"},
      {with_file(R"("rfilename": "../config.json", )" + blob), "expected a path within the model's folder"},
      {with_file(R"("rfilename": "/etc/passwd", )" + blob), "expected a path within the model's folder"},
      {with_file(R"("rfilename": "a/../../b", )" + blob), "expected a path within the model's folder"},
      {with_file(R"("rfilename": "a\\..\\b", )" + blob), "expected a path within the model's folder"},
      {with_file(R"("rfilename": "a\u0000b", )" + blob), "expected a path within the model's folder"},
      {with_file(R"("rfilename": "a", "size": -1, "blobId": "a")"), "size"},
      {with_file(R"("rfilename": "a", "size": 2)"), "blobId"},
      {with_file(R"("rfilename": "a", "size": 2, "blobId": "../../x")"), "expected 40 hexadecimal digits"},
      {with_file(R"("rfilename": "a", "lfs": {"size": 2, "sha256": "../x"})"),
       "expected 64 hexadecimal digits"},
      {with_file(R"("rfilename": "config.json", )" + blob),
       "expected model.safetensors among its files, got none"},
      {std::string(100, '[') + std::string(100, ']'), "org/name: "},
      {std::string(hub::kMaxListingBytes + 1, ' '), "list of files of at most 16777216 bytes, got more"},
  };
  for (const auto& [text, reason] : lists) {
    hub_.listing = text;
    const ExitCode code = reason.ends_with("got none") ? ExitCode::kMismatch : ExitCode::kBadFile;
    EXPECT_THAT(refusal(code), HasSubstr(reason)) << text.substr(0, 200);
    EXPECT_FALSE(fs::exists(cache())) << "nothing is written";
  }
}

TEST_F(Hub, AnIndexNamesFilesBesideIt) {
  hub_.files.erase("model.safetensors");
  for (const char* shard : {"../../x", "/etc/passwd", "sub/model.safetensors", "..", ""}) {
    hub_.files["model.safetensors.index.json"] = {.content = std::string(R"({"weight_map": {"a": ")") +
                                                             shard + "\"}}"};
    EXPECT_THAT(refusal(ExitCode::kBadFile), HasSubstr("expected the name of a file beside the index"))
        << shard;
  }
  hub_.files["model.safetensors.index.json"] = {.content = R"({"weight_map": {"a": "absent.safetensors"}})"};
  EXPECT_THAT(refusal(ExitCode::kNotFound), HasSubstr("expected absent.safetensors among the model's files"));
}

TEST_F(Hub, HashesAreThoseOfGitAndSha256) {
  hub::Checksum git(hub::Checksum::Kind::kGitBlob, 6);
  git.add("hel");
  git.add("lo\n");
  EXPECT_EQ(git.finish(),
            "ce013625030ba8dba906f756967f9e9ca394464a");  // echo hello | git hash-object --stdin
  hub::Checksum sha256(hub::Checksum::Kind::kSha256, 3);
  sha256.add("abc");
  EXPECT_EQ(sha256.finish(), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

}  // namespace
}  // namespace soliton
