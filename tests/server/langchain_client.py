"""Asks a server on this machine, of the small model of the tests, by LangChain's ChatOpenAI: argument PORT.

Ends with 77, and says why, where LangChain is not installed.
"""

import sys

try:
    import openai
    from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
    from langchain_openai import ChatOpenAI
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)

PROMPT = "hello"


def check(condition, *what):
    if not condition:
        raise AssertionError(what)


def main(port):
    def model(**options):
        options = {"temperature": 0, "max_tokens": 12, "extra_body": {"ignore_eos": True}, **options}
        return ChatOpenAI(model="small", base_url=f"http://127.0.0.1:{port}/v1", api_key="none", max_retries=0,
                          timeout=300, **options)

    whole = model().invoke([("system", "be brief"), ("human", PROMPT)])
    check(whole.usage_metadata["input_tokens"] == len("system: be brief\nuser: hello\nassistant:"), whole)
    check(whole.usage_metadata["output_tokens"] == 12, whole)
    check(whole.response_metadata["finish_reason"] == "length", whole)

    answer = model().invoke(PROMPT)
    streamed, num_pieces = None, 0
    for piece in model(stream_usage=True).stream(PROMPT):
        num_pieces += bool(piece.content)
        streamed = piece if streamed is None else streamed + piece
    check(streamed.content == answer.content, streamed, answer)
    check(streamed.usage_metadata["output_tokens"] == 12, streamed)
    check(num_pieces > 3, num_pieces)

    prompts = [PROMPT, "the dog", "a girl"]
    check([each.content for each in model().batch(prompts)] == [model().invoke(each).content for each in prompts])

    call = {"name": "add", "args": {"a": 1}, "id": "call_1", "type": "tool_call"}
    gone_on = model().invoke([HumanMessage(PROMPT), AIMessage("", tool_calls=[call]),
                              ToolMessage("2", tool_call_id="call_1"), HumanMessage("then")])
    check(gone_on.usage_metadata["input_tokens"] == len("user: hello\nassistant: \ntool: 2\nuser: then\nassistant:"), gone_on)

    text = model(max_tokens=24).invoke(PROMPT).content
    stopped = model(max_tokens=24).invoke(PROMPT, stop=[text[10:12]])
    check(stopped.content == text[:text.index(text[10:12])], stopped, text)
    check(stopped.response_metadata["finish_reason"] == "stop", stopped)

    def samples(seed):
        generated = model(n=3, temperature=1, seed=seed).generate([[HumanMessage(PROMPT)]])
        return [each.text for each in generated.generations[0]]

    check(len(set(samples(5))) == 3 and samples(5) == samples(5) != samples(50), samples(5))

    tokens = model(logprobs=True, top_logprobs=2).invoke(PROMPT).response_metadata["logprobs"]["content"]
    text = "".join(token["token"] for token in tokens)
    check(text.replace("</s>", "") == answer.content, text, answer)  # which shows no special tokens
    check({len(token["top_logprobs"]) for token in tokens} == {2}, tokens)

    tool = {"type": "function",
            "function": {"name": "add", "description": "adds", "parameters": {"type": "object", "properties": {}}}}
    with_tools = model().bind_tools([tool]).invoke(PROMPT)
    check(with_tools.usage_metadata["input_tokens"] == len("user: hello\nadd\nassistant:"), with_tools)

    schema = {"title": "age", "description": "of somebody", "type": "integer", "minimum": 10, "maximum": 99}
    form = {"type": "json_schema", "json_schema": {"name": "age", "strict": True, "schema": schema}}
    of_schema = model(extra_body={}).bind(response_format=form).invoke(PROMPT).content
    check(int(of_schema) in range(10, 100), of_schema)

    try:
        model(frequency_penalty=2.5).invoke(PROMPT)
        raise AssertionError("a frequency_penalty of 2.5 was taken")
    except openai.BadRequestError as error:
        check(error.param == "frequency_penalty", error)


main(int(sys.argv[1]))
