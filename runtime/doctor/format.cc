// The report of soliton-doctor, for people and for programs.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "models/printing.h"
#include "runtime/doctor/report.h"
#include "runtime/engine/launch_pace.h"

namespace soliton {
namespace {

using nlohmann::ordered_json;

constexpr int kLabelWidth = 13;

std::string line(const char* label, const std::string& text) {
  return fmt::format("{:<{}}{}\n", label, kLabelWidth, text);
}

std::string gigabytes(int64_t bytes) {
  return fmt::format("{:.2f} GB", static_cast<double>(bytes) * 1e-9);
}

/// 13000 is CUDA 13.0.
std::string cuda_version(int version) {
  return fmt::format("{}.{}", version / 1000, version % 1000 / 10);
}

std::string describe_device(const DoctorReport& report) {
  if (!report.device) return line("GPU", report.device_problem);
  const DeviceInfo& device = *report.device;
  std::string text =
      line("GPU", fmt::format("{} (sm_{}, {} SMs){}", device.name, device.compute_capability, device.num_sms,
                              report.gpu.empty() ? "" : ", planned for as " + report.gpu));
  if (!report.gpu_problem.empty()) text += line("", report.gpu_problem);
  text += line("GPU memory",
               fmt::format("{} free of {}{}", gigabytes(device.free_bytes), gigabytes(device.total_bytes),
                           device.unified_memory != 0 ? ", which is the host's" : ""));
  if (device.has_time_limit != 0) {
    text += line("time limit",
                 fmt::format("it drives a display: launches last at most {} s", LaunchPace::kMaxSeconds));
  }
  return text;
}

/// Whether --cards takes another device beside the one that is reported.
std::string share_with(const LinkedDevice& link) {
  if (!link.same_kind) return "another kind, shares no model with it";
  if (!link.reaches) return "without access to its memory, shares no model with it";
  if (!link.native_atomics) return "joined without atomics (no NVLink), shares no model with it";
  return "joined by NVLink, can share a model with it (--cards)";
}

std::string describe_links(const DoctorReport& report) {
  std::string text;
  for (const LinkedDevice& link : report.links)
    text += line(text.empty() ? "other GPUs" : "",
                 fmt::format("{}: {}, {}", link.index, link.name, share_with(link)));
  return text;
}

std::string describe_driver(const DoctorReport& report) {
  if (report.driver.empty() && !report.device) return line("driver", "none found");
  std::string text = report.driver.empty() ? "of unknown version" : report.driver;
  if (report.device) text += ", for CUDA up to " + cuda_version(report.device->driver_version);
  return line("driver", text);
}

std::string describe_compiler(const char* label, const FoundCompiler& compiler) {
  return line(label, compiler.problem.empty() ? fmt::format("{} ({})", compiler.version, compiler.program)
                                              : compiler.problem);
}

std::string describe_kernels(const char* label, const KernelFolder& folder) {
  std::string text = line(label, !folder.problem.empty()  ? folder.problem
                                 : folder.kernels.empty() ? folder.folder + ": none"
                                                          : folder.folder);
  for (const FoundKernel& kernel : folder.kernels) {
    text += line("", kernel.problem.empty() ? fmt::format("{}: {} on {}, {} rows", kernel.file, kernel.model,
                                                          kernel.gpu, fmt::join(kernel.rows, ","))
                                            : kernel.problem);
  }
  return text;
}

constexpr size_t kNameWidth = 18;  // at least

/// `width`: of the column of names.
std::string describe_model(const FoundModel& model, size_t width = kNameWidth) {
  std::string text = fmt::format("{:<{}} {:>9} at {} bits, and {:.1f} KB a token", model.name, width,
                                 gigabytes(model.weight_bytes), model.weight_bits,
                                 static_cast<double>(model.token_bytes) * 1e-3);
  if (model.window_bytes > 0) text += fmt::format(" and {} of windows", gigabytes(model.window_bytes));
  if (!model.context) return text + fmt::format("; context up to {}", model.max_context);
  if (*model.context == 0) return text + ": does not fit";
  return text + fmt::format(": fits with a context of {}{}", *model.context,
                            *model.context == model.max_context ? ", all of it"
                                                                : fmt::format(" of {}", model.max_context));
}

/// Of the models of models/, or of the one that is asked for.
std::string describe_models(const DoctorReport& report) {
  if (!report.model) {
    std::string text =
        line("models", report.device ? "in the GPU's free memory" : "and the memory that they need");
    size_t width = kNameWidth;
    for (const FoundModel& model : report.models) width = std::max(width, model.name.size());
    for (const FoundModel& model : report.models) text += line("", describe_model(model, width));
    return text;
  }
  const CheckedModel& model = *report.model;
  std::string text = line("model", model.folder.empty() ? model.facts.name : model.folder);
  if (model.facts.weight_bytes > 0) text += line("", describe_model(model.facts));
  if (!model.kernel.empty()) text += line("kernel", model.kernel);
  return text;
}

std::string describe_verdict(const DoctorReport& report) {
  std::string text;
  for (const std::string& each : verdict_of(report)) text += line(text.empty() ? "verdict" : "", each);
  return text;
}

ordered_json as_json(const FoundCompiler& compiler) {
  if (!compiler.problem.empty()) return {{"problem", compiler.problem}};
  return {{"program", compiler.program}, {"version", compiler.version}};
}

ordered_json as_json(const KernelFolder& folder) {
  ordered_json json = {{"folder", folder.folder}, {"kernels", ordered_json::array()}};
  if (!folder.problem.empty()) json["problem"] = folder.problem;
  for (const FoundKernel& kernel : folder.kernels) {
    json["kernels"].push_back(kernel.problem.empty()
                                  ? ordered_json{{"file", kernel.file},
                                                 {"model", kernel.model},
                                                 {"gpu", kernel.gpu},
                                                 {"rows", kernel.rows}}
                                  : ordered_json{{"file", kernel.file}, {"problem", kernel.problem}});
  }
  return json;
}

ordered_json as_json(const FoundModel& model) {
  ordered_json json = {{"name", model.name},
                       {"weight_bits", model.weight_bits},
                       {"weight_bytes", model.weight_bytes},
                       {"token_bytes", model.token_bytes},
                       {"window_bytes", model.window_bytes},
                       {"max_context", model.max_context}};
  if (model.context) json["fitting_context"] = *model.context;
  return json;
}

ordered_json as_json(const CheckedModel& model) {
  ordered_json json =
      model.facts.weight_bytes > 0 ? as_json(model.facts) : ordered_json{{"name", model.facts.name}};
  json["folder"] = model.folder;
  json["runs"] = model.missing.empty();
  json["missing"] = model.missing;
  if (!model.kernel.empty()) json["kernel"] = model.kernel;
  if (model.tokens_per_s > 0) json["tokens_per_s_at_best"] = model.tokens_per_s;
  if (model.shared) {
    json["shared"] = {{"cards", model.shared->cards},
                      {"fitting_context", model.shared->context},
                      {"tokens_per_s_at_best", model.shared->tokens_per_s}};
  }
  return json;
}

ordered_json device_as_json(const DoctorReport& report) {
  if (!report.device) return {{"problem", report.device_problem}};
  const DeviceInfo& device = *report.device;
  ordered_json json = {{"name", device.name},
                       {"compute_capability", device.compute_capability},
                       {"num_sms", device.num_sms},
                       {"total_bytes", device.total_bytes},
                       {"free_bytes", device.free_bytes},
                       {"unified_memory", device.unified_memory != 0},
                       {"time_limit", device.has_time_limit != 0},
                       {"driver_cuda_version", cuda_version(device.driver_version)},
                       {"planned_for", report.gpu}};
  if (!report.gpu_problem.empty()) json["problem"] = report.gpu_problem;
  json["others"] = ordered_json::array();
  for (const LinkedDevice& link : report.links) {
    json["others"].push_back({{"device", link.index},
                              {"name", link.name},
                              {"same_kind", link.same_kind},
                              {"peer_access", link.reaches},
                              {"peer_atomics", link.native_atomics}});
  }
  return json;
}

}  // namespace

std::string as_text(const DoctorReport& report) {
  std::string text = describe_device(report) + describe_links(report) + describe_driver(report);
  text += describe_compiler("nvcc", report.nvcc) + describe_compiler("C++ compiler", report.cxx);
  text += line("host memory", fmt::format("{} available of {}", gigabytes(report.available_host_bytes),
                                          gigabytes(report.host_bytes)));
  text += line("sources", report.sources_problem.empty() ? report.sources : report.sources_problem);
  text += describe_kernels("kernels", report.shipped) + describe_kernels("made here", report.cache);
  text += describe_models(report) + describe_verdict(report);
  return text;
}

std::string as_json(const DoctorReport& report) {
  ordered_json models = ordered_json::array();
  for (const FoundModel& model : report.models) {
    models.push_back(as_json(model));
  }
  ordered_json json = {
      {"gpu", device_as_json(report)},
      {"driver", report.driver},
      {"nvcc", as_json(report.nvcc)},
      {"cxx", as_json(report.cxx)},
      {"host_memory", {{"total_bytes", report.host_bytes}, {"available_bytes", report.available_host_bytes}}},
      {"sources", report.sources},
      {"kernels", as_json(report.shipped)},
      {"made_kernels", as_json(report.cache)},
      {"models", models},
      {"verdict", fmt::format("{}", fmt::join(verdict_of(report), " "))}};
  if (report.model) json["model"] = as_json(*report.model);
  if (!report.sources_problem.empty()) json["sources"] = {{"problem", report.sources_problem}};
  return json.dump(2, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

int print_doctor(const DoctorOptions& options) {
  const DoctorReport report = examine(options);
  print(options.json ? as_json(report) : as_text(report));
  return report.model ? report.model->status : 0;
}

}  // namespace soliton
