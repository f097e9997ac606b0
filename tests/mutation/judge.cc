// Judges mutants of the templates: each runs in a process of its own on kernels that hold all of them (see mutate.py), and is
// killed by the first launch that is reported, crashes, does not end, or gives other bits than kernels as they are. Kernels,
// weights and caches are made once; a mutant's process is a fork.
//
// judge NUM_MUTANTS [--trials NAME] [--jobs N] [--limit SECONDS] [--first-batch N] [--only ID,ID...]: prints a
// line a mutant, as it is killed; in the end those that are not. A mutant has survived when every kernel that reaches it has
// run; what the limit leaves out is unfinished.
#include <semaphore.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <functional>
#include <memory>
#include <set>

#include "kernel/tree_fixture.h"

namespace soliton {
namespace {

constexpr int kPosition = 66;     // tokens in the cache: a page, and a tile of the next
constexpr int kLeastSeconds = 5;  // that a launch is given, and a few times what it takes as it is

constexpr double kLongTrial = 2;  // seconds of one schedule, which then is the only one

using Clock = std::chrono::steady_clock;
double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// All that a trial has brought forth, bit by bit.
class Outcome {
 public:
  template <class T>
  void add(const std::vector<T>& values) {
    for (const T& value : values) add(&value, sizeof value);
  }
  bool operator==(const Outcome&) const = default;

 private:
  void add(const void* bytes, size_t count) {
    for (size_t i = 0; i < count; ++i)
      hash_ = (hash_ ^ static_cast<const unsigned char*>(bytes)[i]) * 1099511628211ull;
  }
  uint64_t hash_ = 14695981039346656037ull;
};

/// A few launches of one kernel, which leave it as they found it.
struct Trial {
  std::string name;
  std::shared_ptr<KernelUnderTest> kernel;
  std::function<Outcome()> run;
  std::vector<uint64_t> seeds;
  Outcome expected = {};
  std::set<int> reached = {};
  double seconds = 0;  // of all seeds
};

CopyPolicy policy_of(uint64_t seed) {
  constexpr CopyPolicy kPolicies[] = {CopyPolicy::kLate, CopyPolicy::kRandom, CopyPolicy::kEager};
  return kPolicies[seed % 3];
}

/// What the mutated copies keep, see mutant.h.
int& mutant_of(KernelUnderTest& kernel) {
  return *static_cast<int*>(kernel.engine().library().symbol("soliton_mutant_id"));
}
unsigned char* reached_in(KernelUnderTest& kernel) {
  return static_cast<unsigned char*>(kernel.engine().library().symbol("soliton_mutant_reached"));
}

void add_decode(Outcome& outcome, const DecodeResult& result) {
  outcome.add(result.tokens);
  outcome.add(result.logits);
  outcome.add(result.logprobs);
}
void add_tree(Outcome& outcome, const TreeResult& result) {
  outcome.add(result.chosen);
  outcome.add(result.logits);
}

/// A launch of several steps, one that goes on where it ended, and one that ends early, by a token.
Outcome decode_twice(KernelUnderTest& kernel, int fed, int count) {
  Outcome outcome;
  const DecodeResult first = kernel.decode_from(kPosition, kernel.prompt(fed), count);
  add_decode(outcome, first);
  add_decode(outcome, kernel.decode({first.tokens.back()}, 1));
  const std::vector<int32_t> tokens = kernel.prompt(fed);
  const std::vector<int32_t> last = {first.tokens.front()};
  kernel.engine().set_position(kPosition);
  add_decode(outcome,
             kernel.engine().decode({.tokens = tokens, .max_tokens = count + 1, .stop_tokens = last}));
  return outcome;
}

/// Drawn tokens: truncated, and with a penalty.
Outcome sample(KernelUnderTest& kernel, int fed) {
  Outcome outcome;
  const std::vector<int32_t> past = kernel.prompt(5);
  for (const RowSampling& sampling :
       {RowSampling{1.0f, 5, 20, 0.9f, 2.0f}, RowSampling{1.5f, 7, 12, 0.7f, 3.0f, 1.3f}}) {
    kernel.engine().set_position(kPosition);
    const std::vector<int32_t> tokens = kernel.prompt(fed);
    add_decode(outcome, kernel.engine().decode({.tokens = tokens,
                                                .max_tokens = 3,
                                                .sampling = sampling,
                                                .past = past,
                                                .want_logits = true,
                                                .want_logprobs = true}));
  }
  return outcome;
}

/// Branches with drafts in one step, then several steps of all branches, in both ways to cut their pages.
struct Branches {
  explicit Branches(TreeUnderTest& kernel) {
    const int rows = kernel.engine().max_rows();
    root = kernel.tree().open();
    kernel.fill(root, 70);
    branches = kernel.tree().fork(root, rows >= 32 ? 5 : 3);
    plain = kernel.plain(branches);
    drafts = plain;
    drafts[branches[1]] = kernel.any_draft(rows >= 32 ? 11 : 4);
    drafts.erase(branches[2]);
  }
  Outcome run(TreeUnderTest& kernel) const {
    Outcome outcome;
    for (const SliceRule rule : {SliceRule::kBalanced, SliceRule::kFixed}) {
      add_tree(outcome, kernel.run(drafts, 1, rule));
      kernel.take_back(drafts);
      add_tree(outcome, kernel.run(plain, 3, rule));
      for (const Branch branch : branches) kernel.tree().truncate(branch, 70);
    }
    return outcome;
  }

