#include "runtime/server/request_log.h"

#include "models/printing.h"
#include "runtime/server/timestamp.h"

namespace soliton {
namespace {

constexpr double kMsPerS = 1000;

nlohmann::ordered_json log_object(const RequestRecord& record) {
  nlohmann::ordered_json object = {
      {"time", timestamp_now()}, {"client", record.client}, {"path", record.path}, {"status", record.status}};
  if (!record.end.empty()) object["end"] = record.end;
  if (record.id.empty()) return object;
  const auto ms = [](double seconds) { return static_cast<int64_t>(seconds * kMsPerS); };
  object["id"] = record.id;
  object["prompt_tokens"] = record.usage.num_prompt;
  object["cached_tokens"] = record.usage.num_cached;
  object["generated_tokens"] = record.usage.num_generated;
  object["first_token_ms"] = ms(record.usage.prompt_s);
  object["total_ms"] = ms(record.usage.prompt_s + record.usage.generation_s);
  return object;
}

}  // namespace

std::string log_line(const RequestRecord& record, LogFormat format) {
  if (format == LogFormat::kJson) return one_line(log_object(record));
  std::string line = fmt::format("{} {} {} {}", timestamp_now(), record.client, record.path, record.status);
  if (!record.end.empty()) line += " " + record.end;
  if (record.id.empty()) return line;
  const AnswerUsage& usage = record.usage;
  return line + fmt::format(
                    " {}: {} tokens of the prompt, {} of them cached, {} generated; first after {:.0f} ms, "
                    "all after {:.0f} ms",
                    record.id, usage.num_prompt, usage.num_cached, usage.num_generated,
                    usage.prompt_s * kMsPerS, (usage.prompt_s + usage.generation_s) * kMsPerS);
}

RequestLog::RequestLog(LogFormat format) : format_(format) {
  if (format_ != LogFormat::kNone) thread_ = std::thread(&RequestLog::work, this);
}

RequestLog::~RequestLog() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
    came_.notify_one();
  }
  if (thread_.joinable()) thread_.join();
}

void RequestLog::put(const RequestRecord& record) noexcept {
  if (format_ == LogFormat::kNone) return;
  std::optional<std::string> line;
  try {
    line = log_line(record, format_);
  } catch (...) {
  }
  const std::lock_guard lock(mutex_);
  try {
    if (line && lines_.size() < kMostWaiting) {
      lines_.push_back(std::move(*line));
      came_.notify_one();
      return;
    }
  } catch (...) {
  }
  ++num_left_out_;
}

void RequestLog::work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    came_.wait(lock, [this] { return ends_ || !lines_.empty(); });
    if (lines_.empty()) return;
    const std::deque<std::string> lines = std::exchange(lines_, {});
    const size_t num_left_out = std::exchange(num_left_out_, 0);
    lock.unlock();
    for (const std::string& line : lines) say_line(line);
    if (num_left_out > 0) say("{} requests were answered whose lines there was no room for", num_left_out);
    lock.lock();
  }
}

}  // namespace soliton
