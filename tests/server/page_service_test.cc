// The page as the server hands it out.
#include "runtime/server/page/page.h"
#include "server/service_fixture.h"

namespace soliton {
namespace {

/// Who has no key yet sees the page that asks for it.
class PageOfAGuardedServer : public ServiceTest {
 protected:
  PageOfAGuardedServer() : ServiceTest({.model = "small", .api_key = "secret", .origins = {}}) {}
};

TEST_F(PageOfAGuardedServer, IsServedWithItsFiles) {
  for (const PageFile& file : page_files()) {
    HttpAnswer answer = ask(port(), "GET", std::string(file.path));
    EXPECT_EQ(answer.status, 200) << file.path;
    EXPECT_EQ(answer.body, file.text) << file.path;
    EXPECT_EQ(answer.headers["Content-Type"], file.content_type);
    EXPECT_EQ(answer.headers["X-Content-Type-Options"], "nosniff");
    EXPECT_EQ(answer.headers["Content-Security-Policy"], "frame-ancestors 'none'");
  }
  EXPECT_EQ(ask(port(), "POST", "/").status, 401);
  EXPECT_EQ(ask(port(), "GET", "/page.html").status, 401);  // as whatever there is not
}

}  // namespace
}  // namespace soliton
