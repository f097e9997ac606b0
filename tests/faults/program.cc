// What the tests of faults have a program do: faults-program make CACHE | save FILE | remember FILE LINE.
#include "runtime/program/program.h"

#include <fmt/format.h>

#include <string>
#include <string_view>

#include "models/model_config.h"
#include "runtime/answer/conversation.h"
#include "runtime/chat/history_file.h"
#include "runtime/make/make_kernel.h"

namespace soliton {
namespace {

constexpr int kNumTurns = 100;

/// The kernel of a small model for the emulation, by the compiler that CXX names.
void make(const char* cache) {
  DeviceInfo device{};
  std::string_view("CPU emulation").copy(device.name, sizeof(device.name) - 1);
  const MakeKernelRequest request{
      .facts = load_model_config(SOLITON_SOURCE_DIR "/tests/models/micro.yaml").facts,
      .name = "micro",
      .source = "micro/config.json",
      .kernels = {},
      .cache = cache,
      .card = device};
  print(find_or_make_kernel(request).string() + "\n");
}

void save(const char* file) {
  Conversation conversation;
  for (int i = 0; i < kNumTurns; ++i) conversation.turns.push_back(fmt::format("turn {}", i));
  save_conversation(conversation, file);
  print("saved\n");
}

void remember(const char* file, const char* line) {
  HistoryFile history(file);
  if (const std::error_code failed = history.append(line))
    throw file_error(ExitCode::kNotFound, file, "{}", failed.message());
  print("remembered\n");
}

int run(int argc, char** argv) {
  const std::string_view what = argc > 2 ? argv[1] : "";
  if (what == "make") make(argv[2]);
  if (what == "save") save(argv[2]);
  if (what == "remember" && argc > 3) remember(argv[2], argv[3]);
  return 0;
}

}  // namespace
}  // namespace soliton

int main(int argc, char** argv) {
  return soliton::run_program("faults/program", soliton::run, argc, argv);
}
