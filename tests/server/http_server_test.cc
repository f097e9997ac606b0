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
  serve([](const HttpRequest&) -> HttpReply { return std::make_shared<PendingReply>(); }, {.connections = 3});
  std::vector<HttpClient> clients;
  for (int i = 0; i < 3; ++i) {
    clients.emplace_back(port());
    clients.back().ask("GET", "/");
  }
  std::this_thread::sleep_for(100ms);  // until all are at work: those at rest would give way
  HttpClient further(port());
  EXPECT_EQ(further.answer().status, 503);
  clients.clear();
  while (metrics_.value(Metrics::Gauge::kConnections) > 1) std::this_thread::sleep_for(5ms);
}

// Whoever comes takes the place of one that waits; of which, connections_test.cc says.
TEST_F(HttpServerTest, IdleConnectionsGiveWay) {
  constexpr int kPlaces = 8;
  serve(echo, {.connections = kPlaces, .body = 60s, .idle = 60s});
  std::vector<HttpClient> idle;
  for (int i = 0; i < 40; ++i) {
    HttpClient& client = idle.emplace_back(port());
    if (i % 2 == 0) {
      client.send("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n");
      EXPECT_EQ(client.answer().status, 100) << i;
      client.send("ab");
    } else {
      client.ask("GET", "/");
      EXPECT_EQ(client.answer().status, 200) << i;
    }
  }
  HttpClient last(port());
  last.ask("GET", "/");
  EXPECT_EQ(last.answer().status, 200);
  int num_left = 0;
  for (size_t i = 1; i < idle.size(); i += 2) {
    idle[i].ask("GET", "/again");
    num_left += idle[i].answer().body == "GET /again " ? 1 : 0;
  }
  EXPECT_LT(num_left, kPlaces);
  last.ask("GET", "/last");
  EXPECT_EQ(last.answer().body, "GET /last ");
}