  Branch root = {};
  std::vector<Branch> branches;
  Drafts plain;
  Drafts drafts;
};

/// What is launched of a kernel.
enum class Launches { kOneRow, kRows, kSampled, kTree };
struct TrialOf {
  const char* kernel;
  Launches launches;
};

/// Cheap ones first. A batch is of one process: the stacks of all threads of more kernels are more mappings than a process
/// may have.
const std::vector<TrialOf> kBatches[] = {{{"single-4", Launches::kOneRow},
                                          {"group8-one", Launches::kOneRow},
                                          {"plain-4-split", Launches::kOneRow},
                                          {"micro-3-counter", Launches::kOneRow},
                                          {"plain-4-split", Launches::kSampled},
                                          {"plain-2-split-cards2", Launches::kOneRow},
                                          {"norm64-bias-5-counter", Launches::kOneRow},
                                          {"plain-4-split-counter", Launches::kOneRow},
                                          {"plain-4-split-lanes", Launches::kOneRow},
                                          {"single-4-rows8", Launches::kRows},
                                          {"plain-4-rows8", Launches::kRows},
                                          {"plain-1-rows8", Launches::kRows}},
                                         {{"micro-6", Launches::kOneRow},
                                          {"micro-2-cards3", Launches::kOneRow},
                                          {"narrow96-5", Launches::kOneRow},
                                          {"wide128-4-split", Launches::kOneRow},
                                          {"deep256-5-split", Launches::kOneRow},
                                          {"int4-ordered-4-split", Launches::kOneRow},
                                          {"int4-wide-3", Launches::kOneRow},
                                          {"int4-5-four", Launches::kOneRow},
                                          {"int4-zeros-4", Launches::kOneRow},
                                          {"plain-4-rows8-lanes", Launches::kRows},
                                          {"micro-3-rows8", Launches::kSampled},
                                          {"plain-4-rows8", Launches::kTree}},
                                         {{"plain-4-rows32", Launches::kRows},
                                          {"plain-3-rows64", Launches::kRows},
                                          {"int4-zeros-2-rows8", Launches::kRows},
                                          {"int4-wide-2-rows32", Launches::kRows},
                                          {"int4-zeros-3-rows64", Launches::kRows},
                                          {"int4-wide-2-rows8", Launches::kRows},
                                          {"broad-2-rows8", Launches::kRows},
                                          {"int4-ordered-3-all", Launches::kRows},
                                          {"norm128-2-rows8-cards2", Launches::kRows},
                                          {"plain-2-rows32-cards2", Launches::kRows}},
                                         {{"plain-1-rows8", Launches::kTree},
                                          {"plain-4-rows32", Launches::kTree},
                                          {"plain-3-rows64", Launches::kTree},
                                          {"int4-zeros-2-rows8", Launches::kTree},
                                          {"group7-4-rows32", Launches::kRows},
                                          {"deep256-group4-3-rows32", Launches::kRows},
                                          {"deep256-group4-3-rows32", Launches::kTree},
                                          {"plain-2-rows32-cards2", Launches::kTree}},
                                         {{"micro-17", Launches::kSampled},
                                          {"plain-11-wide", Launches::kOneRow},
                                          {"group7-4-rows32", Launches::kTree},
                                          {"broad-4-rows64", Launches::kRows},
                                          {"group7-4-rows64", Launches::kRows},
                                          {"plain-2-rows128", Launches::kRows},
                                          {"int4-wide-2-rows128", Launches::kRows},
                                          {"norm64-bias-2-rows128", Launches::kRows}}};

/// What became of a mutant. Of several the last counts.
enum Verdict : int { kUnreached, kSurvived, kUnfinished, kDifference, kReport, kCrash, kTimeout };
constexpr const char* kVerdicts[] = {"unreached", "survived", "unfinished", "difference",
                                     "report",    "crash",    "timeout"};

/// Memory of all processes.
struct SharedState {
  sem_t idle_jobs;
  std::atomic<int> next[std::size(kBatches)];  // of the mutants, for the workers of a batch
  std::atomic<int> verdicts[1 << 14];

