"""Lets a server on this machine call a function and go on with its result, in each API by its official client: argument PORT.

The model calls by itself, see calling_test.cc. Ends with 77, and says why, where a client is not installed.
"""

import json
import sys

try:
    import anthropic
    import ollama
    import openai
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)

PARAMETERS = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
FUNCTION = {"name": "add", "description": "adds", "parameters": PARAMETERS}
ASKED = {"role": "user", "content": "hello"}


def check(condition, *what):
    if not condition:
        raise AssertionError(what)


def by_chats(client):
    options = {"model": "small", "tools": [{"type": "function", "function": FUNCTION}]}
    message = client.chat.completions.create(messages=[ASKED], **options).choices[0].message
    call = message.tool_calls[0]
    check(json.loads(call.function.arguments) == {"a": 12} and not message.content, message)
    result = {"role": "tool", "tool_call_id": call.id, "content": "3"}
    with client.chat.completions.stream(messages=[ASKED, message, result], **options) as stream:
        check(stream.get_final_completion().choices[0].message.content == "done")
    with client.chat.completions.stream(messages=[ASKED], **options) as stream:
        streamed = stream.get_final_completion().choices[0].message.tool_calls[0].function
    check(streamed.arguments == call.function.arguments, streamed)


def by_responses(client):
    options = {"model": "small", "tools": [{"type": "function", "strict": False, **FUNCTION}]}
    first = client.responses.create(input="hello", **options)
    call = first.output[0]
    check(json.loads(call.arguments) == {"a": 12}, first)
    result = {"type": "function_call_output", "call_id": call.call_id, "output": "3"}
    after = client.responses.create(input=[result], previous_response_id=first.id, **options)
    check(after.output_text == "done", after)
    referred = client.responses.create(
        input=[ASKED, {"type": "item_reference", "id": call.id}, result], **options)
    check(referred.output_text == "done" and referred.usage.input_tokens == after.usage.input_tokens, referred)


def by_messages(client):
    tool = {"name": "add", "description": "adds", "input_schema": PARAMETERS}
    options = {"model": "small", "max_tokens": 60, "tools": [tool]}
    with client.messages.stream(messages=[ASKED], **options) as stream:
        message = stream.get_final_message()
    check(message.stop_reason == "tool_use" and message.content[-1].input == {"a": 12}, message)
    result = {"type": "tool_result", "tool_use_id": message.content[-1].id, "content": "3"}
    turns = [ASKED, {"role": "assistant", "content": message.content}, {"role": "user", "content": [result]}]
    after = client.messages.create(messages=turns, **options)
    check(after.content[0].text == "done" and after.stop_reason == "end_turn", after)


def by_ollama(client):
    options = {"model": "small", "tools": [{"type": "function", "function": FUNCTION}]}
    message = client.chat(messages=[ASKED], **options).message
    check(message.tool_calls[0].function.arguments == {"a": 12}, message)
    result = {"role": "tool", "tool_name": "add", "content": "3"}
    check(client.chat(messages=[ASKED, message, result], **options).message.content == "done")
    pieces = list(client.chat(messages=[ASKED], stream=True, **options))
    check(any(piece.message.tool_calls for piece in pieces), pieces)


def main(port):
    url = f"http://127.0.0.1:{port}"
    of_openai = openai.OpenAI(base_url=url + "/v1", api_key="none", max_retries=0)
    by_chats(of_openai)
    by_responses(of_openai)
    by_messages(anthropic.Anthropic(base_url=url, api_key="none", max_retries=0))
    by_ollama(ollama.Client(host=url))


main(int(sys.argv[1]))