// Of bodies of 100,000 bytes four may be on their way for one client: those that have been for longest end.
TEST_F(HttpServerTest, UploadsTakeNoMoreThanTheirRoom) {
  serve(echo, {.body_bytes = 100'000});
  std::vector<HttpClient> slow;
  const std::string begun =
      "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n" + std::string(90'000, 'x');
  for (int i = 0; i < 12; ++i) {
    slow.emplace_back(port());
    slow.back().send(begun);
    std::this_thread::sleep_for(10ms);
  }
  for (size_t i = 0; i < 8; ++i) EXPECT_EQ(slow[i].answer().status, 503) << i;
  for (size_t i = 9; i < 12; ++i) {
    slow[i].send(std::string(10'000, 'x'));
    EXPECT_EQ(slow[i].answer().status, 200) << i;
  }
  EXPECT_EQ(ask(port(), "POST", "/", std::string(100'000, 'y')).status, 200);
}

// What one proxy takes for the end of a request and another one does not.
TEST_F(HttpServerTest, RefusesHeadersThatCanBeReadInTwoWays) {
  serve(echo);
  const std::string chunk = "1\r\nx\r\n0\r\n\r\n";
  const std::vector<std::pair<std::string, std::string>> requests = {
      {"Host: a\r\nHost: b\r\n", ""},
      {"Host: a\r\nHost: a\r\n", ""},
      {"Host: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n", "x"},
      {"Host: a\r\nContent-Length: 1, 1\r\n", "x"},
      {"Host: a\r\nContent-Length: +1\r\n", "x"},
      {"Host: a\r\nContent-Length: -1\r\n", "x"},
      {"Host: a\r\nContent-Length: 0x1\r\n", "x"},
      {"Host: a\r\nContent-Length: 99999999999999999999\r\n", "x"},
      {"Host: a\r\nContent-Length : 1\r\n", "x"},
      {"Host: a\r\nTransfer-Encoding: chunked, identity\r\nContent-Length: 5\r\n", chunk},
      {"Host: a\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n", chunk},
      {"Host: a\r\nTransfer-Encoding: identity\r\n", chunk},
      {"Host: a\r\nTransfer-Encoding: gzip, chunked\r\n", chunk},
      {"Host: a\r\nTransfer-Encoding: xchunked\r\n", chunk},
      {"Host: a\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", chunk},
      {"Host: a\r\nTransfer-Encoding: chunked\r\n", "fffffffffffffffff\r\nx\r\n"},
      {"Host: a\r\nTransfer-Encoding: chunked\r\n", "-1\r\nx\r\n"},
      {"Host: a\r\nTransfer-Encoding: chunked\r\n", "1 \nx\r\n"},
      {"Host: a\r\nAuthorization: Bearer a\r\nAuthorization: Bearer b\r\n", ""},
      {"Host: a\r\nX: \x01\r\n", ""},
      {"Host: a\r\nX: " + std::string(1, '\0') + "\r\n", ""},
      {"Host: a\nX: b\n", ""},
  };
  for (const auto& [header, body] : requests) {
    HttpClient client(port());
    client.send("POST / HTTP/1.1\r\n" + header + "\r\n" + body + "GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n");
    EXPECT_THAT(client.answer().status, testing::AnyOf(400, 413)) << header << body;
    EXPECT_TRUE(client.is_closed()) << header << body;
  }
}

// A chunk's header and what stands behind the last chunk have limits too.
TEST_F(HttpServerTest, ChunksHaveShortHeaders) {
  serve(echo);
  const std::string head = "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n";
  for (const std::string beginning : {"1;a=", "0\r\nX: "}) {
    HttpClient client(port());
    client.send(head + beginning);
    const std::string more(64 << 10, 'x');
    int num_sent = 0;
    while (num_sent < 100 && client.send(more)) ++num_sent;
    EXPECT_THAT(client.answer().status, testing::AnyOf(400, 431)) << beginning;
  }
  HttpClient extended(port());
  extended.send(head + "2;a=b\r\nxy\r\n0\r\n\r\n");
  EXPECT_EQ(extended.answer().body, "POST / xy");
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

/// How a client goes away, or does not.
struct Leaving {
  bool streams = false;   // the answer is a stream that has begun
  std::string more = {};  // sent behind the request
};

class LeavingTest : public PendingTest, public testing::WithParamInterface<Leaving> {
 protected:
  /// Whether the server gives the client up within a time that is enough for it.
  bool is_noticed() {
    for (int i = 0; i < 2000 && !has_gone_; ++i) std::this_thread::sleep_for(5ms);
    return has_gone_;
  }
  /// One who has asked, and read what there is of the answer.
  HttpClient ask() {
    reply_->on_abandon([&] { has_gone_ = true; });
    HttpClient client(port());
    client.ask("GET", "/");
    client.send(GetParam().more);
    if (GetParam().streams) {
      reply_->begin_stream({.content_type = "text/event-stream"});
      reply_->put("one");
      EXPECT_TRUE(client.reads("one"));
    } else {
      std::this_thread::sleep_for(50ms);
    }
    EXPECT_FALSE(has_gone_);
    return client;
  }

  std::atomic<bool> has_gone_ = false;
};

TEST_P(LeavingTest, ClientsThatGoAwayAreNoticed) {
  serve_pending();
  HttpClient client = ask();
  client.close();
  EXPECT_TRUE(is_noticed());
  reply_->put("two");  // to nobody
  reply_->close();
}

// Who only sends no more, as nc -N, gets the whole answer.
TEST_P(LeavingTest, ClientsThatStillReadAreAnswered) {
  serve_pending();
  HttpClient client = ask();
  client.send_no_more();
  std::this_thread::sleep_for(500ms);  // time for all looks at him
  EXPECT_FALSE(has_gone_);
  if (GetParam().streams) {
    reply_->put("two");
    reply_->close();
    EXPECT_TRUE(client.reads("two"));
    EXPECT_TRUE(client.reads("\r\n0\r\n\r\n"));
  } else {
    reply_->finish({.status = 404, .body = "two"});
    const HttpAnswer answer = client.answer();
    EXPECT_EQ(answer.status, 404);
    EXPECT_EQ(answer.body, "two");
  }
  EXPECT_FALSE(has_gone_);
}

INSTANTIATE_TEST_SUITE_P(All, LeavingTest,
                         testing::Values(Leaving{}, Leaving{.streams = true}, Leaving{.more = "x"},
                                         Leaving{.streams = true, .more = "GET / HT"},
                                         Leaving{.more = std::string(300'000, 'x')},
                                         Leaving{.streams = true, .more = std::string(300'000, 'x')}));

// Requests that come before the answer to an earlier one, and then no more.
TEST_F(PendingTest, RequestsBehindRequestsAreAnsweredToo) {
  std::atomic<int> num_asked = 0;
  serve([&](const HttpRequest& request) -> HttpReply {
    if (++num_asked == 1) return reply_;
    return echo(request);
  });
  HttpClient client(port());
  client.ask("GET", "/");
  std::this_thread::sleep_for(20ms);
  for (int i = 0; i < 20; ++i) client.ask("POST", "/" + std::to_string(i), std::string(10'000, 'x'));
  client.send_no_more();
  std::this_thread::sleep_for(20ms);
  reply_->finish({.body = "first"});
  EXPECT_EQ(client.answer().body, "first");
  for (int i = 0; i < 20; ++i)
    EXPECT_EQ(client.answer().body, "POST /" + std::to_string(i) + " " + std::string(10'000, 'x')) << i;
  EXPECT_TRUE(client.is_closed());
}

TEST_F(PendingTest, OneReplyGoesOnWhereAnotherEnds) {
  const auto other = std::make_shared<PendingReply>();
  std::atomic<bool> has_gone = false;
  serve_pending();
  HttpClient client(port());
  client.ask("GET", "/");
  other->begin_stream({.content_type = "text/event-stream"});
  other->put("one");
  std::this_thread::sleep_for(20ms);
  other->on_abandon([&] { has_gone = true; });
  reply_->hand_over(other);
  EXPECT_TRUE(client.reads("one"));
  EXPECT_FALSE(reply_->is_abandoned() && has_gone);
  client.close();
  for (int i = 0; i < 2000 && !has_gone; ++i) std::this_thread::sleep_for(5ms);
  EXPECT_TRUE(has_gone);
  const auto late = std::make_shared<PendingReply>();
  reply_->hand_over(late);
  EXPECT_TRUE(late->is_abandoned());
}

// A client that reads nothing of a stream keeps no more than a bit of it.
TEST_F(PendingTest, WhatIsNotReadIsBounded) {
  serve_pending();
  std::atomic<bool> has_gone = false;
  reply_->on_abandon([&] { has_gone = true; });
  HttpClient client(port());
  client.ask("GET", "/");
  reply_->begin_stream({.content_type = "text/event-stream"});
  const std::string piece(100'000, 'x');
  int num_put = 0;
  for (; num_put < 2000 && !has_gone; ++num_put) {
    reply_->put(piece);
    std::this_thread::sleep_for(10ms);
  }
  EXPECT_TRUE(has_gone);
  reply_->close();
}

TEST_F(PendingTest, TheServerEndsWithAnswersUnderWay) {
  serve_pending();
  std::atomic<bool> has_gone = false;
  reply_->on_abandon([&] { has_gone = true; });
  HttpClient client(port());
  client.ask("GET", "/");
  reply_->begin_stream({.content_type = "text/event-stream"});
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
