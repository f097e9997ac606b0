"""Has Schemathesis try what the server's openapi.json says of it: arguments PORT and the number of requests of each kind.

All its checks are on. One of them, that a request which fits the description is taken, knows what a description cannot say:
see INEXPRESSIBLE. Ends with 77, and says why, where Schemathesis is not installed.
"""

import os
import re
import subprocess
import sys
import tempfile

try:
    import schemathesis
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)

# Refusals of requests that fit their schema: of which member, and what they say.
INEXPRESSIBLE = [
    ("", r"^context: expected at most \d+ tokens"),  # of prompt and max_tokens together
    (r"prompt", r"expected tokens from 0 to \d+"),  # the vocabulary is the model's
    (r"tokens\[\d+\]", r"expected an integer in \[0, \d+\]"),
    (r"prompt", r"expected at least one token, got none"),  # a text of which the model has no token
    (r"messages", r"expected what the chat template takes"),  # a program that the model brings
    (r"regex|ebnf|structured_outputs.*|guided_\w+", ""),  # the same, and of any two one
    (r"continue_final_message", r"expected a last message of the assistant|add_generation_prompt"),
    (r"stop.*", r"expected at most \d+ bytes"),  # of which a character has up to four
    (r"json_schema|(response_format|text\.format)\..*schema", ""),  # JSON Schema of which a part is taken, see the manual
    (r"json_schema|response_format|grammar", r"expected some text that it can be"),  # by the model's tokens
    (r"grammar", ""),  # a language of its own
    (r"tools", ""),  # schemas, and what the model's tokens write of calls
    (r"tool_choice", r"expected some tools beside it"),
    (r"tool_choice\..*", r"expected the name of one of the tools"),
    (r"best_of", ""),  # at least n
    (r"input", r"expected at least one item"),  # some of which are nothing to answer
    (r"input\[.*", ""),  # items, of which each type has members of its own
    (r"logit_bias", r"expected (tokens from 0|some token to be left)"),
]


@schemathesis.check
def takes_what_is_described(ctx, response, case):
    from schemathesis.specs.openapi.checks import positive_data_acceptance
    if response.status_code == 400:
        error = response.json()["error"]
        if "param" not in error:  # of Anthropic's API or Ollama's, which do not name it
            return None
        for param, message in INEXPRESSIBLE:
            if re.fullmatch(param, error["param"] or "") and re.search(message, error["message"]):
                return None
    return positive_data_acceptance(ctx, response, case)


def main(port, number):
    here = os.path.dirname(os.path.abspath(__file__))
    with tempfile.TemporaryDirectory() as folder:
        run = subprocess.run(
            [os.path.join(os.path.dirname(sys.executable), "schemathesis"), "run", f"http://127.0.0.1:{port}/openapi.json",
             "--checks", "all", "--exclude-checks", "positive_data_acceptance", "--max-examples", number, "--seed", "1",
             # What there is none of is 501.
             "--exclude-path-regex", "/embed", "--continue-on-failure", "--request-timeout", "300", "--max-response-time", "300", "--workers", "1",
             "--no-color"],
            cwd=folder, env={**os.environ, "SCHEMATHESIS_HOOKS": "schemathesis_client", "PYTHONPATH": here, "HOME": folder})
    sys.exit(run.returncode)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
