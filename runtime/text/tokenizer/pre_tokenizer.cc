#include "runtime/text/tokenizer/pre_tokenizer.h"

#include <algorithm>
#include <array>

#include "runtime/text/tokenizer/byte_letters.h"
#include "runtime/text/tokenizer/parts.h"
#include "runtime/text/tokenizer/pattern.h"
#include "runtime/text/tokenizer/utf8.h"

namespace soliton::tokenization {
namespace {

using Steps = std::vector<PreTokenizer::Step>;
using Matches = std::vector<Match>;

constexpr std::string_view kGpt2Pattern =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

// ---- splitting ----

// What becomes of the matches: each function appends the spans that stay.

void isolate(const Matches& matches, std::vector<Span>& spans) {
  for (const Match& match : matches) spans.push_back({match.begin, match.end});
}

void remove(const Matches& matches, std::vector<Span>& spans) {
  for (const Match& match : matches) {
    if (!match.matched) spans.push_back({match.begin, match.end});
  }
}

void join_alike(const Matches& matches, std::vector<Span>& spans) {
  bool previous = false;
  bool first = true;
  for (const Match& match : matches) {
    if (match.matched == previous && !first) {
      spans.back().end = match.end;
    } else {
      spans.push_back({match.begin, match.end});
    }
    previous = match.matched;
    first = false;
  }
}

void merge_with_previous(const Matches& matches, std::vector<Span>& spans) {
  bool previous = false;
  bool first = true;
  for (const Match& match : matches) {
    if (match.matched && !previous && !first) {
      spans.back().end = match.end;
    } else {
      spans.push_back({match.begin, match.end});
    }
    previous = match.matched;
    first = false;
  }
}

void merge_with_next(const Matches& matches, std::vector<Span>& spans) {
  const auto start = static_cast<std::ptrdiff_t>(spans.size());
  bool previous = false;
  bool first = true;
  for (auto match = matches.rbegin(); match != matches.rend(); ++match) {
    if (match->matched && !previous && !first) {
      spans.back().begin = match->begin;
    } else {
      spans.push_back({match->begin, match->end});
    }
    previous = match->matched;
    first = false;
  }
  std::reverse(spans.begin() + start, spans.end());
}

using Behavior = void (*)(const Matches&, std::vector<Span>&);

Behavior read_behavior(const JsonView& setting) {
  struct Named {
    std::string_view name;
    Behavior behavior;
  };
  constexpr std::array<Named, 5> kBehaviors = {{{"Isolated", isolate},
                                                {"Removed", remove},
                                                {"Contiguous", join_alike},
                                                {"MergedWithPrevious", merge_with_previous},
                                                {"MergedWithNext", merge_with_next}}};
  for (const Named& named : kBehaviors) {
    if (named.name == setting.string()) return named.behavior;
  }
  throw setting.error("expected Isolated, Removed, Contiguous, MergedWithPrevious or MergedWithNext, got {}",
                      setting.describe());
}

void split(Pieces& pieces, TextLimit& limit, const Pattern& pattern, Behavior behavior, bool invert = false) {
  std::vector<Span> spans;
  Matches matches;
  for (const Span& span : pieces.spans) {
    matches.clear();
    pattern.find(pieces.text(span), limit, matches);
    for (Match& match : matches) {
      match = {match.begin + span.begin, match.end + span.begin, match.matched != invert};
    }
    const auto start = static_cast<std::ptrdiff_t>(spans.size());
    behavior(matches, spans);
    const auto is_empty = [](const Span& cut) { return cut.begin == cut.end; };
    spans.erase(std::remove_if(spans.begin() + start, spans.end(), is_empty), spans.end());
  }
  pieces.spans.swap(spans);
}

// ---- changing the text ----

/// A piece, or one of the two parts of a piece that the end of the section's origin cuts.
struct Part {
  std::string_view text;
  bool begins_piece;
  bool is_origin;
};

/// Writes the pieces' text anew: `append(result, part)` puts what becomes of each part.
template <class Append>
void rewrite(Pieces& pieces, Append append) {
  Pieces result;
  result.section.text.reserve(pieces.section.text.size() + pieces.section.text.size() / 2);
  result.spans.reserve(pieces.spans.size());
  std::string& text = result.section.text;
  for (const Span& span : pieces.spans) {
    const size_t begin = text.size();
    const std::string_view piece = pieces.text(span);
    const size_t origin =
        std::min(piece.size(), std::max(pieces.section.origin_bytes, span.begin) - span.begin);
    if (origin > 0) {
      append(text, Part{piece.substr(0, origin), true, true});
      result.section.origin_bytes = text.size();
    }
    if (origin < piece.size()) append(text, Part{piece.substr(origin), origin == 0, false});
    result.spans.push_back({begin, text.size()});
  }
  pieces = std::move(result);
}

// ---- the kinds ----

void read_split(const JsonView& part, Steps& steps) {
  steps.emplace_back([pattern = Pattern::read(part["pattern"]), behavior = read_behavior(part["behavior"]),
                      invert = part["invert"].boolean()](Pieces& pieces, TextLimit& limit) {
    split(pieces, limit, pattern, behavior, invert);
  });
}

void read_digits(const JsonView& part, Steps& steps) {
  const bool individual = part["individual_digits"].boolean();
  steps.emplace_back(
      [pattern = Pattern::regex(R"(\p{N})", part), behavior = individual ? isolate : join_alike](
          Pieces& pieces, TextLimit& limit) { split(pieces, limit, pattern, behavior); });
}

void read_byte_level(const JsonView& part, Steps& steps) {
  if (part["add_prefix_space"].boolean()) {
    steps.emplace_back([](Pieces& pieces, TextLimit&) {
      rewrite(pieces, [](std::string& text, const Part& part) {
        if (part.begins_piece && part.text[0] != ' ') text += ' ';
        text += part.text;
      });
    });
  }
  if (read_flag(part["use_regex"], true)) {
    steps.emplace_back([pattern = Pattern::regex(kGpt2Pattern, part)](Pieces& pieces, TextLimit& limit) {
      split(pieces, limit, pattern, isolate);
    });
  }
  steps.emplace_back([](Pieces& pieces, TextLimit&) {
    rewrite(pieces, [](std::string& text, const Part& part) { append_letters(text, part.text); });
  });
}

enum class Prepend { kAlways, kFirst, kNever };

/// The scheme, which older files spell as add_prefix_space.
Prepend read_scheme(const JsonView& part) {
  const JsonView scheme = part["prepend_scheme"];
  const std::string name = scheme.is_null() ? "always" : scheme.string();
  const JsonView prefix = part["add_prefix_space"];
  if (!prefix.is_null() && !prefix.boolean() && name != "never") {
    throw prefix.error("expected true, as prepend_scheme is {}, got false", in_quotes(name));
  }
  if (name == "always") return Prepend::kAlways;
  if (name == "first") return Prepend::kFirst;
  if (name == "never") return Prepend::kNever;
  throw scheme.error("expected always, first or never, got {}", scheme.describe());
}

void read_metaspace(const JsonView& part, Steps& steps) {
  const std::string mark = read_character(part["replacement"]);
  const Prepend scheme = read_scheme(part);
  steps.emplace_back([mark, scheme](Pieces& pieces, TextLimit&) {
    rewrite(pieces, [&](std::string& text, const Part& part) {
      const bool wanted = scheme == Prepend::kAlways || (scheme == Prepend::kFirst && part.is_origin);
      const bool has_mark = part.text[0] == ' ' || part.text.starts_with(mark);
      if (part.begins_piece && wanted && !has_mark) text += mark;
      for (const char byte : part.text) {
        if (byte == ' ') {
          text += mark;
        } else {
          text += byte;
        }
      }
    });
  });
  if (!read_flag(part["split"], true)) return;
  steps.emplace_back([pattern = Pattern::literal(mark)](Pieces& pieces, TextLimit& limit) {
    split(pieces, limit, pattern, merge_with_next);
  });
}

constexpr std::array<PartReader<Steps>, 4> kReaders = {{{"ByteLevel", read_byte_level},
                                                        {"Split", read_split},
                                                        {"Digits", read_digits},
                                                        {"Metaspace", read_metaspace}}};

}  // namespace

PreTokenizer PreTokenizer::read(const JsonView& pre_tokenizer) {
  PreTokenizer result;
  if (!pre_tokenizer.is_null()) {
    read_part<Steps>(pre_tokenizer, "pretokenizers", kReaders, result.steps_);
  }
  return result;
}

Pieces PreTokenizer::cut(Section section, TextLimit& limit) const {
  Pieces pieces{.section = std::move(section), .spans = {}};
  if (!pieces.section.text.empty()) pieces.spans.push_back({0, pieces.section.text.size()});
  for (const Step& step : steps_) {
    step(pieces, limit);
    limit.require(pieces.section.text.size());
  }
  return pieces;
}

}  // namespace soliton::tokenization
