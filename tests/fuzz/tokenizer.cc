// tokenizer.json, and if it is accepted some text in and out: text behind a line "---" of the input, if there is
// one.
#include "runtime/text/tokenizer.h"

#include "fuzz/fuzz_target.h"

namespace soliton {
namespace {

constexpr std::string_view kDivider = "\n---\n";
constexpr std::string_view kText = "The caf\xc3\xa9's 12345  tokens\r\n\xe6\x9d\xb1\xe4\xba\xac <s>\xff";

void use(const Tokenizer& tokenizer, std::string_view text) {
  for (const bool special : {false, true}) {
    const std::vector<int> ids = tokenizer.encode(text, special);
    for (const int id : ids) expect(id >= 0 && id < tokenizer.vocabulary_size(), "ids of the vocabulary");
    StreamDecoder stream(tokenizer);
    std::string pushed;
    for (const int id : ids) pushed += stream.push(id);
    pushed += stream.finish();
    expect(pushed == tokenizer.decode(ids), "the same text from a stream");
  }
  for (const int id : {-1, 0, 1, tokenizer.vocabulary_size(), 1 << 30}) {
    tokenizer.piece(id);
    tokenizer.is_special(id);
    tokenizer.decode(std::span(&id, 1), true);
  }
}

}  // namespace
}  // namespace soliton

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace soliton;
  const std::string_view input = as_text(data, size);
  const size_t divider = input.find(kDivider);
  fuzz_folder().write("tokenizer.json", input.substr(0, divider));
  accepts([&] {
    const Tokenizer tokenizer = Tokenizer::open(fuzz_folder().path());
    use(tokenizer, kText);
    if (divider != std::string_view::npos) use(tokenizer, input.substr(divider + kDivider.size()));
  });
  return 0;
}
