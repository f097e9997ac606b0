"""Has agents of other libraries ask a server on this machine, whose model calls by itself, until it is done: argument PORT.

See calling_test.cc. Ends with 77, and says why, where one of them is not installed.
"""

import asyncio
import os
import sys

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # no network
try:
    import agents
    import litellm
    import openai
    import pydantic_ai
    from langchain_core.messages import HumanMessage, ToolMessage
    from langchain_core.tools import tool
    from langchain_openai import ChatOpenAI
    from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
    from pydantic_ai.providers.openai import OpenAIProvider
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)


def check(condition, *what):
    if not condition:
        raise AssertionError(what)


def by_langchain(url):
    @tool
    def add(a: int) -> str:
        """adds"""
        return "3"

    for is_of_responses in [False, True]:
        model = ChatOpenAI(model="small", base_url=url + "/v1", api_key="none", max_retries=0,
                           use_responses_api=is_of_responses).bind_tools([add])
        called = model.invoke("hello")
        check(called.tool_calls[0]["args"] == {"a": 12}, called)
        result = ToolMessage("3", tool_call_id=called.tool_calls[0]["id"])
        check(model.invoke([HumanMessage("hello"), called, result]).text == "done", is_of_responses)


def by_litellm(url):
    function = {"name": "add", "description": "adds", "parameters": {
        "type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}}
    asked = {"role": "user", "content": "hello"}
    for model, base in [("openai/small", url + "/v1"), ("anthropic/small", url), ("ollama_chat/small", url)]:
        options = {"model": model, "api_base": base, "api_key": "none", "num_retries": 0, "max_tokens": 60,
                   "tools": [{"type": "function", "function": function}]}
        message = litellm.completion(messages=[asked], **options).choices[0].message
        check('"a"' in message.tool_calls[0].function.arguments, model, message)
        result = {"role": "tool", "tool_call_id": message.tool_calls[0].id, "name": "add", "content": "3"}
        after = litellm.completion(messages=[asked, message.model_dump(), result], **options)
        check(after.choices[0].message.content == "done", model, after)


async def by_pydantic_ai(url):
    provider = OpenAIProvider(base_url=url + "/v1", api_key="none")
    for kind in [OpenAIChatModel, OpenAIResponsesModel]:
        asked = []
        agent = pydantic_ai.Agent(kind("small", provider=provider), retries=0)

        @agent.tool_plain
        def add(a: int) -> str:
            """adds"""
            asked.append(a)
            return "3"

        check((await agent.run("hello")).output == "done" and asked == [12], kind, asked)
        async with agent.run_stream("hello") as stream:
            check(await stream.get_output() == "done", kind)


@agents.function_tool
def add(a: int) -> str:
    """adds"""
    return "3"


async def by_agents(url):
    agents.set_tracing_disabled(True)
    client = openai.AsyncOpenAI(base_url=url + "/v1", api_key="none", max_retries=0)
    for kind in [agents.OpenAIChatCompletionsModel, agents.OpenAIResponsesModel]:
        agent = agents.Agent(name="a", model=kind("small", openai_client=client), tools=[add])
        check((await agents.Runner.run(agent, "hello", max_turns=3)).final_output == "done", kind)
        stream = agents.Runner.run_streamed(agent, "hello", max_turns=3)
        async for _ in stream.stream_events():
            pass
        check(stream.final_output == "done", kind)


async def by_all(url):
    await by_pydantic_ai(url)
    await by_agents(url)


def main(port):
    litellm.telemetry = False
    litellm.suppress_debug_info = True
    url = f"http://127.0.0.1:{port}"
    by_langchain(url)
    by_litellm(url)
    asyncio.run(by_all(url))


main(int(sys.argv[1]))
