// soliton-doctor: says what there is on this machine to make and run kernels with.
#include "runtime/command_line.h"
#include "runtime/tools/doctor/report.h"

namespace soliton {
namespace {

int run(int argc, char** argv) {
  CLI::App app{"Says what there is on this machine to make and run kernels with.", "soliton-doctor"};
  DoctorOptions options;
  app.add_option("--device", options.device, "GPU index")->check(at_least(0));
  app.add_flag("--json", options.json, "one JSON object instead of text");
  if (!parse_command_line(app, argc, argv)) return 0;
  print_doctor(options);
  flush_stdout();
  return 0;
}

}  // namespace
}  // namespace soliton

int main(int argc, char** argv) {
  return soliton::run_program("soliton-doctor", soliton::run, argc, argv);
}
