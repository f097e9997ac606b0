#include "runtime/text/tokenizer/decoder.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <utility>

#include "runtime/text/tokenizer/byte_letters.h"
#include "runtime/text/tokenizer/parts.h"
#include "runtime/text/tokenizer/pattern.h"
#include "runtime/text/tokenizer/utf8.h"

namespace soliton::tokenization {
namespace {

/// A stage with one behind it.
class ChainedStage : public Stage {
 public:
  ChainedStage(Stage& next, TextLimit& limit) : next_(next), limit_(limit) {}
  void finish() override { next_.finish(); }

 protected:
  void pass(std::string_view text) {
    passed_bytes_ += text.size();
    limit_.require(passed_bytes_);
    next_.push(text);
  }
  void pass_end() { next_.finish(); }
  TextLimit& limit() { return limit_; }

 private:
  Stage& next_;
  TextLimit& limit_;
  size_t passed_bytes_ = 0;
};

/// Changes each token by itself.
class Each : public ChainedStage {
 public:
  using Change = std::function<std::string(std::string_view, TextLimit&)>;
  Each(Stage& next, TextLimit& limit, Change change)
      : ChainedStage(next, limit), change_(std::move(change)) {}
  void push(std::string_view token) override { pass(change_(token, limit())); }

 private:
  Change change_;
};

/// Collects a fused token for a stage that needs the whole of it.
class Collect : public ChainedStage {
 public:
  using ChainedStage::ChainedStage;
  void push(std::string_view token) override { whole_ += token; }
  void finish() override {
    pass(whole_);
    pass_end();
  }

 private:
  std::string whole_;
};

/// Joins tokens by spaces: what the reference does without a decoder.
class Join : public ChainedStage {
 public:
  using ChainedStage::ChainedStage;
  void push(std::string_view token) override {
    if (!std::exchange(first_, false)) pass(" ");
    pass(token);
  }

 private:
  bool first_ = true;
};

/// Turns byte-level letters to bytes, passed on in whole characters.
class ByteLevel : public ChainedStage {
 public:
  using ChainedStage::ChainedStage;
  void push(std::string_view token) override {
    pending_ += letters_to_bytes(token);
    pass(take_characters(pending_));
  }
  void finish() override {
    pass(valid_utf8(std::exchange(pending_, {})));
    pass_end();
  }

 private:
  std::string pending_;  // at most 3 bytes between calls
};

/// Turns marks to spaces, but drops those of the first token.
class Metaspace : public ChainedStage {
 public:
  Metaspace(Stage& next, TextLimit& limit, std::string mark, bool drops)
      : ChainedStage(next, limit), marks_(Pattern::literal(std::move(mark))), drops_(drops) {}
  void push(std::string_view token) override {
    pass(marks_.replace(token, std::exchange(drops_, false) ? "" : " ", limit()));
  }

 private:
  Pattern marks_;
  bool drops_;
};

/// The byte that a token such as <0x0A> stands for.
std::optional<char> fallback_byte(std::string_view token) {
  constexpr std::string_view kExample = "<0x0A>";
  if (token.size() != kExample.size() || !token.starts_with("<0x") || token.back() != '>') return {};
  // Not from_chars alone: the reference's parser takes a sign.
  std::string_view digits = token.substr(3, 2);
  if (digits[0] == '+') digits.remove_prefix(1);
  unsigned value = 0;
  const auto [end, error] = std::from_chars(digits.begin(), digits.end(), value, 16);
  if (error != std::errc() || end != digits.end()) return {};
  return static_cast<char>(static_cast<unsigned char>(value));
}

/// Turns runs of byte tokens to text. If a run is not valid as a whole, each of its bytes is U+FFFD, so
/// nothing of it can go before its end.
class ByteFallback : public ChainedStage {
 public:
  using ChainedStage::ChainedStage;
  void push(std::string_view token) override {
    if (const std::optional<char> byte = fallback_byte(token)) {
      run_ += *byte;
      return;
    }
    end_run();
    pass(token);
  }
  void finish() override {
    end_run();
    pass_end();
  }

 private:
  void end_run() {
    if (run_.empty()) return;
    const size_t num_bytes = run_.size();
    bool is_valid = true;
    for (size_t i = 0; is_valid && i < num_bytes;) {
      const Utf8Step step = utf8_step(std::string_view(run_).substr(i));
      is_valid = step.kind == Utf8Step::kValid;
      i += step.length;
    }
    if (is_valid) pass(run_);
    for (size_t i = 0; !is_valid && i < num_bytes; ++i) pass(kReplacement);
    run_.clear();
  }

  std::string run_;
};

/// Drops up to `most` characters `mark` at the start of a fused token.
class StripStart : public ChainedStage {
 public:
  StripStart(Stage& next, TextLimit& limit, std::string mark, size_t most)
      : ChainedStage(next, limit), mark_(std::move(mark)), left_(most) {}
  void push(std::string_view token) override {
    for (; left_ > 0 && token.starts_with(mark_); --left_) token.remove_prefix(mark_.size());
    if (!token.empty()) left_ = 0;
    pass(token);
  }

