// What kernels have the quantised tensors of a GGUF file as: formats that hold their values exactly.
#pragma once

#include <optional>

#include "layout/weight_format.h"
#include "models/gguf.h"
#include "models/quantization_config.h"

namespace soliton {

/// The format of a type whose values are integers with scales; nothing for the others.
std::optional<WeightFormat> format_of(GgufType type);

/// A format that holds exactly what either does: as many bits as the wider one, groups as small as the smaller ones, minima if
/// one has them. Nothing if scales of one are in blocks and those of the other are not.
std::optional<WeightFormat> join_formats(const WeightFormat& a, const WeightFormat& b);

/// Does a format hold exactly what tensors of this type do?
bool holds(const WeightFormat& format, GgufType type);

/// Whether experts are in MXFP4. Throws Error (kMismatch), which names a tensor, if only some are.
bool has_mxfp4_experts(const GgufFile& file);

/// How the matrices of the layers, and lm_head's, are quantised: two formats at most, told apart by their bits. Each matrix of a
/// layer that is made of several tensors has a format that holds all of them; experts in MXFP4 play no part where an architecture may have them. Nothing if layers are floats. Throws Error
/// (kMismatch), which names a tensor, where no two formats hold all.
std::optional<QuantizationConfig> find_gguf_quantization(const GgufFile& file, bool mxfp4_experts);

}  // namespace soliton
