// libedit knows signals too, but ends a line only at the second of them and passes them on to the whole
// process group; so characters are read here.
#include "runtime/chat/line_reader.h"

#include <histedit.h>
#include <langinfo.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <clocale>
#include <csignal>
#include <cstdio>
#include <optional>
#include <string_view>
#include <utility>

#include "models/error.h"
#include "models/printing.h"
#include "runtime/chat/console.h"
#include "runtime/chat/history_file.h"
#include "runtime/chat/interrupt.h"
#include "runtime/text/tokenizer/utf8.h"

namespace soliton {
namespace {

constexpr char kEscapeMark = '\1';  // surrounds what takes no column in a prompt

/// A signal kept from coming, but for the time of wait_for_input().
class BlockedSignals {
 public:
  BlockedSignals() {
    sigset_t signals;
    sigemptyset(&signals);
    for (const int number : {SIGINT, SIGWINCH, SIGCONT}) sigaddset(&signals, number);
    ::pthread_sigmask(SIG_BLOCK, &signals, &before_);
  }
  BlockedSignals(const BlockedSignals&) = delete;
  BlockedSignals& operator=(const BlockedSignals&) = delete;
  ~BlockedSignals() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

  /// False if a signal came first, whenever it did.
  bool wait_for_input() const {
    pollfd input{.fd = STDIN_FILENO, .events = POLLIN, .revents = 0};
    return ::ppoll(&input, 1, nullptr, &before_) >= 0 || errno != EINTR;
  }

 private:
  sigset_t before_;
};

enum class ByteEnd { kByte, kEndOfInput, kInterrupted, kSignal };

/// The next byte of stdin; kSignal after another signal than an interrupt.
ByteEnd read_byte(char& byte) {
  const BlockedSignals blocked;
  if (interrupted()) return ByteEnd::kInterrupted;
  if (!blocked.wait_for_input()) return interrupted() ? ByteEnd::kInterrupted : ByteEnd::kSignal;
  const ssize_t got = ::read(STDIN_FILENO, &byte, 1);
  if (got < 0 && errno == EINTR) return ByteEnd::kSignal;
  return got == 1 ? ByteEnd::kByte : ByteEnd::kEndOfInput;  // a terminal that is gone is an end too
}

/// libedit knows the width of characters by the locale alone.
void choose_utf8() {
  std::setlocale(LC_CTYPE, "");
  if (std::string_view(::nl_langinfo(CODESET)) != "UTF-8") std::setlocale(LC_CTYPE, "C.UTF-8");
}

}  // namespace

struct LineReader::Editor {
  explicit Editor(const std::filesystem::path& history_path);
  Editor(const Editor&) = delete;
  Editor& operator=(const Editor&) = delete;
  ~Editor();

  static char* show_prompt(EditLine* line) { return of(line).prompt.data(); }
  static int read_character(EditLine* line, wchar_t* character);
  static Editor& of(EditLine* line);
  void follow_signals();
  void remember(const std::string& text);
  void remember_for_this_chat(const std::string& text);

