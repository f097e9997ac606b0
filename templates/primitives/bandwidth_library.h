// A library without a kernel of any model: what every library has, of which its Library::measure_bandwidth() is wanted
// for a card whose bandwidth nobody has written down. SOLITON_COMPUTE_CAPABILITY is the card's.
#pragma once

#include "primitives/library.h"
#include "primitives/primitives.h"

namespace soliton::bandwidth {

constexpr ModelDescriptor describe_no_model() {
  ModelDescriptor model{};
  model.gpu = "bandwidth";
  model.page_layout = kPageLayoutVersion;
  model.compute_capability = SOLITON_COMPUTE_CAPABILITY;
  return model;
}

constexpr KernelPlan plan_nothing() {
  KernelPlan plan{};
  plan.rows = 1;
  plan.num_regions = 1;
  plan.regions[0] = {"nothing", 0, 0};
  return plan;
}

constexpr ModelDescriptor kModel = describe_no_model();
constexpr KernelPlan kPlan = plan_nothing();

SOLITON_KERNEL(kPlan.threads()) nothing(const LaunchParams) {}

constexpr DecodeKernel kKernels[] = {nothing};
constexpr Descriptor kDescriptors[] = {describe(kModel, kPlan)};

}  // namespace soliton::bandwidth

SOLITON_LIBRARY(soliton::bandwidth::kKernels, soliton::bandwidth::kDescriptors)
