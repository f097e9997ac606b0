#include "runtime/make/model_memory.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "layout/page.h"
#include "layout/weight_format.h"
#include "models/check.h"
#include "models/error.h"
#include "models/graph.h"
#include "models/kv_pages.h"
#include "models/limits.h"
#include "models/model_tables.h"

namespace soliton {
namespace {

constexpr int64_t kOtherBytes = 64 << 20;  // workspaces, records, and what the driver takes for itself
constexpr int kFewestBits = 4;
constexpr int kUsualGroup = 128;  // of columns that share a scale, in most checkpoints of 4 bits

bool can_be_generated(const ModelFacts& facts) {
  try {
    check({.file = "", .facts = facts});
    return true;
  } catch (const Error&) {
    return false;
  }
}

PoolPages pages_of_one(const ModelFacts& facts, int64_t num_tokens) {
  return pages_of_sequence(facts, num_tokens);
}

/// Of whole pages, that the memory holds beside the weights.
int64_t most_tokens(const ModelFacts& facts, int64_t free_bytes,
                    PoolPages (*pages_of)(const ModelFacts&, int64_t)) {
  const int64_t left = free_bytes - device_weight_bytes(facts) - kOtherBytes;
  int64_t fitting = 0;
  int64_t beyond = std::max<int64_t>(left, 0) / (rotary_token_bytes(facts) * kKvPageTokens) + 1;
  while (beyond - fitting > 1) {
    const int64_t pages = fitting + (beyond - fitting) / 2;
    const bool fits = context_bytes(facts, pages_of(facts, pages * kKvPageTokens)) <= left;
    (fits ? fitting : beyond) = pages;
  }
  return fitting * kKvPageTokens;
}

/// Those that a token goes through, or all that there are.
enum class Experts { kChosen, kAll };

/// Of all layers, without padding.
int64_t matrix_bytes(const ModelFacts& facts, Experts experts) {
  const Graph graph = build_graph(facts);
  int64_t bytes = 0;
  graph.for_each_op([&](const GraphOp& op, int /*layer*/) {
    if (op.kind != PhaseKind::kMatrix) return;
    const GraphMatrix& matrix = graph.matrices[op.matrix];
    const int64_t of_chosen =
        int64_t{matrix.rows} * matrix.columns * matrix.format.block_bytes() / (kColumnBlock * kTileRows);
    bytes += experts == Experts::kAll ? of_chosen / matrix.experts.chosen * matrix.experts.count : of_chosen;
  });
  return bytes;
}

std::string gigabytes(int64_t bytes) {
  return fmt::format("{:.2f} GB", static_cast<double>(bytes) * 1e-9);
}

/// What of the model would fit, with a context of so many tokens.
std::string describe_fitting(const ModelFacts& facts, int32_t context, int64_t free_bytes) {
  std::vector<std::string> fitting;
  if (const int32_t most = fitting_context(facts, free_bytes); most > 0)
    fitting.push_back(fmt::format("a context of {}", most));
  const std::vector<SmallerFormat> formats = smaller_formats(facts);
  for (const SmallerFormat& format : formats) {
    const int64_t bytes = device_bytes(format.facts, context);
    if (bytes <= free_bytes) fitting.push_back(fmt::format("{} ({})", format.name, gigabytes(bytes)));
  }
  if (!fitting.empty()) return fmt::format("what would fit: {}", fmt::join(fitting, ", or "));
  if (formats.empty()) return "there is no smaller format of it";
  return fmt::format("nor do {} fit ({})", formats.back().name,
                     gigabytes(device_bytes(formats.back().facts, context)));
}

}  // namespace

int64_t read_weight_bytes(const ModelFacts& facts) {
  const ModelTables tables = model_tables(facts);
  return matrix_bytes(facts, Experts::kChosen) + tables.bytes() - tables.embedding_bytes();
}

int64_t device_weight_bytes(const ModelFacts& facts) {
  return matrix_bytes(facts, Experts::kAll) + model_tables(facts).bytes();
}

int64_t free_bytes_of_cards(const ModelFacts& facts, int64_t free_bytes, int num_cards) {
  return num_cards * free_bytes - (num_cards - 1) * (model_tables(facts).bytes() + kOtherBytes);
}

int64_t fitting_tokens(const ModelFacts& facts, int64_t free_bytes) {
  return most_tokens(facts, free_bytes, &pages_of_many);
}

int32_t fitting_context(const ModelFacts& facts, int64_t free_bytes) {
  const int64_t tokens = most_tokens(facts, free_bytes, &pages_of_one);
  return static_cast<int32_t>(std::min<int64_t>(tokens, facts.max_context));
}

int64_t device_bytes(const ModelFacts& facts, int32_t context) {
  return device_weight_bytes(facts) + kOtherBytes + context_bytes(facts, pages_of_sequence(facts, context));
}

std::vector<SmallerFormat> smaller_formats(const ModelFacts& facts) {
  std::vector<SmallerFormat> formats;
  if (facts.further_e2m1 != 0) return formats;  // it has as few
  const auto add = [&](const char* name, const ModelFacts& smaller) {
    if (device_weight_bytes(smaller) < device_weight_bytes(facts) && can_be_generated(smaller))
      formats.push_back({name, smaller});
  };
  ModelFacts smaller = facts;
  if (facts.weight_bits != kFewestBits) {
    smaller.weight_bits = kFewestBits;
    smaller.weight_group = kUsualGroup;
    smaller.weight_e4m3 = 0;
    add("4-bit layers", smaller);
  }
  smaller.lm_head_bits = kFewestBits;
  add("4-bit layers and lm_head", smaller);
  return formats;
}

void check_memory(const std::string& source, const ModelFacts& facts, int32_t context, int64_t free_bytes) {
  const int32_t tokens = std::max(context, std::min(kKvPageTokens, facts.max_context));
  if (device_bytes(facts, tokens) <= free_bytes) return;
  throw file_error(
      ExitCode::kOutOfMemory, source,
      "expected {} of the card's memory for the weights and a context of {} tokens, got {} free; {}",
      gigabytes(device_bytes(facts, tokens)), tokens, gigabytes(free_bytes),
      describe_fitting(facts, tokens, free_bytes));
}

}  // namespace soliton