  void add(int mutant, Verdict verdict) {
    int known = verdicts[mutant];
    while (known < verdict && !verdicts[mutant].compare_exchange_weak(known, verdict)) {
    }
  }
};

/// One of the jobs that may run at a time.
class Job {
 public:
  explicit Job(SharedState& shared) : shared_(shared) {
    while (sem_wait(&shared_.idle_jobs) != 0) {
    }
  }
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;
  ~Job() { sem_post(&shared_.idle_jobs); }

 private:
  SharedState& shared_;
};

class Judge {
 public:
  /// `wanted`: what the names of trials contain. `end`: no trial begins behind it.
  Judge(const std::vector<TrialOf>& batch, int num_mutants, const std::string& wanted, Clock::time_point end)
      : num_mutants_(num_mutants), end_(end) {
    for (const auto& [kernel, launches] : batch) {
      constexpr const char* kSuffixes[] = {"", "", " sampled", " tree"};
      const std::string name = std::string(kernel) + kSuffixes[static_cast<int>(launches)];
      if (name.find(wanted) != std::string::npos) add(name, kernel, launches);
    }
    std::stable_sort(trials_.begin(), trials_.end(),
                     [](const Trial& a, const Trial& b) { return a.seconds < b.seconds; });
  }

  bool reaches(int mutant) const {
    return std::any_of(trials_.begin(), trials_.end(),
                       [&](const Trial& t) { return t.reached.contains(mutant); });
  }

  /// In a process of its own. Says where it was killed.
  Verdict judge(int mutant) {
    const Clock::time_point start = Clock::now();
    int ends[2];
    if (pipe(ends) != 0) throw std::runtime_error("pipe");
    const pid_t child = fork();
    if (child == 0) {
      if (std::freopen("/dev/null", "w", stderr) == nullptr) _exit(0);
      run_trials(mutant, ends[1]);
    }
    close(ends[1]);
    // Where the child is: a line for each trial that it begins.
    std::string text;
    char buffer[512];
    for (ssize_t got = 0; (got = read(ends[0], buffer, sizeof buffer)) > 0;) text.append(buffer, got);
    close(ends[0]);
    int status = 0;
    waitpid(child, &status, 0);
    Verdict verdict = WIFEXITED(status) ? static_cast<Verdict>(WEXITSTATUS(status)) : kCrash;
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM) verdict = kTimeout;
    if (verdict <= kUnfinished) return verdict;
    text = text.substr(0, text.rfind('\n'));
    const std::string last = text.substr(text.rfind('\n') + 1);
    std::printf("{\"id\": %d, \"verdict\": \"%s\", \"where\": \"%s\", \"seconds\": %.2f}\n", mutant,
                kVerdicts[verdict], last.c_str(), seconds_since(start));
    std::fflush(stdout);
    return verdict;
  }

