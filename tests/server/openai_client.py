"""Asks a server on this machine, of the small model of the tests, by the official client: argument PORT.

Ends with 77, and says why, where the client is not installed.
"""

import sys

try:
    import openai
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)


def check(condition, *what):
    if not condition:
        raise AssertionError(what)


def main(port):
    client = openai.OpenAI(base_url=f"http://127.0.0.1:{port}/v1", api_key="none", max_retries=0)
    model = client.models.list().data[0].id
    check(client.models.retrieve(model).id == model)
    messages = [{"role": "user", "content": "hello"}]

    whole = client.chat.completions.create(
        model=model, messages=messages, max_tokens=12, temperature=0, logprobs=True, top_logprobs=2)
    choice = whole.choices[0]
    check(whole.usage.completion_tokens in range(1, 13), whole.usage)
    check(whole.usage.prompt_tokens == len("user: hello\nassistant:"), whole.usage)
    check(len(choice.logprobs.content[0].top_logprobs) == 2, choice.logprobs)

    text, usage = "", None
    for chunk in client.chat.completions.create(
            model=model, messages=messages, max_tokens=12, temperature=0, stream=True,
            stream_options={"include_usage": True}):
        if chunk.choices:
            text += chunk.choices[0].delta.content or ""
        usage = chunk.usage or usage
    check(text == choice.message.content, text, choice.message.content)
    check(usage.completion_tokens == whole.usage.completion_tokens, usage)

    def samples(seed):
        answer = client.chat.completions.create(
            model=model, messages=messages, max_tokens=8, temperature=1, n=3, seed=seed)
        return [each.message.content for each in answer.choices]

    check(len(set(samples(5))) == 3 and samples(5) == samples(5), samples(5))

    completion = client.completions.create(
        model=model, prompt="abc", max_tokens=20, temperature=0, extra_body={"ignore_eos": True})
    stop = completion.choices[0].text[4:6]
    cut = client.completions.create(model=model, prompt="abc", max_tokens=20, temperature=0, stop=stop)
    check(cut.choices[0].finish_reason == "stop" and stop not in cut.choices[0].text, cut)

    function = {"name": "add", "parameters": {"type": "object", "properties": {}}}
    tools = client.chat.completions.create(
        model=model, messages=messages, max_tokens=2, tools=[{"type": "function", "function": function}])
    check(tools.usage.prompt_tokens == whole.usage.prompt_tokens + len("add\n"), tools.usage)

    schema = {"type": "integer", "minimum": 10, "maximum": 99}
    of_schema = client.chat.completions.create(
        model=model, messages=messages, max_tokens=9, temperature=0,
        response_format={"type": "json_schema", "json_schema": {"name": "age", "strict": True, "schema": schema}})
    check(int(of_schema.choices[0].message.content) in range(10, 100), of_schema)

    try:
        client.chat.completions.create(model=model, messages=messages, temperature=200)
        raise AssertionError("temperature 200 was taken")
    except openai.BadRequestError as error:
        check(error.param == "temperature" or "temperature" in str(error), error)


main(int(sys.argv[1]))
