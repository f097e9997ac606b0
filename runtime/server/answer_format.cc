#include "runtime/server/answer_format.h"

#include <random>

namespace soliton {

std::string_view name_of(AnswerEnd end) {
  switch (end) {
    case AnswerEnd::kLength:
      return "length";
    case AnswerEnd::kCalls:
      return "tool_calls";
    case AnswerEnd::kStop:
    case AnswerEnd::kStopText:
      break;
  }
  return "stop";
}

std::string server_event(const std::string& data) {
  return "data: " + data + "\n\n";
}

std::string server_event(const std::string& name, const AnswerFormat::Json& data) {
  return "event: " + name + "\n" + server_event(one_line(data));
}

std::string one_line(const nlohmann::ordered_json& json) {
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string random_id(const std::string& prefix) {
  static thread_local std::random_device device;
  std::string id = prefix;
  for (int i = 0; i < 3; ++i) id += fmt::format("{:08x}", device());
  return id;
}

}  // namespace soliton
