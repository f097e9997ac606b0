// soliton-chat at a terminal: a message or a command at a time.
#pragma once

#include <string>

#include "runtime/chat/line_reader.h"
#include "runtime/chat/session.h"

namespace soliton {

class Repl {
 public:
  /// Both must outlive it; catch_interrupts() must have been called.
  Repl(Session& session, LineReader& reader) : session_(session), reader_(reader) {}

  /// Until the user ends it. Throws Error if the device fails, or by a defect of ours; other errors are shown
  /// as one line and change nothing.
  void run();

 private:
  bool step();
  bool obey(const std::string& line);
  void answer(const std::function<Answer(const Session::OnText&, const Session::OnRead&)>& ask);

  Session& session_;
  LineReader& reader_;
};

}  // namespace soliton
