// Whether a device is a card that somebody has written down.
#pragma once

#include <string_view>

namespace soliton {

/// Whether a device that the driver calls `device` is called after the card: "h200" and "NVIDIA H200", "a100-40" and
/// "NVIDIA A100-SXM4-40GB", but not "h200" and "NVIDIA GH200". Cards of more words may be too: "rtx-3060" and
/// "RTX 3060 Ti".
bool is_called(std::string_view device, std::string_view card);

}  // namespace soliton
