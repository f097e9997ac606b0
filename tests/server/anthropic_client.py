"""Asks a server on this machine, of the small model of the tests, by Anthropic's official client: argument PORT.

Ends with 77, and says why, where the client is not installed.
"""

import sys

try:
    import anthropic
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)

MESSAGES = [{"role": "user", "content": "hello"}]
ADD = {"name": "add", "description": "adds", "input_schema": {
    "type": "object", "properties": {"a": {"type": "integer", "minimum": 10, "maximum": 99}}, "required": ["a"]}}


def check(condition, *what):
    if not condition:
        raise AssertionError(what)


def main(port):
    client = anthropic.Anthropic(base_url=f"http://127.0.0.1:{port}", api_key="none", max_retries=0)
    options = {"model": "small", "max_tokens": 12, "extra_body": {"temperature": 0}}
    whole = client.messages.create(messages=MESSAGES, **options)
    check(whole.role == "assistant" and whole.content[0].type == "text", whole)
    check(whole.usage.output_tokens in range(1, 13), whole)
    count = client.messages.count_tokens(model="small", messages=MESSAGES)
    check(count.input_tokens == whole.usage.input_tokens + whole.usage.cache_read_input_tokens, count, whole)

    with client.messages.stream(messages=MESSAGES, **options) as stream:
        text = "".join(stream.text_stream)
        final = stream.get_final_message()
    check(text == whole.content[0].text == final.content[0].text, text, whole)
    check(final.stop_reason == whole.stop_reason and final.usage.output_tokens == whole.usage.output_tokens, final)

    options["max_tokens"] = 100
    choice = {"type": "tool", "name": "add", "disable_parallel_tool_use": True}
    called = client.messages.create(messages=MESSAGES, tools=[ADD], tool_choice=choice, **options)
    use = called.content[-1]
    check(called.stop_reason == "tool_use" and use.type == "tool_use" and use.input["a"] in range(10, 100), called)
    with client.messages.stream(messages=MESSAGES, tools=[ADD], tool_choice=choice, **options) as stream:
        check(stream.get_final_message().content[-1].input == use.input, use)
    result = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": use.id, "content": "3"}]}
    turns = MESSAGES + [{"role": "assistant", "content": called.content}, result]
    after = client.messages.create(messages=turns, tools=[ADD], tool_choice={"type": "none"}, **options)
    check(after.stop_reason in ("end_turn", "max_tokens"), after)

    try:
        client.messages.create(messages=MESSAGES, model="small", max_tokens=2000)
        raise AssertionError("2000 tokens were taken")
    except anthropic.BadRequestError as error:
        check("context" in str(error), error)


main(int(sys.argv[1]))
