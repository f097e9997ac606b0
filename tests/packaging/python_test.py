"""The package of Python, as installed from its wheel: python_test.py MODEL_FOLDER TEMPLATE, with unittest's flags."""

import asyncio
import gc
import importlib.metadata
import json
import math
import signal
import subprocess
import sys
import textwrap
import threading
import unittest

import soliton

TEMPLATE = sys.argv.pop(2)
FOLDER = sys.argv.pop(1)


class Package(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.lines = []
        cls.model = soliton.Model(FOLDER, context=80, log=cls.lines.append)

    @classmethod
    def tearDownClass(cls):
        del cls.model

    def test_knows_its_version(self):
        self.assertEqual(soliton.__version__, importlib.metadata.version("soliton"))

    def test_opens_the_kernel_of_the_wheel(self):
        self.assertEqual(self.model.context, 80)
        self.assertTrue(self.model.is_emulated)
        self.assertTrue(any(line.startswith("Context: 80 ") for line in self.lines), self.lines)
        self.assertFalse(any("Making" in line for line in self.lines), self.lines)

    def test_turns_text_into_tokens_and_back(self):
        tokens = self.model.tokenize("Once upon a time ✓", prefix=True)
        self.assertEqual(self.model.detokenize(tokens, skip_special=True), "Once upon a time ✓")
        self.assertNotEqual(self.model.detokenize(tokens), "Once upon a time ✓")

    def test_generates(self):
        told = []
        answer = self.model.generate("Once upon a time", max_tokens=4, logprobs=True, on_token=told.append)
        self.assertEqual(answer.text, ", a small girl")
        self.assertEqual("".join(token.text for token in told), answer.text)
        self.assertEqual([token.id for token in told], answer.tokens)
        self.assertEqual([token.logprob for token in told], answer.logprobs)
        self.assertEqual(answer.finish, "length")
        self.assertGreater(answer.total_s, answer.first_token_s)
        self.assertEqual(self.model.generate(self.model.tokenize("Once upon a time", prefix=True), max_tokens=1).text, ",")

    def test_ends_where_it_is_told(self):
        self.assertEqual(self.model.generate("Once upon a time", stops=["small"]).text, ", a ")
        answer = self.model.generate("Once upon a time", on_token=lambda token: token.text != " a")
        self.assertEqual((answer.text, answer.finish, answer.logprobs), (", a", "callback", []))

    def test_answers_are_of_a_grammar_or_a_schema(self):
        answer = self.model.generate("Once upon a time", max_tokens=20, grammar='root ::= " " ("red" | "green") [0-9]{2}')
        self.assertRegex(answer.text, r"^ (red|green)[0-9]{2}$")
        schema = {"type": "array", "items": {"enum": [1, 2]}, "minItems": 2, "maxItems": 2}
        for given in (schema, json.dumps(schema)):
            answer = self.model.generate("Once upon a time", max_tokens=30, json_schema=given, ignore_eos=True)
            self.assertEqual(len(json.loads(answer.text)), 2)
            self.assertEqual(answer.finish, "whole")

    def test_raises_what_goes_wrong(self):
        with self.assertRaises(soliton.Error) as raised:
            self.model.generate([1, 1_000_000])
        self.assertEqual(raised.exception.status, 5)
        self.assertIn("tokens: expected ids from 0 to ", str(raised.exception))
        with self.assertRaises(soliton.Error) as raised:
            soliton.Model("/no/such/model")
        self.assertEqual(raised.exception.status, 3)
        with self.assertRaises(TypeError):
            self.model.generate("Once", no_such_option=1)
        with self.assertRaises(ZeroDivisionError):
            self.model.generate("Once", on_token=lambda token: 1 / 0)
        with self.assertRaises(KeyboardInterrupt):
            self.model.generate("Once upon a time", on_token=lambda token: signal.raise_signal(signal.SIGINT))

    def test_streams(self):
        async def run():
            return [token.text async for token in self.model.stream("Once upon a time", max_tokens=3)]
        self.assertEqual("".join(asyncio.run(run())), ", a small")

    def test_streams_beside_others_and_ends_with_its_reader(self):
        async def first(start):
            async for token in self.model.stream(start):
                self.assertTrue(math.isnan(token.logprob))
                return token.text

        async def run():
            return await asyncio.gather(first("Once upon a time"), first("Once upon a time"))
        self.assertEqual(asyncio.run(run()), [",", ","])

    def test_stream_raises_what_generate_does(self):
        async def run():
            async for _ in self.model.stream([-1]):
                pass
        with self.assertRaises(soliton.Error):
            asyncio.run(run())

    def test_trees_fork_decode_score_and_prune(self):
        tree = self.model.tree()
        root = tree.add("Once upon a time")
        branches = tree.fork(root, 2)
        answers = tree.decode(branches, max_tokens=3, temperature=3.0, seed=1)
        self.assertNotEqual(answers[0].tokens, answers[1].tokens)
        self.assertEqual(tree.text(branches[0]), "Once upon a time" + answers[0].text)
        likely, unlikely = tree.score(root, ",")[0], tree.score(root, "?")[0]
        self.assertGreater(likely, unlikely)
        tree.append(root, ", a")
        self.assertEqual(tree.decode([root], max_tokens=1)[0].text, " small")
        tree.prune(root)
        with self.assertRaises(soliton.Error) as raised:
            tree.tokens(root)
        self.assertEqual(raised.exception.status, 2)

    def test_handles_go_while_another_thread_generates(self):
        begun = threading.Event()

        def tell(token):
            begun.set()

        other = threading.Thread(target=lambda: self.model.generate("Once upon a time", max_tokens=6, on_token=tell))
        tree = self.model.tree()
        tree.decode([tree.add("Once")], max_tokens=1)
        other.start()
        begun.wait()
        del tree  # waits for its turn without the GIL, which tell() wants
        gc.collect()
        other.join(timeout=60)
        self.assertFalse(other.is_alive())

    def run_script(self, script):
        """A program of its own, with `soliton`, and a `model` that has room for a prompt of seconds."""
        begin = f"import os, signal, sys, threading, time, soliton\nmodel = soliton.Model({FOLDER!r}, context=1024)\n"
        return subprocess.run([sys.executable, "-c", begin + textwrap.dedent(script)], capture_output=True, text=True,
                              timeout=120)

    def test_interrupts_end_prompts(self):
        for call in ("model.generate(tokens)", "tree.decode([tree.add(tokens)])", "tree.score(tree.add(tokens), [1])",
                     "tree.fork(tree.add(tokens), 2)"):
            ran = self.run_script(f"""
                tokens, tree = [1] + [300 + i % 100 for i in range(1000)], model.tree()
                begin = time.monotonic()
                threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
                try:
                    {call}
                except KeyboardInterrupt:
                    print("interrupted", time.monotonic() - begin, flush=True)
                print(model.generate("Once upon a time", max_tokens=2).text)
                """)
            self.assertEqual(ran.returncode, 0, ran.stderr)
            self.assertRegex(ran.stdout, r"^interrupted .*\n, a\n$", call)

    def test_ends_beside_daemon_threads(self):
        for call in ("model.generate('Once upon a time', ignore_eos=True)",
                     "model.generate('Once upon a time', ignore_eos=True, on_token=lambda token: None)",
                     "tree = model.tree(); tree.decode([tree.add('Once')], ignore_eos=True, on_token=lambda token: None)",
                     "model.generate([1] + [300] * 1000)"):
            ran = self.run_script(f"""
                def go_on():
                    while True:
                        {call}
                for _ in range(2):
                    threading.Thread(target=go_on, daemon=True).start()
                time.sleep(0.3)
                print("end", flush=True)
                """)
            self.assertEqual((ran.returncode, ran.stdout, ran.stderr), (0, "end\n", ""), call)

    def test_renders_conversations(self):
        model = soliton.Model(FOLDER, context=128, chat_template=TEMPLATE)
        messages = [{"role": "user", "content": "Hi ✓"}]
        self.assertIn("Hi ✓", model.detokenize(model.render_chat(messages)))
        self.assertEqual(len(model.generate(messages, max_tokens=1, ignore_eos=True).tokens), 1)
        with self.assertRaises(soliton.Error):
            self.model.render_chat(messages)


if __name__ == "__main__":
    unittest.main()
