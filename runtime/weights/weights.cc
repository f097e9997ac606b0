#include "runtime/weights/weights.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <future>
#include <map>
#include <numbers>
#include <thread>

#include "layout/fact_list.h"
#include "layout/order.h"
#include "layout/rows.h"
#include "models/error.h"
#include "models/graph.h"
#include "models/model_tables.h"
#include "runtime/program/progress.h"
#include "runtime/weights/matrix_source.h"
#include "runtime/weights/packing.h"
#include "runtime/weights/tensor_values.h"

namespace soliton {
namespace {

constexpr uint16_t kBf16One = 0x3f80;
constexpr float kInitialDeviation = 0.02f;  // of transformers' random initialisation
constexpr float kMostE2m1 = 6;
constexpr uint8_t kRandomNvfp4Scale = 0x60;  // of each group: an E4M3,
constexpr float kRandomNvfp4Value = 32;      // and what it stands for
constexpr size_t kStagingBytes = 64 << 20;   // packed and uploaded at a time

/// One tile to pack: where its bytes go, and what they come from.
struct TileJob {
  int matrix = 0;
  int layer = 0;
  int tile = 0;
  int64_t offset = 0;  // in the packed weights
};

class Packer {
 public:
  /// Of the tiles that lie on `card`, see tiles_of_card().
  Packer(const ModelDescriptor& model, const ModelTensors& tensors, int num_cards, int card)
      : model_(model),
        graph_(build_graph(model.facts)),
        norm_biases_(tensors.norm_biases),
        sources_(graph_.matrices.size()) {
    for (int m = 0; m < model.num_matrices; ++m) {
      const PackedMatrix& matrix = model.matrices[m];
      for (const auto& [layer, parts] : tensors.matrices[m]) {
        sources_[m].try_emplace(layer, parts, model.facts, matrix);
        for (int tile = card; tile < matrix.stored_tiles(); tile += num_cards) {
          jobs_.push_back({m, layer, tile,
                           model.layers[layer].weights + matrix.offset +
                               static_cast<int64_t>(tile / num_cards) * matrix.stored_tile_bytes()});
        }
      }
    }
    graph_.for_each_op([&](const GraphOp& op, int layer) {
      if (op.output == OutputKind::kSwiglu)
        sources_[op.matrix].at(layer).set_output_order(order(graph_.reader(layer, op.writes), layer));
    });
    std::sort(jobs_.begin(), jobs_.end(),
              [](const TileJob& a, const TileJob& b) { return a.offset < b.offset; });
  }

  const Graph& graph() const { return graph_; }

  /// Of a matrix of layer `layer`: the model's input in each column; empty: in natural order.
  const std::vector<int32_t>& order(int matrix, int layer) const {
    return sources_[matrix].at(layer).order();
  }

  /// Of q, k and v of all layers, as the packed rows stand; empty without.
  std::vector<float> qkv_biases() const {
    std::vector<float> biases;
    graph_.for_each_op([&](const GraphOp& op, int layer) {
      if (op.output != OutputKind::kRotary || op.matrix == kNone || !adds_qkv_biases(model_.facts)) return;
      const size_t rows = static_cast<size_t>(model_.matrices[op.matrix].rows);
      biases.resize(biases.size() + rows);
      const std::span<float> own = std::span(biases).last(rows);
      if (graph_.matrices[op.matrix].has_bias) sources_[op.matrix].at(layer).read_biases(own);
      add_norm_bias(op, layer, own);
    });
    return biases;
  }

  /// Those of the other matrices, each where LayerBiases has it in its layer.
  void read_layer_biases(std::span<float> biases) const {
    const LayerBiases places = layer_biases(model_.facts);
    graph_.for_each_op([&](const GraphOp& op, int layer) {
      if (op.output == OutputKind::kRotary || op.matrix == kNone) return;
      const int first = layer == model_.facts.num_layers   ? 0
                        : op.output == OutputKind::kSwiglu ? places.gate_up()
                        : op.appends                       ? places.o()
                                                           : places.down();
      const auto own = biases.subspan(static_cast<size_t>(layer) * places.words() + first);
      if (graph_.matrices[op.matrix].has_bias) {
        const int rows = model_.matrices[op.matrix].stored_tiles() * kTileRows;
        sources_[op.matrix].at(layer).read_biases(own.first(rows));
      }
      if (op.input != InputKind::kVector)
        add_norm_bias(op, layer, own.first(graph_.matrices[op.matrix].rows));
    });
  }

