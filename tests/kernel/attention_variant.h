// What no model's attention has, for kernels of models/variant.yaml: what the test build puts into their plans, and what the
// reference computes beside them.
#pragma once

namespace soliton {

constexpr float kTestSoftCap = 1.25f;  // as tests/CMakeLists.txt says it

}  // namespace soliton
