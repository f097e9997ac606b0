// Every command of every document: its programs, flags and files exist, and it runs, in a folder that looks like the
// repository. What cannot run in a test stands in kNotRun, mostly with a command that comes near to it.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <map>
#include <regex>
#include <set>
#include <sstream>

#include "cli/run_program.h"
#include "documents/document.h"
#include "generator/gpu_spec.h"
#include "long_tests.h"

namespace soliton {
namespace {

namespace fs = std::filesystem;

const fs::path kRoot = SOLITON_SOURCE_DIR;
const fs::path kBuild = SOLITON_BINARY_DIR;

/// A command that is not run as it is written.
struct NotRun {
  std::string_view command;
  std::string_view why;
  std::string_view instead;  // is run; empty: nothing
};

constexpr std::string_view kCard = "needs a card";
constexpr std::string_view kTime = "takes minutes";
constexpr std::string_view kTorch = "needs torch";

constexpr std::array kNotRun = {
    // README.md
    NotRun{"cmake --preset release && cmake --build --preset release", kTime,
           R"sh(test "$(cmake --list-presets=all | grep -c '"release"')" -ge 2)sh"},
    NotRun{"./dev demo", "installs packages; see TheDemoTellsTheStoryOfTheReadme", ""},
    NotRun{"./dev install", "installs packages", "bash -n dev"},
    NotRun{"./dev test", "is what runs this test", ""},
    NotRun{"build/soliton-chat Qwen/Qwen2.5-7B-Instruct", "needs a network",
           "echo Once | build/soliton-chat models/tiny-stories -n 1"},
    NotRun{R"(build/soliton-chat Qwen/Qwen2.5-7B-Instruct -p "The capital of France is" -n 64)",
           "needs a network", R"(build/soliton-chat models/tiny-stories -p "The capital of France is" -n 1)"},
    // templates/README.md
    NotRun{
        "build/soliton-bench -k build/kernels/timeline/llama-3.1-8b-sm90.so --random-weights -n 64 -d 1024 "
        "--timeline 8b.json",
        kCard, ""},
    // generator/README.md
    NotRun{"cmake --build build --target regenerate && cmake --build build --target cuda-kernels", kTime,
           "grep -q '^build regenerate: ' build/build.ninja && grep -q '^build cuda-kernels: ' "
           "build/build.ninja"},
    NotRun{"build/soliton-gen models/llama-3.1-8b.yaml --gpu h200 --window 4 -o w4 --compile", "needs nvcc",
           "build/soliton-gen models/llama-3.1-8b.yaml --gpu h200 --window 4 -o w4"},
    NotRun{"nvcc -std=c++20 -O3 -gencode=arch=compute_80,code=compute_80 -I templates -Xcompiler "
           "-fPIC,-fvisibility=hidden -shared compute80/kernel.cu -o compute80.so",
           "needs nvcc", "grep -q 'ptx = true' compute80/plan.h"},
    NotRun{"build/soliton-bench -k w4/kernel.so --random-weights -n 128 -d 128", kCard,
           "build/soliton-bench -k build/kernels/tiny-stories-cpu.so --random-weights -n 1 -d 8 -r 1"},
    // runtime/chat/README.md
    NotRun{"build/soliton-chat --verify models/tiny-stories", "is what a test of soliton-chat does", ""},
    // runtime/bench/README.md
    NotRun{"build/soliton-bench -k build/kernels/llama-3.1-8b-sm90.so --random-weights -n 32 -r 3 --tree "
           "few-shot:20,speculative:64",
           kCard, ""},
    NotRun{"build/soliton-gen tests/models/attention-8b-sinks.yaml --gpu h200,h100 --rows 1,8,64 -o sinks "
           "--compile",
           "needs nvcc",
           "build/soliton-gen tests/models/attention-8b-sinks.yaml --gpu h200,h100 --rows 1,8,64 -o sinks"},
    NotRun{"build/soliton-bench -k sinks/kernel.so --random-weights -n 16 -d 0,4096,32768 --tree "
           "parallel:8@4096 --json-file sinks.json",
           kCard, ""},
    NotRun{"python3 runtime/bench/baseline_variants.py sinks --tests d4096,d32768,parallel:8@4096 --soliton "
           "sinks.json",
           kTorch,
           R"sh(python3 -c 'import ast; ast.parse(open("runtime/bench/baseline_variants.py").read())')sh"},
    NotRun{"build/soliton-bench --tune models/llama-3.1-8b.yaml --gpu h200 -d 128,6144 -n 64 -r 3", kCard,
           ""},
    // runtime/bench/results/README.md
    NotRun{"build/soliton-bench -k build/kernels/llama-3.1-8b-sm90.so --random-weights -n 128 -d "
           "128,1024,6144,32768,130900",
           kCard, ""},
    NotRun{"python3 runtime/bench/baseline.py models/llama-3.1-8b.yaml -d 128 -r 3 --attention grouped",
           kTorch, ""},
    NotRun{"build/soliton-bench -k build/kernels/llama-3.1-8b-gptq-sm90.so --random-weights -n 128 -d "
           "128,1024,6144",
           kCard, ""},
    NotRun{"build/soliton-bench -k build/kernels/llama-3.1-8b-sm90.so --random-weights --edge", kCard, ""},
    NotRun{"build/soliton-server --random-weights -k build/kernels/llama-3.1-8b-sm90.so", kCard, ""},
    NotRun{"python3 runtime/bench/baseline.py models/llama-3.1-8b-gptq.yaml -d 128,6144 -r 3", kTorch, ""},
    // tests/README.md
    NotRun{"./dev test -R Partition", "installs packages", ""},
    NotRun{"cmake --build build --target everything", kTime,
           "grep -q '^build everything: ' build/build.ninja"},
    NotRun{"python3 tests/kernel/cover.py build", kTime,
           R"sh(python3 -c 'import ast; ast.parse(open("tests/kernel/cover.py").read())')sh"},
    NotRun{"tests/fuzz/run.sh 60", "is what the tests Fuzz.* do", "bash -n tests/fuzz/run.sh"},
    NotRun{"cmake --build build --target card-tests", kTime,
           "grep -q '^build card-tests: ' build/build.ninja"},
    NotRun{"build/gpu-tests", kCard, ""},
    NotRun{"tests/gpu/check_card.sh build card", kCard, "bash -n tests/gpu/check_card.sh"},
    NotRun{"tests/gpu/check_families.sh build card", kCard, "bash -n tests/gpu/check_families.sh"},
    // models/tiny-stories/README.md
    NotRun{"python3 train.py            # one GPU: a few minutes", kTorch, ""},
    NotRun{"python3 train.py --smoke    # checks the whole path on a CPU in about 15 seconds", kTorch, ""},
    NotRun{"python3 train.py --experts  # one GPU: two minutes; writes ../tiny-stories-experts", kTorch, ""},
    NotRun{"python3 quantize.py          # writes ../tiny-stories-gptq, in a second", "needs numpy", ""},
    NotRun{"python3 quantize.py --check  # the same bits?", "needs numpy", ""},
};

const NotRun* not_run(const std::string& command) {
  const auto found = std::find_if(kNotRun.begin(), kNotRun.end(),
                                  [&](const NotRun& entry) { return entry.command == command; });
  return found == kNotRun.end() ? nullptr : &*found;
}

/// A folder with all that the repository has, where commands may write: into it, generated/ and models/.
class Checkout {
 public:
  Checkout() {
    for (const auto& entry : fs::directory_iterator(kRoot)) {
      const std::string name = entry.path().filename();
      if (name == ".git" || name == "build") continue;
      if (name == "generated" || name == "models") {
        fs::create_directory(path() / name);
        for (const auto& inner : fs::directory_iterator(entry)) {
          fs::create_symlink(inner.path(), path() / name / inner.path().filename());
        }
      } else {
        fs::create_symlink(entry.path(), path() / name);
      }
    }
    fs::create_symlink(kBuild, path() / "build");
  }

