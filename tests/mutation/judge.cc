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

#include <atomic>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <functional>
#include <memory>
#include <set>

#include "kernel/tree_fixture.h"

namespace soliton {
namespace {

constexpr int kPosition = 66;  // tokens in the cache: a page, and a tile of the next
constexpr int kShortContext = 192;
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
  outcome.add(result.logprobs);
  outcome.add(std::vector<int>{result.began_ns == record_time_ns(kNoRecord) ? 1 : 0});  // was it never said?
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

/// Launches in which a page begins, or a slice of the cache, or a unit of tokens; and one after which the cache is full.
Outcome cross_pages(KernelUnderTest& kernel, int fed) {
  Outcome outcome;
  add_decode(outcome, kernel.decode_from(63, kernel.prompt(fed), 3));
  add_decode(outcome, kernel.decode_from(100, kernel.prompt(fed), 1));
  add_decode(outcome, kernel.decode_from(126, kernel.prompt(1), 4));
  add_decode(outcome, kernel.decode_from(kShortContext - fed - 1, kernel.prompt(fed), 2));
  return outcome;
}

/// Of more CTAs than a warp has lanes: more than are checked.
Outcome decode_on_many(KernelUnderTest& kernel) {
  Outcome outcome;
  add_decode(outcome, kernel.decode_from(kPosition, kernel.prompt(1), 5));
  return outcome;
}

/// A launch that somebody ends while it runs: how many steps it makes is a matter of time, but not all.
Outcome interrupt(KernelUnderTest& kernel) {
  constexpr int kSteps = 8;
  kernel.engine().set_position(kPosition);
  const std::vector<int32_t> tokens = kernel.prompt(1);
  const std::atomic<bool> interrupted = true;
  const TreeResult result = kernel.engine().decode_tree(
      {.tokens = tokens, .num_steps = kSteps, .lone_row_alone = true, .interrupt = &interrupted});
  Outcome outcome;
  outcome.add(std::vector<int>{result.num_steps < kSteps ? 1 : 0});
  return outcome;
}

/// All that there is of drawing, each where a small error shows: few of many tokens that are nearly as good, or as good, as
/// one another; the best of those that were seen before.
const std::vector<RowSampling>& samplings() {
  static const std::vector<RowSampling> all = {{1.0f, 5, 20, 0.9f, 2.0f},
                                               {0.0f, 6, 0, 1.0f, kUnlimitedDistance, 0.01f},
                                               {0.05f, 7, 5, 0.6f},
                                               {1e-5f, 8, 5, 0.5f},
                                               {1e-7f, 12, 5},
                                               {1.5f, 9, 12, 0.7f, 3.0f, 1.3f},
                                               {0.02f, 10, 0, 0.2f},
                                               {1.0f, 11}};
  return all;
}
/// Every third token.
std::vector<uint32_t> third_tokens(int vocabulary) {
  std::vector<uint32_t> mask(static_cast<size_t>((vocabulary + 31) / 32));
  for (int token = 0; token < vocabulary; token += 3)
    mask[static_cast<size_t>(token / 32)] |= 1u << token % 32;
  return mask;
}

/// Drawn tokens, and then one that a mask allows.
Outcome sample(KernelUnderTest& kernel) {
  Outcome outcome;
  const auto draw = [&](const RowSampling& sampling, const std::vector<int32_t>& tokens,
                        const std::vector<int32_t>& past) {
    kernel.engine().set_position(kPosition);
    add_decode(
        outcome,
        kernel.engine().decode(
            {.tokens = tokens, .max_tokens = 4, .sampling = sampling, .past = past, .want_logprobs = true}));
  };
  for (const RowSampling& sampling : samplings()) {
    if (sampling.penalty >= 1) draw(sampling, kernel.prompt(2), kernel.prompt(5));
    // What the launch itself has chosen is to be what it then prefers.
    for (int length = 3; sampling.penalty < 1 && length < 7; ++length)
      draw(sampling, {kernel.prompt(length).back()}, {});
  }
  const std::vector<int32_t> tokens = kernel.prompt(2);
  const std::vector<uint32_t> mask = third_tokens(kernel.facts().vocabulary);
  kernel.engine().set_position(kPosition);
  add_decode(
      outcome,
      kernel.engine().decode(
          {.tokens = tokens, .max_tokens = 1, .allowed = mask, .want_logits = true, .want_logprobs = true}));
  return outcome;
}

/// The same for a few rows at once.
struct Drawn {
  explicit Drawn(TreeUnderTest& kernel) : mask(third_tokens(kernel.facts().vocabulary)) {
    constexpr int kRows = 7;
    const Branch root = kernel.tree().open();
    kernel.fill(root, kFilled);
    const Drafts drafts = kernel.plain(kernel.tree().fork(root, kRows));
    tokens = kernel.prepare(drafts);
    for (size_t row = 0; row < kRows; ++row) {
      sampling.push_back(samplings()[row % samplings().size()]);
      past.push_back(kernel.any_tokens(sampling.back().penalty < 1 ? 0 : 5));
      allowed.push_back(row % 2 == 0 ? std::span<const uint32_t>(mask) : std::span<const uint32_t>());
    }
  }
  Outcome run(TreeUnderTest& kernel) const {
    Outcome outcome;
    add_tree(
        outcome,
        kernel.engine().decode_tree(
            {.tokens = tokens, .num_steps = 4, .sampling = sampling, .past = past, .want_logprobs = true}));
    cut(kernel);
    add_tree(outcome, kernel.engine().decode_tree({.tokens = tokens,
                                                   .num_steps = 1,
                                                   .sampling = sampling,
                                                   .allowed = allowed,
                                                   .want_logprobs = true}));
    cut(kernel);
    return outcome;
  }
  static void cut(TreeUnderTest& kernel) {
    for (const Branch branch : kernel.tree().branches()) kernel.tree().truncate(branch, kFilled);
  }

