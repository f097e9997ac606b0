// What a user's environment says of the hub, by the variables that Hugging Face's own programs know.
#pragma once

#include <string>

namespace soliton::hub {

struct Settings {
  std::string endpoint;     // HF_ENDPOINT, else that of Hugging Face; without a slash at its end
  std::string token;        // empty: none
  bool is_offline = false;  // HF_HUB_OFFLINE or TRANSFORMERS_OFFLINE
};

/// The token is that of HF_TOKEN, else of the file that `hf auth login` writes (HF_TOKEN_PATH, or token in HF_HOME), which
/// HF_HUB_DISABLE_IMPLICIT_TOKEN leaves out. Throws Error (kUsage) if HF_ENDPOINT is no address, or if the token has other
/// characters than a header can carry.
Settings read_settings();

}  // namespace soliton::hub
