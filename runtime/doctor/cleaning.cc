#include "runtime/doctor/cleaning.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "models/printing.h"

namespace soliton {

std::string as_text(const Cleaning& cleaning) {
  std::string text;
  for (const Removal& removal : cleaning.removed) {
    text += fmt::format("removed {}, {} bytes: {}\n", removal.path.string(), removal.bytes, removal.reason);
  }
  return text + fmt::format("removed {} files, {} bytes; kept {} kernels, {} bytes\n",
                            cleaning.removed.size(), cleaning.removed_bytes(), cleaning.num_kept,
                            cleaning.kept_bytes);
}

std::string as_json(const Cleaning& cleaning) {
  nlohmann::ordered_json json = {{"removed", nlohmann::ordered_json::array()},
                                 {"removed_bytes", cleaning.removed_bytes()},
                                 {"kept_kernels", cleaning.num_kept},
                                 {"kept_bytes", cleaning.kept_bytes}};
  for (const Removal& removal : cleaning.removed) {
    json["removed"].push_back(
        {{"file", removal.path.string()}, {"bytes", removal.bytes}, {"reason", removal.reason}});
  }
  return json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

void print_cleaning(const Cleaning& cleaning, bool json) {
  print(json ? as_json(cleaning) : as_text(cleaning));
}

}  // namespace soliton
