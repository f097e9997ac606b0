// JSON schemas up to the largest that are read, made grammars in time.
#include "fuzz/expand.h"
#include "runtime/text/constrain/json_schema.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace soliton;
  const std::string text = expanded(as_text(data, size), constrain::kMaxSourceBytes);
  const TimeLimit limit;
  accepts([&] {
    const constrain::Grammar grammar = constrain::parse_json_schema(text, "schema");
    expect(!grammar.rules.empty() && grammar.rules.size() <= constrain::kMaxSchemaRules,
           "rules within their limit");
  });
  return 0;
}
