#include "runtime/answer/emulation.h"

#include <fmt/format.h>

#include <array>
#include <chrono>

namespace soliton {

double take_fastest_kernel(Engine& engine,
                           const std::function<double(Engine&, double hopeless_s)>& seconds_of_step) {
  constexpr double kClearly = 0.7;  // so that chance does not decide, and a start does as the one before
  constexpr double kHopeless = 1.5;
  engine.generate_with(0);
  const double one_row_s = seconds_of_step(engine, 0);
  if (engine.max_rows() == 1) return one_row_s;
  engine.generate_with(engine.kernel_for_rows(2));
  const double rows_s = seconds_of_step(engine, kHopeless * one_row_s);
  if (rows_s < kClearly * one_row_s) return rows_s;
  engine.generate_with(0);
  return one_row_s;
}

double seconds_of_step(Engine& engine, double hopeless_s) {
  constexpr std::array<int32_t, 1> kAnyToken = {0};
  constexpr double kLongS = 0.5;  // a step that takes so long need not be repeated
  const auto decode = [&](int num_tokens, double* first_s) {
    const auto begin = std::chrono::steady_clock::now();
    const DecodeResult result = engine.decode({.tokens = kAnyToken, .max_tokens = num_tokens}, [&](int32_t) {
      const double now_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
      if (*first_s == 0) *first_s = now_s;
      return now_s < kLongS;
    });
    engine.reset_tree();
    return result;
  };
  double first_s = 0;
  if (hopeless_s > 0) decode(1, &first_s);
  if (first_s > hopeless_s) return first_s;
  first_s = 0;
  const DecodeResult result = decode(2, &first_s);
  // The first step of a launch has its beginning too.
  return result.times_ns.size() < 2 ? first_s : (result.times_ns[1] - result.times_ns[0]) * 1e-9;
}

std::string describe_emulation(double step_s, bool has_card) {
  const double rate = 1 / step_s;
  return fmt::format("{} on the CPU, for checking; about {} tokens/s",
                     has_card ? "Emulating" : "No card: emulating",
                     rate < 10 ? fmt::format("{:.2g}", rate) : fmt::format("{:.0f}", rate));
}

}  // namespace soliton
