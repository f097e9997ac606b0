#include "runtime/server/api_body.h"

#include <cmath>

namespace soliton {
namespace {

/// Where a number has no fraction, and is as exact as an integer.
void make_integers(nlohmann::json& value) {
  constexpr double kExact = 9007199254740992;  // 2^53
  if (value.is_structured()) {
    for (nlohmann::json& member : value) make_integers(member);
  } else if (value.is_number_float()) {
    const double number = value.get<double>();
    if (std::trunc(number) == number && std::abs(number) <= kExact) value = static_cast<int64_t>(number);
  }
}

}  // namespace

nlohmann::json parse_body(const std::string& text) {
  nlohmann::json body = parse_json(text, kBodyName, kBodyLimits);
  make_integers(body);
  return body;
}

nlohmann::ordered_json parse_ordered_body(const std::string& text) {
  return parse_ordered_json(text, kBodyName, kBodyLimits);
}

nlohmann::json with_integers(const nlohmann::ordered_json& body) {
  nlohmann::json read(body);
  make_integers(read);
  return read;
}

}  // namespace soliton