  /// See FactorOf.
  void read_factors(std::span<float> biases) const {
    const LayerBiases places = layer_biases(model_.facts);
    if (places.num_factors == 0) return;
    const int queries = model_.facts.num_heads * model_.facts.head_dim;
    const int rotary = rotary_heads(model_.facts) * model_.facts.head_dim;
    graph_.for_each_op([&](const GraphOp& op, int layer) {
      if (op.matrix == kNone || layer == model_.facts.num_layers || op.output == OutputKind::kRouter) return;
      const MatrixSource& source = sources_[op.matrix].at(layer);
      const auto factors =
          biases.subspan(static_cast<size_t>(layer) * places.words() + places.factors(), kNumFactors);
      const auto put = [&](FactorOf of, int row) {
        factors[of] =
            graph_.matrices[op.matrix].format.has_factors() ? kNvfp4Unit * source.factor_of(row) : 1;
      };
      if (const ExpertParts& experts = graph_.matrices[op.matrix].experts;
          experts.axis != ExpertAxis::kNone) {
        read_expert_factors(op, layer, biases);
        for (const FactorOf of : {kFactorOfGate, kFactorOfUp, kFactorOfDown}) factors[of] = 1;
      } else if (op.output == OutputKind::kRotary) {
        put(kFactorOfQ, 0);
        put(kFactorOfK, queries);
        put(kFactorOfV, rotary);
      } else if (op.output == OutputKind::kSwiglu) {
        put(kFactorOfGate, 0);
        put(kFactorOfUp, kTileRows / 2);
      } else {
        put(op.appends ? kFactorOfO : kFactorOfDown, 0);
      }
    });
  }

  /// Of gate and up of a layer's experts, or of down. See ExpertFactor.
  void read_expert_factors(const GraphOp& op, int layer, std::span<float> biases) const {
    const LayerBiases places = layer_biases(model_.facts);
    const GraphMatrix& matrix = graph_.matrices[op.matrix];
    const MatrixSource& source = sources_[op.matrix].at(layer);
    const int rows = model_.matrices[op.matrix].stored_tiles() * kTileRows / matrix.experts.count;
    const auto all = biases.subspan(static_cast<size_t>(layer) * places.words() + places.expert_factors());
    for (int expert = 0; expert < matrix.experts.count; ++expert) {
      const auto put = [&](ExpertFactor of, int row) {
        all[expert * kNumExpertFactors + of] =
            matrix.format.has_factors() ? kNvfp4Unit * source.factor_of(expert * rows + row) : 1;
      };
      if (matrix.experts.axis == ExpertAxis::kColumns) {
        put(kExpertDownFactor, 0);
        continue;
      }
      put(kExpertGateFactor, 0);
      put(kExpertUpFactor, kTileRows / 2);
    }
  }

  /// What the bias of the norm before a matrix makes of its rows, added to `biases`, if there is one.
  void add_norm_bias(const GraphOp& op, int layer, std::span<float> biases) const {
    if (model_.facts.norm_bias == 0) return;
    std::vector<float> x(static_cast<size_t>(model_.facts.hidden));
    read_floats(*norm_biases_[static_cast<size_t>(graph_.first_norm(layer) + op.norm)], 0,
                model_.facts.hidden, x.data());
    sources_[op.matrix].at(layer).add_products(x, biases);
  }

  size_t num_jobs() const { return jobs_.size(); }
  int64_t offset(size_t job) const { return job < jobs_.size() ? jobs_[job].offset : model_.weight_bytes; }

