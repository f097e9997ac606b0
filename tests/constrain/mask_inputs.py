#!/usr/bin/env python3
"""Writes what MaskTimes of constrain-tests reads: schemas.jsonl and vocabulary.json, in the folder that is named last.

Schemas are 500 that Python's packages carry, and the vocabulary is Qwen's, as dashscope has it:

    pip download --no-deps cfn-lint==1.58.0 check-jsonschema dashscope==2.0.2
    mask_inputs.py cfn_lint-*.whl check_jsonschema-*.whl dashscope-*.whl FOLDER
"""

import base64
import json
import sys
import zipfile

NUM_SCHEMAS = 500


def main():
    *wheels, folder = sys.argv[1:]
    schemas = {"cfn_lint": [], "check_jsonschema": []}
    for wheel in map(zipfile.ZipFile, wheels):
        package = wheel.filename.rsplit("/", 1)[-1].split("-")[0]
        for name in sorted(wheel.namelist()):
            if name.endswith("qwen.tiktoken"):
                pieces = [list(base64.b64decode(line.split()[0])) for line in wheel.read(name).splitlines()]
                with open(f"{folder}/vocabulary.json", "w", encoding="utf-8") as file:
                    json.dump(pieces, file)
            elif name.endswith(".json") and package in schemas and (package != "cfn_lint" or "schemas/resources/" in name):
                schema = json.loads(wheel.read(name))
                if isinstance(schema, dict) and ("properties" in schema or "$schema" in schema):
                    schemas[package].append(schema)
    resources = schemas["cfn_lint"]
    num_resources = NUM_SCHEMAS - len(schemas["check_jsonschema"])
    chosen = schemas["check_jsonschema"] + [resources[i * len(resources) // num_resources] for i in range(num_resources)]
    with open(f"{folder}/schemas.jsonl", "w", encoding="utf-8") as file:
        file.writelines(json.dumps({"schema": schema}) + "\n" for schema in chosen)


if __name__ == "__main__":
    main()
