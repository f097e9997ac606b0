// The drawing of a token alone, over given logits: what ops/sampling.cuh chooses against the definition, the
// distribution of many draws, extreme input, and races of its exchanges.
#include "ops/sampling.cuh"

#include <gtest/gtest.h>

#include "emulator_testing.h"
#include "long_tests.h"
#include "reference_sampling.h"

namespace soliton {
namespace {

using emulation::LaunchShape;

constexpr int kMaxRows = 8;

struct StageContext {
  const LaunchParams& params;
  int cta;
  int lane;
  WaitBound bound() const { return make_wait_bound(nullptr); }
  WaitSite site(WaitKind kind, uint32_t index, uint32_t expected = 0, uint32_t seen = 0) const {
    return {kind, 0, 0, index, expected, seen};
  }
};

/// All of a plan that drawing asks for.
constexpr KernelPlan stage_plan(int num_ctas) {
  KernelPlan plan;
  plan.num_ctas = num_ctas;
  return plan;
}
template <int kCtas>
constexpr KernelPlan kStagePlan = stage_plan(kCtas);

/// Warp w draws for rows w, w + number of warps, ... at positions 0, 1, ...; a CTA's candidates go to the
/// workspace, [position][row][CTA].
template <int kCtas>
void stage(LaunchParams params) {
  const int warp = thread_index() / kWarpLanes;
  const StageContext context{params, cta_index(), thread_index() % kWarpLanes};
  const int num_tiles = sampling_line(params.sampling.vocabulary) / kTileRows;
  const TileRun run = deal_tiles(num_tiles, kCtas / 2, kCtas, context.cta);
  RowSampler<kStagePlan<kCtas>, StageContext, kCtas % 2 == 1 ? 8 : 4> sampler(
      context, run, shared_memory() + warp * SharedHistogram::kBytes, warp);
  auto* candidates = static_cast<uint64_t*>(params.workspace);
  for (int position = 0; position < params.num_steps; ++position) {
    for (int row = warp; row < params.tree.num_rows; row += sampling_warps(kMaxRows)) {
      const uint64_t best = sampler.draw(row, position, 0);
      if (context.lane == 0) {
        store_global(candidates + (position * params.tree.num_rows + row) * kCtas + context.cta, best);
      }
    }
  }
}

/// Tokens of `num_draws` positions for each row, [position][row].
class Stage {
 public:
  std::vector<RowSampling> rows;
  std::vector<std::vector<float>> logits;  // [row][vocabulary]
  std::vector<std::set<int32_t>> seen;     // [row], or empty
  EmulationOptions options;
  std::vector<float> norms;  // of the last draw of each row: best logit, logarithm of the sum
  bool want_logprobs = false;

  template <int kCtas>
  std::vector<int> draw(int num_draws) {
    const int vocabulary = static_cast<int>(logits[0].size());
    const int line = sampling_line(vocabulary);
    const int num_rows = static_cast<int>(rows.size());
    const size_t tiles = static_cast<size_t>(line / kTileRows);
    Buffer<RowSampling> sampling(rows.size());
    Buffer<float> all(rows.size() * static_cast<size_t>(line), NAN);
    Buffer<unsigned char> exchange(static_cast<size_t>(ExchangeLayout{kCtas}.bytes(kMaxRows)));
    Buffer<uint16_t> bits(rows.size() * tiles);
    Buffer<uint64_t> candidates(static_cast<size_t>(num_draws * num_rows * kCtas));
    Buffer<float> logprobs(1);
    for (size_t row = 0; row < rows.size(); ++row) {
      sampling[row] = rows[row];
      std::copy(logits[row].begin(), logits[row].end(), all.data() + row * static_cast<size_t>(line));
      for (const int32_t token : seen.empty() ? std::set<int32_t>{} : seen[row])
        bits[row * tiles + static_cast<size_t>(token / kTileRows)] |=
            static_cast<uint16_t>(1u << token % kTileRows);
    }
    LaunchParams params = with_workspace(candidates.data());
    params.num_steps = num_draws;
    params.tree.num_rows = num_rows;
    params.sampling = {.rows = sampling.data(),
                       .logits = all.data(),
                       .exchange = exchange.data(),
                       .seen = seen.empty() ? nullptr : bits.data(),
                       .allowed = nullptr,
                       .logprobs = want_logprobs ? logprobs.data() : nullptr,
                       .vocabulary = vocabulary};
    const int warps = sampling_warps(kMaxRows);
    const LaunchShape shape{kCtas, warps * kWarpLanes, warps * SharedHistogram::kBytes};
    EXPECT_EQ(run(stage<kCtas>, params, shape, options), "");
    std::vector<int> tokens;
    for (int i = 0; i < num_draws * num_rows; ++i) {
      const uint64_t best =
          *std::max_element(candidates.data() + i * kCtas, candidates.data() + (i + 1) * kCtas);
      tokens.push_back(best == kNoCandidate ? 0 : candidate_token(best));
    }
    const auto* words = reinterpret_cast<const float*>(exchange.data());
    norms.assign(words, words + 2 * rows.size());
    return tokens;
  }

