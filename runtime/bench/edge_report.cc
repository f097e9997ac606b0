// An EdgeReport as Markdown and JSON.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

#include "runtime/bench/edge.h"

namespace soliton {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kNotKnown = "n/a";

template <class Value>
Json or_null(const std::optional<Value>& value) {
  return value ? Json(*value) : Json();
}

Json or_null(const std::string& text) {
  return text.empty() ? Json() : Json(text);
}

/// With so many decimals, or kNotKnown.
std::string show(const std::optional<double>& value, int decimals) {
  return value ? fmt::format("{:.{}f}", *value, decimals) : kNotKnown;
}

std::string gigabytes(int64_t bytes) {
  return fmt::format("{:.2f} GB", static_cast<double>(bytes) * 1e-9);
}

std::string show_memory(const EdgeReport& report) {
  const EdgeMemory& memory = report.memory;
  const std::string parts =
      fmt::format("weights {}, cache {}", gigabytes(memory.weights), gigabytes(memory.cache));
  if (!memory.device) return parts;
  return fmt::format("{} of {} ({})", gigabytes(*memory.device), gigabytes(memory.device_total), parts);
}

std::string show_range(const std::optional<ValueRange>& range, const char* unit) {
  if (!range) return kNotKnown;
  return fmt::format("{:.0f} {} ({:.0f} to {:.0f})", range->median, unit, range->least, range->most);
}

std::string show_power(const SensorSummary& sensors) {
  std::string text = show_range(sensors.watts, "W");
  if (sensors.watts_limit) text += fmt::format(", limit {:.0f} W", *sensors.watts_limit);
  return text;
}

std::string show_throttling(const SensorSummary& sensors) {
  if (!sensors.throttling) return kNotKnown;
  if (sensors.throttling->empty()) return "none";
  std::vector<std::string> causes;
  for (const auto& [name, share] : *sensors.throttling) {
    causes.push_back(fmt::format("{} in {:.0f}% of samples", name, share * 100));
  }
  return fmt::format("{}", fmt::join(causes, ", "));
}

std::optional<double> mean_watts(const EdgeContext& context) {
  return context.energy ? std::optional(context.energy->mean_watts()) : std::nullopt;
}

Json prompt_as_json(const EdgePrompt& prompt) {
  return {{"tokens", prompt.tokens},
          {"first_token_ms_p50", prompt.first_token_ms},
          {"first_token_ms_max", prompt.worst_ms},
          {"tokens_per_s", prompt.tokens / (prompt.first_token_ms * 1e-3)}};
}

Json context_as_json(const EdgeContext& context) {
  Json json = as_json(context.row);
  json["context"] = context.tokens;
  json["predicted_token_us"] = or_null(context.predicted_us);
  json["mean_watts"] = or_null(mean_watts(context));
  json["tokens_per_joule"] = or_null(context.tokens_per_joule());
  json["energy_is_counted"] = context.energy ? Json(context.energy->is_counted) : Json();
  return json;
}

Json range_as_json(const std::optional<ValueRange>& range) {
  if (!range) return nullptr;
  return {{"min", range->least}, {"median", range->median}, {"max", range->most}};
}

Json sensors_as_json(const EdgeReport& report) {
  const SensorSummary sensors = report.sensors.value_or(SensorSummary{});
  return {{"absent", or_null(report.no_sensors)},      {"samples", sensors.num_samples},
          {"sm_mhz", range_as_json(sensors.sm_mhz)},   {"memory_mhz", range_as_json(sensors.memory_mhz)},
          {"watts", range_as_json(sensors.watts)},     {"watts_limit", or_null(sensors.watts_limit)},
          {"celsius", range_as_json(sensors.celsius)}, {"throttling", or_null(sensors.throttling)}};
}

}  // namespace

