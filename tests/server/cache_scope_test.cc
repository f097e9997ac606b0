// Who shares what has been fed of prompts: nobody learns from cached_tokens, or the time, what another has sent.
#include "server/service_fixture.h"

namespace soliton {
namespace {

using nlohmann::json;

class CacheScope : public ServiceTest {
 protected:
  using ServiceTest::ServiceTest;

  /// cached_tokens of a prompt of 150 that a client asks to go on with.
  int cached(const std::string& peer, json members = json::object(), const std::string& key = {}) {
    members["prompt"] = std::string(150, 'a');
    members["max_tokens"] = 1;
    const HttpReply reply = service_->answer({.method = "POST",
                                              .path = "/v1/completions",
                                              .body = members.dump(),
                                              .authorization = key,
                                              .origin = {},
                                              .host = "localhost",
                                              .request_headers = {},
                                              .peer = peer});
    const HttpResponse response = response_of(reply);
    EXPECT_EQ(response.status, 200) << response.body;
    return json::parse(response.body)["usage"]["prompt_tokens_details"]["cached_tokens"];
  }
};

TEST_F(CacheScope, IsAnAddressWhereThereIsNoKey) {
  EXPECT_EQ(cached("10.0.0.1"), 0);
  EXPECT_EQ(cached("10.0.0.2"), 0);
  EXPECT_EQ(cached("10.0.0.1"), 149);
  EXPECT_EQ(cached("10.0.0.2"), 149);
  EXPECT_EQ(cached("10.0.0.1", {{"cache_salt", nullptr}}), 149);
}

TEST_F(CacheScope, IsASaltToo) {
  EXPECT_EQ(cached("10.0.0.1", {{"cache_salt", "a"}}), 0);
  EXPECT_EQ(cached("10.0.0.1"), 0);
  EXPECT_EQ(cached("10.0.0.1", {{"cache_salt", "b"}}), 0);
  EXPECT_EQ(cached("10.0.0.2", {{"cache_salt", "a"}}), 0);
  EXPECT_EQ(cached("10.0.0.1", {{"cache_salt", "a"}}), 149);
  for (const json& salt : std::vector<json>{"", 7, std::string(257, 's')}) {
    const HttpAnswer answer = post("/v1/completions", {{"prompt", "x"}, {"cache_salt", salt}});
    EXPECT_EQ(answer.status, 400);
    EXPECT_EQ(answer.json()["error"]["param"], "cache_salt");
  }
}

class KeyedCacheScope : public CacheScope {
 protected:
  KeyedCacheScope() : CacheScope({.model = "small", .api_key = "secret", .origins = {}}) {}
};

TEST_F(KeyedCacheScope, IsTheKey) {
  EXPECT_EQ(cached("10.0.0.1", json::object(), "Bearer secret"), 0);
  EXPECT_EQ(cached("10.0.0.2", json::object(), "Bearer secret"), 149);
  EXPECT_EQ(cached("10.0.0.2", {{"cache_salt", "a"}}, "Bearer secret"), 0);
}

class SharedCacheScope : public CacheScope {
 protected:
  SharedCacheScope()
      : CacheScope({.model = "small", .api_key = {}, .origins = {}, .hosts = {}, .shares_cache = true}) {}
};

TEST_F(SharedCacheScope, IsAllClientsButForSalts) {
  EXPECT_EQ(cached("10.0.0.1"), 0);
  EXPECT_EQ(cached("10.0.0.2"), 149);
  EXPECT_EQ(cached("10.0.0.2", {{"cache_salt", "a"}}), 0);
  EXPECT_EQ(cached("10.0.0.1", {{"cache_salt", "a"}}), 149);
}

}  // namespace
}  // namespace soliton
