// soliton-doctor: says what there is on this machine to make and run kernels with, and whether a model would run.
#include "models/weight_rounding.h"
#include "runtime/compile/compiler.h"
#include "runtime/compile/places.h"
#include "runtime/compile/toolkit.h"
#include "runtime/device/cuda_driver.h"
#include "runtime/doctor/cleaning.h"
#include "runtime/doctor/report.h"
#include "runtime/hub/hub_flags.h"
#include "runtime/program/command_line.h"

namespace soliton {
namespace {

void install_compiler(int device) {
  const DeviceAnswer answer = ask_driver(device);
  const std::string nvcc = install_toolkit(answer.device ? answer.device->driver_version : 0, say_line);
  print(fmt::format("{}: {}\n", nvcc, compiler_version({.program = nvcc})));
  if (const std::string first = find_nvcc(); first != nvcc) {
    print(fmt::format("{} comes first; CUDACXX={} takes the new one\n", first, nvcc));
  }
  flush_stdout();
}

int run(int argc, char** argv) {
  CLI::App app{"Says what there is on this machine to make and run kernels with.", "soliton-doctor"};
  DoctorOptions options;
  bool cleans = false;
  bool installs = false;
  CLI::Option* model =
      app.add_option(
             "MODEL", options.model,
             "Hugging Face folder, GGUF file or name: would it run here, how fast, and what is missing?")
          ->check(not_empty());
  add_hub_flags(app, options.hub);
  app.add_option("--weights", options.weights, kRoundedWeightsHelp)
      ->check(one_of({kRoundedWeights[0], kRoundedWeights[1]}))
      ->needs(model);
  app.add_option("--device", options.device, "GPU index")->check(at_least(0))->capture_default_str();
  app.add_option("--kv-bits", options.kv_bits, "of a key or value in the model's cache: 8, 16 or 32")
      ->check(one_of({"8", "16", "32"}))
      ->needs(model);
  app.add_flag("--json", options.json, "one JSON object instead of text");
  app.add_flag("--clean", cleans, "removes made kernels that are never looked for any more, and says which")
      ->excludes(model);
  app.add_flag("--install-compiler", installs,
               "gets nvcc from Python's package index, for machines without a CUDA toolkit")
      ->excludes(model);
  if (!parse_command_line(app, argc, argv)) return 0;
  if (cleans) {
    print_cleaning(clean_cache(kernel_cache_folder()), options.json);
    flush_stdout();
    return 0;
  }
  if (installs) {
    install_compiler(options.device);
    return 0;
  }
  const int status = print_doctor(options);
  flush_stdout();
  return status;
}

}  // namespace
}  // namespace soliton

int main(int argc, char** argv) {
  return soliton::run_program("soliton-doctor", soliton::run, argc, argv);
}
