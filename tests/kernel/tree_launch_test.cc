// What surrounds the steps of a tree's launch: its end, the choice of tokens, requests that are refused.
#include "kernel/kernel_cases.h"
#include "kernel/tree_fixture.h"
#include "models/error.h"
#include "reference_sampling.h"

namespace soliton {
namespace {

// ---- The end of a launch

class TreeStop : public testing::Test {
 protected:
  static constexpr int kSteps = 8;

  TreeStop() : kernel_("micro-3-rows8") {
    const Branch root = kernel_.tree().open();
    kernel_.fill(root, 5);
    drafts_ = kernel_.plain(kernel_.tree().fork(root, 3));
    all_ = kernel_.run(drafts_, kSteps);
    cut_back();
  }

  void cut_back() {
    for (const Branch branch : kernel_.tree().branches()) kernel_.tree().truncate(branch, 5);
  }
  void expect_beginning(const TreeResult& result, int num_steps) {
    EXPECT_EQ(result.num_steps, num_steps);
    EXPECT_EQ(std::ssize(result.times_ns), num_steps);
    ASSERT_EQ(std::ssize(result.chosen), 3 * num_steps);
    EXPECT_TRUE(std::equal(result.chosen.begin(), result.chosen.end(), all_.chosen.begin()));
    for (const Branch branch : kernel_.tree().branches())
      EXPECT_EQ(kernel_.tree().num_tokens(branch), 5 + num_steps);
  }
  /// What is left of all_ follows.
  void expect_rest(const TreeResult& result) {
    kernel_.prepare(drafts_);
    const TreeResult rest = kernel_.engine().decode_tree(
        {.tokens = std::span(result.chosen).last(3), .num_steps = 2, .rule = SliceRule::kFixed});
    EXPECT_TRUE(
        std::equal(rest.chosen.begin(), rest.chosen.end(), all_.chosen.begin() + std::ssize(result.chosen)));
  }

