#include "runtime/engine/sampling_memory.h"

#include <algorithm>

#include "models/error.h"

namespace soliton {
namespace {

template <class Memory>
void make_room(Memory& memory, const Library& library, size_t bytes) {
  if (memory.bytes() < bytes) memory = Memory(library, bytes);
}

/// SamplingView::seen of these rows.
std::vector<uint16_t> seen_bits(std::span<const std::vector<int32_t>> past, int num_rows, int vocabulary) {
  const size_t tiles = static_cast<size_t>(sampling_line(vocabulary) / kTileRows);
  std::vector<uint16_t> bits(num_rows * tiles);
  for (size_t row = 0; row < past.size(); ++row) {
    for (const int32_t token : past[row]) {
      if (token < 0 || token >= vocabulary) {
        throw Error(ExitCode::kMismatch,
                    fmt::format("prompt: expected tokens from 0 to {}, got {}", vocabulary - 1, token));
      }
      bits[row * tiles + static_cast<size_t>(token / kTileRows)] |=
          static_cast<uint16_t>(1u << token % kTileRows);
    }
  }
  return bits;
}

/// SamplingView::allowed of these rows.
std::vector<uint16_t> allowed_bits(std::span<const std::span<const uint32_t>> allowed, int vocabulary) {
  constexpr int kWordTokens = 32;
  const auto words = static_cast<size_t>(ceil_divide(vocabulary, kWordTokens));
  const size_t tiles = static_cast<size_t>(sampling_line(vocabulary) / kTileRows);
  std::vector<uint16_t> bits(allowed.size() * tiles, 0xffff);
  for (size_t row = 0; row < allowed.size(); ++row) {
    const std::span<const uint32_t> mask = allowed[row];
    if (mask.empty()) continue;
    if (mask.size() != words) {
      throw Error(ExitCode::kInternal,
                  fmt::format("allowed tokens: expected {} words of 32, got {}", words, mask.size()));
    }
    bool allows = false;
    for (size_t tile = 0; tile < tiles; ++tile) {
      const int rest = vocabulary - static_cast<int>(tile) * kTileRows;
      const uint32_t is_token = rest < kTileRows ? (1u << rest) - 1 : 0xffff;
      const uint32_t of_tile = mask[tile / 2] >> tile % 2 * kTileRows & is_token;
      bits[row * tiles + tile] = static_cast<uint16_t>(of_tile);
      allows = allows || of_tile != 0;
    }
    if (!allows) throw Error(ExitCode::kInternal, "allowed tokens: expected one at least, got none");
  }
  return bits;
}

/// Uploads words of bits.
void upload_bits(const KernelLibrary& library, DeviceMemory& memory, const std::vector<uint16_t>& bits,
                 const char* what) {
  const Library& device = library.functions();
  const size_t bytes = bits.size() * sizeof(uint16_t);
  make_room(memory, device, bytes);
  library.check(device.upload(memory.as<void>(), bits.data(), bytes), what);
}

}  // namespace

void SamplingMemory::begin(const KernelLibrary& library, const SamplingRequest& request) {
  const Library& device = library.functions();
  const int vocabulary = library.model().facts.vocabulary;
  if (vocabulary > kMaxSampledVocabulary) {
    throw file_error(ExitCode::kMismatch, library.path(), "sampling: expected at most {} tokens, got {}",
                     kMaxSampledVocabulary, vocabulary);
  }
  num_rows_ = static_cast<int>(request.rows.size());
  wants_logprobs_ = request.want_logprobs;
  penalises_ = std::any_of(request.rows.begin(), request.rows.end(),
                           [](const RowSampling& row) { return row.penalty != 1.0f; });
  make_room(rows_, device, request.rows.size_bytes());
  library.check(device.upload(rows_.as<void>(), request.rows.data(), request.rows.size_bytes()),
                "upload the sampling");
  forbids_ = !request.allowed.empty();
  if (penalises_)
    upload_bits(library, seen_, seen_bits(request.past, num_rows_, vocabulary),
                "upload the tokens to penalise");
  if (forbids_)
    upload_bits(library, allowed_, allowed_bits(request.allowed, vocabulary),
                "upload the tokens that are allowed");
}

SamplingView SamplingMemory::prepare(const KernelLibrary& library, int kernel, int num_outputs) {
  const Library& device = library.functions();
  const Descriptor& descriptor = library.descriptor(kernel);
  const int vocabulary = descriptor.model->facts.vocabulary;
  const ExchangeLayout exchange{descriptor.plan->all_ctas()};
  const auto exchange_bytes = static_cast<size_t>(exchange.bytes(descriptor.rows));
  make_room(logits_, device, sizeof(float) * static_cast<size_t>(sampling_line(vocabulary)) * num_rows_);
  make_room(exchange_, device, exchange_bytes);
  library.check(device.fill(exchange_.as<void>(), 0, exchange_bytes), "clear the exchange");
  if (wants_logprobs_) make_room(logprobs_, device, sizeof(float) * static_cast<size_t>(num_outputs));
  return {.rows = rows_.as<RowSampling>(),
          .logits = logits_.as<float>(),
          .exchange = exchange_.as<unsigned char>(),
          .seen = penalises_ ? seen_.as<uint16_t>() : nullptr,
          .allowed = forbids_ ? allowed_.as<uint16_t>() : nullptr,
          .logprobs = wants_logprobs_ ? logprobs_.as<float>() : nullptr,
          .vocabulary = vocabulary};
}

}  // namespace soliton
