"""Runs the toy task of tests/goldens by lm-eval against a server on this machine, of models/tiny-stories: argument PORT.

What it makes of the answers is held to transformers': tests/goldens/log-likelihoods.json. The server's tokenizer cuts the texts;
contexts begin with the token that begins texts, which lm-eval leaves out. Ends with 77, and says why, where lm-eval is not
installed.
"""

import json
import os
import pathlib
import sys
import tempfile

os.environ["HF_HUB_OFFLINE"] = os.environ["HF_DATASETS_OFFLINE"] = "1"
CACHE = tempfile.TemporaryDirectory()
os.environ["HF_HOME"] = CACHE.name

try:
    import lm_eval
    import lm_eval.models  # noqa: F401
    import requests
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)

GOLDENS = pathlib.Path(__file__).resolve().parent.parent / "goldens"
sys.path.insert(0, str(GOLDENS))
from toy_task import TASK  # noqa: E402

# Sums of up to ten logprobs; keys and values are f16 in the server.
TOLERANCE = 2e-2


def main(port):
    server = f"http://127.0.0.1:{port}"
    begin = requests.get(f"{server}/tokenizer_info", timeout=60).json()["bos_token"]
    questions = pathlib.Path(CACHE.name, "questions.jsonl")
    questions.write_text("".join(
        json.dumps({"context": begin + context, "choices": choices}) + "\n" for context, choices in TASK))
    task = {"task": "toy", "output_type": "multiple_choice", "dataset_path": "json", "test_split": "test",
            "dataset_kwargs": {"data_files": {"test": str(questions)}}, "doc_to_text": "{{context}}",
            "doc_to_choice": "{{choices}}", "doc_to_target": 0, "target_delimiter": ""}
    results = lm_eval.simple_evaluate(
        model="local-completions", tasks=[task], batch_size=4, log_samples=True, bootstrap_iters=0,
        model_args={"model": "tiny-stories", "base_url": f"{server}/v1/completions", "tokenizer_backend": "remote",
                    "max_length": 256, "max_retries": 1})
    golden = json.loads((GOLDENS / "log-likelihoods.json").read_text())
    expected = [score for request in golden["requests"] for score in request["expected"]]
    samples = sorted(results["samples"]["toy"], key=lambda sample: sample["doc_id"])
    scores = [score for sample in samples for score in sample["filtered_resps"]]
    assert len(scores) == len(expected) == sum(len(choices) for _, choices in TASK), scores
    worst = 0.0
    for (log_likelihood, is_greedy), one in zip(scores, expected):
        worst = max(worst, abs(float(log_likelihood) - one["log_likelihood"]))
        assert str(is_greedy) == str(one["is_greedy"]), (scores, one)
    assert worst < TOLERANCE, (worst, scores, expected)
    print(f"largest difference of a log-likelihood: {worst:.3g}")


if __name__ == "__main__":
    main(int(sys.argv[1]))
