// Where a value stands in a file that a user brought, and how, for errors about it.
#pragma once

#include <string>

namespace soliton {

struct Place {
  std::string file;  // "models/m.yaml:2", ".../config.json"
  std::string key;   // "rope.factor", "hidden_size"
  std::string got;   // "4097", "nothing"
};

}  // namespace soliton
