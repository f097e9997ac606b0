#include "models/check_layers.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <set>
#include <span>
#include <utility>

#include "models/limits.h"

namespace soliton {

bool has_experts(const ModelFacts& facts) {
  return facts.num_experts != 0;
}

bool has_local_rope(const ModelFacts& facts) {
  return facts.rope_local_theta != 0;
}

Error refusal(ExitCode code, const Place& place, const std::string& expected) {
  return Error(code, fmt::format("{}: {}: expected {}, got {}", place.file, place.key, expected, place.got));
}

namespace {

/// Numbers of the layers, as few as repeat themselves.
std::string show_listed(std::span<const int32_t> listed, int num_layers) {
  const auto all = listed.first(static_cast<size_t>(std::clamp(num_layers, 0, kMostListedLayers)));
  size_t period = 1;
  const auto repeats = [&] {
    for (size_t i = period; i < all.size(); ++i) {
      if (all[i] != all[i - period]) return false;
    }
    return true;
  };
  while (!repeats()) ++period;
  return fmt::format("[{}]", fmt::join(all.first(std::min(period, all.size())), ", "));
}

Place place_of_windows(const StatedFacts& stated) {
  if (!stated.windows_place.file.empty()) return stated.windows_place;
  return {.file = stated.file, .key = "windows", .got = show_windows(stated.facts)};
}
Place place_of_chunks(const StatedFacts& stated) {
  if (!stated.chunks_place.file.empty()) return stated.chunks_place;
  return {.file = stated.file, .key = "chunks", .got = show_chunks(stated.facts)};
}
Place place_of_ropes(const StatedFacts& stated) {
  if (!stated.ropes_place.file.empty()) return stated.ropes_place;
  return {.file = stated.file, .key = "rope.layers", .got = show_ropes(stated.facts)};
}

/// Of a list of the layers' widths: that they are so many, and each may be one.
void check_listed(const StatedFacts& stated) {
  const ModelFacts& facts = stated.facts;
  const auto refuse = [&](ExitCode code, const std::string& expected) {
    throw refusal(code, stated.place(&ModelFacts::ffn), expected);
  };
  if (stated.listed_layers > 0 && stated.listed_layers != static_cast<size_t>(facts.num_layers))
    refuse(ExitCode::kBadFile, fmt::format("one for each of {} layers", facts.num_layers));
  const auto is_none = [](int32_t ffn) { return ffn == 0; };
  const std::span<const int32_t> all(facts.layer_ffn);
  if (std::ranges::all_of(all, is_none)) return;
  if (facts.num_layers > kMostListedLayers)
    refuse(stated.unsupported, fmt::format("one for all of more than {} layers", kMostListedLayers));
  std::vector<int32_t> listed;
  for (const int32_t ffn : all.first(static_cast<size_t>(facts.num_layers))) {
    if (ffn != kMixture || !has_experts(facts)) listed.push_back(ffn);
  }
  if (listed.empty()) return;
  const bool can_be = std::ranges::all_of(listed, [](int32_t ffn) { return kFfnLimit.contains(ffn); });
  const bool are_all = std::ranges::all_of(all.subspan(static_cast<size_t>(facts.num_layers)), is_none);
  if (!can_be || !are_all || std::ranges::max(listed) != facts.ffn) {
    const bool is_possible = std::ranges::min(listed) > 0 && std::ranges::max(listed) <= kFfnLimit.max;
    refuse(is_possible ? stated.unsupported : ExitCode::kBadFile, kFfnLimit.describe() + " for each layer");
  }
  if (std::set(listed.begin(), listed.end()).size() > kMostLayerKinds)
    refuse(stated.unsupported, fmt::format("at most {} widths", kMostLayerKinds));
}

/// Of windows of layers, or of chunks: 0, or so many tokens.
void check_widths(const StatedFacts& stated, std::span<const int32_t> widths, const Place& place) {
  const ModelFacts& facts = stated.facts;
  if (std::ranges::all_of(widths, [](int32_t width) { return width == 0; })) return;
  if (facts.num_layers > kMostListedLayers) {
    throw refusal(stated.unsupported, place,
                  fmt::format("one for all of more than {} layers", kMostListedLayers));
  }
  for (int layer = 0; layer < kMostListedLayers; ++layer) {
    const int32_t width = widths[static_cast<size_t>(layer)];
    if (width != 0 && (layer >= facts.num_layers || !kContextLimit.contains(width)))
      throw refusal(ExitCode::kBadFile, place,
                    fmt::format("0 or {}, of each layer", kContextLimit.describe()));
  }
}

/// Of layers, which take turns.
void put_widths(const std::vector<int64_t>& widths, int num_layers, std::span<int32_t> to) {
  for (size_t layer = 0;
       !widths.empty() && std::cmp_less(layer, std::min<int>(num_layers, kMostListedLayers)); ++layer) {
    const int64_t width = widths[layer % widths.size()];
    to[layer] = static_cast<int32_t>(std::clamp<int64_t>(width, -1, std::numeric_limits<int32_t>::max()));
  }
}

/// Of what rotates the heads of layers.
void check_ropes(const StatedFacts& stated) {
  const ModelFacts& facts = stated.facts;
  const auto refuse = [&](ExitCode code, const std::string& expected) {
    throw refusal(code, place_of_ropes(stated), expected);
  };
  if (lists_ropes(facts) && facts.num_layers > kMostListedLayers)
    refuse(stated.unsupported, fmt::format("the same for all of more than {} layers", kMostListedLayers));
  bool is_local = false;
  for (int layer = 0; layer < kMostListedLayers; ++layer) {
    const int32_t rope = facts.layer_rope[layer];
    if (rope < 0 || rope >= kLayerRopes || (rope != kMainRope && layer >= facts.num_layers))
      refuse(ExitCode::kBadFile, fmt::format("0 to {}, of each layer", kLayerRopes - 1));
    is_local = is_local || rope == kLocalRope;
  }
  if (is_local && !has_local_rope(facts)) refuse(ExitCode::kBadFile, "no layer with a theta of its own");
  if (!is_local && has_local_rope(facts)) {
    throw refusal(ExitCode::kBadFile, stated.place(&ModelFacts::rope_local_theta),
                  "nothing where no layer has a theta of its own");
  }
}

}  // namespace

void StatedFacts::state_layers(const std::vector<int64_t>& ffns, Place place) {
  for (size_t layer = 0; layer < std::min<size_t>(ffns.size(), kMostListedLayers); ++layer) {
    state(&ModelFacts::ffn, ffns[layer], place);
    facts.layer_ffn[layer] = facts.ffn;
  }
  const auto [least, most] = std::ranges::minmax(ffns);
  state(&ModelFacts::ffn, most, std::move(place));
  if (least == most) std::ranges::fill(facts.layer_ffn, 0);
  listed_layers = ffns.size();
}

void StatedFacts::state_dense_layers(const std::vector<int64_t>& layers, Place place) {
  const auto is_dense = [&](int layer) { return std::ranges::find(layers, layer) != layers.end(); };
  const auto exists = [&](int64_t layer) { return layer >= 0 && layer < facts.num_layers; };
  if (std::ranges::none_of(layers, exists)) return;
  for (int layer = 0; layer < std::min<int>(facts.num_layers, kMostListedLayers); ++layer)
    facts.layer_ffn[layer] = is_dense(layer) ? facts.ffn : kMixture;
  listed_layers = static_cast<size_t>(facts.num_layers);
  places.emplace_back(&ModelFacts::ffn, std::move(place));
}

void StatedFacts::state_windows(const std::vector<int64_t>& windows, Place place) {
  put_widths(windows, facts.num_layers, facts.layer_window);
  windows_place = std::move(place);
}

void StatedFacts::state_chunks(const std::vector<int64_t>& chunks, Place place) {
  put_widths(chunks, facts.num_layers, facts.layer_chunk);
  chunks_place = std::move(place);
}

void StatedFacts::state_ropes(const std::vector<int64_t>& ropes, Place place) {
  for (int layer = 0; !ropes.empty() && layer < std::min<int>(facts.num_layers, kMostListedLayers); ++layer) {
    const int64_t rope = ropes[static_cast<size_t>(layer) % ropes.size()];
    facts.layer_rope[layer] = static_cast<int32_t>(std::clamp<int64_t>(rope, -1, kLayerRopes));
  }
  ropes_place = std::move(place);
}

std::vector<int> dense_layers(const ModelFacts& facts) {
  std::vector<int> layers;
  for (int layer = 0; layer < std::min(facts.num_layers, kMostListedLayers); ++layer) {
    if (has_experts(facts) && ffn_of_layer(facts, layer) != kMixture) layers.push_back(layer);
  }
  return layers;
}

std::string show_ffn(const ModelFacts& facts) {
  if (!lists_layers(facts) || has_experts(facts)) return fmt::format("{}", facts.ffn);
  const int count = std::clamp(facts.num_layers, 0, kMostListedLayers);
  return fmt::format("[{}]", fmt::join(facts.layer_ffn, facts.layer_ffn + count, ", "));
}

std::string show_windows(const ModelFacts& facts) {
  return show_listed(facts.layer_window, facts.num_layers);
}

std::string show_chunks(const ModelFacts& facts) {
  return show_listed(facts.layer_chunk, facts.num_layers);
}

std::string show_ropes(const ModelFacts& facts) {
  return show_listed(facts.layer_rope, facts.num_layers);
}

void check_layers(const StatedFacts& stated) {
  check_listed(stated);
  check_widths(stated, stated.facts.layer_window, place_of_windows(stated));
  check_widths(stated, stated.facts.layer_chunk, place_of_chunks(stated));
  check_ropes(stated);
}

void check_same_layers(const StatedFacts& stated, const ModelFacts& expected, const std::string& whose) {
  const auto refuse = [&](const Place& place, const std::string& shown) {
    throw refusal(ExitCode::kMismatch, place, fmt::format("{} ({})", shown, whose));
  };
  if (!std::ranges::equal(stated.facts.layer_ffn, expected.layer_ffn))
    refuse(stated.place(&ModelFacts::ffn), show_ffn(expected));
  if (!std::ranges::equal(stated.facts.layer_window, expected.layer_window))
    refuse(place_of_windows(stated), show_windows(expected));
  if (!std::ranges::equal(stated.facts.layer_chunk, expected.layer_chunk))
    refuse(place_of_chunks(stated), show_chunks(expected));
  if (!std::ranges::equal(stated.facts.layer_rope, expected.layer_rope))
    refuse(place_of_ropes(stated), show_ropes(expected));
}

}  // namespace soliton
