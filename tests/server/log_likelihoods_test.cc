// What an evaluation's requests are answered with, against transformers: tests/goldens/log-likelihoods.json.
#include <gtest/gtest.h>

#include <limits>

#include "long_tests.h"
#include "models/strict_json.h"
#include "server/clients_fixture.h"
#include "server/program_fixture.h"

namespace soliton {
namespace {

using nlohmann::json;

/// What lm-eval makes of a choice: of the tokens behind the context, but for the one that the model adds.
struct Score {
  double log_likelihood = 0;
  bool is_greedy = true;
};

Score score_of(const json& choice, size_t context_tokens, size_t prompt_tokens) {
  const json& told = choice.at("logprobs");
  Score score;
  for (size_t i = context_tokens; i < prompt_tokens; ++i) {
    const double logprob = told.at("token_logprobs").at(i);
    double best = -std::numeric_limits<double>::infinity();
    for (const auto& [text, value] : told.at("top_logprobs").at(i).items())
      best = std::max(best, value.get<double>());
    score.log_likelihood += logprob;
    score.is_greedy = score.is_greedy && logprob == best;
  }
  return score;
}

class LogLikelihoods : public ServerProgram {
 protected:
  void serve(const std::filesystem::path& model) {
    process_.emplace("soliton-server",
                     std::vector<std::string>{model, "-k", SOLITON_KERNELS "/tiny-stories-cpu.so", "-c",
                                              "256", "--port", "0"},
                     folder_.path());
    wait_until_it_serves(model.filename());
  }
};

// Sums of up to ten logprobs; keys and values are f16 here. 5e-3 have been seen.
TEST_F(LogLikelihoods, AreThoseOfTransformers) {
  constexpr double kTolerance = 2e-2;
  const std::filesystem::path source = SOLITON_SOURCE_DIR;
  const json golden = read_json(source / "tests" / "goldens" / "log-likelihoods.json");
  serve(source / golden.at("model").get<std::string>());
  int num_greedy = 0;
  double worst = 0;
  for (const json& request : golden.at("requests")) {
    const json& body = request.at("body");
    const json answer = ask(port_, "POST", "/v1/completions", body.dump()).json();
    ASSERT_EQ(answer.at("choices").size(), request.at("expected").size()) << answer;
    for (size_t i = 0; i < answer.at("choices").size(); ++i) {
      const json& choice = answer.at("choices")[i];
      const json& expected = request.at("expected")[i];
      const size_t prompt_tokens = body.at("prompt")[i].size();
      EXPECT_EQ(choice.at("index"), i);
      EXPECT_EQ(choice.at("logprobs").at("token_logprobs").size(),
                prompt_tokens + body.at("max_tokens").get<size_t>());
      const Score score = score_of(choice, expected.at("context_tokens"), prompt_tokens);
      const double off = std::abs(score.log_likelihood - expected.at("log_likelihood").get<double>());
      EXPECT_LT(off, kTolerance) << body.at("prompt")[i];
      EXPECT_EQ(score.is_greedy, expected.at("is_greedy")) << body.at("prompt")[i];
      num_greedy += score.is_greedy ? 1 : 0;
      worst = std::max(worst, off);
    }
  }
  EXPECT_GE(num_greedy, 1) << "a continuation that the model would give";
  RecordProperty("max_difference", fmt::format("{:.3g}", worst));
  process_->signal(SIGTERM);
  EXPECT_EQ(process_->wait().status, 0);
}

TEST_F(LogLikelihoods, OfLmEvalAreThoseOfTransformers) {
  if (!long_tests()) GTEST_SKIP() << "skipped: only in long runs (SOLITON_LONG_TESTS=1)";
  serve(SOLITON_SOURCE_DIR "/models/tiny-stories");
  const auto [status, output] =
      shell(python() + " -B -W ignore " SOLITON_SOURCE_DIR "/tests/server/lm_eval_client.py " +
            std::to_string(port_));
  constexpr int kSkipped = 77;
  if (status == kSkipped || status == kNoProgram) GTEST_SKIP() << output;
  EXPECT_EQ(status, 0) << output;
}

}  // namespace
}  // namespace soliton
