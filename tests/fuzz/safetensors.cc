// Checkpoints: a whole file, or ('{' comes first) a header alone, around which a sound file is built: its length
// before it, and behind it as many zeros as an input of its length can ask for.
#include "runtime/safetensors.h"

#include <algorithm>

#include "fuzz/fuzz_target.h"

namespace soliton {
namespace {

constexpr size_t kMaxDataBytes = 4096;

/// The largest number in the text up to kMaxDataBytes: most likely where the last tensor ends.
size_t data_bytes(std::string_view header) {
  size_t most = 0;
  size_t number = 0;
  for (const char c : header) {
    const bool is_digit = c >= '0' && c <= '9';
    number = is_digit ? std::min<size_t>(10 * number + static_cast<size_t>(c - '0'), kMaxDataBytes + 1) : 0;
    if (number <= kMaxDataBytes) most = std::max(most, number);
  }
  return most;
}

std::string with_length(std::string_view header) {
  std::string file(sizeof(uint64_t), '\0');
  for (size_t i = 0; i < file.size(); ++i) file[i] = static_cast<char>(uint64_t{header.size()} >> (8 * i));
  file += header;
  file.append(data_bytes(header), '\0');
  return file;
}

void read(const std::filesystem::path& path) {
  const TensorSource source = TensorSource::open(path);
  uint64_t total = 0;
  unsigned sum = 0;
  for (const std::string_view name : source.names()) {
    const Tensor& tensor = *source.find(name);
    int64_t elements = 1;
    for (const int64_t extent : tensor.shape) elements *= extent;
    const int64_t bits = elements * dtype_bits(tensor.dtype);
    expect(bits % 8 == 0 && static_cast<uint64_t>(bits / 8) == tensor.data.size(),
           "bytes that are shape x type");
    for (const std::byte value : tensor.data) sum += static_cast<unsigned>(value);
    total += tensor.data.size();
  }
  expect(total == source.total_bytes(), "a total that is the sum");
  volatile unsigned sink = sum;
  static_cast<void>(sink);
}

}  // namespace
}  // namespace soliton

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text = soliton::as_text(data, size);
  const std::string file = text.starts_with('{') ? soliton::with_length(text) : std::string(text);
  soliton::accepts([&] { soliton::read(soliton::fuzz_folder().write("model.safetensors", file)); });
  return 0;
}