 private:
  [[noreturn]] void run_trials(int mutant, int progress) {
    for (Trial& trial : trials_) mutant_of(*trial.kernel) = mutant;
    for (Trial& trial : trials_) {
      if (!trial.reached.contains(mutant)) continue;
      for (const uint64_t seed : trial.seeds) {
        if (Clock::now() > end_) _exit(kUnfinished);
        const std::string line = trial.name + ", seed " + std::to_string(seed) + "\n";
        if (write(progress, line.data(), line.size()) < 0) _exit(kCrash);
        alarm(kLeastSeconds + static_cast<unsigned>(4 * trial.seconds));
        try {
          if (!(attempt(trial, seed) == trial.expected)) _exit(kDifference);
        } catch (const std::exception&) {
          _exit(kReport);
        }
      }
    }
    _exit(kSurvived);
  }

  static Outcome attempt(Trial& trial, uint64_t seed) {
    EmulationOptions& options = trial.kernel->emulation();
    options.check = seed > 0;
    options.seed = seed;
    options.copies = seed > 0 ? policy_of(seed) : CopyPolicy::kEager;
    return trial.run();
  }

  void add(const std::string& name, const char* kernel_name, Launches launches) {
    if (launches == Launches::kTree) {
      auto kernel = std::make_shared<TreeUnderTest>(kernel_name);
      const auto branches = std::make_shared<Branches>(*kernel);
      add({name, kernel, [kernel, branches] { return branches->run(*kernel); }, {1, 2}});
      return;
    }
    auto kernel = std::make_shared<KernelUnderTest>(kernel_name);
    kernel->fill(kernel->prompt(kPosition));
    const int fed = launches == Launches::kRows ? 11 : 1;  // in a step of eight and one of three
    add({name,
         kernel,
         [kernel, launches, fed] {
           return launches == Launches::kSampled ? sample(*kernel, 2) : decode_twice(*kernel, fed, 2);
         },
         {1, 2}});
  }

  /// Runs a trial as it is: what it gives, what it reaches, and how long it takes.
  void add(Trial trial) {
    trial.expected = attempt(trial, 0);
    unsigned char* reached = reached_in(*trial.kernel);
    std::fill_n(reached, num_mutants_, 0);
    const Clock::time_point start = Clock::now();
    for (const uint64_t seed : std::vector(trial.seeds)) {
      if (seed > 1 && seconds_since(start) > kLongTrial) {
        trial.seeds = {1};
        break;
      }
      if (!(attempt(trial, seed) == trial.expected))
        throw std::runtime_error(trial.name + ": expected the same bits under seed " + std::to_string(seed));
    }
    trial.seconds = seconds_since(start);
    for (int i = 0; i < num_mutants_; ++i) {
      if (reached[i] != 0) trial.reached.insert(i);
    }
    std::fprintf(stderr, "%-36s %6.2f s, reaches %zu\n", trial.name.c_str(), trial.seconds,
                 trial.reached.size());
    trials_.push_back(std::move(trial));
  }

