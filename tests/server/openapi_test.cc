// The server's description of itself against what it does.
#include <gmock/gmock.h>

#include <fstream>
#include <regex>
#include <set>

#include "cli/run_program.h"
#include "server/service_fixture.h"

namespace soliton {
namespace {

using nlohmann::json;
using testing::Contains;

const json& description() {
  static const json document = json::parse(read_text(SOLITON_SOURCE_DIR "/runtime/server/openapi.json"));
  return document;
}

const json& resolved(const json& value) {
  if (!value.contains("$ref")) return value;
  return description().at(json::json_pointer(value["$ref"].get<std::string>().substr(1)));
}

struct Operation {
  std::string method;  // "GET"
  std::string path;    // of this server
  json responses;
  bool needs_key;

  /// With what, where nothing is wrong.
  int answers() const { return responses.contains("200") ? 200 : 501; }
};

std::vector<Operation> operations() {
  std::vector<Operation> all;
  for (const auto& [path, methods] : description()["paths"].items()) {
    for (const auto& [method, operation] : methods.items()) {
      std::string upper = method;
      std::ranges::transform(upper, upper.begin(), [](unsigned char c) { return std::toupper(c); });
      all.push_back({upper,
                     std::regex_replace(std::regex_replace(path, std::regex("\\{model\\}"), "small"),
                                        std::regex("\\{\\w+\\}"), "kept"),
                     operation["responses"], !operation.contains("security")});
    }
  }
  return all;
}

std::string body_of(const Operation& operation) {
  const std::map<std::string, std::string> bodies = {
      {"/v1/chat/completions", R"({"messages": [{"role": "user", "content": "a"}], "max_tokens": 1})"},
      {"/v1/completions", R"({"prompt": "a", "max_tokens": 1})"},
      {"/v1/responses", R"({"input": "a", "max_output_tokens": 1})"},
      {"/v1/responses/input_tokens", R"({"input": "a"})"},
      {"/api/chat",
       R"({"messages": [{"role": "user", "content": "a"}], "stream": false, "options": {"num_predict": 1}})"},
      {"/api/generate", R"({"prompt": "a", "stream": false, "options": {"num_predict": 1}})"},
      {"/api/show", R"({"model": "any"})"},
      {"/v1/embeddings", R"({"input": "a"})"},
      {"/api/embed", R"({"input": "a"})"},
      {"/api/embeddings", R"({"prompt": "a"})"},
      {"/v1/messages", R"({"messages": [{"role": "user", "content": "a"}], "max_tokens": 1})"},
      {"/v1/messages/count_tokens", R"({"messages": [{"role": "user", "content": "a"}]})"},
      {"/apply-template", R"({"messages": [{"role": "user", "content": "a"}]})"},
      {"/tokenize", R"({"content": "a"})"},
      {"/detokenize", R"({"tokens": [5]})"}};
  return operation.method == "POST" ? bodies.at(operation.path) : "";
}

class OpenApi : public ServiceTest {
 protected:
  OpenApi() = default;
  explicit OpenApi(ServiceOptions options) : ServiceTest(std::move(options)) {}

  /// Whether the operation is said to end so, and what is said then has the form that is described.
  void expect_described(const Operation& operation, const HttpAnswer& answer, int status) {
    SCOPED_TRACE(operation.method + " " + operation.path + ": " + answer.body.substr(0, 200));
    EXPECT_EQ(answer.status, status);
    const std::string code = std::to_string(status);
    ASSERT_TRUE(operation.responses.contains(code));
    const json& response = resolved(operation.responses[code]);
    const std::string type = answer.headers.at("Content-Type");
    EXPECT_TRUE(response["content"].contains(type.substr(0, type.find(';')))) << type;
    if (response.contains("headers")) {
      for (const auto& [name, header] : response["headers"].items())
        EXPECT_TRUE(answer.headers.contains(name)) << name;
    }
    if (status == 200) return;
    codes_.insert(status);
    const json& error = resolved(response["content"]["application/json"]["schema"])["properties"]["error"];
    const json told = answer.json()["error"];
    if (error["type"] == "string") {
      EXPECT_TRUE(told.is_string());
      return;
    }
    for (const auto& [name, member] : error["properties"].items()) {
      if (member.contains("enum")) {
        EXPECT_THAT(member["enum"], Contains(told.at(name)));
      }
    }
  }
  void expect_described(const Operation& operation, int status, const std::string& body,
                        const std::string& headers) {
    expect_described(operation, ask(port(), operation.method, operation.path, body, headers), status);
  }

