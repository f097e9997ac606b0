// Programs that meet a disk that is full or fails, a system without memory, files or threads, and a kill at any moment: never a
// wrong answer, half a file, a crash or a hang.
#include <sys/stat.h>

#include "faults/faulty_run.h"
#include "models/kept_file.h"
#include "runtime/answer/conversation.h"
#include "runtime/chat/history_file.h"
#include "sanitized.h"

namespace soliton::faults {
namespace {

namespace fs = std::filesystem;

const std::string kModels = std::string(SOLITON_SOURCE_DIR) + "/models/";
const std::vector<Kind> kStartKinds = {kMalloc, kWrite, kMmap, kOpen, kThread};

class Faults : public testing::Test {
 protected:
  void SetUp() override {
    if (kSanitized) GTEST_SKIP() << "sanitizers have an allocator of their own";
  }
  const fs::path& path() const { return folder_.path(); }

  /// What a program prints where nothing fails.
  static std::string right(const Command& command) {
    const Outcome outcome = run(command);
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    return outcome.out;
  }

 private:
  TemporaryFolder folder_;
};

TEST_F(Faults, OfAnAnswer) {
  const Command chat{"soliton-chat",
                     {"-m", kModels + "tiny-stories", "-p", "Once", "-n", "1", "-k",
                      std::string(SOLITON_KERNELS) + "/tiny-stories-cpu.so"},
                     path()};
  sweep({.command = chat, .kinds = kStartKinds, .right = right(chat), .most = 3, .most_in_long = 300});
}

TEST_F(Faults, OfAGeneratedKernel) {
  const Command gen{"soliton-gen", {kModels + "tiny-stories.yaml", "--gpu", "h100", "-o", "out"}, path()};
  const std::string out = right(gen);
  const std::string plan = read_text(path() / "out" / "plan.h");
  sweep({.command = gen,
         .kinds = {kMalloc, kRead, kWrite, kOpen, kRename},
         .right = out,
         .prepare = [&] { fs::remove_all(path() / "out"); },
         .check =
             [&] {
               if (fs::exists(path() / "out")) {
                 EXPECT_EQ(read_text(path() / "out" / "plan.h"), plan);
               }
             }});
}

// Files of a plan go together: those of one and of another would compile to a kernel that is neither.
class FaultsOfAFolder : public Faults, public testing::WithParamInterface<bool> {
 protected:
  using Files = std::map<std::string, std::string>;
  static Files files_in(const fs::path& folder) {
    Files files;
    for (const auto& entry : fs::directory_iterator(folder)) {
      if (entry.is_regular_file()) files[entry.path().filename().string()] = read_text(entry.path());
    }
    return files;
  }
};

TEST_P(FaultsOfAFolder, AReplacedOneIsTheOldOrTheNewOne) {
  const auto gen = [&](const std::string& rows) {
    return Command{
        "soliton-gen",
        {kModels + "tiny-stories.yaml", "--gpu", "h100", "--rows", rows, "--no-tuned", "-o", "out"},
        path()};
  };
  const fs::path out = path() / "out";
  const auto prepare = [&](const std::string& rows) {
    fs::remove_all(out);
    fs::create_directory(out);
    write_text(out / "notes", "of the user\n");
    return right(gen(rows));
  };
  const std::string said = prepare("1,8");
  const Files after = files_in(out);
  prepare("1");
  const Files before = files_in(out);
  EXPECT_NE(before, after);
  sweep({.command = gen("1,8"),
         .kinds = {kWrite, kOpen, kRename},
         .right = said,
         .most = 12,
         .kills = GetParam(),
         .prepare =
             [&] {
               fs::remove_all(out);
               fs::create_directory(out);
               for (const auto& [name, text] : before) write_text(out / name, text);
             },
         .check =
             [&] {
               const Files now = files_in(out);
               EXPECT_TRUE(now == before || now == after);
               const auto num_entries = std::distance(fs::directory_iterator(path()), {});
               EXPECT_TRUE(GetParam() || num_entries == 1) << "something is left beside the folder";
             }});
}

INSTANTIATE_TEST_SUITE_P(, FaultsOfAFolder, testing::Bool(),
                         [](const auto& info) { return info.param ? "AtAKill" : "AtAnError"; });

// What it says of this machine changes with what it can see. Of kernels the emulation's alone: what CUDA's runtime does of
// itself when a library is opened ends the process without memory.
TEST_F(Faults, OfADoctor) {
  fs::create_directory(path() / "kernels");
  fs::create_symlink(std::string(SOLITON_KERNELS) + "/tiny-stories-cpu.so",
                     path() / "kernels" / "tiny-stories-cpu.so");
  const Command doctor{
      "soliton-doctor", {"--json"}, path(), {"SOLITON_KERNELS=" + (path() / "kernels").string()}};
  const std::map<std::string, long> counts = count_calls(doctor);
  for (const Kind kind : {kMalloc, kRead, kWrite, kMmap, kOpen}) {
    for (const long n : choose(counts.at(kKinds[kind].name), long_tests() ? 2000 : 3)) {
      SCOPED_TRACE(fmt::format("{}:{}", kKinds[kind].name, n));
      const Outcome outcome =
          run(doctor, {kPreload, fmt::format("SOLITON_FAULT={}:{}", kKinds[kind].name, n)});
      EXPECT_LE(outcome.status, 9) << outcome.err;
    }
  }
}

/// A cache with a quick compiler.
class FaultsOfTheCache : public Faults {
 protected:
  FaultsOfTheCache() {
    fs::create_directory(path() / "tools");
    write_text(path() / "tools" / "compiler",
               "#!/bin/sh\nif [ \"$1\" = --version ]; then echo 'tools V1.0 1.0'; exit; fi\n"
               "for last; do :; done; exec cp '" SOLITON_TEST_KERNELS "/micro-1.so' \"$last\"\n");
    ::chmod((path() / "tools" / "compiler").c_str(), 0700);
    right_ = right(make_);
  }

