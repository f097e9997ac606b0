// A server of OpenAI's API in this process, on a model of 50 tokens in emulation whose every letter is one.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "kernel/kernel_fixture.h"
#include "runtime/server/http_server.h"
#include "runtime/server/service.h"
#include "server/http_client.h"
#include "temporary_folder.h"

namespace soliton {

inline constexpr int kSmallContext = 320;
inline constexpr const char* kSmallTemplate =
    "{% for message in messages %}{{ message.role }}: {{ message.content }}\n{% endfor %}"
    "{% if tools %}{{ tools[0].function.name }}\n{% endif %}{% if add_generation_prompt %}assistant:{% endif "
    "%}";

/// With calls as Llama writes them, for which kJsonSigns are enough.
inline constexpr const char* kCallingTemplate =
    "{% for message in messages %}{{ message.role }}: {% if message.tool_calls %}{% for call in "
    "message.tool_calls %}"
    "{\"name\": \"{{ call.function.name }}\", \"parameters\": {{ call.function.arguments | tojson }}}{% "
    "endfor %}"
    "{% else %}{{ message.content }}{% endif %}\n{% endfor %}"
    "{% for tool in tools or [] %}{{ tool.function.name }}\n{% endfor %}{% if add_generation_prompt "
    "%}assistant:{% endif %}";

/// What the tokens of the small model write, beside small letters and digits; a space is Ġ and a line's end Ċ.
inline const std::vector<std::string> kSmallSigns = {"Ġ", "Ċ", ".", ",", ":", "!", "?", "-", "_"};
/// The same of one that can write JSON, and has fewer special tokens.
inline const std::vector<std::string> kJsonSigns = {"Ġ",  "Ċ", "{", "}", "[", "]",
                                                    "\"", ":", ",", ".", "-", "+"};

/// Special tokens, as many as there is room for in the model's 50, and then one for each sign, small letter and digit.
inline nlohmann::json small_tokenizer(const std::vector<std::string>& signs = kSmallSigns,
                                      std::vector<std::string> specials = {"<s>", "</s>", "<x>"}) {
  specials.resize(std::min<size_t>(specials.size(), 50 - 26 - 10 - signs.size()));
  nlohmann::json vocabulary = nlohmann::json::object();
  nlohmann::json added = nlohmann::json::array();
  for (const std::string& special : specials) {
    const size_t id = vocabulary.size();
    vocabulary[special] = id;
    added.push_back({{"id", id},
                     {"content", special},
                     {"single_word", false},
                     {"lstrip", false},
                     {"rstrip", false},
                     {"normalized", false},
                     {"special", true}});
  }
  std::vector<std::string> letters = signs;
  for (char c = 'a'; c <= 'z'; ++c) letters.push_back(std::string(1, c));
  for (char c = '0'; c <= '9'; ++c) letters.push_back(std::string(1, c));
  for (const std::string& letter : letters) vocabulary.emplace(letter, vocabulary.size());
  const nlohmann::json byte_level = {
      {"type", "ByteLevel"}, {"add_prefix_space", false}, {"trim_offsets", true}, {"use_regex", true}};
  return {{"version", "1.0"},
          {"truncation", nullptr},
          {"padding", nullptr},
          {"added_tokens", added},
          {"normalizer", nullptr},
          {"pre_tokenizer", byte_level},
          {"post_processor", nullptr},
          {"decoder", byte_level},
          {"model",
           {{"type", "BPE"},
            {"dropout", nullptr},
            {"unk_token", nullptr},
            {"continuing_subword_prefix", nullptr},
            {"end_of_word_suffix", nullptr},
            {"fuse_unk", false},
            {"byte_fallback", false},
            {"vocab", vocabulary},
            {"merges", nlohmann::json::array()}}}};
}

/// A folder of the model that "micro-2-all" is a kernel of.
inline void write_small_model(const ModelFacts& facts, const TemporaryFolder& folder,
                              const nlohmann::json& tokenizer = small_tokenizer(),
                              const std::string& chat_template = kSmallTemplate) {
  write_hf_folder(random_weights(facts, kWeightSeed), facts, folder.path());
  folder.write("tokenizer.json", tokenizer.dump());
  folder.write("chat_template.jinja", chat_template);
}

/// A tokenizer with two of its tokens exchanged.
inline nlohmann::json exchanged(nlohmann::json tokenizer, const std::string& one, const std::string& other) {
  nlohmann::json& vocabulary = tokenizer["model"]["vocab"];
  std::swap(vocabulary[one], vocabulary[other]);
  for (nlohmann::json& added : tokenizer["added_tokens"])
    added["id"] = vocabulary[added["content"].get<std::string>()];
  return tokenizer;
}

inline ServiceOptions small_options() {
  return {.model = "small", .api_key = {}, .origins = {}, .hosts = {}};
}

class ServiceTest : public testing::Test {
 protected:
  using json = nlohmann::json;

