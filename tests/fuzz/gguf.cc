// GGUF files: of each that can be opened the facts, the tokenizer, the chat template and the tensors are read. Behind "cut "
// stands one that is cut short while it is read.
#include "models/gguf.h"

#include "fuzz/fuzz_target.h"
#include "models/hf_config.h"
#include "runtime/text/chat_template/chat_template.h"
#include "runtime/text/tokenizer.h"
#include "runtime/weights/model_tensors.h"
#include "runtime/weights/tensor_values.h"

namespace soliton {
namespace {

constexpr std::string_view kCut = "cut ";
constexpr int64_t kMaxElements = 1 << 12;  // that are unpacked

void check_tensors(const GgufFile& file) {
  for (const GgufTensor& tensor : file.tensors()) {
    const GgufTypeFacts& type = gguf_type(tensor.type);
    int64_t elements = 1;
    for (const int64_t extent : tensor.shape) elements *= extent;
    expect(std::ssize(tensor.data) == elements / type.block_columns * type.block_bytes,
           "bytes that are shape x type");
    expect(file.find(tensor.name) == &tensor, "a tensor that is found by its name");
  }
}

void unpack(const TensorSource& source) {
  std::vector<uint16_t> values(kMaxElements);
  for (const std::string_view name : source.names()) {
    const Tensor& tensor = *source.find(name);
    int64_t elements = 1;
    for (const int64_t extent : tensor.shape) elements *= extent;
    if (elements <= kMaxElements) read_bf16(tensor, 0, elements, values.data());
  }
}

void read(const std::filesystem::path& path) {
  accepts([&] { check_tensors(GgufFile::open(path)); });
  accepts([&] {
    const Tokenizer tokenizer = Tokenizer::open(path);
    const std::vector<int> ids = tokenizer.encode("A b\u00e9 <s>12\n", true);
    for (const int id : ids) expect(id >= 0 && id < tokenizer.vocabulary_size(), "ids of the vocabulary");
    static_cast<void>(tokenizer.decode(ids));
  });
  accepts([&] { ChatTemplate::open(path); });
  accepts([&] {
    const HfConfig config = HfConfig::open(path);
    const TensorSource source = TensorSource::open(path);
    unpack(source);
    find_tensors(source, config.quantization_or_null(), config.facts, config.checkpoint);
  });
}

}  // namespace
}  // namespace soliton

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace soliton;
  std::string_view text = as_text(data, size);
  const bool is_cut = text.starts_with(kCut);
  if (is_cut) text.remove_prefix(kCut.size());
  const auto path = fuzz_folder().write("m.gguf", text);
  if (!is_cut) {
    read(path);
    return 0;
  }
  accepts([&] {
    const TensorSource source = TensorSource::open(path);
    std::filesystem::resize_file(path, text.size() / 2);
    const bool is_whole = accepts([&] {
      read_whole(source, [&] {
        unpack(source);
        return 0;
      });
    });
    expect(!is_whole, "a file that is known to be cut");
  });
  return 0;
}