  static constexpr int kFilled = 11;
  std::vector<uint32_t> mask;
  std::vector<int32_t> tokens;
  std::vector<RowSampling> sampling;
  std::vector<std::vector<int32_t>> past;
  std::vector<std::span<const uint32_t>> allowed;
};

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

/// Many branches behind some whole pages, then fewer of them: query tiles and parts of every number.
struct Forks {
  explicit Forks(TreeUnderTest& kernel) {
    const Branch root = kernel.tree().open();
    kernel.fill(root, 300);
    for (const Branch branch : kernel.tree().fork(root, std::min(kernel.engine().max_rows(), 21))) {
      drafts.push_back(kernel.plain({branch}));
    }
  }
  Outcome run(TreeUnderTest& kernel) const {
    Outcome outcome;
    for (const size_t rows : {size_t{21}, size_t{12}, size_t{5}}) {
      Drafts some;
      for (size_t i = 0; i < std::min(rows, drafts.size()); ++i)
        some.insert(drafts[i].begin(), drafts[i].end());
      for (const SliceRule rule : {SliceRule::kBalanced, SliceRule::kFixed}) {
        add_tree(outcome, kernel.run(some, 1, rule));
        kernel.take_back(some);
      }
    }
    return outcome;
  }

  std::vector<Drafts> drafts;
};

/// A path of many nodes: a CTA has more items than a warp has lanes, and a row more partial results. Beside it a node that
/// comes to have a slice more.
struct Path {
  explicit Path(TreeUnderTest& kernel) {
    constexpr int kNodes = 36;
    Branch leaf = kernel.tree().open();
    std::vector<Branch> forked;
    for (int node = 0; node < kNodes; ++node) {
      kernel.fill(leaf, 1);
      forked = kernel.tree().fork(leaf, 2);
      leaf = forked[0];
    }
    std::vector<Branch> rows = forked;  // the first, whose merges workers hold
    rows.push_back(kernel.tree().open());
    kernel.fill(rows.back(), 126);
    drafts = kernel.plain(rows);
    for (const Branch branch : rows) lengths.push_back({branch, kernel.tree().num_tokens(branch)});
  }
  Outcome run(TreeUnderTest& kernel) const {
    Outcome outcome;
    for (const SliceRule rule : {SliceRule::kBalanced, SliceRule::kFixed}) {
      add_tree(outcome, kernel.run(drafts, 4, rule));
      for (const auto& [branch, length] : lengths) kernel.tree().truncate(branch, length);
    }
    return outcome;
  }