  /// The jobs from `first` on whose tiles fit into `bytes`.
  size_t batch_end(size_t first, size_t bytes) const {
    size_t end = first;
    while (end < jobs_.size() && offset(end + 1) - offset(first) <= static_cast<int64_t>(bytes)) ++end;
    return end;
  }

  /// Packs the tiles of jobs [first, end) to `staging`, with `num_threads` threads.
  void pack(size_t first, size_t end, std::byte* staging, int num_threads) const {
    std::atomic<size_t> next{first};
    const auto work = [&] {
      for (size_t job = next++; job < end; job = next++) pack_job(jobs_[job], staging - offset(first));
    };
    std::vector<std::jthread> threads;
    for (int i = 1; i < num_threads; ++i) threads.emplace_back(work);
    work();
  }

 private:
  void pack_job(const TileJob& job, std::byte* base) const {
    sources_[job.matrix].at(job.layer).pack(job.tile, base + job.offset);
  }

  const ModelDescriptor& model_;
  const Graph graph_;
  const std::vector<const Tensor*>& norm_biases_;
  std::vector<std::map<int, MatrixSource>> sources_;  // of each matrix, of each layer that has one
  std::vector<TileJob> jobs_;
};

std::span<const PackedMatrix> matrices_of(const ModelDescriptor& model) {
  return {model.matrices, static_cast<size_t>(model.num_matrices)};
}

/// Of one card: all are loaded at the same time.
int num_threads(const KernelLibrary& library) {
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()) / library.num_cards());
}

size_t largest_tile(const ModelDescriptor& model) {
  int64_t bytes = 0;
  for (const PackedMatrix& matrix : matrices_of(model))
    bytes = std::max<int64_t>(bytes, matrix.stored_tile_bytes());
  return static_cast<size_t>(bytes);
}

/// Packs where the kernel reads, in memory that the host writes too.
void pack_pages(const KernelLibrary& library, const Packer& packer, const TensorSource& source,
                DeviceMemory& pages, Progress* progress) {
  const size_t batch_bytes = std::max(largest_tile(library.model()), kStagingBytes);
  for (size_t first = 0; first < packer.num_jobs();) {
    const size_t end = packer.batch_end(first, batch_bytes);
    packer.pack(first, end, pages.as<std::byte>() + packer.offset(first), num_threads(library));
    if (progress != nullptr) progress->add(static_cast<uint64_t>(packer.offset(end) - packer.offset(first)));
    source.check_whole();  // rather than to pack zeros to the end
    first = end;
  }
}

/// Packs into one staging buffer while the other is uploaded.
void upload_pages(const KernelLibrary& library, const Packer& packer, const TensorSource& source,
                  DeviceMemory& pages, Progress* progress) {
  const size_t staging_bytes =
      std::max(largest_tile(library.model()),
               std::min(kStagingBytes, static_cast<size_t>(library.model().weight_bytes)));
  HostMemory staging[2] = {HostMemory(library.functions(), staging_bytes),
                           HostMemory(library.functions(), staging_bytes)};
  size_t end = packer.batch_end(0, staging_bytes);
  packer.pack(0, end, staging[0].as<std::byte>(), num_threads(library));
  int current = 0;
  for (size_t first = 0; first < packer.num_jobs();) {
    const size_t next_end = packer.batch_end(end, staging_bytes);
    std::future<void> packing = std::async(std::launch::async, [&, next = end] {
      packer.pack(next, next_end, staging[1 - current].as<std::byte>(), num_threads(library));
    });
    const size_t bytes = static_cast<size_t>(packer.offset(end) - packer.offset(first));
    library.check(library.functions().upload(pages.as<std::byte>() + packer.offset(first),
                                             staging[current].as<std::byte>(), bytes),
                  "upload weights");
    if (progress != nullptr) progress->add(bytes);
    packing.get();
    source.check_whole();  // rather than to pack zeros to the end
    first = end;
    end = next_end;
    current = 1 - current;
  }
}

DeviceMemory upload(const KernelLibrary& library, const void* host, size_t bytes) {
  DeviceMemory memory(library.functions(), bytes);
  library.check(library.functions().upload(memory.as<void>(), host, bytes), "upload");
  return memory;
}