  EditLine* line;
  History* history;
  std::optional<HistoryFile> history_file;
  std::string prompt;
  std::string bytes;                            // read, but no whole character yet
  std::optional<std::string> interrupted_text;  // what stood in the line
};

LineReader::Editor::Editor(const std::filesystem::path& history_path)
    : line(::el_init("soliton-chat", stdin, stderr, stderr)), history(::history_init()) {
  if (line == nullptr || history == nullptr) {
    throw Error(ExitCode::kNotFound, "stdin: expected a terminal to edit lines at, got an error");
  }
  HistEvent event;
  ::history(history, &event, H_SETSIZE, kHistoryLines);
  ::history(history, &event, H_SETUNIQUE, 1);
  ::el_set(line, EL_CLIENTDATA, this);
  ::el_set(line, EL_PROMPT_ESC, &show_prompt, kEscapeMark);
  ::el_set(line, EL_GETCFN, &read_character);
  ::el_set(line, EL_EDITOR, "emacs");
  ::el_set(line, EL_HIST, ::history, history);
  ::el_set(line, EL_BIND, "^R", "em-inc-search-prev", nullptr);
  ::el_set(line, EL_BIND, "^I", "ed-insert", nullptr);  // code is pasted with its tabs
  ::el_source(line, nullptr);                           // ~/.editrc
  int edits = 0;
  ::el_get(line, EL_EDITMODE, &edits);
  // The mode that libedit leaves between lines: else the terminal would mix what is typed with answers.
  if (edits != 0) ::el_set(line, EL_SETTY, "-x", "-icanon", "-echo", nullptr);
  if (history_path.empty()) return;
  history_file.emplace(history_path);
  for (const std::string& text : history_file->lines()) remember_for_this_chat(text);
}

LineReader::Editor::~Editor() {
  ::history_end(history);
  ::el_end(line);
}

void LineReader::Editor::remember_for_this_chat(const std::string& text) {
  HistEvent event;
  ::history(history, &event, H_ENTER, text.c_str());
}

/// For the arrow keys, in this chat and later ones.
void LineReader::Editor::remember(const std::string& text) {
  if (text.empty()) return;
  remember_for_this_chat(text);
  if (!history_file) return;
  const std::error_code failure = history_file->append(tokenization::valid_utf8(text));
  if (!failure) return;
  print_note(fmt::format("{}: lines are not kept for later chats: {}", history_file->path().string(),
                         failure.message()));
  history_file.reset();
}

LineReader::Editor& LineReader::Editor::of(EditLine* line) {
  void* editor = nullptr;
  ::el_get(line, EL_CLIENTDATA, &editor);
  return *static_cast<Editor*>(editor);
}

/// As libedit asks for it: 1 and a character, 0 at the end of input, -1 if the line is given up.
int LineReader::Editor::read_character(EditLine* line, wchar_t* character) {
  Editor& editor = of(line);
  while (true) {
    if (!editor.bytes.empty()) {
      const tokenization::Utf8Step step = tokenization::utf8_step(editor.bytes);
      if (step.kind != tokenization::Utf8Step::kIncomplete) {
        const std::string taken = tokenization::valid_utf8(editor.bytes.substr(0, step.length));
        *character = static_cast<wchar_t>(tokenization::first_character(taken).code);
        editor.bytes.erase(0, step.length);
        return 1;
      }
    }
    char byte = 0;
    const ByteEnd end = read_byte(byte);
    if (end == ByteEnd::kByte) editor.bytes += byte;
    if (end == ByteEnd::kSignal) editor.follow_signals();
    if (end == ByteEnd::kEndOfInput) return 0;
    if (end == ByteEnd::kInterrupted) {
      const LineInfo* const info = ::el_line(line);
      editor.interrupted_text.emplace(info->buffer, info->lastchar);
      editor.bytes.clear();
      return -1;
    }
  }
}

/// The window has another size, or the program has been in the background.
void LineReader::Editor::follow_signals() {
  if (was_resized()) ::el_resize(line);
  if (was_continued()) {
    ::el_set(line, EL_PREP_TERM, 0);
    ::el_set(line, EL_PREP_TERM, 1);
    ::el_set(line, EL_REFRESH);
  }
}

LineReader::LineReader(const std::filesystem::path& history_path) {
  choose_utf8();
  if (::isatty(STDERR_FILENO) != 1) {
    mode_.show_typed(false);
    return;
  }
  editor_ = std::make_unique<Editor>(history_path);
  mode_.keep_for_answers();
}

LineReader::~LineReader() = default;

LineReader::Line LineReader::read(const std::string& prompt) {
  Line line = editor_ ? edit(prompt) : read_plain();
  line.text = tokenization::valid_utf8(std::move(line.text));
  return line;
}

LineReader::Line LineReader::edit(const std::string& prompt) {
  // libedit shows an escape together with the character behind it: one at the very end is lost.
  const auto escape = [](const char* text) { return kEscapeMark + std::string(text) + kEscapeMark; };
  const bool colours = shows_colours(STDERR_FILENO);
  editor_->prompt = colours ? escape("\x1b[1m") + prompt + escape("\x1b[0m") + " " : prompt + " ";
  editor_->interrupted_text.reset();
  // Otherwise the prompt is shown first, and what is typed just then twice.
  ::el_set(editor_->line, EL_PREP_TERM, 1);
  int num_bytes = 0;
  const char* const typed = ::el_gets(editor_->line, &num_bytes);
  if (typed == nullptr) {
    say_line("");
    if (editor_->interrupted_text) return {End::kInterrupted, *editor_->interrupted_text};
    return {End::kEndOfInput, {}};
  }
  std::string text = typed;
  if (text.ends_with('\n')) text.pop_back();
  editor_->remember(text);
  return {End::kLine, std::move(text)};
}

LineReader::Line LineReader::read_plain() {
  mode_.show_typed(true);
  Line line = read_shown();
  mode_.show_typed(false);
  return line;
}

LineReader::Line LineReader::read_shown() {
  std::string text;
  while (true) {
    char byte = 0;
    const ByteEnd end = read_byte(byte);
    if (end == ByteEnd::kInterrupted) return {End::kInterrupted, std::move(text)};
    if (end == ByteEnd::kEndOfInput) return {text.empty() ? End::kEndOfInput : End::kLine, std::move(text)};
    if (end == ByteEnd::kByte && byte == '\n') return {End::kLine, std::move(text)};
    if (end == ByteEnd::kByte) text += byte;
  }
}

}  // namespace soliton