 private:
  std::string mark_;
  size_t left_;
};

// ---- the kinds ----

using Steps = Decoder::Steps;

/// Adds a stage that sees whole tokens, changes each by itself, and the same inside a text.
void add_each(Steps& steps, Each::Change change, bool needs_whole_tokens) {
  if (steps.is_fused && needs_whole_tokens) {
    steps.stages.emplace_back(
        [](Stage& next, TextLimit& limit) { return std::make_unique<Collect>(next, limit); });
  }
  steps.stages.emplace_back(
      [change](Stage& next, TextLimit& limit) { return std::make_unique<Each>(next, limit, change); });
}

/// Adds a stage that sees whole tokens.
void add_whole(Steps& steps, Decoder::MakeStage make) {
  if (steps.is_fused) {
    steps.stages.emplace_back(
        [](Stage& next, TextLimit& limit) { return std::make_unique<Collect>(next, limit); });
  }
  steps.stages.push_back(std::move(make));
}

void read_byte_level(const JsonView&, Steps& steps) {
  add_whole(steps, [](Stage& next, TextLimit& limit) { return std::make_unique<ByteLevel>(next, limit); });
  steps.pieces.emplace_back([](const std::string& token, TextLimit&) { return letters_to_bytes(token); });
  steps.is_fused = true;
}

void read_metaspace(const JsonView& part, Steps& steps) {
  const std::string mark = read_character(part["replacement"]);
  const JsonView scheme = part["prepend_scheme"];
  const JsonView prefix = part["add_prefix_space"];
  const bool has_prefix = prefix.is_null() || prefix.boolean();
  const bool drops = scheme.is_null() ? has_prefix : scheme.string() != "never";
  add_whole(steps, [mark, drops](Stage& next, TextLimit& limit) {
    return std::make_unique<Metaspace>(next, limit, mark, drops);
  });
  steps.pieces.emplace_back([marks = Pattern::literal(mark)](const std::string& token, TextLimit& limit) {
    return marks.replace(token, " ", limit);
  });
}

void read_byte_fallback(const JsonView&, Steps& steps) {
  add_whole(steps, [](Stage& next, TextLimit& limit) { return std::make_unique<ByteFallback>(next, limit); });
  steps.pieces.emplace_back([](std::string token, TextLimit&) {
    const std::optional<char> byte = fallback_byte(token);
    return byte ? std::string(1, *byte) : token;
  });
}

void read_fuse(const JsonView&, Steps& steps) {
  steps.is_fused = true;
}

void read_replace(const JsonView& part, Steps& steps) {
  const Pattern pattern = Pattern::read(part["pattern"]);
  const auto change = [pattern, content = part["content"].string()](std::string_view token,
                                                                    TextLimit& limit) {
    return pattern.replace(token, content, limit);
  };
  add_each(steps, change, !pattern.is_one_character());
  steps.pieces.emplace_back(change);
}

/// A token without up to `start` marks at its start and `stop` at its end.
std::string_view strip(std::string_view token, std::string_view mark, size_t start, size_t stop) {
  for (; start > 0 && token.starts_with(mark); --start) token.remove_prefix(mark.size());
  for (; stop > 0 && token.ends_with(mark); --stop) token.remove_suffix(mark.size());
  return token;
}

void read_strip(const JsonView& part, Steps& steps) {
  constexpr int64_t kMax = 1 << 20;
  const std::string mark = read_character(part["content"]);
  const auto start = static_cast<size_t>(part["start"].integer(0, kMax));
  const auto stop = static_cast<size_t>(part["stop"].integer(0, kMax));
  if (steps.is_fused && stop == 0) {
    steps.stages.emplace_back([mark, start](Stage& next, TextLimit& limit) {
      return std::make_unique<StripStart>(next, limit, mark, start);
    });
    return;
  }
  const auto change = [mark, start, stop](std::string_view token, TextLimit&) {
    return std::string(strip(token, mark, start, stop));
  };
  add_each(steps, change, true);
  if (!steps.is_fused) steps.pieces.emplace_back(change);
}

constexpr std::array<PartReader<Steps>, 6> kReaders = {{{"ByteLevel", read_byte_level},
                                                        {"Metaspace", read_metaspace},
                                                        {"ByteFallback", read_byte_fallback},
                                                        {"Fuse", read_fuse},
                                                        {"Replace", read_replace},
                                                        {"Strip", read_strip}}};

}  // namespace

Decoder Decoder::read(const JsonView& decoder) {
  Decoder result;
  if (decoder.is_null()) {
    result.steps_.stages.emplace_back(
        [](Stage& next, TextLimit& limit) { return std::make_unique<Join>(next, limit); });
  } else {
    read_part<Steps>(decoder, "decoders", kReaders, result.steps_);
  }
  return result;
}

std::string Decoder::piece(std::string token, TextLimit& limit) const {
  for (const auto& step : steps_.pieces) token = step(std::move(token), limit);
  return token;
}

// ---- streams ----

class DecoderStream::Output : public Stage {
 public:
  void push(std::string_view token) override { text += token; }
  void finish() override {}

  std::string text;
};

DecoderStream::DecoderStream(const Decoder& decoder, std::string_view file)
    : decoder_(decoder), file_(file), limit_(file), output_(std::make_unique<Output>()) {
  restart();
}

DecoderStream::~DecoderStream() = default;

void DecoderStream::restart() {
  stages_.clear();
  limit_ = TextLimit(file_);
  const auto& makers = decoder_.steps_.stages;
  for (auto make = makers.rbegin(); make != makers.rend(); ++make) {
    stages_.push_back((*make)(stages_.empty() ? *output_ : *stages_.back(), limit_));
  }
}

void DecoderStream::push(std::string_view token, std::string& text) {
  limit_.extend(token.size());
  (stages_.empty() ? *output_ : *stages_.back()).push(token);
  text += std::exchange(output_->text, {});
}

void DecoderStream::finish(std::string& text) {
  (stages_.empty() ? *output_ : *stages_.back()).finish();
  text += std::exchange(output_->text, {});
  restart();
}

}  // namespace soliton::tokenization
