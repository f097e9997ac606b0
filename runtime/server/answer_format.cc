#include "runtime/server/answer_format.h"

#include <chrono>
#include <random>

namespace soliton {

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

int64_t unix_time() {
  return std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch())
      .count();
}

}  // namespace soliton
