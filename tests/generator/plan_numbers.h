// Every number of a plan, one after another: what the sweep changes. A structured binding names all members of its struct,
// so that a new one does not compile until it is visited here.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <type_traits>
#include <vector>

#include "generator/plan/plan.h"
#include "layout/fact_list.h"

namespace soliton {

/// Calls visit(name, value) for every integer, flag and enumerator of a plan, and of all that it holds. What the card can
/// (Plan::limits and ::cards) is no number of the plan: it is what the plan is judged by.
template <class Visit>
class NumberWalk {
 public:
  NumberWalk(Visit visit, int step) : visit_(visit), step_(step) {}

  void plan(Plan& plan) {
    auto& [model, source, gpu, cards, tuned, facts, limits, rows, num_ctas, num_cards, copies, consumer_warps,
           producer_warps, ring_slots, window, waiting_window, prefetch_pages, tile_slots, chunk_columns,
           min_pages_per_split, max_splits, sync, registers_per_thread, input_buffers, max_query_tiles,
           warp_dims, shares_registers, warpgroups, vectors, squares, block, block_squares, num_norms, layers,
           matrices, phases, barriers, shared, workspace, weight_bytes, needed_weight_bytes] = plan;
    for_each_fact(facts, [&](const char* name, auto& value) {
      if constexpr (!std::is_floating_point_v<std::decay_t<decltype(value)>>)
        number(std::string("facts.") + name, value);
    });
    for (int i = 0; has_windows(facts) && i < facts.num_layers; ++i)
      number(fmt::format("facts.layer_window.{}", i), facts.layer_window[i]);
    for (int i = 0; has_chunks(facts) && i < facts.num_layers; ++i)
      number(fmt::format("facts.layer_chunk.{}", i), facts.layer_chunk[i]);
    for (int i = 0; lists_ropes(facts) && i < facts.num_layers; ++i)
      number(fmt::format("facts.layer_rope.{}", i), facts.layer_rope[i]);
    number("rows", rows);
    number("num_ctas", num_ctas);
    number("num_cards", num_cards);
    number("copies", copies);
    number("consumer_warps", consumer_warps);
    number("producer_warps", producer_warps);
    number("ring_slots", ring_slots);
    number("window", window);
    number("waiting_window", waiting_window);
    number("prefetch_pages", prefetch_pages);
    number("tile_slots", tile_slots);
    number("chunk_columns", chunk_columns);
    number("min_pages_per_split", min_pages_per_split);
    number("max_splits", max_splits);
    number("sync", sync);
    number("registers_per_thread", registers_per_thread);
    number("input_buffers", input_buffers);
    number("max_query_tiles", max_query_tiles);
    number("warp_dims", warp_dims);
    number("shares_registers", shares_registers);
    number("warpgroups", warpgroups);
    number("squares", squares);
    number("block", block);
    number("block_squares", block_squares);
    number("num_norms", num_norms);
    number("weight_bytes", weight_bytes);
    number("needed_weight_bytes", needed_weight_bytes);
    for (PlanVector& each : vectors) vector("vectors." + each.name, each);
    for (size_t i = 0; i < layers.size(); ++i) layer(fmt::format("layers.{}", i), layers[i]);
    for (PlanMatrix& each : matrices) matrix("matrices." + each.name, each);
    for (PlanPhase& each : phases) phase("phases." + each.name, each);
    for (PlanBarrier& each : barriers) barrier("barriers." + each.name, each);
    for (PlanRegion& each : shared) region("shared." + each.name, each);
    for (PlanRegion& each : workspace) region("workspace." + each.name, each);
  }

 private:
  template <class T>
  void number(const std::string& name, T& value) {
    static_assert(std::is_integral_v<T> || std::is_enum_v<T>);
    visit_(name, value);
  }

  void vector(const std::string& at, PlanVector& vector) {
    auto& [name, element_bytes, elements, signatures, places, offset] = vector;
    number(at + ".element_bytes", element_bytes);
    number(at + ".elements", elements);
    number(at + ".signatures", signatures);
    number(at + ".places", places);
    number(at + ".offset", offset);
  }

  void layer(const std::string& at, Layer& layer) {
    auto& [kind, weights, first_norm, window, chunk, rope] = layer;
    number(at + ".kind", kind);
    number(at + ".weights", weights);
    number(at + ".first_norm", first_norm);
    number(at + ".window", window);
    number(at + ".chunk", chunk);
    number(at + ".rope", rope);
  }

