// What a report comes to: a model that is asked for is looked at as soliton-chat would, and the verdict is drawn.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <exception>
#include <filesystem>

#include "generator/gpu_spec.h"
#include "layout/deal.h"
#include "models/error.h"
#include "models/gguf.h"
#include "models/hf_config.h"
#include "models/model_config.h"
#include "models/weight_rounding.h"
#include "runtime/doctor/report.h"
#include "runtime/hub/fetch_model.h"
#include "runtime/make/make_kernel.h"
#include "runtime/make/model_memory.h"
#include "runtime/text/tokenizer.h"
#include "runtime/weights/model_tensors.h"
#include "runtime/weights/safetensors.h"

namespace soliton {
namespace {

namespace fs = std::filesystem;

constexpr double kEmulatedBytesPerS = 1e8;  // of weights that a CPU emulates, roughly

/// Runs `look` and keeps what it throws: the first fault is what soliton-chat would exit with.
template <class Look>
bool attempt(CheckedModel& model, Look&& look) {
  const auto note = [&](ExitCode code, const char* what) {
    model.missing.emplace_back(what);
    if (model.status == 0) model.status = static_cast<int>(code);
    return false;
  };
  try {
    look();
    return true;
  } catch (const Error& error) {
    return note(error.code(), error.what());
  } catch (const std::exception& error) {
    return note(ExitCode::kInternal, error.what());
  }
}

double best_rate(const ModelFacts& facts, const DoctorReport& report) {
  const auto bytes = static_cast<double>(read_weight_bytes(facts));
  if (!report.device) return kEmulatedBytesPerS / bytes;
  if (report.gpu.empty()) return 0;
  return gpu_of(report).read_bandwidth_bytes_per_s / bytes;
}

std::string rounded(double tokens_per_s) {
  return fmt::format("{:.{}f}", tokens_per_s, tokens_per_s < 10 ? 1 : 0);
}

std::optional<SharedModel> share(const ModelFacts& facts, int device, const DoctorReport& report) {
  SharedModel shared{.cards = {device}};
  for (const LinkedDevice& link : report.links) {
    if (link.can_share() && std::ssize(shared.cards) < kMaxLaunchCards) shared.cards.push_back(link.index);
  }
  std::sort(shared.cards.begin(), shared.cards.end());
  const int num_cards = static_cast<int>(shared.cards.size());
  if (num_cards == 1) return {};
  shared.context = fitting_context(facts, free_bytes_of_cards(facts, report.device->free_bytes, num_cards));
  if (shared.context == 0) return {};
  shared.tokens_per_s = num_cards * best_rate(facts, report);
  return shared;
}

std::string describe_shared(const SharedModel& shared) {
  return fmt::format("over --cards {}: {} tokens/s at best, with a context of up to {} tokens",
                     fmt::join(shared.cards, ","), rounded(shared.tokens_per_s), shared.context);
}

std::vector<std::string> verdict_of_model(const DoctorReport& report) {
  const CheckedModel& model = *report.model;
  if (!model.missing.empty()) {
    std::vector<std::string> lines = {fmt::format("{} does not run here:", model.facts.name)};
    lines.insert(lines.end(), model.missing.begin(), model.missing.end());
    if (model.shared) lines.push_back(describe_shared(*model.shared));
    return lines;
  }
  std::string kernel = model.kernel.empty() ? "its kernel is made at the first start" : "its kernel is there";
  if (!model.has_weights) {
    kernel += fmt::format("; its weights, some {:.1f} GB, are downloaded then",
                          static_cast<double>(model.facts.weight_bytes) * 1e-9);
  }
  if (!report.device) {
    return {fmt::format("{} runs here, but only in emulation on the CPU, for checking: about {} tokens/s; {}",
                        model.facts.name, rounded(model.tokens_per_s), kernel)};
  }
  std::vector<std::string> lines = {
      fmt::format("{} runs here, at {} tokens/s at best, with a context of up to {} tokens; {}",
                  model.facts.name, rounded(model.tokens_per_s), model.facts.context.value_or(0), kernel)};
  if (model.shared) lines.push_back(describe_shared(*model.shared));
  return lines;
}

}  // namespace

CheckedModel check_model(const DoctorOptions& options, const DoctorReport& report) {
  CheckedModel model;
  model.facts.name = options.model;
  fs::path folder;
  HfConfig config;
  const bool has_facts = attempt(model, [&] {
    folder = fetch_model(options.model, options.hub, {.weights = false});
    config = HfConfig::open(folder);
    round_weights(options.weights, config);
    config.facts.kv_bits = options.kv_bits.value_or(config.facts.kv_bits);
  });
  model.folder = folder.string();
  if (!has_facts) return model;
  model.facts = describe_facts(options.model, config.facts, report.device);
  attempt(model, [&] { Tokenizer::open(folder); });
  model.has_weights = !names_repository(options.model) || missing_from(folder, {.text = false}).empty();
  if (model.has_weights) {
    attempt(model, [&] {
      find_tensors(TensorSource::open(folder), config.quantization_or_null(), config.facts,
                   config.checkpoint);
    });
  }
  const std::string source = config_file(folder).string();
  const bool fits = !report.device ||
                    attempt(model, [&] { check_memory(source, config.facts, 0, report.device->free_bytes); });
  if (fits)
    attempt(model, [&] {
      const auto found = find_kernel({.facts = config.facts,
                                      .name = model_name_of(folder),
                                      .source = source,
                                      .kernels = report.shipped.folder,
                                      .device = options.device});
      if (found) model.kernel = fs::absolute(*found).string();
    });
  attempt(model, [&] {
    model.tokens_per_s = best_rate(config.facts, report);
    if (report.device) model.shared = share(config.facts, options.device, report);
  });
  return model;
}

std::vector<std::string> verdict_of(const DoctorReport& report) {
  if (report.model) return verdict_of_model(report);
  if (report.device && !report.gpu.empty()) {
    if (report.nvcc.problem.empty() && report.sources_problem.empty()) {
      return {fmt::format("{} runs models here; kernels that are not there yet are made by nvcc",
                          report.device->name)};
    }
    return {
        fmt::format("{} runs the models here whose kernels are listed; to make others:", report.device->name),
        report.nvcc.problem.empty() ? report.sources_problem : report.nvcc.problem};
  }
  if (report.device) return {"no model runs here:", report.gpu_problem};
  if (report.device_problem != kNoCard) return {"no model runs here:", report.device_problem};
  std::vector<std::string> lines = {"without a card small models run in emulation on the CPU, for checking"};
  if (!report.cxx.problem.empty()) {
    lines[0] += "; those whose kernels are listed, as to make others:";
    lines.push_back(report.cxx.problem);
  }
  return lines;
}

}  // namespace soliton
