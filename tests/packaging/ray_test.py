"""Two replicas of a model on real Ray, one of which dies under load: ray_test.py EXAMPLE_FOLDER MODEL_FOLDER TEMPLATE."""

import concurrent.futures
import json
import os
import signal
import sys
import time
import unittest

import httpx
import ray
from ray import serve

EXAMPLE, FOLDER, TEMPLATE = sys.argv[1:4]
del sys.argv[1:]
sys.path.insert(0, EXAMPLE)
import soliton_serve  # noqa: E402

URL = "http://127.0.0.1:8642"
NUM_UNDER_LOAD = 12


def pids():
    """Of the processes of replicas that are alive."""
    found = set()
    for process in os.listdir("/proc"):
        try:
            with open(f"/proc/{process}/cmdline") as line:
                if "ServeReplica:default:Replica" in line.read():
                    found.add(int(process))
        except (OSError, ValueError):
            pass
    return found


class Replicas(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        environment = {"PYTHONPATH": EXAMPLE}
        ray.init(num_cpus=4, include_dashboard=False, runtime_env={"env_vars": environment})
        serve.start(http_options={"host": "127.0.0.1", "port": 8642})
        serve.run(soliton_serve.app({"model": FOLDER, "min_replicas": "2", "gpus": "0", "context": "256",
                                     "chat_template": TEMPLATE}))
        cls.client = httpx.Client(base_url=URL, timeout=120)

    @classmethod
    def tearDownClass(cls):
        serve.shutdown()
        ray.shutdown()

    def complete(self, text, **members):
        body = {"prompt": text, "max_tokens": 4, "temperature": 0, **members}
        return self.client.post("/v1/completions", json=body)

    def test_1_answers_as_openai_does(self):
        self.assertEqual(self.client.get("/health").json(), {"status": "ok"})
        self.assertEqual(self.client.get("/v1/models").json()["data"][0]["id"], FOLDER)
        answer = self.complete("Once upon a time").json()
        self.assertEqual(answer["choices"][0]["finish_reason"], "length")
        self.assertEqual(answer["usage"]["completion_tokens"], 4)
        body = {"messages": [{"role": "user", "content": "Hello"}], "max_tokens": 3, "temperature": 0}
        whole = self.client.post("/v1/chat/completions", json=body).json()
        self.assertEqual(whole["choices"][0]["message"]["role"], "assistant")
        streamed = ""
        with self.client.stream("POST", "/v1/chat/completions", json={**body, "stream": True}) as response:
            lines = [line.removeprefix("data: ") for line in response.iter_lines() if line]
        self.assertEqual(lines.pop(), "[DONE]")
        for line in lines:
            streamed += json.loads(line)["choices"][0]["delta"].get("content", "")
        self.assertEqual(streamed, whole["choices"][0]["message"]["content"])

    def test_2_refuses_what_it_does_not_know(self):
        for members, message in (({"tools": []}, "tools: expected"), ({"n": 2}, "n: expected 1"),
                                 ({"temperature": "hot"}, ""), ({"prompt": []}, "prompt: expected")):
            answer = self.complete("Once", **members)
            self.assertEqual(answer.status_code, 400, answer.text)
            self.assertIn(message, answer.json()["error"]["message"])
        self.assertEqual(self.client.post("/v1/completions", content="{").status_code, 400)
        self.assertEqual(self.complete("word " * 400).status_code, 400)  # longer than the context

    def test_3_conversations_stay_where_their_prefix_is(self):
        story = "Once upon a time, in a small house by the sea, there lived an old man who had a boat, a dog and a garden. "
        texts = {user: f"The story of {user}. " + story * 2 for user in ("anna", "ben", "carl", "dora")}
        for turn in range(3):
            for user, text in texts.items():
                answer = self.complete(text, user=user).json()
                if turn > 0:
                    cached = answer["usage"]["prompt_tokens_details"]["cached_tokens"]
                    self.assertGreaterEqual(cached, 40, (user, turn, answer["usage"]))
                texts[user] = text + answer["choices"][0]["text"]

    def test_4_one_that_dies_takes_only_its_own_along(self):
        before = pids()
        self.assertEqual(len(before), 2)
        with concurrent.futures.ThreadPoolExecutor(NUM_UNDER_LOAD) as pool:
            running = [pool.submit(self.complete, f"Story {i}", max_tokens=12, user=str(i)) for i in range(NUM_UNDER_LOAD)]
            time.sleep(2)
            os.kill(min(before), signal.SIGKILL)
            answers = [each.result() for each in running]
        codes = [answer.status_code for answer in answers]
        # In flight at the one that died were at most as many as it takes.
        self.assertLessEqual(len([code for code in codes if code != 200]), soliton_serve.MAX_ONGOING_REQUESTS, codes)
        for answer in answers:
            if answer.status_code != 200:
                self.assertEqual(answer.status_code, 503, answer.text)
                self.assertIn("ask again", answer.json()["error"]["message"])
        self.assertIn(503, codes)  # else nothing was in flight, and this shows nothing
        until = time.monotonic() + 60
        while len(pids()) < 2 and time.monotonic() < until:
            time.sleep(0.5)
        self.assertEqual(len(pids() - {min(before)}), 2)  # another one takes its place
        self.assertEqual(self.complete("Once").status_code, 200)


if __name__ == "__main__":
    unittest.main()
