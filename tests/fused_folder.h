// Checkpoints of which several linear layers stand in one tensor: q, k and v, and gate and up, as Phi-3's do, or those of all
// experts.
#pragma once

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/weights/safetensors.h"

namespace soliton {

struct OwnedTensor {
  std::string dtype;
  std::vector<int64_t> shape;
  std::string bytes;
};

/// One tensor of the rows of several. Outputs are the last extent of what GPTQ writes, the first one of all else; the
/// groups of inputs are alike.
inline OwnedTensor joined(std::string_view kind, const std::vector<const Tensor*>& parts) {
  OwnedTensor all{std::string(dtype_name(parts[0]->dtype)), parts[0]->shape, {}};
  const auto bytes_of = [](const Tensor& tensor) {
    return std::string_view(reinterpret_cast<const char*>(tensor.data.data()), tensor.data.size());
  };
  if (kind == "g_idx") {
    all.bytes = bytes_of(*parts[0]);
    return all;
  }
  const bool is_last = kind == "qweight" || kind == "qzeros" || kind == "scales";
  const size_t axis = is_last ? 1 : 0;
  all.shape[axis] = 0;
  for (const Tensor* part : parts) all.shape[axis] += part->shape[axis];
  const auto num_lines = static_cast<size_t>(is_last ? all.shape[0] : 1);
  for (size_t line = 0; line < num_lines; ++line) {
    for (const Tensor* part : parts) {
      const size_t length = part->data.size() / num_lines;
      all.bytes += bytes_of(*part).substr(line * length, length);
    }
  }
  return all;
}

inline void write_tensors(const std::filesystem::path& folder,
                          const std::map<std::string, OwnedTensor>& tensors) {
  nlohmann::json header;
  size_t end = 0;
  for (const auto& [name, tensor] : tensors) {
    header[name] = {
        {"dtype", tensor.dtype}, {"shape", tensor.shape}, {"data_offsets", {end, end + tensor.bytes.size()}}};
    end += tensor.bytes.size();
  }
  const std::string text = header.dump();
  const uint64_t length = text.size();
  std::ofstream file(folder / "model.safetensors", std::ios::binary);
  file.write(reinterpret_cast<const char*>(&length), sizeof length);
  file << text;
  for (const auto& [name, tensor] : tensors) file << tensor.bytes;
}

/// Rewrites the folder of write_hf_folder() as transformers 5 holds experts: of a layer all of gate and up in one tensor
/// [experts][2 widths][hidden], all of down in another.
inline void fuse_experts(const std::filesystem::path& folder) {
  std::map<std::string, OwnedTensor> tensors;
  {
    const TensorSource source = TensorSource::open(folder);
    for (const std::string_view view : source.names()) {
      const std::string name(view);
      const size_t at = name.find(".experts.");
      if (at == std::string::npos) {
        tensors[name] = joined("", {source.find(name)});
        continue;
      }
      if (!name.ends_with(".0.gate_proj.weight")) continue;
      const std::string prefix = name.substr(0, at) + ".experts.";
      std::vector<const Tensor*> gate_up;
      std::vector<const Tensor*> down;
      for (int64_t expert = 0;; ++expert) {
        const auto find = [&](const char* layer) {
          return source.find(prefix + std::to_string(expert) + "." + layer + ".weight");
        };
        if (find("gate_proj") == nullptr) break;
        gate_up.insert(gate_up.end(), {find("gate_proj"), find("up_proj")});
        down.push_back(find("down_proj"));
      }
      const auto count = static_cast<int64_t>(down.size());
      for (const auto& [layer, parts] : {std::pair("gate_up_proj", gate_up), std::pair("down_proj", down)}) {
        OwnedTensor all = joined("", parts);
        all.shape = {count, all.shape[0] / count, all.shape[1]};
        tensors[prefix + layer] = std::move(all);
      }
    }
  }
  write_tensors(folder, tensors);
}

/// By name within a layer of the model: a tensor, and the linear layers whose rows it has one after another.
using FusedNames = std::map<std::string, std::vector<std::string>>;

/// Rewrites the folder of write_hf_folder() with such tensors.
inline void fuse_layers(const std::filesystem::path& folder, const FusedNames& fused) {
  std::map<std::string, OwnedTensor> tensors;
  {
    const TensorSource source = TensorSource::open(folder);
    std::map<std::string, std::map<std::string, const Tensor*>> stacks;  // by fused name, then the part's
    for (const std::string_view view : source.names()) {
      const std::string name(view);
      bool is_part = false;
      for (const auto& [whole, parts] : fused) {
        for (size_t i = 0; i < parts.size(); ++i) {
          const size_t at = name.find(parts[i] + ".");
          if (at == std::string::npos) continue;
          const std::string kind = name.substr(at + parts[i].size() + 1);
          stacks[name.substr(0, at) + whole + "." + kind][std::to_string(i)] = source.find(name);
          is_part = true;
        }
      }
      if (!is_part) tensors[name] = joined("", {source.find(name)});
    }
    for (const auto& [name, parts] : stacks) {
      std::vector<const Tensor*> list;
      for (const auto& [index, tensor] : parts) list.push_back(tensor);
      tensors[name] = joined(name.substr(name.rfind('.') + 1), list);
    }
  }
  write_tensors(folder, tensors);
}

/// A member that is null is removed.
inline void change_config(const std::filesystem::path& folder, const nlohmann::json& members) {
  std::ifstream stream(folder / "config.json");
  nlohmann::json config = nlohmann::json::parse(stream);
  stream.close();
  config.merge_patch(members);
  std::ofstream(folder / "config.json") << config.dump(2);
}

/// Rewrites the folder of write_hf_folder() as one of Phi3ForCausalLM with the same weights.
inline void fuse_projections(const std::filesystem::path& folder) {
  fuse_layers(folder, {{"self_attn.qkv_proj", {"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"}},
                       {"mlp.gate_up_proj", {"mlp.gate_proj", "mlp.up_proj"}}});
  change_config(folder, {{"architectures", {"Phi3ForCausalLM"}}, {"model_type", "phi3"}});
}

/// Rewrites a folder of GraniteForCausalLM as one of GraniteMoeHybridForCausalLM with the same weights.
inline void fuse_granite(const std::filesystem::path& folder) {
  fuse_layers(folder, {{"shared_mlp.input_linear", {"mlp.gate_proj", "mlp.up_proj"}},
                       {"shared_mlp.output_linear", {"mlp.down_proj"}}});
  std::ifstream stream(folder / "config.json");
  const nlohmann::json config = nlohmann::json::parse(stream);
  change_config(folder, {{"architectures", {"GraniteMoeHybridForCausalLM"}},
                         {"model_type", "granitemoehybrid"},
                         {"intermediate_size", nullptr},
                         {"shared_intermediate_size", config.at("intermediate_size")},
                         {"num_local_experts", 0},
                         {"position_embedding_type", "rope"}});
}

}  // namespace soliton