std::vector<std::pair<std::string, std::string>> edge_facts(const EdgeReport& report) {
  const SensorSummary sensors = report.sensors.value_or(SensorSummary{});
  return {
      {"read bandwidth S", describe(report.bandwidth)},
      {"device memory", show_memory(report)},
      {"host memory, at most", gigabytes(report.memory.host_peak)},
      {"loading", fmt::format("{:.2f} s ({}{})", report.load_s, gigabytes(report.memory.weights),
                              report.weights == "random" ? ", random weights" : "")},
      {"making the kernel", report.make_s ? fmt::format("{:.1f} s", *report.make_s) : "n/a: it was there"},
      {"SM clock", show_range(sensors.sm_mhz, "MHz")},
      {"memory clock", show_range(sensors.memory_mhz, "MHz")},
      {"power", show_power(sensors)},
      {"temperature", show_range(sensors.celsius, "°C")},
      {"throttling", show_throttling(sensors)},
      {"sensors",
       report.sensors ? fmt::format("{} samples", sensors.num_samples) : "n/a: " + report.no_sensors},
      {"prediction",
       report.predicted_for.empty() ? "n/a: " + report.not_predicted : "of the spec " + report.predicted_for},
  };
}

std::string edge_markdown(const EdgeReport& report) {
  std::string text =
      fmt::format("{} on {}, kernel for {}", report.model, report.device.name, report.kernel_gpu);
  if (report.device.driver_version > 0) text += fmt::format(", driver {}", report.device.driver_version);
  text += fmt::format(", weights: {}\n", report.weights);
  if (!report.prompts.empty()) {
    text += "\n| prompt | first token ms | max ms | prompt tokens/s |\n| --- | --- | --- | --- |\n";
  }
  for (const EdgePrompt& prompt : report.prompts) {
    text += fmt::format("| {} | {:.2f} | {:.2f} | {:.1f} |\n", prompt.tokens, prompt.first_token_ms,
                        prompt.worst_ms, prompt.tokens / (prompt.first_token_ms * 1e-3));
  }
  if (!report.contexts.empty()) {
    text +=
        "\n| context | tokens/s | p50 us | p90 us | p99 us | max us | predicted us | of S | mean W | "
        "tokens/J |\n";
    text += "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n";
  }
  for (const EdgeContext& context : report.contexts) {
    const Row& row = context.row;
    text += fmt::format("| {} | {:.2f} | {:.1f} | {:.1f} | {:.1f} | {:.1f} | {} | {} | {} | {} |\n",
                        context.tokens, row.rate, row.p50_us, row.p90_us, row.p99_us, row.max_us,
                        show(context.predicted_us, 1),
                        row.of_ceiling > 0 ? fmt::format("{:.1f}%", row.of_ceiling * 100) : kNotKnown,
                        show(mean_watts(context), 1), show(context.tokens_per_joule(), 3));
  }
  text += "\n| | |\n| --- | --- |\n";
  for (const auto& [name, value] : edge_facts(report)) text += fmt::format("| {} | {} |\n", name, value);
  for (const std::string& line : report.test.left_out) text += fmt::format("\nLeft out: {}\n", line);
  return text;
}

std::string edge_json(const EdgeReport& report) {
  const EdgeMemory& memory = report.memory;
  Json json{{"command", report.command},
            {"model", report.model},
            {"kernel_gpu", report.kernel_gpu},
            {"num_ctas", report.num_ctas},
            {"weights", report.weights},
            {"device", report.device.name},
            {"compute_capability", report.device.compute_capability},
            {"num_sms", report.device.num_sms},
            {"driver", report.device.driver_version},
            {"sm_clock_khz", report.device.sm_clock_khz},
            {"memory_clock_khz", report.device.memory_clock_khz},
            {"read_bandwidth_bytes_per_s", report.bandwidth.best()},
            {"read_bandwidth", as_json(report.bandwidth)},
            {"repeats", report.test.repeats},
            {"predicted_for", or_null(report.predicted_for)},
            {"prompts", Json::array()},
            {"rows", Json::array()},
            {"left_out", report.test.left_out},
            {"memory",
             {{"weight_bytes", memory.weights},
              {"cache_bytes", memory.cache},
              {"device_bytes", or_null(memory.device)},
              {"device_total_bytes", report.is_emulated() ? Json() : Json(memory.device_total)},
              {"host_peak_bytes", memory.host_peak}}},
            {"load_s", report.load_s},
            {"make_s", or_null(report.make_s)},
            {"sensors", sensors_as_json(report)}};
  for (const EdgePrompt& prompt : report.prompts) json["prompts"].push_back(prompt_as_json(prompt));
  for (const EdgeContext& context : report.contexts) json["rows"].push_back(context_as_json(context));
  return json.dump(2) + "\n";
}

}  // namespace soliton