/// Nothing for nothing.
template <class T>
DeviceMemory upload(const KernelLibrary& library, const std::vector<T>& values) {
  return values.empty() ? DeviceMemory() : upload(library, values.data(), values.size() * sizeof(T));
}

/// `values` as columns in `order` have them.
void reorder(std::span<uint16_t> values, const std::vector<int32_t>& order) {
  if (order.empty()) return;
  const std::vector<uint16_t> natural(values.begin(), values.end());
  for (size_t column = 0; column < values.size(); ++column) values[column] = natural[order[column]];
}

/// Norms of `width` values each, one after another.
std::vector<uint16_t> gather(const std::vector<const Tensor*>& tensors, int width) {
  std::vector<uint16_t> values(tensors.size() * static_cast<size_t>(width));
  for (size_t i = 0; i < tensors.size(); ++i)
    read_bf16(*tensors[i], 0, width, values.data() + i * static_cast<size_t>(width));
  return values;
}

/// Of layer after layer, with each head's dims as kernels have them.
std::vector<uint16_t> gather_head_norms(const ModelTensors& tensors, const ModelFacts& facts) {
  std::vector<uint16_t> norms;
  for (const Tensor* tensor : tensors.head_norms) {
    const auto width = static_cast<size_t>(tensor->shape[0]);
    norms.resize(norms.size() + width);
    read_bf16(*tensor, 0, tensor->shape[0], norms.data() + norms.size() - width);
  }
  std::vector<int32_t> dims;
  for (int dim = 0; dim < facts.head_dim; ++dim)
    dims.push_back(model_dim(dim, facts.head_dim, facts.rope_dims));
  for (size_t first = 0; first < norms.size(); first += dims.size())
    reorder(std::span(norms).subspan(first, dims.size()), dims);
  return norms;
}

/// Of layer after layer, zeros of one that is no mixture.
std::vector<float> gather_router_biases(const ModelTensors& tensors, const ModelFacts& facts) {
  std::vector<float> biases(static_cast<size_t>(model_tables(facts).router_biases));
  for (const auto& [layer, tensor] : tensors.router_biases)
    read_floats(*tensor, 0, facts.num_experts, biases.data() + layer * router_bias_words(facts));
  return biases;
}

/// Of layer after layer, see LayerBiases: what matrices add, and the sinks' scores in base 2.
std::vector<float> gather_layer_biases(const ModelTensors& tensors, const Packer& packer,
                                       const ModelFacts& facts) {
  std::vector<float> biases(static_cast<size_t>(model_tables(facts).layer_biases));
  packer.read_layer_biases(biases);
  packer.read_factors(biases);
  for (size_t layer = 0; layer < tensors.sinks.size(); ++layer) {
    const LayerBiases places = layer_biases(facts);
    float* const sinks = biases.data() + layer * places.words() + places.sinks();
    read_floats(*tensors.sinks[layer], 0, facts.num_heads, sinks);
    for (int head = 0; head < facts.num_heads; ++head) sinks[head] *= std::numbers::log2e_v<float>;
  }
  return biases;
}

/// Calls body(row of the norms, matrix, layer) for each norm and the matrix that reads what it scales.
template <class Body>
void for_each_norm(const Graph& graph, const Body& body) {
  graph.for_each_op([&](const GraphOp& op, int layer) {
    if (op.input != InputKind::kVector) body(graph.first_norm(layer) + op.norm, op.matrix, layer);
  });
}

/// Each norm in the order of the columns that read what it scales.
std::vector<uint16_t> gather_norms(const ModelTensors& tensors, const Packer& packer,
                                   const ModelFacts& facts) {
  std::vector<uint16_t> norms = gather(tensors.norms, facts.hidden);
  for_each_norm(packer.graph(), [&](int row, int matrix, int layer) {
    reorder(std::span(norms).subspan(static_cast<size_t>(row) * facts.hidden, facts.hidden),
            packer.order(matrix, layer));
  });
  return norms;
}

