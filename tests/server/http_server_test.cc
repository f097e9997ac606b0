// The HTTP server with a handler of the test's: what it takes, refuses, and survives.
#include "runtime/server/http_server.h"

#include <gmock/gmock.h>

#include <thread>

#include "server/http_client.h"

namespace soliton {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

class HttpServerTest : public testing::Test {
 protected:
  void serve(HttpServer::Handler handler, HttpLimits limits = {}) {
    server_.emplace(
        HttpServerOptions{.limits = limits}, std::move(handler),
        [](int status, const std::string& reason) { return HttpResponse{.status = status, .body = reason}; },
        metrics_);
  }
  uint16_t port() const { return server_->port(); }
  static HttpReply echo(const HttpRequest& request) {
    return HttpResponse{.body = request.method + " " + request.path + " " + request.body};
  }

  Metrics metrics_;
  std::optional<HttpServer> server_;
};

TEST_F(HttpServerTest, AnswersOneAfterTheOther) {
  serve(echo);
  HttpClient client(port());
  client.ask("GET", "/a?b=c");
  EXPECT_EQ(client.answer().body, "GET /a ");
  client.ask("POST", "/b", "text");
  client.ask("PUT", "/c", "more");  // before the answer
  EXPECT_EQ(client.answer().body, "POST /b text");
  EXPECT_EQ(client.answer().body, "PUT /c more");
  client.send("HEAD / HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_TRUE(client.reads("200 OK"));
}

TEST_F(HttpServerTest, OldClientsAndThoseWhoWantToAreLetGo) {
  serve(echo);
  HttpClient old(port());
  old.send("GET /old HTTP/1.0\r\n\r\n");
  EXPECT_EQ(old.answer().body, "GET /old ");
  EXPECT_TRUE(old.is_closed());
  HttpClient polite(port());
  polite.ask("GET", "/", "", "Connection: close\r\n");
  EXPECT_EQ(polite.answer().headers["Connection"], "close");
  EXPECT_TRUE(polite.is_closed());
}

TEST_F(HttpServerTest, RefusesWhatIsTooLargeOrNoRequest) {
  serve(echo, {.header_bytes = 1000, .body_bytes = 100});
  EXPECT_EQ(ask(port(), "POST", "/", std::string(100, 'x')).status, 200);
  EXPECT_EQ(ask(port(), "POST", "/", std::string(101, 'x')).status, 413);
  HttpClient chunked(port());
  chunked.send("POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n60\r\n" +
               std::string(0x60, 'x') + "\r\n60\r\n" + std::string(0x60, 'x') + "\r\n0\r\n\r\n");
  EXPECT_EQ(chunked.answer().status, 413);
  EXPECT_EQ(ask(port(), "GET", "/", "", "X: " + std::string(2000, 'x') + "\r\n").status, 431);
  HttpClient nonsense(port());
  nonsense.send("nonsense\r\n\r\n");
  EXPECT_EQ(nonsense.answer().status, 400);
  EXPECT_TRUE(nonsense.is_closed());
}

TEST_F(HttpServerTest, SaysToGoOnToThoseWhoAsk) {
  serve(echo);
  HttpClient client(port());
  client.send("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\nExpect: 100-continue\r\n\r\n");
  EXPECT_EQ(client.answer().status, 100);
  client.send("body");
  EXPECT_EQ(client.answer().body, "POST / body");
}

TEST_F(HttpServerTest, SlowOnesEndAndOthersDoNotWait) {
  serve(echo, {.header = 300ms, .body = 300ms, .idle = 300ms});
  std::vector<HttpClient> slow;
  for (int i = 0; i < 60; ++i) {
    slow.emplace_back(port());
    slow.back().send(i % 3 == 0   ? ""
                     : i % 3 == 1 ? "GET / HT"
                                  : "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nab");
  }
  EXPECT_EQ(ask(port(), "GET", "/").status, 200);
  for (HttpClient& client : slow) EXPECT_TRUE(client.is_closed());
}

// A byte now and then does not keep a connection.
TEST_F(HttpServerTest, DribbledHeadersEnd) {
  serve(echo, {.header = 300ms});
  HttpClient client(port());
  const auto begin = std::chrono::steady_clock::now();
  while (client.send("G") && std::chrono::steady_clock::now() - begin < 20s)
    std::this_thread::sleep_for(50ms);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 20s);
}

TEST_F(HttpServerTest, TooManyConnectionsAreRefused) {
  serve(echo, {.connections = 3});
  std::vector<HttpClient> clients;
  for (int i = 0; i < 3; ++i) {
    clients.emplace_back(port());
    clients.back().ask("GET", "/");
    EXPECT_EQ(clients.back().answer().status, 200);
  }
  HttpClient further(port());
  EXPECT_EQ(further.answer().status, 503);
  clients.clear();
  while (metrics_.value(Metrics::Gauge::kConnections) > 1) std::this_thread::sleep_for(5ms);
  EXPECT_EQ(ask(port(), "GET", "/").status, 200);
}

TEST_F(HttpServerTest, ConnectsAndDropsLeaveNothing) {
  serve(echo);
  for (int i = 0; i < 1000; ++i) {
    HttpClient client(port());
    if (i % 2 == 0) client.send("GET /");
  }
  EXPECT_EQ(ask(port(), "GET", "/").status, 200);
  while (metrics_.value(Metrics::Gauge::kConnections) > 0) std::this_thread::sleep_for(5ms);
}

TEST_F(HttpServerTest, WhatTheHandlerThrowsIsTold) {
  serve([](const HttpRequest&) -> HttpReply { throw std::runtime_error("no"); });
  const HttpAnswer answer = ask(port(), "GET", "/");
  EXPECT_EQ(answer.status, 500);
  EXPECT_EQ(answer.body, "no");
}

// ---- Answers that come later

class PendingTest : public HttpServerTest {
 protected:
  void serve_pending() {
    serve([this](const HttpRequest&) -> HttpReply { return reply_; });
  }
  std::shared_ptr<PendingReply> reply_ = std::make_shared<PendingReply>();
};

TEST_F(PendingTest, WholeAnswersFollow) {
  serve_pending();
  HttpClient client(port());
  client.ask("GET", "/");
  std::this_thread::sleep_for(20ms);
  reply_->finish({.status = 201, .body = "late"});
  const HttpAnswer answer = client.answer();
  EXPECT_EQ(answer.status, 201);
  EXPECT_EQ(answer.body, "late");
}

TEST_F(PendingTest, PiecesComeAtOnce) {
  serve_pending();
  HttpClient client(port());
  client.ask("GET", "/");
  reply_->begin_stream({.content_type = "text/event-stream"});
  for (const char* piece : {"one", "two", "three"}) {
    reply_->put(piece);
    EXPECT_TRUE(client.reads(piece));
  }
  reply_->close();
  const HttpAnswer answer = client.answer();
  EXPECT_EQ(answer.body, "onetwothree");
  EXPECT_EQ(answer.headers.at("Content-Type"), "text/event-stream");
}

TEST_F(PendingTest, OldClientsGetPiecesWithoutChunks) {
  serve_pending();
  HttpClient client(port());
  client.send("GET / HTTP/1.0\r\n\r\n");
  reply_->begin_stream({});
  reply_->put("one");
  reply_->put("two");
  reply_->close();
  EXPECT_EQ(client.answer().body, "onetwo");
}

TEST_F(PendingTest, ClientsThatGoAwayAreNoticed) {
  for (const bool streams : {false, true}) {
    reply_ = std::make_shared<PendingReply>();
    serve_pending();
    std::atomic<bool> has_gone = false;
    reply_->on_abandon([&] { has_gone = true; });
    HttpClient client(port());
    client.ask("GET", "/");
    if (streams) {
      reply_->begin_stream({});
      reply_->put("one");
      EXPECT_TRUE(client.reads("one"));
    } else {
      std::this_thread::sleep_for(50ms);
    }
    EXPECT_FALSE(has_gone);
    client.close();
    for (int i = 0; i < 2000 && !has_gone; ++i) std::this_thread::sleep_for(5ms);
    EXPECT_TRUE(has_gone);
    reply_->put("two");  // to nobody
    reply_->close();
    server_.reset();
  }
}

TEST_F(PendingTest, TheServerEndsWithAnswersUnderWay) {
  serve_pending();
  std::atomic<bool> has_gone = false;
  reply_->on_abandon([&] { has_gone = true; });
  HttpClient client(port());
  client.ask("GET", "/");
  reply_->begin_stream({});
  reply_->put("one");
  EXPECT_TRUE(client.reads("one"));
  server_->stop_listening();
  EXPECT_FALSE(server_->drain(20ms));
  server_.reset();
  EXPECT_TRUE(has_gone);
  EXPECT_TRUE(client.is_closed());
  reply_->put("two");
}

}  // namespace
}  // namespace soliton
