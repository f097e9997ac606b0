// Where the keys and values of a layer lie (layout/page.h). Layers with a window have pages of their own, in a pool of their own:
// a page of all tokens holds the other layers alone, so that a window's pages can be used again once no query reaches them.
#pragma once

#include "layout/kernel_plan.h"
#include "layout/launch.h"
#include "primitives/primitives.h"

namespace soliton {

/// A layer's number among those whose pages it shares.
struct KvLayer {
  int16_t number = 0;
  bool has_window = false;
};

/// Of all layers, in constant memory.
template <const KernelPlan& kPlan>
struct KvLayers {
  KvLayer of_layer[kPlan.model.num_layers] = {};
  constexpr KvLayers() {
    int16_t counts[2] = {};
    for (int i = 0; i < kPlan.model.num_layers; ++i) {
      const bool has_window = kPlan.model.layers[i].window > 0;
      of_layer[i] = {counts[has_window]++, has_window};
    }
  }
};
template <const KernelPlan& kPlan>
SOLITON_CONSTANT KvLayers<kPlan> kKvLayers{};

/// Number of a page in its pool. `pages`: where a launch says so of layers without a window; of the others it does at the same
/// index of LaunchParams::window_pages.
template <const KernelPlan& kPlan>
SOLITON_DEVICE int physical_page(const LaunchParams& params, const int32_t* pages, int page, int layer) {
  if constexpr (kPlan.model.has_windows()) {
    if (kKvLayers<kPlan>.of_layer[layer].has_window) pages = params.window_pages;
  }
  return load_constant(pages + page);
}

/// The keys of a card's KV head in a page, by its physical number; the values are half_bytes() behind.
template <const KernelPlan& kPlan>
SOLITON_DEVICE unsigned char* kv_page(const LaunchParams& params, int physical, int layer, int kv_head) {
  constexpr KvShape kKv = kPlan.card_kv();
  if constexpr (kPlan.model.has_windows()) {
    constexpr KvShape kWindows = kKv.of_layers(kPlan.model.num_window_layers());
    constexpr KvShape kOthers = kKv.of_layers(kKv.num_layers - kWindows.num_layers);
    const KvLayer at = kKvLayers<kPlan>.of_layer[layer];
    return at.has_window ? static_cast<unsigned char*>(params.window_pool) +
                               kWindows.page_offset(physical, at.number, kv_head)
                         : static_cast<unsigned char*>(params.kv_pool) +
                               kOthers.page_offset(physical, at.number, kv_head);
  } else {
    return static_cast<unsigned char*>(params.kv_pool) + kKv.page_offset(physical, layer, kv_head);
  }
}

}  // namespace soliton