  void matrix(const std::string& at, PlanMatrix& matrix) {
    auto& [name, row_order, format, rows, columns, padded, num_tiles, card_tiles, layer_kind, offset,
           experts] = matrix;
    auto& [type, group, has_zeros, has_minima, block] = format;
    auto& [axis, count, chosen] = experts;
    number(at + ".experts.axis", axis);
    number(at + ".experts.count", count);
    number(at + ".experts.chosen", chosen);
    number(at + ".row_order", row_order);
    number(at + ".format.type", type);
    number(at + ".format.group", group);
    number(at + ".format.has_zeros", has_zeros);
    number(at + ".format.has_minima", has_minima);
    number(at + ".format.block", block);
    number(at + ".rows", rows);
    number(at + ".columns", columns);
    number(at + ".padded", padded);
    number(at + ".num_tiles", num_tiles);
    number(at + ".card_tiles", card_tiles);
    number(at + ".layer_kind", layer_kind);
    number(at + ".offset", offset);
  }

  void phase(const std::string& at, PlanPhase& phase) {
    auto& [name, kind, layer_kind, matrix, reads, first_layer_reads, waits_for, writes, routes, input, output,
           norm, appends, first_cta, window, column_slices, runs, predicted_us] = phase;
    number(at + ".routes", routes);
    number(at + ".kind", kind);
    number(at + ".layer_kind", layer_kind);
    number(at + ".matrix", matrix);
    number(at + ".reads", reads);
    number(at + ".first_layer_reads", first_layer_reads);
    number(at + ".waits_for", waits_for);
    number(at + ".writes", writes);
    number(at + ".input", input);
    number(at + ".output", output);
    number(at + ".norm", norm);
    number(at + ".appends", appends);
    number(at + ".first_cta", first_cta);
    number(at + ".window", window);
    number(at + ".column_slices", column_slices);
    for (size_t cta = 0; cta < runs.size();
         cta += cta + 1 < runs.size() ? std::min<size_t>(step_, runs.size() - 1 - cta) : 1) {
      auto& [first, stride, count] = runs[cta];
      const std::string run = fmt::format("{}.runs[{}]", at, cta);
      number(run + ".first", first);
      number(run + ".stride", stride);
      number(run + ".count", count);
    }
  }

  void barrier(const std::string& at, PlanBarrier& barrier) {
    auto& [name, slots, arrivals, arrivers, lead] = barrier;
    number(at + ".slots", slots);
    number(at + ".arrivals", arrivals);
    number(at + ".arrivers", arrivers);
    number(at + ".lead", lead);
  }

  void region(const std::string& at, PlanRegion& region) {
    auto& [name, offset, bytes] = region;
    number(at + ".offset", offset);
    number(at + ".bytes", bytes);
  }

  Visit visit_;
  int step_;
};

/// A kernel's plan with the lists that it refers to, to be changed.
struct KernelNumbers {
  explicit KernelNumbers(const KernelPlan& planned)
      : kernel(planned),
        layers(planned.model.layers, planned.model.layers + planned.model.num_layers + 1),
        matrices(planned.matrices, planned.matrices + planned.num_matrices),
        vectors(planned.vectors, planned.vectors + planned.num_vectors),
        phases(planned.phases, planned.phases + planned.num_phases) {
    kernel.model.layers = layers.data();
    kernel.matrices = matrices.data();
    kernel.vectors = vectors.data();
    kernel.phases = phases.data();
  }
  KernelNumbers(const KernelNumbers&) = delete;

  KernelPlan kernel;
  std::vector<Layer> layers;
  std::vector<PackedMatrix> matrices;
  std::vector<Vector> vectors;
  std::vector<Phase> phases;
};

/// The same of what a kernel is compiled for.
template <class Visit>
class KernelNumberWalk {
 public:
  explicit KernelNumberWalk(Visit visit) : visit_(visit) {}

  void kernel(KernelNumbers& all) {
    auto& [model, matrices, num_matrices, vectors, num_vectors, phases, num_phases, rows, sync, num_ctas,
           num_cards, copies, consumer_warps, producer_warps, ring_slots, slot_bytes, window, waiting_window,
           kv_window, prefetch_pages, residual_tiles, num_norms, tile_slots, chunk_columns,
           min_pages_per_split, max_splits, input_buffers, max_query_tiles, warp_dims, shares_registers,
           warpgroups, squares, block, block_squares, partials, sums, counter_offset, counter_bytes,
           workspace_bytes, num_regions, regions, num_barriers, barriers] = all.kernel;
    shape(model);
    for (Layer& each : all.layers) layer(each);
    for (PackedMatrix& each : all.matrices) matrix(std::string("matrices.") + each.name, each);
    numbers(num_matrices, num_vectors, num_phases, rows, sync, num_ctas, num_cards, copies, consumer_warps,
            producer_warps, ring_slots, slot_bytes, window, waiting_window, kv_window, prefetch_pages,
            residual_tiles, num_norms, tile_slots, chunk_columns, min_pages_per_split, max_splits,
            input_buffers, max_query_tiles, warp_dims, shares_registers, warpgroups, squares, block,
            block_squares, counter_offset, counter_bytes, workspace_bytes, num_regions, num_barriers);
    for (Vector& each : all.vectors) vector(each);
    vector(partials);
    vector(sums);
    for (Phase& each : all.phases) phase(each);
    // Not by reference: these are changed on the way.
    const int regions_there = num_regions, barriers_there = num_barriers;
    for (int i = 0; i < regions_there; ++i) region(regions[i]);
    for (int i = 0; i < barriers_there; ++i) barrier(barriers[i]);
  }

