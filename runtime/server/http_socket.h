// What is asked of a connection's socket before it is served.
#pragma once

#include <boost/asio.hpp>
#include <string>

namespace soliton {

/// Whose limits count: an address, or a whole network of IPv6, of 64 bits, as one client has it.
std::string client_of(const boost::asio::ip::address& address);

/// Nobody takes all of the system's memory for what he does not read, and one whose machine is gone is noticed at last.
void set_up(boost::asio::ip::tcp::socket& socket);

}  // namespace soliton