/// The tables of layout/order.h. `order(matrix, layer)`: the model's input in each column, empty for natural order.
template <class Order>
std::vector<int32_t> make_positions(const ModelFacts& facts, const Order& order) {
  const Graph graph = build_graph(facts);
  const OrderTables tables = {graph.num_norms(), facts.hidden, facts.num_heads * facts.head_dim};
  std::vector<int32_t> positions(static_cast<size_t>(model_tables(facts).positions));
  const auto put = [&](int64_t table, int64_t count, const std::vector<int32_t>& inputs) {
    int32_t* of = positions.data() + table;
    for (int32_t column = 0; column < count; ++column) of[inputs.empty() ? column : inputs[column]] = column;
  };
  for_each_norm(graph, [&](int row, int matrix, int layer) {
    put(tables.of_norm(row), tables.hidden, order(matrix, layer));
  });
  graph.for_each_op([&](const GraphOp& op, int layer) {
    if (op.kind == PhaseKind::kAttention)
      put(tables.of_attention(layer), tables.heads, order(graph.reader(layer, op.writes), layer));
  });
  return positions;
}

size_t embedding_bytes(const ModelFacts& facts) {
  return static_cast<size_t>(model_tables(facts).embedding_bytes());
}

/// Values [first, first + count) of the embedding in bf16, whole rows, their columns in `order`.
void read_embedding(const Tensor& embedding, const std::vector<int32_t>& order, int hidden, int64_t first,
                    std::span<uint16_t> values) {
  read_bf16(embedding, first, static_cast<int64_t>(values.size()), values.data());
  for (size_t row = 0; row < values.size(); row += hidden) reorder(values.subspan(row, hidden), order);
}

/// Into memory that the host writes too.
DeviceMemory read_embedding(const KernelLibrary& library, const Tensor& embedding,
                            const std::vector<int32_t>& order, const ModelFacts& facts) {
  DeviceMemory memory = DeviceMemory::unified(library.functions(), embedding_bytes(facts));
  read_embedding(embedding, order, facts.hidden, 0, {memory.as<uint16_t>(), memory.bytes() / 2});
  return memory;
}

/// A piece at a time if its values have to be rounded, or its columns reordered.
DeviceMemory upload_embedding(const KernelLibrary& library, const Tensor& embedding,
                              const std::vector<int32_t>& order, const ModelFacts& facts) {
  if (embedding.dtype == DType::kBF16 && order.empty())
    return upload(library, embedding.data.data(), embedding.data.size());
  DeviceMemory memory(library.functions(), embedding_bytes(facts));
  const int64_t rows_at_once = std::max<int64_t>(1, static_cast<int64_t>(kStagingBytes) / 2 / facts.hidden);
  std::vector<uint16_t> piece(static_cast<size_t>(rows_at_once * facts.hidden));
  for (int64_t first = 0; first < facts.vocabulary; first += rows_at_once) {
    const int64_t rows = std::min<int64_t>(facts.vocabulary - first, rows_at_once);
    const auto values = std::span(piece).first(static_cast<size_t>(rows * facts.hidden));
    read_embedding(embedding, order, facts.hidden, first * facts.hidden, values);
    library.check(library.functions().upload(memory.as<uint16_t>() + first * facts.hidden, values.data(),
                                             values.size_bytes()),
                  "upload");
  }
  return memory;
}

/// Bound of a uniform distribution around 0 of that deviation.
float uniform_bound(float deviation) {
  return deviation * std::sqrt(3.0f);
}

/// Bytes of a layer's copy of a matrix, on one card of several.
int64_t matrix_bytes(const PackedMatrix& matrix, int num_cards) {
  return static_cast<int64_t>(tiles_of_card(matrix.stored_tiles(), num_cards)) * matrix.stored_tile_bytes();
}

/// Calls body(matrix, layer) for all matrices of all layers, and of what stands once, as they are packed.
template <class Body>
void for_each_matrix(const ModelDescriptor& model, const Body& body) {
  for (int layer = 0; layer <= model.facts.num_layers; ++layer) {
    for (const PackedMatrix& matrix : matrices_of(model)) {
      if (matrix.layer_kind == model.layers[layer].kind) body(matrix, layer);
    }
  }
}