  const fs::path& path() const { return folder_.path(); }

  /// Runs a command by bash. What it wrote is read from output().
  int run(const std::string& command) const {
    constexpr const char* kSeconds = "120";
    write_text(home_.path() / "command", command + "\n");
    const std::string home = home_.path();
    const std::string line = "cd '" + path().string() + "' && env -u SOLITON_KERNELS HOME='" + home +
                             "' XDG_CACHE_HOME='" + home + "/cache' timeout " + kSeconds + " bash -e '" +
                             home + "/command' < /dev/null > '" + home + "/out' 2> '" + home + "/err'";
    return std::system(line.c_str());
  }
  std::string output() const { return read_text(home_.path() / "out"); }
  std::string errors() const { return read_text(home_.path() / "err"); }

 private:
  TemporaryFolder folder_;
  TemporaryFolder home_;
};

/// Judges the words of a command by what is there, without running it.
class Words {
 public:
  Words(const Document& document, const Mention& command) : document_(document), command_(command) {}

  void check() {
    const std::string text = command_.text.substr(0, command_.text.find(" #"));
    std::istringstream stream(text);
    std::vector<std::string> words;
    for (std::string word; stream >> word;) {
      if (word != "&&") words.push_back(word);
      if (word == "&&" || stream.peek() == EOF) {
        check_simple(words);
        words.clear();
      }
    }
  }

 private:
  void check_simple(const std::vector<std::string>& words) {
    const std::string& program = words.at(0);
    SCOPED_TRACE(document_.at(command_.line) + ": " + program);
    if (program == "./dev") {
      EXPECT_NE(read_text(kRoot / "dev").find("\n  " + words.at(1) + ") "), std::string::npos) << words[1];
    } else if (program == "nvcc") {
      check_options_of_nvcc(words);
    } else if (program == "python3") {
      check_script(words.at(1), words);
    } else if (program.ends_with(".sh")) {
      check_script(program, words);
    } else if (program.ends_with("-tests")) {
      const std::string target = fs::path(program).filename();
      EXPECT_NE(read_text(kRoot / "tests" / "CMakeLists.txt").find("soliton_add_tests(" + target + " "),
                std::string::npos);
    } else if (program.starts_with("build/") || program.starts_with("installed/bin/")) {
      check_flags(program, words);
    } else {
      EXPECT_TRUE(program == "cmake" || program == "mkdir") << "is not known to this test";
    }
    for (const std::string& word : words) {
      std::istringstream list(word);
      for (std::string path; std::getline(list, path, ',');) check_path(path);
    }
  }