  std::vector<int> draw_on(int num_ctas, int num_draws) {
    return num_ctas == 1 ? draw<1>(num_draws) : num_ctas == 3 ? draw<3>(num_draws) : draw<7>(num_draws);
  }
};

/// Like a model's: a few tokens far above many.
std::vector<float> some_logits(int vocabulary, uint64_t seed) {
  std::vector<float> logits;
  for (int i = 0; i < vocabulary; ++i) {
    const float tail = random_unit(i, seed);
    logits.push_back(4 * tail * tail * tail + 2 * random_unit(i, seed + 1000));
  }
  return logits;
}

std::vector<RowSampling> many_samplings() {
  constexpr float kInf = kUnlimitedDistance;
  return {{1.0f, 1},
          {1.0f, 2, 5},
          {1.0f, 3, 0, 0.9f},
          {1.0f, 4, 0, 1.0f, 1.5f},
          {2.0f, 5, 40, 0.8f, 3.0f},
          {0.01f, 6, 7, 0.5f},
          {1e30f, 7},
          {1e30f, 8, 3, 0.9f, 1.0f},
          {0.0f, 9, 3, 0.5f, 0.1f},
          {1.25f, 10, 1},
          {1.25f, 11, 0, 0.0f},
          {1.25f, 12, 0, 1e-6f},
          {0.7f, 13, 1 << 20, 0.99f},
          {0.7f, 14, 30, 1.0f, kInf, 1.3f},
          {0.0f, 15, 0, 1.0f, kInf, 2.0f},
          {1.0f, 16, 12, 0.7f, 4.0f, 0.5f}};
}

constexpr double kNearTie = 1e-3;  // of scores: beyond the error of floats

/// Draws for every row and compares; returns how many draws could be compared.
int expect_like_reference(Stage& stage, int num_ctas, int num_draws) {
  const std::vector<int> tokens = stage.draw_on(num_ctas, num_draws);
  int compared = 0;
  for (size_t i = 0; i < tokens.size(); ++i) {
    const size_t row = i % stage.rows.size();
    const int position = static_cast<int>(i / stage.rows.size());
    const ReferenceChoice choice =
        reference_choice(stage.logits[row], stage.rows[row], position,
                         stage.seen.empty() ? std::set<int32_t>{} : stage.seen[row]);
    const bool is_tiny = stage.rows[row].inverse_temperature > 1e20f;  // one score outweighs all
    if (!choice.is_clear || (choice.lead < kNearTie && !is_tiny)) continue;
    EXPECT_EQ(tokens[i], choice.token) << "row " << row << ", position " << position;
    ++compared;
  }
  return compared;
}

// What a mask forbids is NaN, which is never chosen; what is not finite must be seen, forbidden or not.
TEST(KeepLogit, LeavesOutWhatMayNotBeChosen) {
  constexpr int kTokens = 32;
  constexpr int kVocabulary = 29;
  Buffer<float> kept(kTokens);
  Buffer<uint16_t> allowed(kTokens / kTileRows);
  allowed[0] = 0b1000'0000'0000'0101;
  allowed[1] = 0b1111'0000'0001'0000;
  for (const bool masks : {false, true}) {
    LaunchParams params = with_workspace(kept.data());
    params.sampling = {};
    params.sampling.logits = kept.data();
    params.sampling.allowed = masks ? allowed.data() : nullptr;
    params.sampling.vocabulary = kVocabulary;
    const auto keep = [](LaunchParams launch) {
      const int token = thread_index();
      keep_logit(launch.sampling, 0, token, token == 3 ? NAN : static_cast<float>(token));
    };
    ASSERT_EQ(run(keep, params, {1, kTokens, 16}, {}), "");
    for (int token = 0; token < kTokens; ++token) {
      const bool may = !masks || (allowed[static_cast<size_t>(token / 16)] >> token % 16 & 1) != 0;
      const float logit = kept[static_cast<size_t>(token)];
      SCOPED_TRACE(token);
      if (token == 3) {
        EXPECT_EQ(logit, INFINITY);
      } else if (may && token < kVocabulary) {
        EXPECT_EQ(logit, static_cast<float>(token));
      } else {
        EXPECT_TRUE(std::isnan(logit));
      }
    }
  }
}

class StageOn : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Ctas, StageOn, testing::Values(1, 3, 7));

// Vocabularies that end within a tile, that leave CTAs without one, and that one warp takes in several blocks.
TEST_P(StageOn, ChoosesAsDefined) {
  constexpr int kDraws = 6;
  for (const int vocabulary : {5, 33, 1000, 5003}) {
    SCOPED_TRACE(vocabulary);
    Stage stage;
    stage.rows = many_samplings();
    for (size_t row = 0; row < stage.rows.size(); ++row) {
      stage.logits.push_back(some_logits(vocabulary, row));
      std::set<int32_t>& seen = stage.seen.emplace_back();
      for (int i = 0; i < 20; ++i) seen.insert(static_cast<int32_t>(random_bits(i, row) % vocabulary));
      seen.insert(0);  // as the stage says it was fed
    }
    EXPECT_GT(expect_like_reference(stage, GetParam(), kDraws), kDraws * 13);
  }
}

TEST_P(StageOn, TakesExtremeInput) {
  constexpr int kVocabulary = 100;
  Stage stage;
  const auto add = [&](const RowSampling& sampling, std::vector<float> logits) {
    logits.resize(kVocabulary, logits.back());
    stage.rows.push_back(sampling);
    stage.logits.push_back(std::move(logits));
  };
  for (const RowSampling& sampling :
       {RowSampling{1.0f, 1, 4, 0.9f, 2.0f}, RowSampling{1.0f, 2}, RowSampling{}}) {
    add(sampling, {1, 1});                         // all equal: all ties stay
    add(sampling, {NAN, NAN, 3, 2, NAN, 1, NAN});  // few numbers
    add(sampling, {NAN});                          // none
    add(sampling, {3e38f, -3e38f, 1});
  }
  EXPECT_GE(expect_like_reference(stage, GetParam(), 8), 8 * 9);
}

/// What is kept of a logit that is NaN or infinite is infinite, and NaN is no token: see keep_logit().
TEST_P(StageOn, DrawsNoTokenWhereALogitIsNotFinite) {
  Stage stage;
  for (const RowSampling& sampling :
       {RowSampling{1.0f, 1, 4, 0.9f, 2.0f}, RowSampling{1.0f, 2}, RowSampling{1e30f, 3, 1}, RowSampling{}}) {
    for (const size_t place : {0, 2, 99}) {
      stage.rows.push_back(sampling);
      stage.logits.push_back(some_logits(100, 3));
      stage.logits.back()[place] = INFINITY;
    }
  }
  for (const int token : stage.draw_on(GetParam(), 4)) EXPECT_EQ(token, kNotFiniteToken);
}

// ---- Many draws

double chi_square(std::span<const int> counts, std::span<const double> shares) {
  int draws = 0;
  for (const int count : counts) draws += count;
  double sum = 0;
  for (size_t i = 0; i < counts.size(); ++i) {
    const double expected = shares[i] * draws;
    if (expected == 0) {
      EXPECT_EQ(counts[i], 0) << "token " << i << " does not stay";
      continue;
    }
    sum += (counts[i] - expected) * (counts[i] - expected) / expected;
  }
  return sum;
}

TEST(StageDraws, AreDistributedAsDefined) {
  const int num_draws = long_tests() ? 3000 : 1000;
  constexpr int kVocabulary = 20;
  Stage stage;
  stage.rows = {{1.0f, 1},
                {0.5f, 2, 8},
                {1.0f, 3, 0, 0.8f},
                {0.8f, 4, 0, 1.0f, 1.2f},
                {1.0f, 5, 12, 0.9f, 1.5f},
                {1.0f, 6, 0, 1.0f, kUnlimitedDistance, 1.5f}};
  for (size_t row = 0; row < stage.rows.size(); ++row) {
    std::vector<float>& logits = stage.logits.emplace_back();
    for (int i = 0; i < kVocabulary; ++i) logits.push_back(2.5f * random_unit(i, row + 7));
    stage.seen.push_back(row == 5 ? std::set<int32_t>{0, 3, 4, 11} : std::set<int32_t>{0});
  }
  const std::vector<int> tokens = stage.draw<3>(num_draws);
  for (size_t row = 0; row < stage.rows.size(); ++row) {
    SCOPED_TRACE(row);
    std::vector<int> counts(kVocabulary);
    for (size_t i = row; i < tokens.size(); i += stage.rows.size()) ++counts[static_cast<size_t>(tokens[i])];
    const auto shares = [&](const RowSampling& sampling) {
      return reference_probabilities(stage.logits[row], sampling, stage.seen[row]);
    };
    constexpr double kBound = 50.8;  // 19 degrees of freedom at most: exceeded once in 10^4 tests
    EXPECT_LT(chi_square(counts, shares(stage.rows[row])), kBound);
    RowSampling warmer = stage.rows[row];
    warmer.inverse_temperature *= 0.75f;
    warmer.max_distance = INFINITY;
    warmer.top_k = 0;
    warmer.top_p = 1;
    EXPECT_GT(chi_square(counts, shares(warmer)), kBound) << "has power";
  }
}

TEST(StageDraws, AreTheSameOnAnyNumberOfCtas) {
  Stage stage;
  stage.rows = many_samplings();
  for (size_t row = 0; row < stage.rows.size(); ++row) stage.logits.push_back(some_logits(2000, row));
  const std::vector<int> tokens = stage.draw<1>(5);
  EXPECT_EQ(stage.draw<3>(5), tokens);
  EXPECT_EQ(stage.draw<7>(5), tokens);
}

TEST(StageDraws, LogprobsDoNotChangeThem) {
  Stage stage;
  stage.rows = many_samplings();
  for (size_t row = 0; row < stage.rows.size(); ++row) stage.logits.push_back(some_logits(300, row));
  const std::vector<int> tokens = stage.draw<3>(3);
  stage.want_logprobs = true;
  EXPECT_EQ(stage.draw<3>(3), tokens);
  for (size_t row = 0; row < stage.rows.size(); ++row) {
    const std::vector<float>& logits = stage.logits[row];
    const float logprob = logits[5] - stage.norms[2 * row] - stage.norms[2 * row + 1];
    EXPECT_NEAR(logprob, reference_logprob(logits, 5), 1e-5);
  }
}

// ---- Races

TEST(StageRaces, ThereAreNoneUnderAnySchedule) {
  Stage stage;
  stage.rows = many_samplings();
  for (size_t row = 0; row < stage.rows.size(); ++row) {
    stage.logits.push_back(some_logits(150, row));
    stage.seen.push_back({0, 7, 100});
  }
  stage.want_logprobs = true;
  const std::vector<int> tokens = stage.draw<3>(3);
  for (uint64_t seed = 1; seed <= 6; ++seed) {
    stage.options = checked(seed);
    EXPECT_EQ(stage.draw<3>(3), tokens) << "schedule " << seed;
  }
}

}  // namespace
}  // namespace soliton
