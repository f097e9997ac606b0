// How soliton-chat speaks: answers on stdout, all else on stderr, colours only where they are wanted.
#pragma once

#include <cstdio>
#include <span>
#include <string>
#include <string_view>

#include "runtime/answer/timing.h"
#include "runtime/text/tokenizer.h"

namespace soliton {

/// Whether the file is a terminal that shows colours, and NO_COLOR does not forbid them.
bool shows_colours(int fd);

/// Text as a terminal may be given it: what would drive it, such as an escape, is written as \xNN; line ends
/// and tabs stay.
std::string for_terminal(std::string_view text);

/// Whether an answer is to go on: no Ctrl-C, and stdout has taken what there is of it.
bool wants_answer();

/// Said of an answer that Ctrl-C has ended.
inline constexpr std::string_view kStoppedNote = "[ stopped ]";

/// Writes text of an answer to stdout at once.
void print_answer(std::string_view text);
/// The same of what stands before it, which is dimmed; stdout shows colours.
void print_reasoning(std::string_view text);
/// Writes a line to stderr, dimmed if it shows colours.
void print_note(std::string_view line);

/// Notes each token's logprob and text.
void print_logprobs(const Tokenizer& tokenizer, std::span<const int32_t> tokens,
                    std::span<const float> logprobs);

/// What is said of an answer: "[ Prompt: ... t/s | Generation: ... t/s ]" with the remark at its end.
std::string statistics(const Timing& timing, std::string_view remark = {});

}  // namespace soliton