  int num_mutants_;
  Clock::time_point end_;
  std::vector<Trial> trials_;
};

std::vector<int> parse_list(const std::string& text) {
  std::vector<int> numbers;
  for (size_t at = 0; at < text.size(); at = text.find_first_of(", \n", at) == std::string::npos
                                                 ? text.size()
                                                 : text.find_first_of(", \n", at) + 1) {
    if (std::isdigit(static_cast<unsigned char>(text[at])) != 0)
      numbers.push_back(std::atoi(text.c_str() + at));
  }
  return numbers;
}

struct Options {
  int num_mutants = 0;
  std::vector<int> mutants = {};
  int jobs = 1;
  double limit = 1e6;       // seconds, after which no further trial begins
  std::string wanted = "";  // what the names of trials contain
  int first_batch = 0;      // those before have run
};

/// One batch of trials with all mutants that are not killed yet.
[[noreturn]] void run_batch(int batch, const Options& options, SharedState& shared, Clock::time_point end) {
  std::unique_ptr<Judge> judge;
  {
    const Job job(shared);
    judge = std::make_unique<Judge>(kBatches[batch], options.num_mutants, options.wanted, end);
  }
  const int count = static_cast<int>(options.mutants.size());
  bool is_worker = false;
  for (int worker = 1; worker < options.jobs && !is_worker; ++worker) is_worker = fork() == 0;
  for (int i; (i = shared.next[batch]++) < count;) {
    const int mutant = options.mutants[i];
    if (!judge->reaches(mutant)) continue;
    const Job job(shared);
    if (shared.verdicts[mutant] > kUnfinished) continue;
    shared.add(mutant, batch < options.first_batch ? kSurvived : judge->judge(mutant));
  }
  while (wait(nullptr) > 0) {
  }
  std::fflush(nullptr);
  _exit(0);
}

int run_main(const Options& options) {
  const auto end = Clock::now() + std::chrono::milliseconds(static_cast<int64_t>(options.limit * 1000));
  void* const memory =
      mmap(nullptr, sizeof(SharedState), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw std::runtime_error("mmap");
  SharedState& shared = *static_cast<SharedState*>(memory);
  sem_init(&shared.idle_jobs, 1, static_cast<unsigned>(options.jobs));
  for (int batch = 0; batch < std::ssize(kBatches); ++batch) {
    if (fork() == 0) run_batch(batch, options, shared, end);
  }
  bool has_failed = false;
  for (int status = 0; wait(&status) > 0;) has_failed |= !WIFEXITED(status) || WEXITSTATUS(status) != 0;
  if (has_failed) throw std::runtime_error("a batch has failed");
  for (const int mutant : options.mutants) {
    const int verdict = shared.verdicts[mutant];
    if (verdict <= kUnfinished)
      std::printf("{\"id\": %d, \"verdict\": \"%s\"}\n", mutant, kVerdicts[verdict]);
  }
  return 0;
}

void list_kernels() {
  std::set<std::string> names;
  for (const std::vector<TrialOf>& batch : kBatches) {
    for (const TrialOf& trial : batch) names.insert(trial.kernel);
  }
  for (const std::string& name : names) std::printf("%s\n", name.c_str());
}

Options parse(int argc, char** argv) {
  Options options;
  options.num_mutants = std::atoi(argv[1]);
  for (int i = 2; i + 1 < argc; i += 2) {
    const std::string flag = argv[i];
    if (flag == "--only") options.mutants = parse_list(argv[i + 1]);
    if (flag == "--first-batch") options.first_batch = std::atoi(argv[i + 1]);
    if (flag == "--trials") options.wanted = argv[i + 1];
    if (flag == "--jobs") options.jobs = std::atoi(argv[i + 1]);
    if (flag == "--limit") options.limit = std::atof(argv[i + 1]);
  }
  if (options.mutants.empty()) {
    for (int i = 0; i < options.num_mutants; ++i) options.mutants.push_back(i);
  }
  return options;
}

}  // namespace
}  // namespace soliton

int main(int argc, char** argv) {
  if (argc == 2 && std::string(argv[1]) == "--kernels") {
    soliton::list_kernels();
    return 0;
  }
  if (argc < 2) {
    std::fprintf(stderr,
                 "judge NUM_MUTANTS [--trials NAME] [--jobs N] [--limit SECONDS] [--first-batch N] [--only "
                 "ID,ID...]\n");
    return 2;
  }
  try {
    return soliton::run_main(soliton::parse(argc, argv));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "judge: %s\n", error.what());
    return 1;
  }
}
