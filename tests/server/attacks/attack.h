// What attackers send, read from the tables beside this file. A text is a list of parts: a string, {"bytes": "00ff"}, or
// {"text": TEXT, "times": N, "between": ","}, in which {i} stands for the number of the repetition and {i+1} for the next;
// in all of it {c} is the number of the connection.
//
//   post and body, or raw   what each connection sends; headers: further ones
//   connections, holds      how many there are at once, and for how many seconds they stay after they have sent
//   half_closes             whether they say that nothing follows
//   reads, status           how many answers each reads, and what they may be
//   seconds, megabytes      what it may take the server, beside what every attack may; is_long: only in long runs
#pragma once

#include <fstream>
#include <nlohmann/json.hpp>
#include <ostream>
#include <set>
#include <string>
#include <vector>

namespace soliton {

struct Attack {
  std::string name;
  nlohmann::json table = {};

  int connections() const { return table.value("connections", 1); }
  double holds_s() const { return table.value("holds", 0.0); }
  bool half_closes() const { return table.value("half_closes", false); }
  int reads() const { return table.value("reads", 1); }
  std::set<int> status() const { return table.value("status", std::set<int>()); }
  double seconds() const { return table.value("seconds", 0.2); }
  int megabytes() const { return table.value("megabytes", 128); }
  /// Whether connections send different texts.
  bool differs() const { return table.dump().find("{c}") != std::string::npos; }
  bool is_long() const { return table.value("is_long", false); }

  /// What one of the connections sends.
  std::string text(int connection) const {
    std::string sent;
    if (table.contains("raw")) {
      sent = text_of(table["raw"], 0);
    } else {
      const std::string body = replaced(text_of(table["body"], 0), "{c}", connection);
      sent = "POST " + table["post"].get<std::string>() + " HTTP/1.1\r\nHost: localhost\r\n" +
             table.value("headers", "") + "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" +
             body;
    }
    return replaced(std::move(sent), "{c}", connection);
  }

  /// All of the tables.
  static std::vector<Attack> all() {
    std::vector<Attack> attacks;
    for (const char* file : {"bodies", "grammars", "requests", "connections"}) {
      std::ifstream stream(std::string(SOLITON_SOURCE_DIR) + "/tests/server/attacks/" + file + ".json");
      for (const nlohmann::json& table : nlohmann::json::parse(stream))
        attacks.push_back({.name = table["name"], .table = table});
    }
    return attacks;
  }

 private:
  static std::string replaced(std::string text, const std::string& sign, int number) {
    const std::string digits = std::to_string(number);
    for (size_t at = 0; (at = text.find(sign, at)) != std::string::npos; at += digits.size())
      text.replace(at, sign.size(), digits);
    return text;
  }
  static std::string text_of(const nlohmann::json& parts, int number) {
    if (parts.is_string()) return replaced(replaced(parts, "{i}", number), "{i+1}", number + 1);
    std::string text;
    if (parts.is_array()) {
      for (const nlohmann::json& part : parts) text += text_of(part, number);
    } else if (parts.contains("bytes")) {
      const std::string digits = parts["bytes"];
      for (size_t i = 0; i < digits.size(); i += 2)
        text += static_cast<char>(std::stoi(digits.substr(i, 2), nullptr, 16));
    } else {
      const int times = parts["times"];
      const std::string between = parts.value("between", "");
      const bool is_always_same = parts["text"].dump().find("{i") == std::string::npos;
      const std::string first = text_of(parts["text"], 0);
      for (int i = 0; i < times; ++i) {
        if (i > 0) text += between;
        text += is_always_same ? first : text_of(parts["text"], i);
      }
    }
    return text;
  }
};

inline void PrintTo(const Attack& attack, std::ostream* stream) {
  *stream << attack.name << " (" << attack.table.value("of", "") << ")";
}

}  // namespace soliton
