#include "runtime/server/http_socket.h"

#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <utility>

namespace soliton {

namespace asio = boost::asio;
using tcp = asio::ip::tcp;
using ErrorCode = boost::system::error_code;

std::string client_of(const asio::ip::address& address) {
  if (!address.is_v6()) return address.to_string();
  asio::ip::address_v6 network = address.to_v6();
  if (network.is_v4_mapped()) return asio::ip::make_address_v4(asio::ip::v4_mapped, network).to_string();
  constexpr size_t kNetworkBytes = 8;
  asio::ip::address_v6::bytes_type bytes = network.to_bytes();
  std::fill(bytes.begin() + kNetworkBytes, bytes.end(), static_cast<unsigned char>(0));
  return asio::ip::address_v6(bytes).to_string() + "/64";
}

void set_up(tcp::socket& socket) {
  constexpr int kSendBytes = 256 << 10;
  constexpr int kKeepAliveS = 30;  // of silence
  constexpr int kProbeS = 10;
  constexpr int kProbes = 3;
  ErrorCode ignored;
  socket.set_option(tcp::no_delay(true), ignored);
  socket.set_option(asio::socket_base::keep_alive(true), ignored);
  socket.set_option(asio::socket_base::send_buffer_size(kSendBytes), ignored);
  for (const auto& [name, value] :
       {std::pair(TCP_KEEPIDLE, kKeepAliveS), {TCP_KEEPINTVL, kProbeS}, {TCP_KEEPCNT, kProbes}})
    ::setsockopt(socket.native_handle(), IPPROTO_TCP, name, &value, sizeof(value));
}

}  // namespace soliton
