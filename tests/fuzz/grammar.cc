// What answers are to follow, and texts of it: a JSON schema ({), the pattern of one (/), else a grammar in llama.cpp's
// notation. Tokens are bytes.
#include "fuzz/fuzz_target.h"
#include "runtime/text/constrain/ebnf.h"
#include "runtime/text/constrain/json_schema.h"
#include "runtime/text/constrain/token_constraint.h"

namespace soliton {
namespace {

using constrain::Grammar;

Grammar read(std::string_view text) {
  if (text.starts_with('{')) return constrain::parse_json_schema(text, "schema");
  if (!text.starts_with('/')) return constrain::parse_ebnf(text, "grammar");
  const nlohmann::json schema = {{"type", "string"}, {"pattern", text.substr(1)}};
  return constrain::parse_json_schema(schema.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace),
                                      "schema");
}

const std::shared_ptr<const constrain::Vocabulary>& bytes() {
  static const auto vocabulary = [] {
    std::vector<std::string> pieces;
    for (int byte = 0; byte < 256; ++byte) pieces.emplace_back(1, static_cast<char>(byte));
    return std::make_shared<const constrain::Vocabulary>(pieces, 256);
  }();
  return vocabulary;
}

/// Writes a text up to its end, or some bytes of it: each byte that is allowed is accepted, and where there is none the text
/// may end.
void write_text(const Grammar& grammar) {
  constexpr int kMaxBytes = 60;
  TokenConstraint constraint(std::make_shared<TokenGrammar>(grammar, bytes()), {});
  for (int i = 0; i < kMaxBytes && !constraint.ended(); ++i) {
    const std::span<const uint32_t> allowed = constraint.allowed();
    std::vector<int> choices;
    for (int byte = 0; byte < 256; ++byte) {
      if (constrain::is_in(allowed, byte)) choices.push_back(byte);
    }
    expect(!choices.empty() || constraint.may_end(), "a byte that may follow, or an end");
    if (choices.empty()) return;
    const int byte = choices[static_cast<size_t>(i * 7 + 3) % choices.size()];
    expect(constraint.accept(byte), "an allowed byte is accepted");
  }
}

}  // namespace
}  // namespace soliton

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace soliton;
  accepts([&] { write_text(read(as_text(data, size))); });
  return 0;
}
