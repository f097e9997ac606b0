"""Asks a server on this machine, of the small model of the tests, by Ollama's official client: argument PORT.

Ends with 77, and says why, where the client is not installed.
"""

import json
import sys

try:
    import ollama
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)

MESSAGES = [{"role": "user", "content": "hello"}]
ADD = {"type": "function", "function": {"name": "add", "description": "adds", "parameters": {
    "type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}}}


def check(condition, *what):
    if not condition:
        raise AssertionError(what)


def main(port):
    client = ollama.Client(host=f"http://127.0.0.1:{port}")
    check(client.list().models[0].model == "small")
    check(client.ps().models[0].model == "small")
    check("tools" in client.show("small").capabilities)
    options = {"num_predict": 12, "temperature": 0}
    whole = client.chat(model="small", messages=MESSAGES, options=options)
    check(whole.message.content and whole.done and whole.eval_count in range(1, 13), whole)
    pieces = list(client.chat(model="small", messages=MESSAGES, options=options, stream=True))
    check("".join(piece.message.content for piece in pieces) == whole.message.content, pieces)
    check(pieces[-1].done and pieces[-1].eval_count == whole.eval_count, pieces)
    check(client.generate(model="small", prompt="hello", options=options).response == whole.message.content)

    options["num_predict"] = 100
    schema = {"type": "integer", "minimum": 10, "maximum": 99}
    of_schema = client.chat(model="small", messages=MESSAGES, format=schema, options=options)
    check(json.loads(of_schema.message.content) in range(10, 100), of_schema)
    turns = MESSAGES + [
        {"role": "assistant", "content": "", "tool_calls": [{"function": {"name": "add", "arguments": {"a": 1}}}]},
        {"role": "tool", "tool_name": "add", "content": "3"}]
    check(client.chat(model="small", messages=turns, tools=[ADD], options=options).done)
    try:
        client.chat(model="small", messages=MESSAGES, options={"num_predict": 100000})
        raise AssertionError("100000 tokens were taken")
    except ollama.ResponseError as error:
        check(error.status_code == 400 and "context" in error.error, error)


main(int(sys.argv[1]))
