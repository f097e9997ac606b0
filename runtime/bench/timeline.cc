#include "runtime/bench/timeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace soliton {

/// Sums over CTAs and layers of one phase; times in microseconds.
struct Timeline::Row {
  std::string name;
  int count = 0;  // layers
  double bytes = 0;
  double time = 0;       // from the last output of the phase before to the last of this one
  double arrival = 0;    // from there until a consumer has its input
  double in_ring = 0;    // pages landed by then
  double stream = 0;     // from its input to a consumer's last tile
  double page_wait = 0;  // of that, waiting for pages
  double tail = 0;       // from the CTA's last tile to its last output
  double merge = 0;      // of that, merging the parts of other CTAs
  double skew = 0;       // from the first CTA's last output to the last CTA's
  double slot_wait = 0;  // a producer, for a free slot
  double window_wait = 0;
};

/// The same of a phase of several rows, means over the CTAs' workers but for time and skew.
struct Timeline::RowsRow {
  std::string name;
  int count = 0;
  double time = 0;    // from when the last CTA ended the phase before until it ended this one
  double begin = 0;   // from there until a worker knows that all CTAs have
  double work = 0;    // from then until it has made its last products, or is through its items
  double finish = 0;  // from then until it has ended the phase
  double skew = 0;    // from the first CTA's end to the last CTA's
};

Timeline::Timeline(const Descriptor& descriptor, int position, std::vector<PhaseRecord> records)
    : descriptor_(descriptor),
      position_(position),
      num_ctas_(descriptor.num_ctas),
      num_warps_(descriptor.plan->working_warps()),
      num_phases_(descriptor.plan->recorded_phases()),
      records_(std::move(records)) {
  if (descriptor.rows > 1) {
    rows_.push_back(-1);
    layers_.push_back(-1);
  }
  descriptor.plan->for_each_step_phase([&](int phase, int layer) {
    rows_.push_back(phase);
    layers_.push_back(layer);
  });
  origin_ = at(0, 0, 0).begin;
  for (int cta = 0; cta < num_ctas_; ++cta) {
    const uint32_t begin = at(0, cta, 0).begin;
    if (static_cast<int32_t>(begin - origin_) < 0) origin_ = begin;
  }
}

double Timeline::us(uint32_t time) const {
  return static_cast<int32_t>(time - origin_) * 1e-3;
}

int64_t Timeline::bytes(int phase) const {
  const KernelPlan& plan = *descriptor_.plan;
  if (const int matrix = plan.phases[row_of(phase)].matrix; matrix != kNone) {
    const PackedMatrix& packed = plan.matrices[matrix];
    return int64_t{packed.num_tiles} * tile_bytes(packed.format, packed.padded_columns);
  }
  return position_ * kv_shape(descriptor_.model->facts).token_bytes() / descriptor_.model->facts.num_layers;
}

/// When the last CTA had published its last output of a phase; 0 for the phase before the first.
double Timeline::published(int phase) const {
  double latest = 0;
  for (int cta = 0; phase >= 0 && cta < num_ctas_; ++cta)
    latest = std::max(latest, us(at(phase, cta, epilogue()).last));
  return latest;
}

void Timeline::add(int phase, Row& row) const {
  const double before = published(phase - 1);
  const double share = 1.0 / num_ctas_;
  const int consumers = first_producer();
  double first = published(phase);
  row.name = name(phase);
  ++row.count;
  row.bytes += static_cast<double>(bytes(phase));
  row.time += published(phase) - before;
  for (int cta = 0; cta < num_ctas_; ++cta) {
    double last_tile = 0;
    for (int warp = 0; warp < consumers; ++warp) {
      const PhaseRecord& consumer = at(phase, cta, warp);
      row.arrival += (us(consumer.input) - before) * share / consumers;
      row.in_ring += consumer.pages * share / consumers;
      row.stream += (us(consumer.last) - us(consumer.input)) * share / consumers;
      row.page_wait += consumer.waited * 1e-3 * share / consumers;
      last_tile = std::max(last_tile, us(consumer.last));
    }
    const PhaseRecord& last = at(phase, cta, epilogue());
    row.tail += std::max(0.0, us(last.last) - last_tile) * share;
    row.merge += last.limited * 1e-3 * share;
    first = std::min(first, us(last.last));
    const int producers = epilogue() - first_producer();
    for (int warp = first_producer(); warp < epilogue(); ++warp) {
      row.slot_wait += at(phase, cta, warp).waited * 1e-3 * share / producers;
      row.window_wait += at(phase, cta, warp).limited * 1e-3 * share / producers;
    }
  }
  row.skew += published(phase) - first;
}

/// When the last worker of the last CTA had ended a phase of several rows; 0 for the phase before the first.
double Timeline::ended(int phase) const {
  double latest = 0;
  for (int cta = 0; phase >= 0 && cta < num_ctas_; ++cta) {
    for (int warp = 0; warp < first_producer(); ++warp)
      latest = std::max(latest, us(at(phase, cta, warp).end));
  }
  return latest;
}