  /// For the paths that ask for one.
  void keep_response(const std::string& scope = "address 127.0.0.1") {
    service_->responses()->put("kept", {.scope = scope, .messages = "[]", .response = "{}"});
  }

  std::set<int> codes_;  // of refusals that came
};

TEST_F(OpenApi, IsServedAsItStands) {
  const HttpAnswer answer = ask(port(), "GET", "/openapi.json");
  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(answer.headers.at("Content-Type"), "application/json");
  EXPECT_EQ(answer.body, read_text(SOLITON_SOURCE_DIR "/runtime/server/openapi.json"));
}

TEST_F(OpenApi, NamesEveryPath) {
  std::set<std::string> described;
  for (const auto& [path, methods] : description()["paths"].items())
    described.insert(path.substr(0, path.find('{')));
  std::set<std::string> served;
  for (const Route& route : routes()) served.emplace(route.path);
  EXPECT_EQ(described, served);
}

TEST_F(OpenApi, EveryPathAnswers) {
  for (const Operation& operation : operations()) {
    keep_response();
    expect_described(operation, operation.answers(), body_of(operation), "");
  }
}

TEST_F(OpenApi, EveryRefusalOccurs) {
  const std::string large = "POST {} HTTP/1.1\r\nHost: localhost\r\nContent-Length: " +
                            std::to_string(HttpLimits().body_bytes + 1) + "\r\n\r\n";
  const std::string long_header = "X: " + std::string(HttpLimits().header_bytes, 'x') + "\r\n";
  HttpClient waiting(port());
  waiting.ask("POST", "/v1/completions",
              R"({"prompt": "a", "n": 100, "max_tokens": 300, "ignore_eos": true, "stream": true})");
  EXPECT_TRUE(waiting.reads("data: "));
  for (const Operation& operation : operations()) {
    const bool is_post = operation.method == "POST";
    expect_described(operation, 403, body_of(operation), "Origin: http://other\r\n");
    expect_described(operation, 431, body_of(operation), long_header);
    expect_described(operation, ask(port(), is_post ? "GET" : "PUT", operation.path), 405);
    if (operation.responses.contains("400")) expect_described(operation, 400, "5", "");
    if (is_post) {
      HttpClient client(port());
      client.send(fmt::format(fmt::runtime(large), operation.path));
      expect_described(operation, client.answer(), 413);
    }
    if (operation.responses.contains("429")) expect_described(operation, 429, body_of(operation), "");
    if (operation.path == "/v1/models/small")
      expect_described(operation, ask(port(), "GET", "/v1/models/other"), 404);
    if (operation.path == "/v1/responses/kept") expect_described(operation, 404, "", "");
  }
  waiting.close();
  service_->end();
  for (const Operation& operation : operations()) {
    if (operation.responses.contains("503")) expect_described(operation, 503, body_of(operation), "");
  }
  // 401 is below; 500 is for what nobody has thought of.
  EXPECT_EQ(codes_, (std::set<int>{400, 403, 404, 405, 413, 429, 431, 503}));
}

class GuardedOpenApi : public OpenApi {
 protected:
  GuardedOpenApi() : OpenApi({.model = "small", .api_key = "secret", .origins = {}, .hosts = {}}) {}
};

TEST_F(GuardedOpenApi, SaysWhoNeedsTheKey) {
  for (const Operation& operation : operations()) {
    keep_response("key");
    const int answers = operation.answers();
    expect_described(operation, operation.needs_key ? 401 : answers, body_of(operation), "");
    expect_described(operation, answers, body_of(operation), "Authorization: Bearer secret\r\n");
  }
}

// ---- Members of requests

struct Member {
  std::string name;
  json schema;
};

/// Those of a request, with those of what it is made of.
std::vector<Member> members_of(const std::string& schema) {
  std::vector<Member> members;
  const auto add = [&](const json& properties) {
    for (const auto& [name, member] : properties.items()) members.push_back({name, member});
  };
  const json& request = description()["components"]["schemas"][schema];
  add(request["properties"]);
  for (const json& part : request["allOf"]) {
    if (part.contains("$ref")) add(resolved(part)["properties"]);
  }
  return members;
}

struct Request {
  ApiKind kind;
  const char* schema;
  json whole;
};

const std::vector<Request> kRequests = {
    {ApiKind::kChat, "ChatRequest",
     json::parse(R"({"messages": [{"role": "user", "content": "a"}], "logprobs": true})")},
    {ApiKind::kCompletion, "CompletionRequest", {{"prompt", "a"}}}};

/// The member that is refused; empty if the body is taken.
std::string refused(const Request& request, const std::string& name, const json& value) {
  json body = request.whole;
  body[name] = value;
  try {
    parse_api_request(request.kind, body.dump(), {});
    return {};
  } catch (const ApiError& error) {
    return error.param();
  }
}

TEST(OpenApiMembers, AreKnownAndReadStrictly) {
  for (const Request& request : kRequests) {
    const std::vector<Member> members = members_of(request.schema);
    EXPECT_GT(members.size(), 20u);
    for (const Member& member : members) {
      const bool takes_lists = member.schema.dump().find("\"array\"") != std::string::npos;
      EXPECT_EQ(refused(request, member.name, takes_lists ? json(5) : json::array({json::array()})),
                member.name);
      if (request.whole.contains(member.name)) continue;
      EXPECT_EQ(refused(request, member.name, nullptr), "") << member.name;
    }
  }
}

TEST(OpenApiMembers, HaveTheBoundsThatAreDescribed) {
  int num_bounds = 0;
  for (const Request& request : kRequests) {
    for (const auto& [name, schema] : members_of(request.schema)) {
      if (!schema.contains("minimum")) continue;
      ++num_bounds;
      EXPECT_EQ(refused(request, name, schema["minimum"]), "") << name;
      EXPECT_EQ(refused(request, name, schema["maximum"]), "") << name;
      EXPECT_EQ(refused(request, name, schema["minimum"].get<double>() - 1), name);
      if (schema["maximum"].is_number_integer()) {
        EXPECT_EQ(refused(request, name, schema["minimum"].get<int64_t>() - 1), name);
        EXPECT_EQ(refused(request, name, schema["maximum"].get<int64_t>() + 1), name);
      } else {
        EXPECT_EQ(refused(request, name, schema["maximum"].get<double>() + 1), name);
      }
    }
  }
  EXPECT_GE(num_bounds, 18);
}

/// Names of all members that the description knows anywhere.
void collect_names(const json& value, std::set<std::string>& names) {
  if (value.is_object() && value.contains("properties") && value["properties"].is_object()) {
    for (const auto& [name, member] : value["properties"].items()) names.insert(name);
  }
  if (!value.is_structured()) return;
  for (const json& each : value) collect_names(each, names);
}

// Whoever teaches the readers a further member is reminded to describe it.
TEST(OpenApiMembers, AreAllThatTheReadersAskFor) {
  std::set<std::string> described;
  collect_names(description()["components"]["schemas"], described);
  collect_names(description()["paths"], described);
  std::set<std::string> asked;
  const std::regex member(R"re((?:\[|is_given\(|contains\()"(\w+)"[\])])re");
  const std::regex list(R"re(for \(const char\* name\s*:\s*\{([^}]*)\})re");
  const std::regex name(R"re("(\w+)")re");
  for (const char* file : {"api_request.cc", "chat_messages.cc", "token_choice.cc", "answer_grammar.cc",
                           "calls/tool_request.cc", "llama/llama.cc", "anthropic/messages_request.cc",
                           "responses/responses_request.cc", "ollama/ollama_request.cc"}) {
    const std::string text = read_text(std::string(SOLITON_SOURCE_DIR "/runtime/server/") + file);
    for (std::sregex_iterator at(text.begin(), text.end(), member), end; at != end; ++at)
      asked.insert((*at)[1]);
    for (std::sregex_iterator at(text.begin(), text.end(), list), end; at != end; ++at) {
      const std::string names = (*at)[1];
      for (std::sregex_iterator in(names.begin(), names.end(), name); in != end; ++in) asked.insert((*in)[1]);
    }
  }
  EXPECT_GT(asked.size(), 40u);
  for (const std::string& each : asked)
    EXPECT_TRUE(described.contains(each)) << each << " is not in openapi.json";
}

}  // namespace
}  // namespace soliton
