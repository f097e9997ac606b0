// Judges mutants of the templates: each runs in a process of its own on kernels that hold all of them (see mutate.py), and is
// killed by the first launch that is reported, crashes, does not end, or gives other bits than kernels as they are. Kernels,
// weights and caches are made once; a mutant's process is a fork.
//
// judge NUM_MUTANTS [--trials NAME] [--jobs N] [--seeds N] [--limit SECONDS] [--first-batch N] [--only ID,ID...]:
// prints a line a mutant, as it is killed; in the end those that are not. A mutant has survived when every kernel that
// reaches it has run; what the limit leaves out is unfinished.
#include <semaphore.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <functional>
#include <memory>
#include <set>

#include "mutation/launches.h"
#include "mutation/trials.h"

namespace soliton {
namespace {

constexpr int kLeastSeconds = 5;  // that a launch is given, and a few times what it takes as it is

constexpr double kLongTrial = 2;  // seconds of some schedules, which then are enough

using Clock = std::chrono::steady_clock;
double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// Of this process on processors: others may keep them.
double cpu_seconds() {
  return static_cast<double>(std::clock()) / CLOCKS_PER_SEC;
}
void limit_cpu(int seconds) {
  const itimerval timer = {.it_interval = {}, .it_value = {.tv_sec = seconds, .tv_usec = 0}};
  setitimer(ITIMER_PROF, &timer, nullptr);
}

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
  /// `wanted`: what the names of trials contain, or with '=' before it their whole name. `end`: no trial begins behind it.
  /// `num_seeds`: schedules of each trial.
  Judge(const std::vector<TrialOf>& batch, int num_mutants, const std::string& wanted, int num_seeds,
        Clock::time_point end)
      : num_mutants_(num_mutants), num_seeds_(num_seeds), end_(end) {
    for (const auto& [kernel, launches] : batch) {
      const std::string name = std::string(kernel) + kSuffixes[static_cast<int>(launches)];
      const bool is_wanted =
          wanted.starts_with('=') ? name == wanted.substr(1) : name.find(wanted) != std::string::npos;
      if (is_wanted) add(name, kernel, launches);
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
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGPROF) verdict = kTimeout;
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
        limit_cpu(kLeastSeconds + static_cast<int>(4 * trial.seconds));
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
    options.delays_warps = seed > 1 && seed % 2 == 1;
    return trial.run();
  }

  /// Schedules: the first as chance has it, then one with late copies and slow warps, and so on.
  std::vector<uint64_t> seeds() const {
    std::vector<uint64_t> all;
    for (int i = 0; i < num_seeds_; ++i)
      all.push_back(i == 1 ? 3 : i == 2 ? 2 : static_cast<uint64_t>(i + 1));
    return all;
  }

  /// A trial of launches that `State` keeps.
  template <class State>
  void add_of_tree(const std::string& name, const char* kernel_name) {
    auto kernel = std::make_shared<TreeUnderTest>(kernel_name);
    const auto state = std::make_shared<State>(*kernel);
    add({name, kernel, [kernel, state] { return state->run(*kernel); }, seeds()});
  }

  void add(const std::string& name, const char* kernel_name, Launches launches) {
    if (launches == Launches::kTree) return add_of_tree<Branches>(name, kernel_name);
    if (launches == Launches::kDrawn) return add_of_tree<Drawn>(name, kernel_name);
    if (launches == Launches::kForks) return add_of_tree<Forks>(name, kernel_name);
    if (launches == Launches::kPath) return add_of_tree<Path>(name, kernel_name);
    const bool crosses = launches == Launches::kPages || launches == Launches::kPagesOfRows;
    const bool has_rows = launches == Launches::kRows || launches == Launches::kPagesOfRows;
    auto kernel = std::make_shared<KernelUnderTest>(kernel_name, crosses ? kShortContext : kTestContext);
    const int fed = has_rows ? 11 : 1;  // in a step of eight and one of three
    kernel->fill(kernel->prompt(crosses ? kShortContext - 1 : kPosition));
    const auto run = [kernel, launches, fed, crosses] {
      if (crosses) return cross_pages(*kernel, fed);
      if (launches == Launches::kSampled) return sample(*kernel);
      if (launches == Launches::kStopped) return interrupt(*kernel);
      if (launches == Launches::kMany) return decode_on_many(*kernel);
      return decode_twice(*kernel, fed, 2);
    };
    add({name, kernel, run, launches == Launches::kMany ? std::vector<uint64_t>{0} : seeds()});
  }

  /// Runs a trial as it is: what it gives, what it reaches, and how long it takes.
  void add(Trial trial) {
    trial.expected = attempt(trial, 0);
    unsigned char* reached = reached_in(*trial.kernel);
    std::fill_n(reached, num_mutants_, 0);
    const double start = cpu_seconds();
    for (const uint64_t seed : std::vector(trial.seeds)) {
      if (seed > 1 && cpu_seconds() - start > kLongTrial) {
        trial.seeds.resize(std::find(trial.seeds.begin(), trial.seeds.end(), seed) - trial.seeds.begin());
        break;
      }
      if (!(attempt(trial, seed) == trial.expected))
        throw std::runtime_error(trial.name + ": expected the same bits under seed " + std::to_string(seed));
    }
    trial.seconds = cpu_seconds() - start;
    for (int i = 0; i < num_mutants_; ++i) {
      if (reached[i] != 0) trial.reached.insert(i);
    }
    std::fprintf(stderr, "%-36s %6.2f s, reaches %zu\n", trial.name.c_str(), trial.seconds,
                 trial.reached.size());
    trials_.push_back(std::move(trial));
  }

  int num_mutants_;
  int num_seeds_;
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
  int seeds = 3;
  double limit = 1e6;       // seconds, after which no further trial begins
  std::string wanted = "";  // what the names of trials contain
  int first_batch = 0;      // those before have run
};

/// One batch of trials with all mutants that are not killed yet.
[[noreturn]] void run_batch(int batch, const Options& options, SharedState& shared, Clock::time_point end) {
  std::unique_ptr<Judge> judge;
  {
    const Job job(shared);
    judge = std::make_unique<Judge>(kBatches[batch], options.num_mutants, options.wanted, options.seeds, end);
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
    if (flag == "--seeds") options.seeds = std::atoi(argv[i + 1]);
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
    std::fprintf(
        stderr,
        "judge NUM_MUTANTS [--trials NAME] [--jobs N] [--seeds N] [--limit SECONDS] [--first-batch N] "
        "[--only ID,ID...]\n");
    return 2;
  }
  try {
    return soliton::run_main(soliton::parse(argc, argv));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "judge: %s\n", error.what());
    return 1;
  }
}
