"""Asks a server on this machine, of the small model of the tests, through LiteLLM, by each API that it speaks: argument PORT.

Ends with 77, and says why, where it is not installed.
"""

import os
import sys

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # no network
try:
    import litellm
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)

MESSAGES = [{"role": "user", "content": "hello"}]


def check(condition, *what):
    if not condition:
        raise AssertionError(what)


def main(port):
    litellm.telemetry = False
    litellm.suppress_debug_info = True
    url = f"http://127.0.0.1:{port}"
    texts = set()
    for model, base in [("openai/small", url + "/v1"), ("anthropic/small", url), ("ollama_chat/small", url)]:
        options = {"model": model, "api_base": base, "api_key": "none", "messages": MESSAGES, "max_tokens": 12,
                   "temperature": 0, "num_retries": 0}
        whole = litellm.completion(**options)
        text = whole.choices[0].message.content
        check(text, model, whole)
        texts.add(text)
        chunks = litellm.completion(stream=True, **options)
        check("".join(chunk.choices[0].delta.content or "" for chunk in chunks) == text, model, text)
    check(len(texts) == 1, texts)


main(int(sys.argv[1]))