 private:
  /// All in the order of their struct, which the visitor is told to say where it is.
  template <class... Numbers>
  void numbers(Numbers&... all) {
    int place = 0;
    (visit_(fmt::format("{}[{}]", at_, place++), all), ...);
  }

  void shape(ModelShape& shape) {
    at_ = "model";
    auto& [layers, num_layers, num_heads, num_kv_heads, head_dim, kv_parts, kv_e4m3, hidden, qkv_bias, o_bias,
           head_norm, joint_norm, head_norm_last, norms, norm_offset, up_biases, down_bias, logit_biases,
           ungated, ordered, norm_epsilon, score_scale, embedding_scale, residual_scale, logit_scale,
           logit_soft_cap, rope_tables, query_table, attention, activation, mixture, router_scale, integers,
           further] = shape;
    auto& [experts, chosen, ffn, renormalised, shared, shared_gate, scores, biased, expert_bias] = mixture;
    numbers(experts, chosen, ffn, renormalised, shared, shared_gate, scores, biased, expert_bias);
    auto& [soft_cap, sinks, alibi] = attention;
    numbers(sinks);
    at_ = "mixture";
    numbers(num_layers, num_heads, num_kv_heads, head_dim, kv_parts, kv_e4m3, hidden, qkv_bias, o_bias,
            head_norm, joint_norm, head_norm_last, norms, norm_offset, up_biases, down_bias, logit_biases,
            ungated, ordered, rope_tables, query_table, activation);
    format(integers);
    format(further);
    at_ = "kernel";
  }
  void layer(Layer& layer) {
    at_ = "layer";
    auto& [kind, weights, first_norm, window, chunk, rope] = layer;
    numbers(kind, weights, first_norm, window, chunk, rope);
    at_ = "kernel";
  }
  void format(WeightFormat& format) {
    auto& [type, group, has_zeros, has_minima, block] = format;
    numbers(type, group, has_zeros, has_minima, block);
  }
  void matrix(const std::string& name, PackedMatrix& matrix) {
    at_ = name;
    auto& [unnamed, layer_kind, offset, rows, columns, padded_columns, weights, num_tiles, row_order,
           experts] = matrix;
    auto& [axis, count, chosen] = experts;
    numbers(layer_kind, offset, rows, columns, padded_columns, num_tiles, row_order, axis, count, chosen);
    format(weights);
    at_ = "kernel";
  }
  void vector(Vector& vector) {
    at_ = "vector";
    auto& [offset, elements, signatures, to_second, layer_kind] = vector;
    numbers(offset, elements, signatures, to_second, layer_kind);
  }
  void phase(Phase& phase) {
    auto& [name, kind, matrix, reads, writes, routes, input, output, norm, first_cta, layer_kind, appends,
           column_slices] = phase;
    at_ = name;
    numbers(kind, matrix, reads, writes, routes, input, output, norm, first_cta, layer_kind, appends,
            column_slices);
  }
  void region(Region& region) {
    auto& [name, offset, bytes] = region;
    at_ = name;
    numbers(offset, bytes);
  }
  void barrier(BarrierSet& barrier) {
    auto& [name, slots, arrivals, by_warps] = barrier;
    at_ = name;
    numbers(slots, arrivals, by_warps);
  }

  Visit visit_;
  std::string at_ = "kernel";
};

/// `step`: of the tiles of CTAs only those of every step-th, and of the last.
template <class Visit>
void for_each_number(Plan& plan, int step, Visit visit) {
  NumberWalk<Visit>(visit, step).plan(plan);
}

template <class Visit>
void for_each_number(KernelNumbers& numbers, Visit visit) {
  KernelNumberWalk<Visit>(visit).kernel(numbers);
}

}  // namespace soliton
