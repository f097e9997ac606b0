#include "runtime/text/tokenizer/parts.h"

#include "runtime/text/tokenizer/utf8.h"

namespace soliton::tokenization {

std::string read_character(const JsonView& setting) {
  const std::string& text = setting.string();
  if (text.empty() || first_character(text).length != text.size()) {
    throw setting.error("expected one character, got {}", setting.describe());
  }
  return text;
}

void expect_empty(const JsonView& setting) {
  if (!setting.is_null() && !setting.string().empty()) {
    throw setting.error(ExitCode::kMismatch, "expected none, got {}: not supported", setting.describe());
  }
}

}  // namespace soliton::tokenization
