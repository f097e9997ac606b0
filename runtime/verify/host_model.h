// The forward pass in plain loops on the CPU, in float: what a kernel's answers are compared with. All tokens of
// a text go through a layer together, so that a checkpoint of any size is read once. Has no weights of its own,
// and has nothing in common with the kernels but the readers of files and the rotary table.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "models/hf_config.h"
#include "runtime/verify/host_matrix.h"

namespace soliton {

/// Refers to both of its sources.
class HostModel {
 public:
  HostModel(const TensorSource& source, const HfConfig& config)
      : source_(source), config_(config), graph_(build_graph(config.facts)) {}

  /// Logits [tokens - first][vocabulary] after the tokens of a text from number `first` on. Throws Error
  /// (kMismatch) for tensors that are missing, or of another type or shape.
  std::vector<float> logits(std::span<const int32_t> text, int first) const;

 private:
  /// What ops pass on: of each linear layer of the matrix before.
  using Parts = std::vector<TokenRows>;

  /// The experts that tokens go through in a layer: [token][used_experts()], the shared ones, then the first chosen first.
  struct Routes {
    std::vector<int32_t> experts;
    std::vector<float> weights;
  };

  /// By what a layer's heads are rotated: a table of make_rotary_table().
  struct Rotation {
    std::span<const float> tables;
    int layer = 0;
    int table = 0;
  };

  /// The residual stream, and what it was before the layer's attention was added.
  struct Stream {
    TokenRows now;
    TokenRows before;  // only where blocks read the same of it
  };

  std::string name_of(const std::string& name, int layer) const;
  TokenRows embed(std::span<const int32_t> text) const;
  TokenRows norm(TokenRows x, const std::string& name) const;
  TokenRows norm_stream(const GraphOp& op, int layer, const TokenRows& stream) const;
  void scale_to_unit(TokenRows& x) const;
  void weigh(TokenRows& x, const std::string& name) const;
  void finish_heads(TokenRows& heads, const std::string& name, const Rotation& rotation) const;
  Parts multiply(const GraphOp& op, int layer, const TokenRows& x) const;
  Parts attention(Parts heads, int layer) const;
  std::vector<double> scores(const float* logits) const;
  std::vector<float> sinks(int layer) const;
  Routes route(Parts& logits, int layer) const;
  TokenRows multiply_rows(int matrix, const LinearRows& rows, int64_t columns, int layer,
                          const TokenRows& x) const;
  template <class Body>
  void for_each_expert(const Routes& routes, const Body& body) const;
  TokenRows gate_experts(const GraphOp& op, int layer, const TokenRows& x, const Routes& routes) const;
  TokenRows join_experts(const GraphOp& op, int layer, const TokenRows& gated, const Routes& routes) const;
  void end_block(const GraphOp& op, int layer, Stream& stream, TokenRows& block) const;
  void run(const GraphOp& op, int layer, Stream& stream, Parts& parts, Routes& routes) const;

  const TensorSource& source_;
  const HfConfig& config_;
  const Graph graph_;
};

}  // namespace soliton