  void check_options_of_nvcc(const std::vector<std::string>& words) {
    // Options of all cards stand in the build; the target is the card's.
    const GpuSpec h200 = load_gpu_spec(find_gpu_spec("h200", default_gpus_dir()));
    const std::string build = read_text(kRoot / "templates" / "CMakeLists.txt") +
                              " -gencode=" + nvcc_target(h200) +
                              " -gencode=" + nvcc_target(with_ptx(h200, 80));
    for (const std::string& word : words) {
      const bool is_option = word.starts_with("-") && word != "-o";
      EXPECT_TRUE(!is_option || build.find(word) != std::string::npos) << word;
    }
  }

  void check_script(const fs::path& script, const std::vector<std::string>& words) {
    const fs::path beside = kRoot / document_.folder() / script;
    const fs::path path = fs::exists(beside) ? beside : kRoot / script;
    ASSERT_TRUE(fs::is_regular_file(path)) << script;
    const std::string text = read_text(path);
    for (const std::string& word : words) {
      EXPECT_TRUE(!word.starts_with("-") || text.find("\"" + word + "\"") != std::string::npos) << word;
    }
  }

  void check_flags(const std::string& program, const std::vector<std::string>& words) {
    const std::string name = fs::path(program).filename();
    const TemporaryFolder folder;
    const std::string help = Process(name, {"--help"}, folder.path()).wait().out;
    for (const std::string& word : words) {
      if (!word.starts_with("-")) continue;
      EXPECT_TRUE(std::regex_search(help, std::regex("[ ,]" + word + "[ ,:]"))) << word;
    }
  }

  /// Sources have to be there, kernels to be generated; the rest is made or brought by commands before.
  void check_path(const std::string& word) const {
    if (word.starts_with("build/kernels/")) {
      EXPECT_TRUE(fs::exists(kRoot / "generated" / fs::path(word).stem())) << word;
    }
    if (word.starts_with("models/my-model")) return;
    for (const char* top : {"models/", "tests/", "runtime/", "generator/", "templates/", "generated/"}) {
      EXPECT_TRUE(!word.starts_with(top) || fs::exists(kRoot / word)) << word;
    }
  }

  const Document& document_;
  const Mention& command_;
};

TEST(Commands, NameWhatThereIs) {
  int num_commands = 0;
  for (const Document& document : read_documents(kRoot)) {
    for (const Mention& command : commands_of(document)) {
      Words(document, command).check();
      ++num_commands;
    }
  }
  EXPECT_GE(num_commands, 30);
}

TEST(Commands, Run) {
  SOLITON_LONG_RUNS_ONLY("NameWhatThereIs reads them");
  int num_run = 0;
  for (const Document& document : read_documents(kRoot)) {
    const Checkout checkout;  // commands of a document build on one another
    for (const Mention& command : commands_of(document)) {
      const NotRun* exception = not_run(command.text);
      const std::string text = exception == nullptr ? command.text : std::string(exception->instead);
      if (text.empty()) continue;
      EXPECT_EQ(checkout.run(text), 0) << document.at(command.line) << ": " << text << "\n"
                                       << checkout.output() << checkout.errors();
      ++num_run;
    }
  }
  EXPECT_GE(num_run, 15);
}

TEST(Commands, ExceptionsAreOfDocuments) {
  std::set<std::string> commands;
  for (const Document& document : read_documents(kRoot)) {
    for (const Mention& command : commands_of(document)) commands.insert(command.text);
  }
  for (const NotRun& exception : kNotRun) {
    EXPECT_TRUE(commands.contains(std::string(exception.command))) << exception.command;
  }
}

/// What ./dev demo prints in the README: lines between the notes and the rates, joined.
std::string story_of_the_readme() {
  for (const CodeBlock& block : read_document(kRoot, "README.md").blocks) {
    if (block.lines.empty() || block.lines[0] != "$ ./dev demo") continue;
    std::string story;
    bool is_story = false;
    for (const std::string& line : block.lines) {
      if (line.starts_with("[ Prompt: ")) return story;
      if (is_story) story += (story.empty() ? "" : " ") + line;
      is_story = is_story || line.starts_with("No card: ");
    }
  }
  return "";
}

TEST(Commands, TheDemoTellsTheStoryOfTheReadme) {
  const Checkout checkout;
  ASSERT_EQ(checkout.run("build/soliton-chat -m models/tiny-stories -p 'Once upon a time' -n 10 -k "
                         "build/kernels/tiny-stories-cpu.so"),
            0)
      << checkout.errors();
  std::string told = checkout.output();
  while (told.ends_with('\n')) told.pop_back();
  EXPECT_GE(told.size(), 30u);
  EXPECT_EQ(story_of_the_readme().substr(0, told.size()), told);
}

}  // namespace
}  // namespace soliton
