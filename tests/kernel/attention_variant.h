// A variant of attention that no model has, for kernels of models/plain.yaml: what the test build puts into their plans, and
// what the reference computes beside them.
#pragma once

#include "layout/library.h"

namespace soliton {

constexpr int kTestWindows[] = {40, 150};  // as tests/CMakeLists.txt puts them into the table of layers
constexpr float kTestSinks[] = {0.5f, 1.5f, -1.0f, 0.0f, 2.0f, -0.25f, 0.75f, 1.0f};  // of 4 heads each
constexpr AttentionVariant kTestVariant{.soft_cap = 1.25f, .sinks = kTestSinks};

}  // namespace soliton
