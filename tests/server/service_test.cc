// OpenAI's API over HTTP, on a model of 50 tokens in emulation whose every letter is one.
#include <gmock/gmock.h>

#include <set>

#include "server/service_fixture.h"

namespace soliton {
namespace {

using nlohmann::json;
using testing::AllOf, testing::HasSubstr, testing::Not, testing::StartsWith;

TEST_F(ServiceTest, CompletesAsTheEngineDecodes) {
  const json answer = complete({{"prompt", "once upon"}, {"max_tokens", 12}, {"ignore_eos", true}});
  EXPECT_EQ(answer["object"], "text_completion");
  EXPECT_EQ(answer["model"], "small");
  EXPECT_EQ(answer["choices"][0]["finish_reason"], "length");
  EXPECT_EQ(answer["usage"]["prompt_tokens"], 9);
  EXPECT_EQ(answer["usage"]["completion_tokens"], 12);
  EXPECT_EQ(answer["usage"]["total_tokens"], 21);
  KernelUnderTest alone("micro-2-all", kSmallContext);
  const std::vector<int> prompt = text_->tokenizer.encode("once upon");
  const DecodeResult expected = alone.engine().decode({.tokens = prompt, .max_tokens = 12});
  EXPECT_EQ(answer["choices"][0]["text"], text_->tokenizer.decode(expected.tokens, true));
}

TEST_F(ServiceTest, PromptsComeAsTextTokensAndSeveral) {
  const json text = complete({{"prompt", "abc"}, {"max_tokens", 4}});
  const json tokens = complete({{"prompt", text_->tokenizer.encode("abc")}, {"max_tokens", 4}});
  EXPECT_EQ(text["choices"], tokens["choices"]);
  const json several = complete({{"prompt", {"xyz", "abc"}}, {"max_tokens", 4}, {"n", 2}, {"echo", true}});
  ASSERT_EQ(several["choices"].size(), 4u);
  for (size_t i = 0; i < 4; ++i) EXPECT_EQ(several["choices"][i]["index"], i);
  EXPECT_EQ(several["choices"][3]["text"], "abc" + text["choices"][0]["text"].get<std::string>());
  EXPECT_EQ(several["usage"]["prompt_tokens"], 6);
}

TEST_F(ServiceTest, SeedsDrawTheSameAgain) {
  const json body = {{"prompt", "abc"}, {"max_tokens", 10}, {"temperature", 1}, {"seed", 5}, {"n", 3}};
  const json first = complete(body);
  EXPECT_EQ(first["choices"], complete(body)["choices"]);
  std::set<std::string> texts;
  for (const json& choice : first["choices"]) texts.insert(choice["text"].get<std::string>());
  EXPECT_EQ(texts.size(), 3u);
}

TEST_F(ServiceTest, TokensCanBeForbidden) {
  json body = {{"prompt", "abc"}, {"max_tokens", 12}, {"logprobs", 0}, {"ignore_eos", true}};
  const auto ids = [&](const json& answer) {
    std::vector<std::string> texts = answer["choices"][0]["logprobs"]["tokens"];
    return texts;
  };
  const std::vector<std::string> plain = ids(complete(body));
  const int first = text_->tokenizer.encode(plain[0])[0];
  body["logit_bias"] = {{std::to_string(first), -100}};
  EXPECT_THAT(ids(complete(body)), testing::Not(testing::Contains(plain[0])));
  const std::vector<int> two = text_->tokenizer.encode("qx");
  body["logit_bias"] = {{std::to_string(two[0]), 100}, {std::to_string(two[1]), 100}, {"3", 0}};
  EXPECT_THAT(ids(complete(body)), testing::Each(testing::AnyOf("q", "x")));
  body["logit_bias"][std::to_string(two[0])] = -100;
  EXPECT_EQ(complete(body)["choices"][0]["text"], std::string(12, 'x'));
  for (const json& bias : {json{{"50", 100}}, json{{"7", 100}, {"007", -100}}}) {
    body["logit_bias"] = bias;
    const HttpAnswer refusal = post("/v1/completions", body);
    EXPECT_EQ(refusal.status, 400);
    EXPECT_EQ(refusal.json()["error"]["param"], "logit_bias");
  }
}

TEST_F(ServiceTest, LogitsAreAdjusted) {
  json body = {{"prompt", "abc"}, {"max_tokens", 12}, {"ignore_eos", true}, {"logprobs", 1}};
  const json plain = complete(body)["choices"][0];
  const int favoured = text_->tokenizer.encode("q")[0];
  body["logit_bias"] = {{std::to_string(favoured), 60}};
  const json biased = complete(body)["choices"][0];
  EXPECT_EQ(biased["text"], std::string(12, 'q'));
  // What is told of it is the model's own.
  EXPECT_LT(biased["logprobs"]["token_logprobs"][0], biased["logprobs"]["top_logprobs"][0].begin().value());
  EXPECT_EQ(biased["logprobs"]["top_logprobs"][0], plain["logprobs"]["top_logprobs"][0]);
  body.erase("logit_bias");
  body["presence_penalty"] = 2;
  EXPECT_NE(complete(body)["choices"][0]["text"], plain["text"]);
  body["logit_bias"] = {{"50", 1}};
  EXPECT_EQ(post("/v1/completions", body).json()["error"]["param"], "logit_bias");
  const json of_grammar = chat({{"grammar", "root ::= [a-c]"},
                                {"logit_bias", {{std::to_string(text_->tokenizer.encode("c")[0]), 100}}}});
  EXPECT_EQ(of_grammar["choices"][0]["message"]["content"], "c");
}

// Of each prompt those of the best mean logprob, the best one first; all that was generated is counted.
TEST_F(ServiceTest, TellsTheBestOfSeveral) {
  json body = {
      {"prompt", {"abc", "xy"}}, {"max_tokens", 5}, {"temperature", 1.5}, {"seed", 5}, {"ignore_eos", true}};
  json all = body;
  all["n"] = 3;
  all["logprobs"] = 0;
  std::vector<json> choices = complete(all)["choices"];
  ASSERT_EQ(choices.size(), 6u);
  const auto mean = [](const json& choice) {
    double sum = 0;
    for (const json& logprob : choice["logprobs"]["token_logprobs"]) sum += logprob.get<double>();
    return sum;
  };
  for (const auto half : {choices.begin(), choices.begin() + 3})
    std::stable_sort(half, half + 3, [&](const json& a, const json& b) { return mean(a) > mean(b); });
  body["n"] = 2;
  body["best_of"] = 3;
  const json best = complete(body);
  ASSERT_EQ(best["choices"].size(), 4u);
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(best["choices"][i]["index"], i);
    EXPECT_EQ(best["choices"][i]["text"], choices[i < 2 ? i : i + 1]["text"]);
    EXPECT_TRUE(best["choices"][i]["logprobs"].is_null());
  }
  EXPECT_EQ(best["usage"]["completion_tokens"], 30);
}

TEST_F(ServiceTest, StreamsWhatItWouldAnswer) {
  const json whole = chat({{"max_tokens", 10}, {"logprobs", true}, {"top_logprobs", 2}});
  const std::vector<json> chunks =
      stream("/v1/chat/completions", {{"max_tokens", 10},
                                      {"logprobs", true},
                                      {"top_logprobs", 2},
                                      {"messages", json::array({{{"role", "user"}, {"content", "hello"}}})},
                                      {"stream_options", {{"include_usage", true}}}});
  EXPECT_EQ(chunks[0]["choices"][0]["delta"]["role"], "assistant");
  std::string text;
  json logprobs = json::array();
  for (size_t i = 0; i + 1 < chunks.size(); ++i) {
    EXPECT_EQ(chunks[i]["object"], "chat.completion.chunk");
    EXPECT_TRUE(chunks[i]["usage"].is_null());
    const json& choice = chunks[i]["choices"][0];
    text += choice["delta"].value("content", "");
    if (!choice["logprobs"].is_null()) {
      for (const json& entry : choice["logprobs"]["content"]) logprobs.push_back(entry);
    }
  }
  EXPECT_EQ(text, whole["choices"][0]["message"]["content"]);
  EXPECT_EQ(logprobs, whole["choices"][0]["logprobs"]["content"]);
  EXPECT_EQ(chunks[chunks.size() - 2]["choices"][0]["finish_reason"], whole["choices"][0]["finish_reason"]);
  EXPECT_EQ(chunks.back()["usage"]["completion_tokens"], whole["usage"]["completion_tokens"]);
  EXPECT_TRUE(chunks.back()["choices"].empty());
}

TEST_F(ServiceTest, LogprobsAreThoseOfTheModel) {
  const json answer = complete({{"prompt", "abc"}, {"max_tokens", 6}, {"logprobs", 3}, {"ignore_eos", true}});
  const json& logprobs = answer["choices"][0]["logprobs"];
  KernelUnderTest alone("micro-2-all", kSmallContext);
  const std::vector<int> prompt = text_->tokenizer.encode("abc");
  const DecodeResult expected =
      alone.engine().decode({.tokens = prompt, .max_tokens = 6, .want_logprobs = true});
  ASSERT_EQ(logprobs["token_logprobs"].size(), 6u);
  for (size_t i = 0; i < 6; ++i) {
    EXPECT_NEAR(logprobs["token_logprobs"][i].get<double>(), expected.logprobs[i], 1e-2);
    EXPECT_EQ(logprobs["top_logprobs"][i].size(), 3u);
    double most = -100;
    for (const auto& [token, logprob] : logprobs["top_logprobs"][i].items())
      most = std::max(most, logprob.get<double>());
    EXPECT_NEAR(most, logprobs["token_logprobs"][i].get<double>(), 1e-4);  // greedy: the best one
  }
}

TEST_F(ServiceTest, StopTextsEndAnswersAndAreNotShown) {
  const json whole = complete({{"prompt", "abc"}, {"max_tokens", 20}, {"ignore_eos", true}});
  const std::string text = whole["choices"][0]["text"];
  ASSERT_GT(text.size(), 6u);
  const std::string stop = text.substr(4, 2);
  const json cut = complete({{"prompt", "abc"}, {"max_tokens", 20}, {"ignore_eos", true}, {"stop", stop}});
  EXPECT_EQ(cut["choices"][0]["text"], text.substr(0, text.find(stop)));
  EXPECT_EQ(cut["choices"][0]["finish_reason"], "stop");
  EXPECT_LT(cut["usage"]["completion_tokens"], 20);
}

TEST_F(ServiceTest, StopTokensEndAnswersTooAndAreNotShown) {
  json body = {{"prompt", "abc"}, {"max_tokens", 12}, {"ignore_eos", true}, {"logprobs", 0}};
  const json whole = complete(body)["choices"][0];
  const std::string stop = whole["logprobs"]["tokens"][5];
  body["stop_token_ids"] = text_->tokenizer.encode(stop);
  const json cut = complete(body);
  const std::string text = whole["text"];
  EXPECT_EQ(cut["choices"][0]["text"], text.substr(0, text.find(stop)));
  EXPECT_EQ(cut["choices"][0]["finish_reason"], "stop");
  EXPECT_LT(cut["usage"]["completion_tokens"], 12);
  body["stop_token_ids"] = {50};
  EXPECT_EQ(post("/v1/completions", body).json()["error"]["param"], "stop_token_ids");
}

TEST_F(ServiceTest, ChatsUseTheTemplateAndTheCache) {
  const std::string text(100, 'a');
  const json first = chat({{"max_tokens", 4}}, text);
  const size_t num_prompt = std::string("user: \nassistant:").size() + 100;
  EXPECT_EQ(first["usage"]["prompt_tokens"], num_prompt);
  EXPECT_EQ(first["choices"][0]["message"]["role"], "assistant");
  EXPECT_EQ(chat({{"max_tokens", 4}}, text)["usage"]["prompt_tokens_details"]["cached_tokens"],
            num_prompt - 1);
  const json tools = {{{"type", "function"}, {"function", {{"name", "add"}}}}};
  EXPECT_EQ(chat({{"max_tokens", 1}, {"tools", tools}}, text)["usage"]["prompt_tokens"], num_prompt + 4);
  // A message is text, also where it has the text of a special token.
  EXPECT_EQ(chat({{"max_tokens", 1}}, "</s>")["usage"]["prompt_tokens"],
            num_prompt - 100 + 1);  // of which only s is a token
}

TEST_F(ServiceTest, ErrorsAreOpenAis) {
  const auto error = [&](const std::string& path, const json& body, int status) {
    const HttpAnswer answer = post(path, body);
    EXPECT_EQ(answer.status, status) << answer.body;
    return answer.json()["error"];
  };
  const json temperature = error("/v1/completions", {{"prompt", "a"}, {"temperature", 101}}, 400);
  EXPECT_EQ(temperature["param"], "temperature");
  EXPECT_EQ(temperature["type"], "invalid_request_error");
  EXPECT_EQ(error("/v1/completions", {{"prompt", "a"}, {"max_tokens", 400}}, 400)["code"],
            "context_length_exceeded");
  EXPECT_EQ(error("/v1/completions", {{"prompt", std::string(400, 'a')}}, 400)["code"],
            "context_length_exceeded");
  EXPECT_EQ(error("/v1/completions", {{"prompt", ""}}, 400)["param"], "prompt");
  const json unknown = error("/v1/completions", {{"prompt", {1, 1325}}, {"echo", true}}, 400);
  EXPECT_EQ(unknown["param"], "prompt");
  EXPECT_THAT(unknown["message"].get<std::string>(), HasSubstr("expected tokens from 0 to"));
  error("/nothing", {}, 404);
  EXPECT_EQ(ask(port(), "GET", "/v1/completions").status, 405);
  EXPECT_EQ(ask(port(), "GET", "/v1/completions").headers.at("Allow"), "POST");
  EXPECT_EQ(ask(port(), "GET", "/v1/models/other").status, 404);
  EXPECT_EQ(
      post("/v1/chat/completions", {{"messages", json::array({{{"role", "user"}, {"content", 1}}})}}).status,
      400);
}

TEST_F(ServiceTest, TellsOfItself) {
  EXPECT_EQ(ask(port(), "GET", "/health").json()["status"], "ok");
  EXPECT_EQ(ask(port(), "GET", "/v1/models").json()["data"][0]["id"], "small");
  EXPECT_EQ(ask(port(), "GET", "/v1/models/small").json()["max_model_len"], kSmallContext);
  const json tokens = post("/tokenize", {{"content", "a b"}}).json();
  EXPECT_EQ(tokens["tokens"], json(text_->tokenizer.encode("a b")));
  EXPECT_EQ(tokens["count"], 3);
  for (const char* name : {"content", "prompt"}) {
    json text = {{name, "</s>a<s>"}, {"add_special_tokens", false}};
    EXPECT_EQ(post("/tokenize", text).json()["tokens"], json(text_->tokenizer.encode("</s>a<s>", true)))
        << name;
    text["parse_special"] = false;
    EXPECT_EQ(post("/tokenize", text).json()["tokens"], json(text_->tokenizer.encode("</s>a<s>"))) << name;
  }
  EXPECT_EQ(post("/tokenize", {{"content", "a"}, {"parse_special", 1}}).status, 400);
  EXPECT_EQ(post("/detokenize", {{"tokens", tokens["tokens"]}}).json()["content"], "a b");
  EXPECT_EQ(post("/detokenize", {{"tokens", {-1}}}).status, 400);
  const json messages = json::array({{{"role", "user"}, {"content", "a"}}});
  EXPECT_EQ(post("/tokenize", {{"messages", messages}}).json()["count"], 18);
  EXPECT_EQ(post("/tokenize", {{"messages", messages}, {"add_special", 5}}).status, 400);
  EXPECT_EQ(post("/tokenize", {{"messages", messages}, {"content", false}}).status, 400);
  EXPECT_EQ(post("/tokenize", {{"messages", json::array()}, {"content", "a"}}).status, 400);
  EXPECT_EQ(post("/tokenize", {{"messages", {{{"role", 5}, {"content", "a"}}}}}).status, 400);
  complete({{"prompt", "a"}, {"max_tokens", 2}});
  const std::string metrics = ask(port(), "GET", "/metrics").body;
  EXPECT_THAT(metrics, HasSubstr("soliton_generated_tokens_total 2\n"));
  EXPECT_THAT(metrics, HasSubstr("soliton_http_requests_total{path=\"/v1/completions\",status=\"200\"} 1\n"));
}

TEST_F(ServiceTest, ClientsThatGoAwayAreCancelled) {
  HttpClient client(port());
  client.ask("POST", "/v1/completions",
             R"({"prompt": "abc", "max_tokens": 300, "stream": true, "ignore_eos": true})");
  EXPECT_TRUE(client.reads("data: "));
  client.close();
  while (!scheduler_->is_idle()) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  EXPECT_EQ(metrics_.value(Metrics::Counter::kCancelled), 1u);
}

TEST_F(ServiceTest, AFullQueueIsToldAndPasses) {
  std::vector<HttpClient> clients;
  int num_refused = 0;
  for (int i = 0; i < 40; ++i) {
    clients.emplace_back(port());
    clients.back().ask("POST", "/v1/completions",
                       R"({"prompt": "abc", "max_tokens": 10, "ignore_eos": true})");
  }
  for (HttpClient& client : clients) {
    const HttpAnswer answer = client.answer();
    EXPECT_TRUE(answer.status == 200 || answer.status == 429) << answer.body;
    if (answer.status != 429) continue;
    ++num_refused;
    EXPECT_GE(std::stoi(answer.headers.at("Retry-After")), 1);
    EXPECT_EQ(answer.json()["error"]["type"], "rate_limit_error");
  }
  EXPECT_GT(num_refused, 0);
  EXPECT_LT(num_refused, 40);
}

TEST_F(ServiceTest, ContinuesTheLastMessage) {
  const auto asked = [&](const std::string& last, json members) {
    members["messages"] = {{{"role", "user"}, {"content", "hi"}}, {{"role", "assistant"}, {"content", last}}};
    members["max_tokens"] = 4;
    return chat(members);
  };
  const json continued = asked("so be it", {{"continue_final_message", true}});
  const std::string prompt = "user: hi\nassistant: so be it";
  EXPECT_EQ(continued["usage"]["prompt_tokens"], prompt.size());
  EXPECT_EQ(continued["choices"][0]["message"]["content"],
            complete({{"prompt", prompt}, {"max_tokens", 4}})["choices"][0]["text"]);
  EXPECT_EQ(asked("so", {{"add_generation_prompt", false}})["usage"]["prompt_tokens"],
            std::string("user: hi\nassistant: so\n").size());
  const json prefix = {{{"role", "user"}, {"content", "hi"}},
                       {{"role", "assistant"}, {"content", "so be it"}, {"prefix", true}}};
  EXPECT_EQ(chat({{"messages", prefix}, {"max_tokens", 4}})["choices"][0]["message"]["content"],
            continued["choices"][0]["message"]["content"]);
  // An empty one cannot be told from the template's own text.
  const HttpAnswer empty =
      post("/v1/chat/completions",
           {{"continue_final_message", true}, {"messages", {{{"role", "assistant"}, {"content", ""}}}}});
  EXPECT_EQ(empty.status, 400);
  EXPECT_THAT(empty.body, HasSubstr("writes the last message as it is"));
}

// The template's own words, but not where its file lies.
TEST_F(ServiceTest, SaysWhatTheTemplateSays) {
  const HttpAnswer answer =
      post("/v1/chat/completions", {{"messages", json::array({{{"role", "user"}, {"content", "a"}}})},
                                    {"chat_template_kwargs", {{"x", 18446744073709551615u}}}});
  EXPECT_EQ(answer.status, 400);
  const json error = answer.json()["error"];
  EXPECT_EQ(error["param"], "messages");
  EXPECT_THAT(error["message"].get<std::string>(),
              AllOf(StartsWith("messages: expected what the chat template takes, got: "), Not(HasSubstr("/")),
                    Not(HasSubstr("jinja")), HasSubstr("18446744073709551615")));
  const HttpAnswer in_a_line =
      post("/v1/chat/completions", {{"messages", json::array({{{"role", "user"}, {"content", "a"}}})},
                                    {"chat_template_kwargs", {{"tools", 7}}}});
  EXPECT_EQ(in_a_line.status, 400);
  EXPECT_THAT(in_a_line.json()["error"]["message"].get<std::string>(),
              AllOf(HasSubstr("chat template:2: "), Not(HasSubstr("/")), Not(HasSubstr("jinja"))));
}

// Whatever takes long is done by other threads than those that answer this.
TEST_F(ServiceTest, AnswersWhileRequestsAreRead) {
  const std::string long_text = json({{"content", std::string(1 << 19, 'a')}}).dump();
  std::vector<HttpClient> clients;
  for (int i = 0; i < 8; ++i) {
    clients.emplace_back(port());
    clients.back().ask("POST", "/tokenize", long_text);
  }
  while (service_->is_idle()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  for (const char* path : {"/health", "/metrics", "/v1/models", "/"}) {
    EXPECT_EQ(ask(port(), "GET", path).status, 200);
    EXPECT_FALSE(service_->is_idle()) << path;
  }
  clients.clear();
  while (!service_->is_idle()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

TEST_F(ServiceTest, EndsStreamsCleanly) {
  HttpClient client(port());
  client.ask("POST", "/v1/completions",
             R"({"prompt": "abc", "max_tokens": 300, "stream": true, "ignore_eos": true})");
  EXPECT_TRUE(client.reads("data: "));
  service_->end();
  EXPECT_EQ(ask(port(), "GET", "/health").status, 503);
  EXPECT_EQ(post("/v1/completions", {{"prompt", "a"}}).status, 503);
  scheduler_->stop();
  const HttpAnswer answer = client.answer();
  EXPECT_THAT(answer.body, HasSubstr("\"code\":\"shutdown\""));
  EXPECT_EQ(answer.events().back(), "[DONE]");
}

TEST_F(ServiceTest, AStalledKernelIsNamed) {
  kernel_.engine().set_num_ctas(1);
  const HttpAnswer answer = post("/v1/completions", {{"prompt", "abc"}, {"max_tokens", 3}});
  EXPECT_EQ(answer.status, 503);
  EXPECT_THAT(answer.json()["error"]["message"], HasSubstr("stalled"));
  EXPECT_EQ(ask(port(), "GET", "/health").status, 503);
}

// A page of a name that points here (DNS rebinding) is of the same origin as the server, as its browser sees it.
TEST_F(ServiceTest, IsAskedByItsOwnNamesOnly) {
  const auto status_of = [&](const std::string& request_line, const std::string& headers) {
    HttpClient client(port());
    client.send(request_line + " HTTP/1.1\r\n" + headers + "Content-Length: 0\r\n\r\n");
    return client.answer().status;
  };
  const std::string rebound = "Host: rebound.example:8080\r\nOrigin: http://rebound.example:8080\r\n";
  for (const char* line : {"GET /v1/models", "GET /metrics", "GET /health", "GET /", "POST /v1/completions",
                           "OPTIONS /v1/completions"}) {
    EXPECT_EQ(status_of(line, rebound), 403) << line;
    EXPECT_EQ(status_of(line, "Host: rebound.example\r\n"), 403)
        << line;  // as a page's GET within its origin
  }
  for (const char* host : {"127.0.0.1", "[::1]:80", "localhost:8080", "model.example"}) {
    const std::string own = "Host: " + std::string(host) + "\r\n";
    EXPECT_EQ(status_of("GET /v1/models", own), 200) << host;
    EXPECT_EQ(status_of("GET /v1/models", own + "Origin: http://" + host + "\r\n"), 200) << host;
    EXPECT_EQ(status_of("GET /v1/models", own + "Origin: http://rebound.example\r\n"), 403) << host;
  }
  EXPECT_EQ(ask(port(), "GET", "/v1/models").status, 200);
}

class GuardedServiceTest : public ServiceTest {
 protected:
  GuardedServiceTest() : ServiceTest({.model = "small", .api_key = "secret", .origins = {"http://page"}}) {}
};

TEST_F(GuardedServiceTest, WantsTheKey) {
  EXPECT_EQ(ask(port(), "GET", "/health").status, 200);
  EXPECT_EQ(ask(port(), "GET", "/v1/models").status, 401);
  for (const char* key : {"Bearer secre", "Bearer secrets", "Bearer ", "secret", "Bearer secreT"}) {
    EXPECT_EQ(ask(port(), "GET", "/v1/models", "", "Authorization: " + std::string(key) + "\r\n").status, 401)
        << key;
  }
  for (const char* key : {"Bearer secret", "bearer secret", "BEARER  secret"}) {
    EXPECT_EQ(ask(port(), "GET", "/v1/models", "", "Authorization: " + std::string(key) + "\r\n").status, 200)
        << key;
  }
}

TEST_F(GuardedServiceTest, PagesOfOtherOriginsAskOnlyIfAllowed) {
  const std::string key = "Authorization: Bearer secret\r\n";
  HttpAnswer answer = ask(port(), "GET", "/v1/models", "", key + "Origin: http://page\r\n");
  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(answer.headers.at("Access-Control-Allow-Origin"), "http://page");
  answer = ask(port(), "GET", "/v1/models", "", key + "Origin: http://other\r\n");
  EXPECT_EQ(answer.status, 403);
  EXPECT_FALSE(answer.headers.contains("Access-Control-Allow-Origin"));
  EXPECT_EQ(ask(port(), "GET", "/v1/models", "", key + "Origin: http://localhost\r\n").status,
            200);  // its own
  answer = ask(port(), "OPTIONS", "/v1/completions", "",
               "Origin: http://page\r\nAccess-Control-Request-Headers: authorization\r\n");
  EXPECT_EQ(answer.status, 204);
  EXPECT_EQ(answer.headers.at("Access-Control-Allow-Headers"), "authorization");
  answer = ask(port(), "OPTIONS", "/v1/completions", "", "Origin: http://other\r\n");
  EXPECT_FALSE(answer.headers.contains("Access-Control-Allow-Methods"));
}

}  // namespace
}  // namespace soliton
