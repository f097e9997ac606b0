// A kernel with random weights, and with weights of which one tensor has become zero, verified against the folder.
#pragma once

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

#include "reference_model.h"
#include "runtime/verify/verify.h"
#include "temporary_folder.h"

namespace soliton {

/// A folder of random weights for a kernel, and an engine with the kernel.
class Verified {
 public:
  static constexpr uint64_t kSeed = 7;
  static constexpr int kContext = 64;

  explicit Verified(const std::string& kernel) : engine_(KernelLibrary::open(kernel), {.context = kContext}) {
    const ModelFacts& facts = engine_.library().descriptor().facts;
    write_hf_folder(random_weights(facts, kSeed), facts, intact());
    config_ = HfConfig::open(intact());
    source_ = std::make_unique<TensorSource>(TensorSource::open(intact()));
  }

  const TensorSource& source() const { return *source_; }
  const HfConfig& config() const { return config_; }

  /// The kernel with the weights of a folder against the intact folder.
  Verdict verify_with(const std::filesystem::path& folder) {
    engine_.load(TensorSource::open(folder), nullptr, config_.quantization_or_null());
    return verify(engine_, HostModel(*source_, config_), verification_prompt(config_));
  }
  Verdict verify_intact() { return verify_with(intact()); }

  /// The kernel with weights of which one tensor has become zero.
  Verdict verify_without(const std::string& name) {
    const Tensor& tensor = *source_->find(name);
    std::filesystem::create_directories(damaged());
    std::filesystem::copy(intact() / kFile, damaged() / kFile,
                          std::filesystem::copy_options::overwrite_existing);
    std::fstream file(damaged() / kFile, std::ios::binary | std::ios::in | std::ios::out);
    file.seekp(static_cast<std::streamoff>(tensor.data.data() - begin_of_data() + data_offset()));
    const std::string zeros(tensor.data.size(), '\0');
    file.write(zeros.data(), static_cast<std::streamsize>(zeros.size()));
    file.close();
    return verify_with(damaged());
  }

 private:
  static constexpr const char* kFile = "model.safetensors";

  std::filesystem::path intact() const { return folder_.path() / "intact"; }
  std::filesystem::path damaged() const { return folder_.path() / "damaged"; }

  /// The tensor that comes first in the file.
  const std::byte* begin_of_data() const {
    const std::byte* begin = nullptr;
    for (const std::string_view name : source_->names()) {
      const std::byte* data = source_->find(name)->data.data();
      if (begin == nullptr || data < begin) begin = data;
    }
    return begin;
  }
  /// Tensors fill the file from behind its header to its end.
  int64_t data_offset() const {
    return static_cast<int64_t>(std::filesystem::file_size(intact() / kFile)) -
           static_cast<int64_t>(source_->total_bytes());
  }

  const TemporaryFolder folder_;
  Engine engine_;
  HfConfig config_;
  std::unique_ptr<TensorSource> source_;
};

}  // namespace soliton
