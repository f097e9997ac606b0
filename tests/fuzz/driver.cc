// Runs a fuzz target where libFuzzer, which is clang's, is not at hand: mutates seeds at random, knowing nothing of
// what the target does with them. Its flags are some of libFuzzer's: -max_total_time=SECONDS -runs=N -seed=N
// -timeout=SECONDS -max_len=BYTES -artifact_prefix=PREFIX FOLDER|FILE... It runs all seeds, and then N mutated inputs or
// as many as the time allows. What ends the program is left in PREFIXcrash-input.
#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <string_view>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);
extern "C" __attribute__((weak)) void __sanitizer_set_death_callback(void (*callback)());

namespace {

namespace fs = std::filesystem;

unsigned max_unit_seconds = 60;
size_t max_unit_bytes = 1 << 16;
std::string unit;                           // being run
std::string artifact_path = "crash-input";  // where it is left

/// Only what a signal handler may call.
void save_unit() {
  const int file = ::open(artifact_path.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  if (file < 0 || ::write(file, unit.data(), unit.size()) < 0) return;
  ::close(file);
  constexpr std::string_view kSaid = "fuzz driver: the input is kept, see -artifact_prefix\n";
  static_cast<void>(::write(STDERR_FILENO, kSaid.data(), kSaid.size()));
}

void save_and_end(int signal) {
  save_unit();
  ::signal(signal, SIG_DFL);
  ::raise(signal);
}

/// Words, numbers and marks of all seeds: what formats are made of.
std::vector<std::string> tokens_of(const std::vector<std::string>& seeds) {
  std::vector<std::string> tokens = {
      "0",  "-1", "1e999",   "18446744073709551616", "null", "{}",          "[]", "\"\"",
      "\n", " ",  "\\u0000", std::string(1, '\0'),   "\xff", "\xed\xa0\x80"};
  const auto is_word = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.';
  };
  for (const std::string& seed : seeds) {
    for (size_t begin = 0; begin < seed.size();) {
      size_t end = begin + 1;
      while (is_word(seed[begin]) && end < seed.size() && is_word(seed[end])) ++end;
      tokens.push_back(seed.substr(begin, end - begin));
      begin = end;
    }
  }
  std::sort(tokens.begin(), tokens.end());
  tokens.erase(std::unique(tokens.begin(), tokens.end()), tokens.end());
  return tokens;
}

class Mutator {
 public:
  Mutator(const std::vector<std::string>& seeds, uint64_t seed)
      : seeds_(seeds), tokens_(tokens_of(seeds)), random_(seed) {}

  std::string next() {
    std::string text = one_of(seeds_);
    for (size_t count = 1 + below(1 + below(8)); count > 0; --count) mutate(text);
    if (text.size() > max_unit_bytes) text.resize(max_unit_bytes);
    return text;
  }

 private:
  size_t below(size_t limit) { return limit == 0 ? 0 : random_() % limit; }
  const std::string& one_of(const std::vector<std::string>& list) { return list[below(list.size())]; }

  void mutate(std::string& text) {
    const size_t at = below(text.size() + 1);
    const size_t length = below(std::min<size_t>(text.size() - at, size_t{1} << below(10)) + 1);
    switch (below(8)) {
      case 0:
        if (at < text.size()) text[at] = static_cast<char>(text[at] ^ (1 << below(8)));
        break;
      case 1:
        if (at < text.size()) text[at] = static_cast<char>(random_());
        break;
      case 2:
        text.erase(at, length);
        break;
      case 3:
        text.insert(below(text.size() + 1), text.substr(at, length));
        break;
      case 4:
        text.insert(at, one_of(tokens_));
        break;
      case 5: {  // a whole word for another
        size_t end = at;
        while (end < text.size() && std::isalnum(static_cast<unsigned char>(text[end]))) ++end;
        text.replace(at, end - at, one_of(tokens_));
        break;
      }
      case 6: {  // the rest from another seed
        const std::string& other = one_of(seeds_);
        text = text.substr(0, at) + other.substr(below(other.size() + 1));
        break;
      }
      default: {  // nested deeply, or as long as may be
        const std::string piece = length < 16 ? text.substr(at, length) : one_of(tokens_);
        const size_t most = below(16) == 0 ? max_unit_bytes / std::max<size_t>(piece.size(), 1) : 300;
        std::string many;
        for (size_t i = below(most); i > 0; --i) many += piece;
        text.insert(at, many);
      }
    }
  }

  const std::vector<std::string>& seeds_;
  const std::vector<std::string> tokens_;
  std::mt19937_64 random_;
};

void run_unit(std::string text) {
  unit = std::move(text);
  ::alarm(max_unit_seconds);
  // A copy of exactly this size, so that a sanitizer sees a read past its end.
  const std::vector<uint8_t> bytes(unit.begin(), unit.end());
  LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
}

std::string read_file(const fs::path& path) {
  std::ifstream stream(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

}  // namespace

int main(int argc, char** argv) {
  double seconds = 0;
  size_t num_runs = 0;  // of mutated inputs; 0: as many as the time allows
  uint64_t seed = 1;
  std::vector<fs::path> files;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    const std::string value = argument.substr(argument.find('=') + 1);
    if (argument.starts_with("-max_total_time=")) {
      seconds = std::stod(value);
    } else if (argument.starts_with("-runs=")) {
      num_runs = std::stoull(value);
    } else if (argument.starts_with("-timeout=")) {
      max_unit_seconds = static_cast<unsigned>(std::stoul(value));
    } else if (argument.starts_with("-max_len=")) {
      max_unit_bytes = std::stoull(value);
    } else if (argument.starts_with("-artifact_prefix=")) {
      artifact_path = value + "crash-input";
    } else if (argument.starts_with("-seed=")) {
      seed = std::stoull(value);
    } else if (argument.starts_with("-")) {
      continue;  // another of libFuzzer's
    } else if (fs::is_directory(argument)) {
      for (const auto& entry : fs::directory_iterator(argument)) files.push_back(entry.path());
    } else if (fs::exists(argument)) {
      files.emplace_back(argument);
    }
  }
  std::sort(files.begin(), files.end());
  std::vector<std::string> seeds;
  for (const fs::path& file : files) seeds.push_back(read_file(file));
  if (seeds.empty()) {
    fmt::print(stderr, "{}: expected a folder of seeds, got none\n", argv[0]);
    return 2;
  }
  for (const int signal : {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGALRM}) ::signal(signal, save_and_end);
  if (__sanitizer_set_death_callback != nullptr) __sanitizer_set_death_callback(save_unit);

  for (const std::string& text : seeds) run_unit(text);
  Mutator mutator(seeds, seed);
  size_t count = seeds.size();
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  const auto goes_on = [&] {
    if (num_runs > 0) return count < seeds.size() + num_runs;
    return std::chrono::steady_clock::now() < end;
  };
  for (; goes_on(); ++count) run_unit(mutator.next());
  fmt::print("{} inputs, from {} seeds\n", count, seeds.size());
  return 0;
}
