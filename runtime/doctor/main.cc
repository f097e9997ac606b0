// soliton-doctor: says what there is on this machine to make and run kernels with, and whether a model would run.
#include "runtime/doctor/cleaning.h"
#include "runtime/doctor/report.h"
#include "runtime/hub/hub_flags.h"
#include "runtime/make/places.h"
#include "runtime/program/command_line.h"

namespace soliton {
namespace {

int run(int argc, char** argv) {
  CLI::App app{"Says what there is on this machine to make and run kernels with.", "soliton-doctor"};
  DoctorOptions options;
  bool cleans = false;
  CLI::Option* model =
      app.add_option(
             "MODEL", options.model,
             "Hugging Face folder, GGUF file or name: would it run here, how fast, and what is missing?")
          ->check(not_empty());
  add_hub_flags(app, options.hub);
  app.add_option("--device", options.device, "GPU index")->check(at_least(0))->capture_default_str();
  app.add_flag("--json", options.json, "one JSON object instead of text");
  app.add_flag("--clean", cleans, "removes made kernels that are never looked for any more, and says which")
      ->excludes(model);
  if (!parse_command_line(app, argc, argv)) return 0;
  if (cleans) {
    print_cleaning(clean_cache(kernel_cache_folder()), options.json);
    flush_stdout();
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
