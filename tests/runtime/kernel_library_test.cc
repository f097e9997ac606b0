// Whether a kernel library and a device go together, with a library that has no kernel.
#include "runtime/device/kernel_library.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "error_of.h"
#include "runtime/device/card_name.h"

namespace soliton {
namespace {

const std::string kLibrary = std::string(SOLITON_BINARY_DIR) + "/fake_kernel/kernel.so";

class FakeKernel : public testing::Test {
 protected:
  ~FakeKernel() override {
    ::unsetenv("FAKE_KERNEL_PTX");
    ::unsetenv("FAKE_KERNEL_DEVICE");
  }

  static KernelLibrary open(const char* device) {
    ::setenv("FAKE_KERNEL_DEVICE", device, 1);
    KernelLibrary library = KernelLibrary::open(kLibrary);
    library.select_device(0);
    return library;
  }
  /// Without what all begin with: the library's name, from here or from the root.
  static std::string refusal_of(const char* device) {
    const std::string text = error_of([&] { open(device); });
    const std::string end = "fake_kernel/kernel.so: ";
    const size_t at = text.find(end);
    return text.starts_with("5 ") && at != std::string::npos ? text.substr(at + end.size()) : text;
  }
};

TEST_F(FakeKernel, RunsOnCardsThatHaveMore) {
  EXPECT_EQ(refusal_of("90 132 232448 NVIDIA H200"), "no error");
  EXPECT_EQ(refusal_of("90 128 200000 NVIDIA X"), "no error");
}

TEST_F(FakeKernel, SaysWhatACardDoesNotHave) {
  EXPECT_EQ(refusal_of("90 114 232448 NVIDIA H100 PCIe"),
            "SMs: expected at least 128 (fake), got 114 (NVIDIA H100 PCIe)");
  EXPECT_EQ(refusal_of("90 132 166912 NVIDIA X"),
            "shared memory a block: expected at least 200000 (fake), got 166912 (NVIDIA X)");
}

TEST_F(FakeKernel, CodeIsOneArchitecturesAlone) {
  EXPECT_EQ(refusal_of("89 142 232448 NVIDIA L40S"),
            "compute capability: kernel built for 90 (fake), got 89 (NVIDIA L40S)");
  EXPECT_EQ(refusal_of("100 148 232448 NVIDIA B200"),
            "compute capability: kernel built for 90 (fake), got 100 (NVIDIA B200)");
}

TEST_F(FakeKernel, PtxRunsOnLaterCardsToo) {
  ::setenv("FAKE_KERNEL_PTX", "1", 1);
  EXPECT_EQ(refusal_of("80 132 232448 NVIDIA X"), "no error");
  EXPECT_EQ(refusal_of("90 132 232448 NVIDIA H200"), "no error");
  EXPECT_EQ(refusal_of("121 132 232448 NVIDIA X"), "no error");
  EXPECT_EQ(refusal_of("75 132 232448 NVIDIA X"),
            "compute capability: kernel built for 80 or later (fake), got 75 (NVIDIA X)");
  EXPECT_EQ(refusal_of("90 100 232448 NVIDIA X"), "SMs: expected at least 128 (fake), got 100 (NVIDIA X)");
}

TEST_F(FakeKernel, TakesTheRatesOfTheCardThatItIsCalledAfter) {
  EXPECT_STREQ(open("90 132 232448 NVIDIA H200 NVL").card().name, "h200");
  EXPECT_STREQ(open("90 132 232448 NVIDIA H100 PCIe").card().name, "h100-pcie");
  EXPECT_STREQ(open("90 132 232448 NVIDIA GH200").card().name, "h100-pcie") << "the first, of an unknown one";
}

TEST(CardName, IsOfWholeWords) {
  EXPECT_TRUE(is_called("NVIDIA H200", "h200"));
  EXPECT_TRUE(is_called("NVIDIA H100-PCIe", "h100-pcie"));
  EXPECT_TRUE(is_called("NVIDIA A100-SXM4-40GB", "a100-40"));
  EXPECT_TRUE(is_called("NVIDIA GeForce RTX 4060 Ti", "rtx-4060"));
  EXPECT_FALSE(is_called("NVIDIA GH200 480GB", "h200"));
  EXPECT_FALSE(is_called("NVIDIA A100-SXM4-80GB", "a100-40"));
  EXPECT_FALSE(is_called("NVIDIA L40S", "l4"));
  EXPECT_FALSE(is_called("NVIDIA A10G", "a10"));
  EXPECT_FALSE(is_called("", "h200"));
}

}  // namespace
}  // namespace soliton
