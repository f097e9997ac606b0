#include "runtime/chat/answer_grammar.h"

#include "models/mapped_file.h"
#include "runtime/text/constrain/ebnf.h"
#include "runtime/text/constrain/json_schema.h"

namespace soliton {
namespace {

std::string read_text(const std::string& path) {
  const MappedFile file = MappedFile::open(path);
  if (file.text().size() > constrain::kMaxSourceBytes) {
    throw file_error(ExitCode::kOutOfMemory, path, "expected at most {} bytes, got {}",
                     constrain::kMaxSourceBytes, file.text().size());
  }
  return std::string(file.text());
}

constrain::Grammar read_grammar(const Options& options) {
  const bool is_schema = !options.schema_file.empty();
  const std::string& path = is_schema ? options.schema_file : options.grammar_file;
  const std::string text = read_text(path);
  return is_schema ? constrain::parse_json_schema(text, path) : constrain::parse_ebnf(text, path);
}

}  // namespace

std::shared_ptr<TokenGrammar> open_answer_grammar(const Options& options, const TextSide& text) {
  if (options.schema_file.empty() && options.grammar_file.empty()) return {};
  const constrain::Grammar grammar = read_grammar(options);
  return std::make_shared<TokenGrammar>(
      grammar, std::make_shared<constrain::Vocabulary>(text.tokenizer, text.config.facts.vocabulary));
}

}  // namespace soliton
