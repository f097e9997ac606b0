#include "runtime/weights/gguf/exact.h"

#include <algorithm>
#include <atomic>
#include <set>
#include <thread>

#include "runtime/weights/tensor_values.h"

namespace soliton {
namespace {

constexpr int64_t kPieceElements = 1 << 20;

int64_t elements_of(const Tensor& tensor) {
  return static_cast<int64_t>(tensor.data.size()) / (dtype_bits(tensor.dtype) / 8);
}

bool is_wider(const Tensor* tensor) {
  return tensor != nullptr && (tensor->dtype == DType::kF16 || tensor->dtype == DType::kF32);
}

bool is_exact(const Tensor& tensor) {
  const int64_t count = elements_of(tensor);
  const int64_t num_pieces = (count + kPieceElements - 1) / kPieceElements;
  std::atomic<int64_t> next{0};
  std::atomic<bool> exact{true};
  const auto work = [&] {
    for (int64_t piece = next++; piece < num_pieces && exact; piece = next++) {
      const int64_t first = piece * kPieceElements;
      if (!is_exact_in_bf16(tensor, first, std::min(kPieceElements, count - first))) exact = false;
    }
  };
  std::vector<std::jthread> threads;
  const auto most = static_cast<int64_t>(std::thread::hardware_concurrency());
  for (int64_t i = 1; i < std::min(most, num_pieces); ++i) threads.emplace_back(work);
  work();
  threads.clear();
  return exact;
}

}  // namespace

void check_exact(ModelTensors& tensors) {
  std::set<const Tensor*> read;
  const auto check = [&](const Tensor* tensor) {
    if (!is_wider(tensor) || !read.insert(tensor).second || is_exact(*tensor)) return;
    throw file_error(ExitCode::kMismatch, *tensor->file,
                     "{}: expected values that bf16 has, got others as {}: no kernel computes with them",
                     tensor->name, dtype_name(tensor->dtype));
  };
  for (const auto& layers : tensors.matrices) {
    for (const auto& [layer, parts] : layers) {
      for (const LinearTensors& part : parts) check(part.floats.tensor());
    }
  }
  for (const Tensor* norm : tensors.norms) check(norm);
  for (const Tensor* norm : tensors.head_norms) check(norm);
  const Tensor* const embedding = tensors.embedding;
  if (!is_wider(embedding) || read.contains(embedding) || is_exact(*embedding)) return;
  tensors.remarks.push_back(fmt::format("{}: {}: rounded from {} to bf16", *embedding->file, embedding->name,
                                        dtype_name(embedding->dtype)));
}

}  // namespace soliton
