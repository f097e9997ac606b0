// By which names a server may be asked.
#include "runtime/server/host_name.h"

#include <gtest/gtest.h>

#include <vector>

namespace soliton {
namespace {

bool allows(std::string_view host, const std::vector<std::string>& names = {}) {
  return is_allowed_host(host, names);
}

TEST(HostName, AddressesAndLocalhostAreAlwaysAllowed) {
  for (const char* host : {"", "127.0.0.1", "127.0.0.1:8080", "192.168.1.7:80", "[::1]:8080", "[fe80::1]",
                           "localhost", "LocalHost:8080", "localhost.", "soliton.localhost:8080"}) {
    EXPECT_TRUE(allows(host)) << host;
  }
}

TEST(HostName, OtherNamesOnlyIfNamed) {
  for (const char* host :
       {"rebound.example", "rebound.example:8080", "localhost.example", "notlocalhost", "127.0.0.1.example",
        "[rebound.example]", "[::1", "::1", "[", "[]", ":8080", "2130706433", "127.1", ".", "*",
        "localhost:80@rebound.example", "localhost:x", "[::1]rebound.example", "[::1]:80@rebound.example"}) {
    EXPECT_FALSE(allows(host)) << host;
    EXPECT_FALSE(allows(host, {"model.example", "box"})) << host;
    EXPECT_TRUE(allows(host, {"*"})) << host;
  }
  EXPECT_TRUE(allows("model.example:443", {"box", "Model.Example."}));
  EXPECT_TRUE(allows("BOX", {"box"}));
  EXPECT_FALSE(allows("sub.model.example", {"model.example"}));
}

}  // namespace
}  // namespace soliton