  explicit ServiceTest(
      ServiceOptions options = {.model = "small", .api_key = {}, .origins = {}, .hosts = {"model.example"}},
      int max_waiting = 4, int num_pages = 40, const nlohmann::json& tokenizer = small_tokenizer(),
      const std::string& chat_template = kSmallTemplate)
      : kernel_("micro-2-all", kSmallContext, num_pages * kKvPageTokens) {
    write_small_model(kernel_.facts(), folder_, tokenizer, chat_template);
    Options model;
    model.model = folder_.path();
    text_.emplace(model);
    scheduler_.emplace(kernel_.engine(),
                       SchedulerOptions{.context = kSmallContext, .max_waiting = max_waiting}, metrics_);
    service_.emplace(*text_, *scheduler_, metrics_, std::move(options));
    server_.emplace(
        HttpServerOptions{}, [this](const HttpRequest& request) { return service_->answer(request); },
        Service::refuse, metrics_);
    scheduler_->start();
  }

  uint16_t port() const { return server_->port(); }
  HttpAnswer post(const std::string& path, const json& body, const std::string& headers = {}) {
    return ask(port(), "POST", path, body.dump(), headers);
  }
  json complete(json body) {
    body.emplace("temperature", 0);
    const HttpAnswer answer = post("/v1/completions", body);
    EXPECT_EQ(answer.status, 200) << answer.body;
    return answer.json();
  }
  json chat(json body, const std::string& text = "hello") {
    body.emplace("temperature", 0);
    body.emplace("messages", json::array({{{"role", "user"}, {"content", text}}}));
    const HttpAnswer answer = post("/v1/chat/completions", body);
    EXPECT_EQ(answer.status, 200) << answer.body;
    return answer.json();
  }
  std::vector<json> stream(const std::string& path, json body) {
    body["stream"] = true;
    body.emplace("temperature", 0);
    const HttpAnswer answer = post(path, body);
    EXPECT_EQ(answer.status, 200);
    EXPECT_EQ(answer.headers.at("Content-Type"), "text/event-stream");
    std::vector<std::string> events = answer.events();
    EXPECT_EQ(events.back(), "[DONE]");
    events.pop_back();
    std::vector<json> chunks;
    for (const std::string& event : events) chunks.push_back(json::parse(event));
    return chunks;
  }

  /// The whole answer, when it has come; no stream.
  static HttpResponse response_of(const HttpReply& reply) {
    constexpr std::chrono::seconds kMostTime{60};
    std::shared_ptr<PendingReply> pending = reply.pending;
    if (pending == nullptr) return reply.response;
    const auto limit = std::chrono::steady_clock::now() + kMostTime;
    while (std::chrono::steady_clock::now() < limit) {
      const PendingReply::News news = pending->take();
      if (news.response) return *news.response;
      if (news.other) pending = news.other;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    ADD_FAILURE() << "expected an answer, got none";
    return {};
  }

  KernelUnderTest kernel_;
  TemporaryFolder folder_;
  Metrics metrics_;
  std::optional<TextSide> text_;
  std::optional<Scheduler> scheduler_;
  std::optional<Service> service_;
  std::optional<HttpServer> server_;
};

/// A service that tests make with the tokenizer that they want.
class SmallService : public ServiceTest {
 public:
  explicit SmallService(const json& tokenizer, const std::string& chat_template)
      : ServiceTest(small_options(), 8, 40, tokenizer, chat_template) {}
  void TestBody() override {}
  using ServiceTest::chat;
  using ServiceTest::post;
  using ServiceTest::stream;
};

}  // namespace soliton
