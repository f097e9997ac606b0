// The choice of a token on the host, where a request wants of it what kernels do not do: biases of any token, and penalties
// of frequency and presence. All else is as layout/sampling.h has it, so that the same seed draws the same.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "layout/sampling.h"

namespace soliton {

struct LogitAdjustment {
  std::vector<std::pair<int32_t, float>> biases = {};  // token, and what is added to its logit
  float frequency_penalty = 0;  // taken from a logit for each time the answer has its token,
  float presence_penalty = 0;   // and for whether it has

  bool is_none() const { return biases.empty() && frequency_penalty == 0 && presence_penalty == 0; }
};

/// Of one row. `answer`: how often the answer has which token so far.
void adjust(const LogitAdjustment& adjustment, const std::map<int32_t, int>& answer, std::span<float> logits);

/// The token chosen behind the one at `position`. `seen`: tokens that RowSampling::penalty is of, which comes before the
/// adjustment. `allowed`: see TreeRequest.
struct HostChoice {
  std::span<const float> logits;
  RowSampling sampling = {};
  int position = 0;
  std::span<const int32_t> seen = {};
  std::span<const uint32_t> allowed = {};
};
int32_t choose_on_host(const HostChoice& choice, const LogitAdjustment& adjustment,
                       const std::map<int32_t, int>& answer);

}  // namespace soliton
