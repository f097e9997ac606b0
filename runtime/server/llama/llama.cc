#include "runtime/server/llama/llama.h"

#include "runtime/server/service.h"

namespace soliton {
namespace {

using Json = nlohmann::ordered_json;

/// A text or messages, by whichever name.
std::vector<int32_t> tokens_of(const Service& service, const JsonView& body, const std::string& text) {
  for (const char* name :
       {"add_special", "add_special_tokens", "parse_special"}) {  // also where they say nothing
    if (!body[name].is_null()) body[name].boolean();
  }
  for (const char* name : {"content", "prompt"}) {
    if (!body[name].is_null()) body[name].string();
  }
  if (!body["messages"].is_null())
    return service.setup(parse_api_request(ApiKind::kChat, text, service.text().sampling)).prompts[0];
  const bool is_content = !body["content"].is_null();
  const JsonView flag = body[is_content ? "add_special" : "add_special_tokens"];
  const bool adds_special = flag.is_null() ? !is_content : flag.boolean();
  const JsonView parses = body["parse_special"];
  return service.prompt_of(body[is_content ? "content" : "prompt"].string(), adds_special,
                           parses.is_null() || parses.boolean());
}

bool is_set(const JsonView& flag) {
  return !flag.is_null() && flag.boolean();
}

}  // namespace

/// Text by llama.cpp's names ("content", "add_special") or vLLM's ("prompt", "add_special_tokens"), or messages. Special tokens
/// in a text are taken for such, as there, unless "parse_special" is false: no answer follows.
HttpReply answer_tokenize(Service& service, const HttpRequest& request, const HttpHeaders&) {
  try {
    const nlohmann::json document = parse_body(request.body);
    const JsonView body(document, kBodyName);
    const std::vector<int32_t> tokens = tokens_of(service, body, request.body);
    Json answer = {{"tokens", tokens}, {"count", tokens.size()}, {"max_model_len", service.context()}};
    const bool has_pieces = is_set(body["with_pieces"]);
    if (has_pieces) answer["tokens"] = Json::array();
    const bool has_texts = is_set(body["return_token_strs"]);
    for (const int32_t token : has_pieces || has_texts ? tokens : std::vector<int32_t>()) {
      const std::string& piece = service.text().tokenizer.piece(token);
      if (has_pieces) answer["tokens"].push_back({{"id", token}, {"piece", piece}});
      if (has_texts) answer["token_strs"].push_back(piece);
    }
    return HttpResponse{.body = one_line(answer)};
  } catch (const Error& error) {
    throw api_error_of(error, kBodyName);
  }
}

HttpReply answer_detokenize(Service& service, const HttpRequest& request, const HttpHeaders&) {
  try {
    const nlohmann::json document = parse_body(request.body);
    const JsonView list = JsonView(document, kBodyName)["tokens"];
    const Tokenizer& tokenizer = service.text().tokenizer;
    std::vector<int> tokens;
    for (size_t i = 0; i < list.array_size(); ++i)
      tokens.push_back(static_cast<int>(list[i].integer(0, tokenizer.vocabulary_size() - 1)));
    const std::string decoded = tokenizer.decode(tokens);
    return HttpResponse{.body = one_line({{"content", decoded}, {"prompt", decoded}})};
  } catch (const Error& error) {
    throw api_error_of(error, kBodyName);
  }
}

HttpReply answer_apply_template(Service& service, const HttpRequest& request, const HttpHeaders&) {
  const ApiRequest chat = parse_api_request(ApiKind::kChat, request.body, service.text().sampling);
  service.check_chat(chat);
  return HttpResponse{.body = one_line({{"prompt", service.render(chat).text}})};
}

HttpResponse tell_properties(Service& service, const HttpRequest&) {
  const Sampling& sampling = service.text().sampling;
  const Json params = {{"temperature", sampling.temperature},
                       {"top_k", sampling.top_k},
                       {"top_p", sampling.top_p},
                       {"min_p", sampling.min_p},
                       {"repeat_penalty", sampling.repeat_penalty}};
  return {.body =
              one_line({{"default_generation_settings", {{"n_ctx", service.context()}, {"params", params}}},
                        {"total_slots", service.max_rows()},
                        {"model_alias", service.model()},
                        {"model_path", service.model()},
                        {"modalities", {{"vision", false}, {"audio", false}}},
                        {"build_info", "soliton"}})};
}

HttpResponse tell_tokenizer(Service& service, const HttpRequest&) {
  const ServedText& text = service.text();
  const auto first = [&](const auto& ids) {
    return ids.begin() == ids.end() ? Json() : Json(text.tokenizer.piece(*ids.begin()));
  };
  return {.body = one_line({{"eos_token", first(text.stop_tokens)},
                            {"bos_token", first(text.tokenizer.prefix_ids())},
                            {"model_max_length", service.context()}})};
}

/// A slot is a row that a sample may have: any of those that run is as good as another.
HttpResponse tell_slots(Service& service, const HttpRequest&) {
  const int num_running = service.num_running();
  Json slots = Json::array();
  for (int i = 0; i < service.max_rows(); ++i)
    slots.push_back({{"id", i}, {"n_ctx", service.context()}, {"is_processing", i < num_running}});
  return {.body = one_line(slots)};
}

}  // namespace soliton
