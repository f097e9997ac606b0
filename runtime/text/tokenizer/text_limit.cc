#include "runtime/text/tokenizer/text_limit.h"

#include "models/error.h"

namespace soliton::tokenization {

void TextLimit::refuse() const {
  throw file_error(ExitCode::kOutOfMemory, file_,
                   "expected rules that make at most {} bytes of a text of {}, got more",
                   std::min(kMaxBytes, kMargin + kMaxGrowth * original_bytes_), original_bytes_);
}

}  // namespace soliton::tokenization
