#include "runtime/server/openai/logprobs.h"

#include "runtime/answer/answer_text.h"

namespace soliton {

std::string token_text(const Tokenizer& tokenizer, int32_t id) {
  const std::vector<int> ids = {id};
  const std::string& piece = tokenizer.piece(id);
  return tokenizer.is_special(id) || piece.empty() ? tokenizer.decode(ids) : piece;
}

std::string id_name(int32_t id) {
  return fmt::format("token_id:{}", id);
}

nlohmann::ordered_json logprob_entry(const Tokenizer& tokenizer, const ToldToken& told, bool names_ids) {
  using Json = nlohmann::ordered_json;
  const auto entry = [&](int32_t id, std::optional<float> logprob) {
    const std::string text = token_text(tokenizer, id);
    Json bytes = Json::array();
    for (const char byte : text) bytes.push_back(static_cast<unsigned char>(byte));
    return Json{{"token", names_ids ? id_name(id) : text},
                {"logprob", logprob ? Json(json_logprob(*logprob)) : Json()},
                {"bytes", std::move(bytes)}};
  };
  Json object = entry(told.token.id, told.token.logprob);
  Json& best = object["top_logprobs"] = Json::array();
  for (const RankedToken& ranked : told.token.best) best.push_back(entry(ranked.id, ranked.logprob));
  return object;
}

}  // namespace soliton
