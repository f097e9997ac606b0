#include "kernel/kernel_fixture.h"
#include <chrono>
namespace soliton { namespace {
TEST(Tmp, A) {
  KernelUnderTest kernel("micro-17");
  for (int policy = 0; policy < 3; ++policy)
  for (int n : {1, 2, 4}) {
    kernel.emulation().copies = static_cast<CopyPolicy>(policy);
    auto t = std::chrono::steady_clock::now();
    kernel.decode_from(0, kernel.prompt(n), 1);
    printf("policy %d n %d: %.3f s\n", policy, n, std::chrono::duration<double>(std::chrono::steady_clock::now() - t).count()); fflush(stdout);
  }
}
}}
