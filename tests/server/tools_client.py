"""Has functions called by a server on this machine, of the small model of the tests: argument PORT.

By the official client, and by LangChain's where it is installed, as agents do. Ends with 77, and says why, where the official
client is not installed.
"""

import sys

try:
    import openai
    from pydantic import BaseModel, Field
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)


class add(BaseModel):
    """adds"""

    a: int = Field(ge=10, le=99)
    b: bool


MESSAGES = [{"role": "user", "content": "x"}]


def check(condition, *what):
    if not condition:
        raise AssertionError(what)


def by_openai(url):
    client = openai.OpenAI(base_url=url, api_key="none", max_retries=0)
    options = {"model": "small", "messages": MESSAGES, "max_tokens": 120, "temperature": 0,
               "tools": [openai.pydantic_function_tool(add, name="add")], "parallel_tool_calls": False}
    for choice in ["required", {"type": "function", "function": {"name": "add"}}]:
        message = client.chat.completions.create(tool_choice=choice, **options).choices[0].message
        check(len(message.tool_calls) == 1, message)
        add.model_validate_json(message.tool_calls[0].function.arguments)
    parsed = client.chat.completions.parse(tool_choice="required", **options).choices[0].message
    check(isinstance(parsed.tool_calls[0].function.parsed_arguments, add), parsed)
    with client.chat.completions.stream(tool_choice="required", **options) as stream:
        for _ in stream:
            pass
        whole = stream.get_final_completion().choices[0]
    check(whole.finish_reason == "tool_calls", whole)
    call = {"role": "assistant", "content": None, "tool_calls": [parsed.tool_calls[0].model_dump(include={"id", "type", "function"})]}
    call["tool_calls"][0]["function"].pop("parsed_arguments", None)
    options["messages"] = MESSAGES + [call, {"role": "tool", "tool_call_id": parsed.tool_calls[0].id, "content": "2"}]
    check(client.chat.completions.create(tool_choice="none", **options).choices[0].message.tool_calls is None)


def by_langchain(url):
    try:
        from langchain_openai import ChatOpenAI
    except ImportError:
        return
    model = ChatOpenAI(model="small", base_url=url, api_key="none", max_retries=0, temperature=0, max_tokens=120)
    answer = model.with_structured_output(add, method="function_calling").invoke("x")
    check(isinstance(answer, add), answer)
    required = model.bind_tools([add], tool_choice="any", parallel_tool_calls=False).invoke("x")
    check([call["name"] for call in required.tool_calls] == ["add"], required)


def main(port):
    url = f"http://127.0.0.1:{port}/v1"
    by_openai(url)
    by_langchain(url)


main(int(sys.argv[1]))