  Drafts drafts;
  std::vector<std::pair<Branch, int>> lengths;
};

/// What is launched of a kernel.
enum class Launches {
  kOneRow,
  kRows,
  kMany,
  kSampled,
  kTree,
  kPages,
  kPagesOfRows,
  kStopped,
  kDrawn,
  kForks,
  kPath
};
constexpr const char* kSuffixes[] = {"",       "",         "",       " sampled", " tree", " pages",
                                     " pages", " stopped", " drawn", " forks",   " path"};
struct TrialOf {
  const char* kernel;
  Launches launches;
};

/// Cheap ones first. A batch is of one process: the stacks of all threads of more kernels are more mappings than a process
/// may have.
const std::vector<TrialOf> kBatches[] = {{{"single-4", Launches::kOneRow},
                                          {"single-4", Launches::kStopped},
                                          {"single-4", Launches::kSampled},
                                          {"single-4", Launches::kPages},
                                          {"single-4-rows8", Launches::kStopped},
                                          {"single-4-rows8", Launches::kDrawn},
                                          {"single-4-rows8", Launches::kPagesOfRows},
                                          {"plain-4-split-counter", Launches::kPages},
                                          {"plain-1-rows8", Launches::kPath},
                                          {"plain-1-rows8", Launches::kForks},
                                          {"group8-one", Launches::kOneRow},
                                          {"plain-4-split", Launches::kOneRow},
                                          {"micro-3-counter", Launches::kOneRow},
                                          {"micro-3-counter", Launches::kSampled},
                                          {"plain-2-split-cards2", Launches::kOneRow},
                                          {"norm64-bias-5-counter", Launches::kOneRow},
                                          {"plain-4-split-counter", Launches::kOneRow},
                                          {"plain-4-split-lanes", Launches::kOneRow},
                                          {"single-4-rows8", Launches::kRows},
                                          {"plain-4-rows8", Launches::kRows},
                                          {"plain-1-rows8", Launches::kRows}},
                                         {{"micro-6", Launches::kOneRow},
                                          {"broad-2", Launches::kOneRow},
                                          {"micro-2-cards3", Launches::kOneRow},
                                          {"micro-2-cards3", Launches::kSampled},
                                          {"words-1", Launches::kSampled},
                                          {"narrow96-5", Launches::kOneRow},
                                          {"wide128-4-split", Launches::kOneRow},
                                          {"deep256-5-split", Launches::kOneRow},
                                          {"int4-ordered-4-split", Launches::kOneRow},
                                          {"int4-wide-3", Launches::kOneRow},
                                          {"int4-5-four", Launches::kOneRow},
                                          {"int4-zeros-4", Launches::kOneRow},
                                          {"plain-4-rows8-lanes", Launches::kRows},
                                          {"plain-4-rows8-lanes", Launches::kPath},
                                          {"micro-3-rows8", Launches::kSampled},
                                          {"micro-3-rows8", Launches::kDrawn},
                                          {"plain-4-rows8", Launches::kTree}},
                                         {{"plain-4-rows32", Launches::kRows},
                                          {"plain-3-rows64", Launches::kRows},
                                          {"int4-zeros-2-rows8", Launches::kRows},
                                          {"int4-wide-2-rows32", Launches::kRows},
                                          {"int4-zeros-3-rows64", Launches::kRows},
                                          {"int4-wide-2-rows8", Launches::kRows},
                                          {"broad-2-rows8", Launches::kRows},
                                          {"int4-ordered-3-all", Launches::kRows},
                                          {"int4-ordered-3-all", Launches::kDrawn},
                                          {"int4-3-all", Launches::kRows},
                                          {"int4-3-all", Launches::kDrawn},
                                          {"norm128-2-rows8-cards2", Launches::kRows},
                                          {"plain-2-rows32-cards2", Launches::kRows}},
                                         {{"plain-1-rows8", Launches::kTree},
                                          {"plain-4-rows32", Launches::kTree},
                                          {"plain-4-rows32", Launches::kForks},
                                          {"plain-3-rows64", Launches::kTree},
                                          {"plain-3-rows64", Launches::kForks},
                                          {"plain-3-rows64", Launches::kDrawn},
                                          {"deep256-group4-3-rows32", Launches::kForks},
                                          {"int4-zeros-2-rows8", Launches::kTree},
                                          {"group7-4-rows32", Launches::kRows},
                                          {"deep256-group4-3-rows32", Launches::kRows},
                                          {"deep256-group4-3-rows32", Launches::kTree},
                                          {"plain-2-rows32-cards2", Launches::kTree}},
                                         {{"micro-17", Launches::kSampled},
                                          {"micro-17-cards2", Launches::kMany},
                                          {"plain-3-rows64-lanes", Launches::kRows},
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