void Timeline::add(int phase, RowsRow& row) const {
  const double before = ended(phase - 1);
  const double end = ended(phase);
  double first = end;
  row.name = name(phase);
  ++row.count;
  row.time += end - before;
  const double share = 1.0 / (num_ctas_ * first_producer());
  for (int cta = 0; cta < num_ctas_; ++cta) {
    double last = 0;
    for (int warp = 0; warp < first_producer(); ++warp) {
      const PhaseRecord& worker = at(phase, cta, warp);
      const uint32_t worked = worker.last == 0 ? worker.input : worker.last;  // it had no tiles
      row.begin += (us(worker.input) - before) * share;
      row.work += (us(worked) - us(worker.input)) * share;
      row.finish += (us(worker.end) - us(worked)) * share;
      last = std::max(last, us(worker.end));
    }
    first = std::min(first, last);
  }
  row.skew += end - first;
}

std::string Timeline::rows_table() const {
  std::vector<RowsRow> rows(static_cast<size_t>(descriptor_.plan->num_phases) + 1);  // the embedding's first
  for (int phase = 0; phase < num_phases_; ++phase) add(phase, rows[row_of(phase) + 1]);
  const double step = ended(num_phases_ - 1);
  std::string text = fmt::format(
      "a step of {} rows behind {} tokens: {:.1f} us; below, means over layers and workers in us\n\n",
      descriptor_.rows, position_, step);
  text += "| phase | us | share | begin | work | finish | skew |\n";
  text += "| --- | --- | --- | --- | --- | --- | --- |\n";
  for (const RowsRow& row : rows) {
    const double n = row.count;
    text +=
        fmt::format("| {} | {:.2f} | {:.1f}% | {:.2f} | {:.2f} | {:.2f} | {:.2f} |\n", row.name, row.time / n,
                    row.time / step * 100, row.begin / n, row.work / n, row.finish / n, row.skew / n);
  }
  return text;
}

std::string Timeline::table() const {
  if (descriptor_.rows > 1) return rows_table();
  std::vector<Row> rows(static_cast<size_t>(descriptor_.plan->num_phases));
  for (int phase = 0; phase < num_phases_; ++phase) add(phase, rows[row_of(phase)]);
  const double token = published(num_phases_ - 1);
  std::string text = fmt::format(
      "one token at position {}: {:.1f} us; below, means over layers and CTAs in us\n\n", position_, token);
  text +=
      "| phase | MB | us | GB/s | share | input | in ring | stream | page wait | tail | merge | skew | slot "
      "wait | window wait |\n";
  text += "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n";
  for (const Row& row : rows) {
    const double n = row.count;
    text += fmt::format(
        "| {} | {:.2f} | {:.2f} | {:.0f} | {:.1f}% | {:.2f} | {:.1f} | {:.2f} | {:.2f} | {:.2f} | {:.2f} | "
        "{:.2f} | {:.2f} | {:.2f} |\n",
        row.name, row.bytes / n * 1e-6, row.time / n, row.bytes / row.time * 1e-3, row.time / token * 100,
        row.arrival / n, row.in_ring / n, row.stream / n, row.page_wait / n, row.tail / n, row.merge / n,
        row.skew / n, row.slot_wait / n, row.window_wait / n);
  }
  return text;
}

std::string Timeline::role(int warp) const {
  const bool is_one_row = descriptor_.rows == 1;
  if (warp == epilogue()) return is_one_row ? "epilogue" : "input loader";
  if (warp < first_producer()) return fmt::format("{} {}", is_one_row ? "consumer" : "worker", warp);
  return epilogue() - first_producer() == 1 ? "producer"
                                            : fmt::format("producer {}", warp - first_producer());
}

std::string Timeline::trace() const {
  std::string text = "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n";
  const auto event = [&](int cta, int warp, int phase, const char* what, uint32_t begin, uint32_t end) {
    if (static_cast<int32_t>(end - begin) <= 0) return;
    fmt::format_to(
        std::back_inserter(text),
        "{{\"ph\":\"X\",\"pid\":{},\"tid\":{},\"ts\":{:.3f},\"dur\":{:.3f},\"name\":\"{} {}\"}},\n", cta,
        warp, us(begin), (end - begin) * 1e-3, name(phase), what);
  };
  for (int cta = 0; cta < num_ctas_; ++cta) {
    for (int warp = 0; warp < num_warps_; ++warp) {
      fmt::format_to(
          std::back_inserter(text),
          "{{\"ph\":\"M\",\"pid\":{},\"tid\":{},\"name\":\"thread_name\",\"args\":{{\"name\":\"{}\"}}}},\n",
          cta, warp, role(warp));
      for (int phase = 0; phase < num_phases_; ++phase) {
        const PhaseRecord& record = at(phase, cta, warp);
        if (warp >= first_producer() && warp < epilogue()) {
          event(cta, warp, phase, "copies", record.begin, record.end);
        } else {
          event(cta, warp, phase, "input", record.begin, record.input);
          event(cta, warp, phase, warp == epilogue() ? "outputs" : "stream", record.input, record.last);
          event(cta, warp, phase, "clear", record.last, record.end);
        }
      }
    }
    fmt::format_to(
        std::back_inserter(text),
        "{{\"ph\":\"M\",\"pid\":{},\"name\":\"process_name\",\"args\":{{\"name\":\"CTA {}\"}}}}{}\n", cta,
        cta, cta == num_ctas_ - 1 ? "" : ",");
  }
  return text + "]}\n";
}

}  // namespace soliton
