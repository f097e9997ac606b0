#!/usr/bin/env python3
"""Makes the golden beams that tests/chat/beam_search_test.cc and tests/cli hold soliton-chat --beams to.

transformers' generate() in float32 on the CPU, early_stopping at False:

    make_beams.py models/tiny-stories > tests/goldens/tiny-stories-beams.json
    make_beams.py models/tiny-stories-experts > tests/goldens/tiny-stories-experts-beams.json
"""

import json
import sys

import torch
import transformers

torch.set_num_threads(1)

PROMPTS = ["Once upon a time", "The little fox wanted to", "Mia was sad because"]
# Beams, length penalty, tokens at most, what ends a beam in place of the end of the text.
SEARCHES = [(2, 1.0, 24, []), (4, 1.0, 40, ["."]), (8, 0.0, 20, []), (4, -2.0, 40, [".", ","]), (3, 2.0, 32, ["."]),
            (4, 0.0, 40, [".", ",", "!"]), (3, 2.0, 120, []), (4, 0.5, 160, [])]


def main():
    folder = sys.argv[1]
    model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    cases = []
    for number, (beams, penalty, max_tokens, stops) in enumerate(SEARCHES):
        prompt = tokenizer(PROMPTS[number % len(PROMPTS)], return_tensors="pt").input_ids
        ends = [tokenizer.convert_tokens_to_ids(stop) for stop in stops] or [model.generation_config.eos_token_id]
        with torch.no_grad():
            result = model.generate(prompt, attention_mask=torch.ones_like(prompt), num_beams=beams, num_return_sequences=beams, length_penalty=penalty,
                                    max_new_tokens=max_tokens, eos_token_id=ends, pad_token_id=0,
                                    do_sample=False, early_stopping=False,
                                    return_dict_in_generate=True, output_scores=True)
        answers = []
        for tokens, score in zip(result.sequences.tolist(), result.sequences_scores.tolist()):
            tokens = tokens[prompt.shape[1]:]
            at = min((tokens.index(end) for end in ends if end in tokens), default=len(tokens))
            tokens = tokens[:at + 1]  # what follows is padding
            answers.append({"tokens": tokens, "score": score})
        cases.append({"prompt": PROMPTS[number % len(PROMPTS)], "prompt_tokens": prompt[0].tolist(),
                      "num_beams": beams, "length_penalty": penalty, "max_tokens": max_tokens, "stop_tokens": ends, "beams": answers})
    versions = f"transformers {transformers.__version__}, torch {torch.__version__.split('+')[0]}"
    print(json.dumps({"made_with": versions, "cases": cases}))


if __name__ == "__main__":
    main()
