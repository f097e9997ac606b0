"""Asks a server on this machine, of the small model of the tests, for responses by OpenAI's official client: argument PORT.

Ends with 77, and says why, where the client is not installed.
"""

import sys

try:
    import openai
    from pydantic import BaseModel, Field
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)

ADD = {"type": "function", "name": "add", "strict": False, "parameters": {
    "type": "object", "properties": {"a": {"type": "integer", "minimum": 10, "maximum": 99}}, "required": ["a"]}}


class Age(BaseModel):
    years: int = Field(ge=10, le=99)


def check(condition, *what):
    if not condition:
        raise AssertionError(what)


def main(port):
    client = openai.OpenAI(base_url=f"http://127.0.0.1:{port}/v1", api_key="none", max_retries=0)
    options = {"model": "small", "temperature": 0, "max_output_tokens": 16}
    whole = client.responses.create(input="hello", **options)
    check(whole.output_text and whole.usage.output_tokens in range(1, 17), whole)
    check(client.responses.retrieve(whole.id).output_text == whole.output_text)
    count = client.responses.input_tokens.count(input="hello", model="small")
    check(count.input_tokens == whole.usage.input_tokens, count, whole)
    events = list(client.responses.create(input="hello", stream=True, **options))
    text = "".join(event.delta for event in events if event.type == "response.output_text.delta")
    check(text == whole.output_text == events[-1].response.output_text, text, whole)
    after = client.responses.create(input="more", previous_response_id=whole.id, **options)
    check(after.usage.input_tokens > whole.usage.input_tokens, after)
    client.responses.delete(whole.id)
    try:
        client.responses.retrieve(whole.id)
        raise AssertionError("a deleted response was found")
    except openai.NotFoundError:
        pass

    options["max_output_tokens"] = 100
    parsed = client.responses.parse(input="hello", text_format=Age, **options)
    check(parsed.output_parsed.years in range(10, 100), parsed)
    with client.responses.stream(input="hello", text_format=Age, **options) as stream:
        text = "".join(event.delta for event in stream if event.type == "response.output_text.delta")
        check(stream.get_final_response().output_parsed == parsed.output_parsed, text)
    check(text == parsed.output_text, text)
    called = client.responses.create(
        input="hello", tools=[ADD], tool_choice="required", parallel_tool_calls=False, **options)
    check(called.output[0].type == "function_call", called)
    output = {"type": "function_call_output", "call_id": called.output[0].call_id, "output": "3"}
    items = [{"role": "user", "content": "hello"}] + [item.model_dump() for item in called.output] + [output]
    check(client.responses.create(input=items, tools=[ADD], tool_choice="none", **options).output_text)
    try:
        client.responses.create(input="hello", tools=[{"type": "web_search"}], model="small")
        raise AssertionError("a tool of OpenAI's own was taken")
    except openai.BadRequestError as error:
        check("tools[0].type" in str(error), error)


main(int(sys.argv[1]))
