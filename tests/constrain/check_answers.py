"""Whether answers are valid: reads lines of JSON {"schema": ..., "answer": text}, prints a line for each that is not.

What Python's json and jsonschema say, with formats checked by the standard library. Ends with 77 without jsonschema."""

import datetime
import json
import re
import sys
import uuid

try:
    import jsonschema
except ImportError:
    sys.exit(77)

checker = jsonschema.FormatChecker(formats=[])


def matches(parse):
    def check(value):
        if isinstance(value, str):
            parse(value)
        return True
    return check


checker.checks("date", ValueError)(matches(datetime.date.fromisoformat))
checker.checks("date-time", ValueError)(
    matches(lambda text: datetime.datetime.fromisoformat(re.sub(r"\.[0-9]+", "", text).replace("Z", "+00:00"))))
checker.checks("time", ValueError)(
    matches(lambda text: datetime.time.fromisoformat(re.sub(r"\.[0-9]+", "", text).replace("Z", "+00:00"))))
checker.checks("uuid", ValueError)(matches(uuid.UUID))


def without_nullable(schema):
    """The same where `nullable`, which JSON Schema has not, is told by other keywords."""
    if isinstance(schema, list):
        return [without_nullable(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    rest = {key: without_nullable(value) for key, value in schema.items() if key != "nullable"}
    return {"anyOf": [rest, {"type": "null"}]} if schema.get("nullable") is True else rest


num_bad = 0
for line in sys.stdin:
    case = json.loads(line)
    try:
        answer = json.loads(case["answer"])
        jsonschema.Draft202012Validator(without_nullable(case["schema"]), format_checker=checker).validate(answer)
    except (ValueError, jsonschema.ValidationError) as error:
        num_bad += 1
        print(f"{case['answer']!r} for {json.dumps(case['schema'])}: {str(error).splitlines()[0]}")
sys.exit(num_bad > 0)
