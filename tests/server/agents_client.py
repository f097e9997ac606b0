"""Has agents call functions of a server on this machine, of the small model of the tests: argument PORT.

By Instructor, Pydantic AI and OpenAI's Agents, through each API that they speak. Ends with 77, and says why, where one of them is
not installed.
"""

import asyncio
import sys

try:
    import agents
    import anthropic
    import instructor
    import openai
    import pydantic_ai
    from pydantic import BaseModel, Field
    from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
    from pydantic_ai.providers.openai import OpenAIProvider
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)

MESSAGES = [{"role": "user", "content": "x"}]


class age(BaseModel):
    """the age"""

    years: int = Field(ge=10, le=99)


def check(condition, *what):
    if not condition:
        raise AssertionError(what)


def by_instructor(url):
    of_openai = openai.OpenAI(base_url=url + "/v1", api_key="none", max_retries=0)
    options = {"model": "small", "response_model": age, "messages": MESSAGES, "max_retries": 0}
    for mode in [instructor.Mode.TOOLS, instructor.Mode.JSON_SCHEMA]:
        client = instructor.from_openai(of_openai, mode=mode)
        check(isinstance(client.chat.completions.create(max_tokens=120, temperature=0, **options), age), mode)
    responses = instructor.from_openai(of_openai, mode=instructor.Mode.RESPONSES_TOOLS)
    check(isinstance(responses.chat.completions.create(max_output_tokens=120, temperature=0, **options), age))
    messages = instructor.from_anthropic(anthropic.Anthropic(base_url=url, api_key="none", max_retries=0))
    check(isinstance(messages.messages.create(max_tokens=120, **options), age))


async def by_pydantic_ai(url):
    provider = OpenAIProvider(base_url=url + "/v1", api_key="none")
    settings = {"temperature": 0, "max_tokens": 120}
    for model in [OpenAIChatModel("small", provider=provider), OpenAIResponsesModel("small", provider=provider)]:
        for output in [age, pydantic_ai.NativeOutput(age)]:
            agent = pydantic_ai.Agent(model, output_type=output, model_settings=settings, retries=0)
            check(isinstance((await agent.run("x")).output, age), model, output)

    streaming = pydantic_ai.Agent(OpenAIChatModel("small", provider=provider), output_type=age, model_settings=settings)
    async with streaming.run_stream("x") as stream:
        check(isinstance(await stream.get_output(), age))


@agents.function_tool
def add(a: int) -> str:
    """adds"""
    return "sum"


async def by_agents(url):
    agents.set_tracing_disabled(True)
    client = openai.AsyncOpenAI(base_url=url + "/v1", api_key="none", max_retries=0)
    settings = agents.ModelSettings(max_tokens=120, temperature=0)
    required = agents.ModelSettings(max_tokens=120, temperature=0, tool_choice="required")
    for kind in [agents.OpenAIChatCompletionsModel, agents.OpenAIResponsesModel]:
        model = kind("small", openai_client=client)
        calling = agents.Agent(name="a", model=model, tools=[add], model_settings=required,
                               tool_use_behavior="stop_on_first_tool")
        check((await agents.Runner.run(calling, "x", max_turns=2)).final_output == "sum", kind)
        telling = agents.Agent(name="b", model=model, output_type=age, model_settings=settings)
        stream = agents.Runner.run_streamed(telling, "x", max_turns=2)
        async for _ in stream.stream_events():
            pass
        check(isinstance(stream.final_output, age), kind)
        handing = agents.Agent(name="c", model=model, handoffs=[telling], model_settings=required)
        check(isinstance((await agents.Runner.run(handing, "x", max_turns=3)).final_output, age), kind)


async def by_all(url):
    await by_pydantic_ai(url)
    await by_agents(url)


def main(port):
    url = f"http://127.0.0.1:{port}"
    by_instructor(url)
    asyncio.run(by_all(url))


main(int(sys.argv[1]))