/// Fills one layer's copy of a matrix with random weights, as a card has it.
int fill_matrix(const Library& library, const PackedMatrix& matrix, void* pages, uint64_t seed, int num_cards,
                int card) {
  const float bound = uniform_bound(kInitialDeviation);
  const int64_t tile = matrix.stored_tile_bytes();
  if (matrix.format.type == WeightType::kBf16) {
    const int64_t bytes = matrix_bytes(matrix, num_cards);
    return library.fill_random(pages, static_cast<size_t>(bytes / 2), bound, seed,
                               {tile / 2, card, num_cards});
  }
  const int exponent = matrix.format.has_factors()
                           ? nvfp4_scale(kRandomNvfp4Scale)
                           : 127 + static_cast<int>(std::floor(std::log2(bound / kMostE2m1)));
  constexpr float kE4m3Deviation = 108;                                    // of random codes
  const float half = static_cast<float>(1 << (matrix.format.bits() - 1));  // of the values
  const float of_groups = matrix.format.block > 0 ? kRandomBlockScale : 1;
  const RandomTiles tiles{.format = matrix.format,
                          .padded = matrix.stored_columns(),
                          .num_tiles = tiles_of_card(matrix.stored_tiles(), num_cards),
                          .scale = matrix.format.type == WeightType::kE2m1 ? static_cast<uint16_t>(exponent)
                                   : matrix.format.has_float_scales()
                                       ? round_to_bf16(kInitialDeviation / kE4m3Deviation)
                                       : f16_bits(bound / half / of_groups),
                          .minimum = f16_bits(bound / of_groups),
                          .is_part = matrix.experts.axis == ExpertAxis::kColumns};
  return library.fill_random_tiles(pages, &tiles, seed, {tile / 4, card, num_cards});
}

/// Within 1/4 of 1, so that every head and layer has its own.
std::vector<uint16_t> random_head_norms(const ModelFacts& facts, uint64_t seed) {
  constexpr float kBound = 0.25f;
  const int64_t count = model_tables(facts).head_norms;
  std::vector<uint16_t> norms;
  for (int64_t i = 0; i < count; ++i)
    norms.push_back(round_to_bf16(1.0f + kBound * random_unit(static_cast<uint64_t>(i), seed)));
  return norms;
}

std::vector<float> random_biases(int64_t count, float bound, uint64_t seed) {
  std::vector<float> biases;
  for (int64_t i = 0; i < count; ++i) biases.push_back(bound * random_unit(static_cast<uint64_t>(i), ~seed));
  return biases;
}

/// Those of LayerBiases, whose factors are such that weights are within `bound`.
std::vector<float> random_layer_biases(const ModelFacts& facts, float bound, uint64_t seed) {
  std::vector<float> biases = random_biases(model_tables(facts).layer_biases, bound, seed);
  const LayerBiases places = layer_biases(facts);
  for (int layer = 0; places.num_factors > 0 && layer < facts.num_layers; ++layer) {
    const auto first = biases.begin() + int64_t{layer} * places.words() + places.factors();
    std::fill_n(first, kNumFactors + places.num_expert_factors,
                kNvfp4Unit * bound / (kMostE2m1 * kRandomNvfp4Value));
    if (ffn_of_layer(facts, layer) == kMixture)
      std::fill(first + kFactorOfGate, first + kFactorOfDown + 1, 1.0f);
  }
  return biases;
}

