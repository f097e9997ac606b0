// What the assembler said of every kernel that nvcc built: no stack frame, no spills.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace soliton {
namespace {

TEST(Ptxas, NoKernelSpillsOrUsesLocalMemory) {
  int kernels = 0;
  std::vector<std::filesystem::directory_entry> entries;
  for (const char* folder : {SOLITON_KERNELS, SOLITON_KERNELS "/card", SOLITON_KERNELS "/cards"}) {
    for (const auto& entry : std::filesystem::directory_iterator(folder)) entries.push_back(entry);
  }
  for (const auto& entry : entries) {
    if (entry.path().extension() != ".ptxas") continue;
    std::ifstream report(entry.path());
    int functions = 0;
    for (std::string line; std::getline(report, line);) {
      if (line.find("bytes stack frame") == std::string::npos) continue;
      ++functions;
      EXPECT_NE(line.find(" 0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads"),
                std::string::npos)
          << entry.path() << ": " << line;
    }
    EXPECT_GT(functions, 0) << entry.path();
    ++kernels;
  }
  if (kernels == 0) GTEST_SKIP() << "no nvcc here: no kernel was built for a card";
}

}  // namespace
}  // namespace soliton
