"""Asks a server on this machine for answers to random JSON schemas, by the official client: arguments PORT NUMBER.

Each answer is to be valid by Python's jsonschema. Ends with 77, and says why, where one of both is not installed.
"""

import asyncio
import json
import random
import sys

try:
    import jsonschema
    import openai
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)

AT_ONCE = 8


class Schemas:
    """Of values that end: strings and lists have a largest length."""

    def __init__(self, seed):
        self.random = random.Random(seed)

    def value(self, depth):
        kinds = [self.integer, self.number, self.string, self.enumeration, self.constant, self.flag, self.pattern]
        if depth < 3 and self.random.random() < 0.4:
            return self.random.choice([self.object, self.array, self.either])(depth)
        return self.random.choice(kinds)()

    def integer(self):
        low = self.random.randint(-500, 500)
        return {"type": "integer", "minimum": low, "maximum": low + self.random.randint(0, 1000)}

    def number(self):
        return {"type": "number"}

    def string(self):
        return {"type": "string", "minLength": self.random.randint(0, 2), "maxLength": self.random.randint(2, 8)}

    def enumeration(self):
        return {"enum": self.random.sample(["red", "light green", 7, None, True, {"k": [1]}], 3)}

    def constant(self):
        return {"const": self.random.choice(["yes", 3, None, [1, "two"]])}

    def flag(self):
        return {"type": ["boolean", "null"]}

    def pattern(self):
        return {"type": "string", "pattern": self.random.choice([r"^[a-f]{2}-\d{3}$", r"^(foo|ba[rz])?$", r"^\w{1,5}$"])}

    def object(self, depth):
        names = self.random.sample(["a", "bc", "d e", "name", "x-y", ""], self.random.randint(1, 4))
        required = [name for name in names if self.random.random() < 0.6]
        return {"type": "object", "properties": {name: self.value(depth + 1) for name in names}, "required": required,
                "additionalProperties": False}

    def array(self, depth):
        return {"type": "array", "items": self.value(depth + 1), "minItems": self.random.randint(0, 1),
                "maxItems": self.random.randint(1, 3)}

    def either(self, depth):
        return {"anyOf": [self.value(depth + 1), self.value(depth + 1)]}


async def ask_all(port, number):
    client = openai.AsyncOpenAI(base_url=f"http://127.0.0.1:{port}/v1", api_key="none", max_retries=0, timeout=600)
    places = asyncio.Semaphore(AT_ONCE)

    async def ask(seed):
        schema = Schemas(seed).object(0)
        form = {"type": "json_schema", "json_schema": {"name": "it", "strict": True, "schema": schema}}
        async with places:
            answer = await client.chat.completions.create(
                model="any", messages=[{"role": "user", "content": "say it"}], temperature=1, seed=seed, max_tokens=290,
                response_format=form)
        choice = answer.choices[0]
        if choice.finish_reason == "length":
            return f"cut: {choice.message.content}"
        try:
            jsonschema.Draft202012Validator(schema).validate(json.loads(choice.message.content))
        except (ValueError, jsonschema.ValidationError) as error:
            print(f"{json.dumps(schema)}\n  {choice.message.content}\n  {error}")
            return "wrong"
        return "valid"

    return await asyncio.gather(*(ask(seed) for seed in range(number)))


def main(port, number):
    outcomes = asyncio.run(ask_all(port, number))
    cut = [outcome for outcome in outcomes if outcome.startswith("cut")]
    print(f"{outcomes.count('valid')} valid, {len(cut)} cut, of {number}", *cut, sep="\n")
    sys.exit(0 if "wrong" not in outcomes and len(cut) <= number // 20 else 1)


main(int(sys.argv[1]), int(sys.argv[2]))
