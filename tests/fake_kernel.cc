// A kernel library of no kernel, for what a library is judged by before anything runs. It needs compute capability 9.0,
// 128 SMs and 200,000 bytes of shared memory, for cards "h100-pcie" and "h200"; FAKE_KERNEL_PTX makes it one of PTX of
// compute capability 8.0, FAKE_KERNEL_FACTS_HASH one of a model with that hash. Its device is what FAKE_KERNEL_DEVICE says:
// compute capability, SMs, shared memory and name.
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "layout/library.h"

namespace {

using namespace soliton;

const char* environment_or(const char* name, const char* fallback) {
  const char* const value = std::getenv(name);
  return value == nullptr ? fallback : value;
}

int open_device(int, DeviceInfo* info) {
  *info = {};
  return std::sscanf(environment_or("FAKE_KERNEL_DEVICE", "90 132 232448 NVIDIA H200"), "%d %d %d %127[^\n]",
                     &info->compute_capability, &info->num_sms, &info->max_shared_bytes, info->name) == 4
             ? 0
             : 1;
}

ModelDescriptor describe() {
  const bool ptx = std::getenv("FAKE_KERNEL_PTX") != nullptr;
  ModelDescriptor model{};
  model.gpu = "fake";
  model.page_layout = kPageLayoutVersion;
  model.compute_capability = ptx ? 80 : 90;
  model.ptx = ptx;
  model.num_cards = 2;
  model.cards[0].name = "h100-pcie";
  model.cards[1].name = "h200";
  model.facts_hash = std::strtoull(environment_or("FAKE_KERNEL_FACTS_HASH", "0"), nullptr, 10);
  return model;
}

}  // namespace

extern "C" const soliton::Library* soliton_library() {
  static ModelDescriptor model;
  model = describe();
  static Descriptor descriptor{};
  descriptor.model = &model;
  descriptor.num_ctas = 128;
  descriptor.shared_bytes = 200'000;
  static Library library{};
  library.abi = kLibraryAbi;
  library.descriptors = &descriptor;
  library.num_kernels = 1;
  library.last_error = [] { return "no such device"; };
  library.open = open_device;
  return &library;
}
