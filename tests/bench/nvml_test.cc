// What NVML is asked and what becomes of its answers, with a library in its place.
#include "runtime/bench/nvml.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "error_of.h"
#include "models/error.h"
#include "runtime/bench/sensors.h"

namespace soliton {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

const std::string kFakeDriver = std::string(SOLITON_BINARY_DIR) + "/fake_cuda/libcuda.so.1";
const std::string kFakeNvml = std::string(SOLITON_BINARY_DIR) + "/fake_nvml/libnvidia-ml.so.1";

Nvml open(int device = 0) {
  return Nvml(device, kFakeNvml.c_str(), kFakeDriver.c_str());
}

/// A variable of the environment, for as long as this lives.
class Environment {
 public:
  Environment(const char* name, const char* value) : name_(name) { ::setenv(name, value, 1); }
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;
  ~Environment() { ::unsetenv(name_); }

 private:
  const char* name_;
};

TEST(Nvml, SaysAllOfACard) {
  const Nvml card = open();
  EXPECT_EQ(card.watts(), 300);
  EXPECT_EQ(card.watts_limit(), 700);
  const double joules = card.joules().value();
  EXPECT_DOUBLE_EQ(card.joules().value(), joules + 30);
  EXPECT_EQ(card.sm_mhz(), 1755);
  EXPECT_EQ(card.memory_mhz(), 3201);
  EXPECT_EQ(card.celsius(), 61);
  EXPECT_EQ(card.throttling(), 0x25u);
}

TEST(Nvml, SaysNothingOfWhatIsNotSupported) {
  const Environment without("FAKE_NVML_WITHOUT", "Power,Energy,Clock,Temperature,Throttle,Limit");
  const Nvml card = open();
  EXPECT_FALSE(card.watts());
  EXPECT_FALSE(card.watts_limit());
  EXPECT_FALSE(card.joules());
  EXPECT_FALSE(card.sm_mhz());
  EXPECT_FALSE(card.memory_mhz());
  EXPECT_FALSE(card.celsius());
  EXPECT_FALSE(card.throttling());
}

TEST(Nvml, SaysWhyItIsNotThere) {
  const auto reason = [](int device, const std::string& library, const std::string& driver) {
    return error_of([&] { Nvml(device, library.c_str(), driver.c_str()); });
  };
  EXPECT_TRUE(reason(0, "libnvidia-ml-of-nobody.so.1", kFakeDriver)
                  .starts_with("6 expected libnvidia-ml-of-nobody.so.1, got: "));
  EXPECT_EQ(reason(0, kFakeDriver, kFakeDriver), "6 " + kFakeDriver + ": expected nvmlInit_v2, found none");
  EXPECT_EQ(reason(0, kFakeNvml, kFakeNvml), "6 " + kFakeNvml + ": expected cuInit, found none");
  EXPECT_EQ(reason(1, kFakeNvml, kFakeDriver),
            "6 " + kFakeNvml + ": nvmlDeviceGetHandleByPciBusId: an error");
  {
    const Environment fails("FAKE_NVML_FAILS", "nvmlInit");
    EXPECT_EQ(reason(0, kFakeNvml, kFakeDriver), "6 " + kFakeNvml + ": nvmlInit: Insufficient Permissions");
  }
  const Environment fails("FAKE_CUDA_FAILS", "cuDeviceGetPCIBusId");
  EXPECT_EQ(reason(0, kFakeNvml, kFakeDriver),
            "6 " + kFakeDriver + ": expected the PCI address of device 0, got none");
}

TEST(Nvml, NamesWhatThrottles) {
  EXPECT_THAT(names_of_throttling(0), IsEmpty());
  EXPECT_THAT(names_of_throttling(0x1 | 0x2 | 0x100), IsEmpty());  // idle, and clocks that were asked for
  EXPECT_THAT(names_of_throttling(0x4 | 0x40), ElementsAre("power cap", "thermal (hardware)"));
}

TEST(Sensors, SummariseTheirSamples) {
  Sensors sensors(open(), std::chrono::milliseconds(1));
  while (sensors.summary().num_samples < 3) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  const SensorSummary summary = sensors.summary();
  EXPECT_EQ(summary.sm_mhz.value().least, 1755);
  EXPECT_EQ(summary.sm_mhz.value().most, 1755);
  EXPECT_EQ(summary.memory_mhz.value().median, 3201);
  EXPECT_EQ(summary.watts.value().median, 300);
  EXPECT_EQ(summary.celsius.value().median, 61);
  EXPECT_EQ(summary.watts_limit, 700);
  const std::map<std::string, double> all = {{"power cap", 1}, {"thermal (software)", 1}};
  EXPECT_EQ(summary.throttling, all);
}

TEST(Sensors, CountEnergyByTheCard) {
  Sensors sensors(open());
  sensors.begin_energy();
  const EnergyUse use = sensors.energy().value();
  EXPECT_TRUE(use.is_counted);
  EXPECT_DOUBLE_EQ(use.joules, 30);
  EXPECT_GT(use.seconds, 0);
  EXPECT_DOUBLE_EQ(use.mean_watts(), 30 / use.seconds);
}

TEST(Sensors, TakeEnergyFromPowerWhereTheCardDoesNotCount) {
  const Environment without("FAKE_NVML_WITHOUT", "Energy");
  Sensors sensors(open(), std::chrono::milliseconds(1));
  sensors.begin_energy();
  std::optional<EnergyUse> use;
  while (!use) use = sensors.energy();  // until there is a sample
  EXPECT_FALSE(use->is_counted);
  EXPECT_DOUBLE_EQ(use->mean_watts(), 300);
}

TEST(Sensors, SayNothingWhereTheCardDoesNotKnow) {
  const Environment without("FAKE_NVML_WITHOUT", "Power,Energy,Clock,Temperature,Throttle,Limit");
  Sensors sensors(open());
  EXPECT_FALSE(sensors.energy());
  const SensorSummary summary = sensors.summary();
  EXPECT_FALSE(summary.sm_mhz || summary.memory_mhz || summary.watts || summary.celsius ||
               summary.watts_limit || summary.throttling);
}

}  // namespace
}  // namespace soliton