  TreeUnderTest kernel_;
  Drafts drafts_;
  TreeResult all_;
};

TEST_F(TreeStop, AfterTheStepInWhichARowChoseAStopToken) {
  for (const int row : {0, 1, 2}) {
    const int32_t stop[] = {-5, all_.chosen[3 * 3 + row]};
    const auto first =
        static_cast<int>(std::find(all_.chosen.begin(), all_.chosen.end(), stop[1]) - all_.chosen.begin());
    const std::vector<int32_t> tokens = kernel_.prepare(drafts_);
    const TreeResult stopped = kernel_.engine().decode_tree(
        {.tokens = tokens, .num_steps = kSteps, .stop_tokens = stop, .rule = SliceRule::kFixed});
    expect_beginning(stopped, first / 3 + 1);
    expect_rest(stopped);
    cut_back();
  }
}

TEST_F(TreeStop, WhenTheHostAsks) {
  const std::vector<int32_t> tokens = kernel_.prepare(drafts_);
  int calls = 0;
  const TreeResult stopped = kernel_.engine().decode_tree(
      {.tokens = tokens, .num_steps = 300, .rule = SliceRule::kFixed}, [&](std::span<const int32_t> chosen) {
        EXPECT_EQ(chosen.size(), 3u);
        return ++calls < 4;
      });
  EXPECT_EQ(calls, 4);
  expect_beginning(stopped, 4);
  expect_rest(stopped);
}

// Steps that the kernel does until it sees it are not lost.
TEST_F(TreeStop, WhenAnotherThreadInterrupts) {
  std::atomic<bool> interrupt = false;
  const std::vector<int32_t> tokens = kernel_.prepare(drafts_);
  int calls = 0;
  bool has_launched = false;
  const TreeResult stopped = kernel_.engine().decode_tree({.tokens = tokens,
                                                           .num_steps = 300,
                                                           .rule = SliceRule::kFixed,
                                                           .interrupt = &interrupt,
                                                           .on_launch = [&] { has_launched = calls == 0; }},
                                                          [&](std::span<const int32_t>) {
                                                            if (++calls == 3) interrupt = true;
                                                            return true;
                                                          });
  EXPECT_TRUE(has_launched);
  EXPECT_GE(calls, 3);
  ASSERT_LE(calls, kSteps - 2);
  expect_beginning(stopped, calls);
  expect_rest(stopped);
}

TEST(TreeEngine, AStepWithoutChoiceFillsTheCacheAlike) {
  for (const bool is_plain : {true, false}) {
    std::vector<float> logits[2];
    TreeUnderTest kernel("plain-4-rows8");
    const Branch root = kernel.tree().open();
    kernel.fill(root, 63);
    const std::vector<Branch> branches = kernel.tree().fork(root, 3);
    Drafts drafts = kernel.plain(branches);
    if (!is_plain) drafts[branches[1]] = {chain(4), kernel.any_tokens(4)};
    const Drafts then = kernel.plain(branches);
    for (const bool skips : {false, true}) {
      const std::vector<int32_t> tokens = kernel.prepare(drafts);
      const TreeResult step =
          kernel.engine().decode_tree({.tokens = tokens, .skips_choice = skips, .rule = SliceRule::kFixed});
      EXPECT_EQ(step.chosen.empty(), skips);
      EXPECT_EQ(step.num_steps, 1);
      if (!is_plain) kernel.tree().accept(branches[1], std::vector<int32_t>{0, 1, 2, 3});
      for (const Branch branch : branches)
        EXPECT_EQ(kernel.tree().num_tokens(branch), branch == branches[1] && !is_plain ? 67 : 64);
      logits[skips] = kernel.run(then).logits;
      for (const Branch branch : branches) kernel.tree().truncate(branch, 63);
    }
    EXPECT_EQ(logits[0], logits[1]);
  }
}

// ---- Sampling

int draw(std::span<const float> logits, const RowSampling& sampling, int position, double* lead = nullptr) {
  const ReferenceChoice choice = reference_choice(logits, sampling, position);
  if (lead != nullptr) *lead = choice.lead;
  return choice.token;
}

/// Chi-square of counts against softmax(logits / T).
double chi_square(std::span<const int> counts, std::span<const float> logits, float inverse_temperature) {
  std::vector<double> scores;
  for (const float logit : logits) scores.push_back(double{logit} * inverse_temperature);
  const std::vector<double> shares = softmax(scores);
  int draws = 0;
  for (const int count : counts) draws += count;
  double sum = 0;
  for (size_t i = 0; i < counts.size(); ++i) {
    const double expected = shares[i] * draws;
    sum += (counts[i] - expected) * (counts[i] - expected) / expected;
  }
  return sum;
}

constexpr float kTestLogits[] = {1.5f, -0.5f, 0.0f, 2.0f, 1.0f, -2.0f, 0.5f, 2.25f};
constexpr double kChiSquareBound = 29.9;  // 7 degrees of freedom: exceeded once in 10^4 tests

TEST(TreeSampling, DrawsFromTheSoftmax) {
  constexpr int kDraws = 20000;
  for (const float inverse_temperature : {0.5f, 1.0f, 1.6f}) {
    int over_seeds[8] = {};
    int over_positions[8] = {};
    int over_both[8] = {};
    for (int i = 0; i < kDraws; ++i) {
      ++over_seeds[draw(kTestLogits, {inverse_temperature, static_cast<uint32_t>(i)}, 17)];
      ++over_positions[draw(kTestLogits, {inverse_temperature, 12345}, i)];
      ++over_both[draw(kTestLogits, {inverse_temperature, 1000u + static_cast<uint32_t>(i)}, i)];
    }
    EXPECT_LT(chi_square(over_seeds, kTestLogits, inverse_temperature), kChiSquareBound);
    EXPECT_LT(chi_square(over_positions, kTestLogits, inverse_temperature), kChiSquareBound);
    EXPECT_LT(chi_square(over_both, kTestLogits, inverse_temperature), kChiSquareBound);
    EXPECT_GT(chi_square(over_seeds, kTestLogits, inverse_temperature * 1.1f), kChiSquareBound)
        << "has power";
  }
}

// Draws of neighbouring rows (seeds) and of neighbouring steps (positions) know nothing of each other.
TEST(TreeSampling, DrawsAreIndependent) {
  constexpr int kDraws = 20000;
  constexpr float kAlike[8] = {};  // every token is as likely as any other
  for (const bool over_seeds : {false, true}) {
    std::vector<int> pairs(64);
    for (int i = 0; i < kDraws; ++i) {
      const uint32_t seed = 2 * static_cast<uint32_t>(i);
      const int first = draw(kAlike, {1.0f, seed}, 40);
      const int second = over_seeds ? draw(kAlike, {1.0f, seed + 1}, 40) : draw(kAlike, {1.0f, seed}, 41);
      ++pairs[first * 8 + second];
    }
    constexpr double kBound = 113.0;  // 63 degrees of freedom: exceeded once in 10^4 tests
    EXPECT_LT(chi_square(pairs, std::vector<float>(64), 1.0f), kBound);
  }
}

class TreeDraws : public KernelCases {};

INSTANTIATE_TEST_SUITE_P(Kernels, TreeDraws,
                         testing::Values("micro-3-rows8", "plain-4-rows32", "plain-3-rows64"), test_name);

constexpr double kNearTieOfRows = 1e-3;  // of logit / T + noise: beyond the error of the fast logarithm

/// Rows of all temperatures and many seeds.
std::vector<RowSampling> some_sampling(int rows) {
  constexpr float kInverse[] = {1.0f, 0.0f, 2.0f, 0.25f};
  std::vector<RowSampling> sampling;
  for (int row = 0; row < rows; ++row)
    sampling.push_back({kInverse[row % 4], static_cast<uint32_t>(row) * 77777u});
  return sampling;
}

TEST_P(TreeDraws, TheKernelChoosesAsTheHostDoes) {
  constexpr int kSteps = 4;
  TreeUnderTest kernel(GetParam());
  const int rows = kernel.engine().max_rows();
  const Branch root = kernel.tree().open();
  kernel.fill(root, 11);
  const Drafts drafts = kernel.plain(kernel.tree().fork(root, rows - 2));
  Drafts with_draft = drafts;
  with_draft[kernel.tree().branches()[1]] = {{-1, 0, 0}, kernel.any_tokens(3)};
  int compared = 0;
  int other_than_best = 0;
  for (const bool is_draft : {true, false}) {
    const std::vector<int32_t> tokens = kernel.prepare(is_draft ? with_draft : drafts);
    const std::vector<SnapshotRow> at = kernel.engine().rows();
    const std::vector<RowSampling> sampling = some_sampling(static_cast<int>(at.size()));
    const TreeResult result = kernel.engine().decode_tree(
        {.tokens = tokens, .num_steps = is_draft ? 1 : kSteps, .sampling = sampling, .want_logits = true});
    for (size_t i = 0; i < result.chosen.size(); ++i) {
      const size_t row = i % at.size();
      const int step = static_cast<int>(i / at.size());
      const std::span<const float> logits =
          std::span(result.logits).subspan(i * kernel.vocabulary(), kernel.vocabulary());
      double lead = 0;
      const int expected = draw(logits, sampling[row], at[row].position + step, &lead);
      if (lead < kNearTieOfRows) continue;
      EXPECT_EQ(result.chosen[i], expected) << "step " << step << ", row " << row;
      ++compared;
      other_than_best += expected != argmax(logits) ? 1 : 0;
    }
    if (is_draft) kernel.take_back(with_draft);
  }
  EXPECT_GT(compared, (rows - 2) * kSteps);
  EXPECT_GT(other_than_best, rows * kSteps / 8);
}

TEST(TreeSampling, TheSameSeedDrawsTheSameOnAnyNumberOfCtas) {
  TreeResult results[2];
  std::vector<RowSampling> sampling;
  std::vector<SnapshotRow> rows;
  size_t vocabulary = 0;
  for (const int i : {0, 1}) {
    TreeUnderTest kernel(i == 0 ? "micro-3-rows8" : "micro-1-rows8");
    kernel.random().seed(1);
    vocabulary = kernel.vocabulary();
    const Branch root = kernel.tree().open();
    kernel.fill(root, 11);
    const std::vector<int32_t> tokens = kernel.prepare(kernel.plain(kernel.tree().fork(root, 8)));
    sampling = some_sampling(8);
    rows = kernel.engine().rows();
    results[i] = kernel.engine().decode_tree(
        {.tokens = tokens, .num_steps = 1, .sampling = sampling, .want_logits = true});
  }
  int compared = 0;
  for (size_t row = 0; row < rows.size(); ++row) {
    double lead = 0;
    const std::span<const float> logits = std::span(results[0].logits).subspan(row * vocabulary, vocabulary);
    draw(logits, sampling[row], rows[row].position, &lead);
    if (lead < 0.05) continue;  // logits differ within their tolerance
    EXPECT_EQ(results[0].chosen[row], results[1].chosen[row]) << "row " << row;
    ++compared;
  }
  EXPECT_GE(compared, 4);
}

// ---- Refusals

class TreeRefusal : public testing::Test {
 protected:
  TreeRefusal() : kernel_("micro-3-rows8", 2 * kKvPageTokens, 4) {}