  /// Nothing in the cache is half a kernel, and the next one to need it has it whole.
  void expect_whole() const {
    for (const auto& entry : fs::directory_iterator(cache())) {
      EXPECT_TRUE(entry.path().extension() != ".so" || is_sealed(entry.path()));
    }
    const Outcome next = run(make_);
    EXPECT_EQ(next.status, 0) << next.err;
    EXPECT_EQ(next.out, right_);
    EXPECT_TRUE(is_sealed(fs::path(right_.substr(0, right_.size() - 1))));
    for (const auto& entry : fs::directory_iterator(cache())) {
      const bool is_scratch =
          entry.path().filename().string().starts_with(".making-");  // if that run made none
      EXPECT_TRUE(is_scratch || entry.path().extension() == ".so") << entry.path();
    }
  }
  void clear() const { fs::remove_all(cache()); }
  fs::path cache() const { return path() / "cache"; }

  const Command make_{"faults/program",
                      {"make", (path() / "cache").string()},
                      path(),
                      {"CXX=" + (path() / "tools" / "compiler").string()}};
  std::string right_;
};

TEST_F(FaultsOfTheCache, LeaveNoHalfAKernel) {
  Command named = make_;
  sweep({.command = named,
         .kinds = {kMalloc, kRead, kWrite, kFsync, kMmap, kOpen, kRename},
         .right = right_,
         .most = 3,
         .prepare = [&] { clear(); },
         .check =
             [&] {
               if (fs::exists(cache())) expect_whole();
             }});
}

TEST_F(FaultsOfTheCache, KillsLeaveNoHalfAKernel) {
  sweep({.command = make_,
         .kinds = {kWrite, kFsync, kRename, kOpen},
         .right = right_,
         .most = 3,
         .kills = true,
         .prepare = [&] { clear(); },
         .check =
             [&] {
               if (fs::exists(cache())) expect_whole();
             }});
}

class FaultsOfFiles : public Faults, public testing::WithParamInterface<bool> {};

TEST_P(FaultsOfFiles, ASavedChatIsTheOldOrTheNewOne) {
  const fs::path file = path() / "chat.json";
  const Conversation before{.system = "before", .turns = {"a", "b"}};
  const Command save{"faults/program", {"save", file.string()}, path()};
  const std::string said = right(save);
  const Conversation after = load_conversation(file);
  sweep({.command = save,
         .kinds = GetParam() ? std::vector<Kind>{kWrite, kFsync, kRename}
                             : std::vector<Kind>{kMalloc, kWrite, kFsync, kMmap, kOpen, kRename},
         .right = said,
         .kills = GetParam(),
         .prepare = [&] { save_conversation(before, file); },
         .check =
             [&] {
               const Conversation now = load_conversation(file);
               EXPECT_TRUE(now == before || now == after);
             }});
}

TEST_P(FaultsOfFiles, ARememberedLineIsWholeOrNotThere) {
  const fs::path file = path() / "state" / "history";
  const Command remember{"faults/program", {"remember", file.string(), "a new line"}, path()};
  fs::create_directory(path() / "state");
  sweep({.command = remember,
         .kinds = GetParam() ? std::vector<Kind>{kWrite} : std::vector<Kind>{kMalloc, kRead, kWrite, kOpen},
         .right = "remembered\n",
         .kills = GetParam(),
         .prepare = [&] { write_text(file, "one\ntorn"); },
         .check =
             [&] {
               const std::vector<std::string> lines = HistoryFile(file).lines();
               const std::vector<std::string> old = {"one", "torn"};
               EXPECT_TRUE(lines == old || lines == std::vector<std::string>({"one", "torn", "a new line"}))
                   << fmt::format("{}", lines.back());
             }});
}

INSTANTIATE_TEST_SUITE_P(, FaultsOfFiles, testing::Bool(),
                         [](const auto& info) { return info.param ? "AtAKill" : "AtAnError"; });

}  // namespace
}  // namespace soliton::faults