DeviceWeights read_weights(const KernelLibrary& library, const ModelTensors& tensors, Progress* progress,
                           int card) {
  const ModelDescriptor& model = library.model();
  const ModelFacts& facts = model.facts;
  const Packer packer(model, tensors, library.num_cards(), card);
  DeviceWeights weights;
  const auto page_bytes = static_cast<size_t>(model.weight_bytes);
  const std::vector<int32_t>& order = packer.order(packer.graph().kind_of(0).ops.front().matrix, 0);
  if (library.device().unified_memory != 0) {
    weights.pages = DeviceMemory::unified(library.functions(), page_bytes);
    pack_pages(library, packer, *tensors.source, weights.pages, progress);
    weights.embedding = read_embedding(library, *tensors.embedding, order, facts);
  } else {
    weights.pages = DeviceMemory(library.functions(), page_bytes);
    upload_pages(library, packer, *tensors.source, weights.pages, progress);
    weights.embedding = upload_embedding(library, *tensors.embedding, order, facts);
  }
  if (progress != nullptr) progress->add(embedding_bytes(facts));
  weights.norms = upload(library, gather_norms(tensors, packer, facts));
  weights.head_norms = upload(library, gather_head_norms(tensors, facts));
  weights.router_biases = upload(library, gather_router_biases(tensors, facts));
  weights.layer_biases = upload(library, gather_layer_biases(tensors, packer, facts));
  weights.qkv_biases = upload(library, packer.qkv_biases());
  if (facts.weight_order != 0) {
    const std::vector<int32_t> positions =
        make_positions(facts, [&](int matrix, int layer) { return packer.order(matrix, layer); });
    weights.positions = upload(library, positions);
  }
  return weights;
}

}  // namespace

uint64_t weight_load_bytes(const KernelLibrary& library) {
  const ModelDescriptor& model = library.model();
  return static_cast<uint64_t>(library.num_cards()) *
         (static_cast<uint64_t>(model.weight_bytes) + embedding_bytes(model.facts));
}

DeviceWeights load_weights(const KernelLibrary& library, const ModelTensors& tensors, Progress* progress,
                           int card) {
  ModelFacts facts = tensors.facts;
  facts.kv_bits = library.model().facts.kv_bits;  // no matter of the weights
  if (hash_facts(facts) != library.model().facts_hash) {
    throw Error(ExitCode::kInternal, fmt::format("load_weights: expected tensors of {}, got another model's",
                                                 library.model().name));
  }
  return read_whole(*tensors.source, [&] { return read_weights(library, tensors, progress, card); });
}

DeviceWeights make_random_weights(const KernelLibrary& library, uint64_t seed, int card) {
  const ModelDescriptor& model = library.model();
  const float bound = uniform_bound(kInitialDeviation);
  DeviceWeights weights;
  weights.pages = DeviceMemory(library.functions(), static_cast<size_t>(model.weight_bytes));
  weights.embedding = DeviceMemory(library.functions(), embedding_bytes(model.facts));
  uint64_t offset_on_one_card = 0;  // if there were one: random values depend on nothing else
  for_each_matrix(model, [&](const PackedMatrix& matrix, int layer) {
    const int64_t offset = model.layers[layer].weights + matrix.offset;
    library.check(fill_matrix(library.functions(), matrix, weights.pages.as<std::byte>() + offset,
                              seed + offset_on_one_card, library.num_cards(), card),
                  "make weights");
    offset_on_one_card += static_cast<uint64_t>(matrix_bytes(matrix, 1));
  });
  library.check(library.functions().fill_random(weights.embedding.as<void>(), weights.embedding.bytes() / 2,
                                                bound, ~seed, {}),
                "make weights");
  const ModelFacts& facts = model.facts;
  const std::vector<uint16_t> norms(static_cast<size_t>(model_tables(facts).norms), kBf16One);
  weights.norms = upload(library, norms);
  weights.head_norms = upload(library, random_head_norms(facts, seed));
  const ModelTables tables = model_tables(facts);
  weights.qkv_biases = upload(library, random_biases(tables.qkv_biases, bound, seed));
  weights.router_biases = upload(library, random_biases(tables.router_biases, bound, seed + 1));
  weights.layer_biases = upload(library, random_layer_biases(facts, bound, seed + 2));
  if (facts.weight_order != 0) {
    const std::vector<int32_t> positions =
        make_positions(facts, [](int, int) { return std::vector<int32_t>{}; });
    weights.positions = upload(library, positions);
  }
  return weights;
}

}  // namespace soliton