  void expect_refused(const Drafts& drafts, TreeRequest request, ExitCode code, const std::string& fragment) {
    const std::vector<int32_t> tokens = kernel_.prepare(drafts);
    if (request.tokens.empty()) request.tokens = tokens;
    expect_unchanged(request, code, fragment);
  }
  void expect_unchanged(const TreeRequest& request, ExitCode code, const std::string& fragment) {
    const std::vector<int> before = state_of(kernel_.tree());
    try {
      kernel_.engine().decode_tree(request);
      ADD_FAILURE() << "no error; expected: " << fragment;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), code) << error.what();
      EXPECT_NE(std::string(error.what()).find(fragment), std::string::npos) << error.what();
    }
    EXPECT_EQ(state_of(kernel_.tree()), before) << fragment;
  }

  TreeUnderTest kernel_;
};

TEST_F(TreeRefusal, MoreRowsThanAnyKernelTakes) {
  const Branch root = kernel_.tree().open();
  expect_refused({{root, kernel_.any_draft(9)}}, {}, ExitCode::kMismatch, "for 9 rows a step, got one for 8");
}

TEST_F(TreeRefusal, TokensThatAreNone) {
  const Branch root = kernel_.tree().open();
  expect_refused({{root, {{-1}, {-1}}}}, {}, ExitCode::kMismatch, "from 0 to 49, got -1");
  expect_refused({{root, {{-1}, {50}}}}, {}, ExitCode::kMismatch, "from 0 to 49, got 50");
  const int32_t two[] = {1, 2};
  expect_refused(kernel_.plain({root}), {.tokens = two}, ExitCode::kInternal, "each of 1 rows, got 2");
  kernel_.tree().draft(root, {});
  expect_refused({}, {.tokens = two}, ExitCode::kInternal, "each of 0 rows, got 2");
}

TEST_F(TreeRefusal, ArgumentsThatDoNotFitTheRows) {
  const Branch root = kernel_.tree().open();
  const RowSampling two[] = {{}, {}};
  expect_refused(kernel_.plain({root}), {.tokens = {}, .sampling = two}, ExitCode::kInternal,
                 "each of 1 rows, got 2");
  expect_refused(kernel_.plain({root}), {.tokens = {}, .num_steps = 0}, ExitCode::kInternal,
                 "expected at least 1, got 0");
  expect_refused(kernel_.plain({root}), {.tokens = {}, .num_steps = 2, .skips_choice = true},
                 ExitCode::kInternal, "expected 1, got 2");
  expect_refused({{root, kernel_.any_draft(2)}}, {.tokens = {}, .num_steps = 2}, ExitCode::kInternal,
                 "expected 1, got 2");
}

TEST_F(TreeRefusal, APoolThatIsTooSmall) {
  const Branch root = kernel_.open();
  kernel_.feed(root, 60);
  const std::vector<Branch> branches = kernel_.fork(root, 3);
  kernel_.generate(branches, 2);  // in all four pages
  // Moves that are due are not lost either.
  kernel_.step({{branches[1], {{-1, -1, 1}, kernel_.any_tokens(3)}}});
  kernel_.accept(branches[1], {1, 2});
  expect_refused(kernel_.plain(branches), {.tokens = {}, .num_steps = 62}, ExitCode::kOutOfMemory,
                 "KV pool of 4 pages");
  expect_refused(kernel_.plain({branches[1]}), {.tokens = {}, .num_steps = 61}, ExitCode::kOutOfMemory,
                 "KV pool of 4 pages");
  kernel_.generate(branches, 2);
}

// The last slots of the last pages may be written: nothing is asked for that no step needs.
TEST_F(TreeRefusal, NotOfTheLastTokenThatFits) {
  const Branch root = kernel_.open();
  kernel_.feed(root, 64);
  const std::vector<Branch> branches = kernel_.fork(root, 3);
  for (const Branch branch : branches) kernel_.feed(branch, 60);
  kernel_.generate(branches, 4);
  EXPECT_EQ(kernel_.tree().num_free_pages(), 0);
  for (const Branch branch : branches) kernel_.truncate(branch, 127);
  const std::vector<int32_t> tokens = kernel_.prepare(kernel_.plain(branches));
  EXPECT_NO_THROW(kernel_.engine().decode_tree({.tokens = tokens, .skips_choice = true}));
  EXPECT_EQ(kernel_.tree().num_tokens(branches[2]), 2 * kKvPageTokens);
  expect_unchanged({.tokens = tokens}, ExitCode::kOutOfMemory, "context: expected at most 128 tokens");
}

// Beyond the context there are no angles to rotate by, however many pages there are.
TEST_F(TreeRefusal, PositionsBeyondTheContext) {
  constexpr int kContext = 2 * kKvPageTokens;
  const Branch root = kernel_.tree().open();
  kernel_.fill(root, kContext - 3);
  const std::vector<Branch> branches = kernel_.tree().fork(root, 2);
  const std::string expected = "context: expected at most 128 tokens (see -c), got 129";
  expect_refused(kernel_.plain(branches), {.tokens = {}, .num_steps = 4}, ExitCode::kOutOfMemory, expected);
  expect_refused({{branches[1], {chain(4), kernel_.any_tokens(4)}}}, {}, ExitCode::kOutOfMemory, expected);
  // More new tokens than positions left, but none too deep.
  EXPECT_EQ(kernel_.run({{branches[1], {{-1, 0, 1, 1, 0}, kernel_.any_tokens(5)}}}).num_steps, 1);
  kernel_.tree().accept(branches[1], {});
  EXPECT_EQ(kernel_.run(kernel_.plain(branches), 3).num_steps, 3);
  expect_refused(kernel_.plain(branches), {}, ExitCode::kOutOfMemory, expected);
}

}  // namespace
}  // namespace soliton
