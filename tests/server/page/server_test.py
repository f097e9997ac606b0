"""The page of soliton-server itself, on the tiny model in emulation."""

import os
import re
import subprocess
import tempfile
import unittest

from mock_server import PAGE
from page_fixture import PageTest, expect

TEMPLATE = "{% for message in messages %}{{ message.content }}{% endfor %}"


class Server(PageTest):
    flags = []
    template = None

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        program, kernel = os.environ.get("SOLITON_SERVER"), os.environ.get("SOLITON_KERNEL")
        if not program or not kernel:
            raise unittest.SkipTest("no SOLITON_SERVER and SOLITON_KERNEL")
        flags = ["-k", kernel, "-c", "512", "--port", "0", "--temp", "0.8"]
        if cls.template:
            file = tempfile.NamedTemporaryFile("w", suffix=".jinja")
            cls.addClassCleanup(file.close)
            file.write(cls.template)
            file.flush()
            flags += ["--chat-template", file.name]
        command = [program, PAGE.parents[2] / "models/tiny-stories", *flags, *cls.flags]
        cls.server = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        cls.addClassCleanup(cls.end_server)
        said = ""
        for line in cls.server.stderr:
            said += line
            if found := re.match(r"Serving .* at (http://[\d.:]+)", line):
                cls.url = found[1] + "/"
                return
        raise RuntimeError(f"soliton-server ended: {said}")

    @classmethod
    def end_server(cls):
        cls.server.terminate()
        cls.server.stderr.close()
        cls.server.wait(60)

    def setUp(self):
        self.open(self.url)
        expect(self.find("#model")).to_have_text("tiny-stories")
        self.set(max_tokens=24, seed=5)


class Completing(Server):
    """The tiny model has no chat template: texts are gone on with."""

    def test_a_story_is_told_and_gone_on_with(self):
        self.send("Once upon a time")
        self.assertRegex(self.answers()[0], r"^\W*\w+ \w+ \w+")
        pace = re.compile(r"^\d+ tokens · [\d.]+ tokens/s · first after [\d.]+ s$")
        expect(self.find(".stats:visible")).to_have_text(pace)
        self.send(" Then")
        self.assertEqual(len(self.answers()), 2)
        expect(self.find("#context")).to_have_text(re.compile(r"^Prompt: \d+ tokens of 512"))


class Chatting(Server):
    template = TEMPLATE

    def test_the_same_seed_tells_the_same(self):
        self.send("Once upon a time")
        first = self.answers()
        self.press("Regenerate")
        self.wait()
        self.assertEqual(self.answers(), first)
        self.set(seed=6)
        self.press("Regenerate")
        self.wait()
        self.assertNotEqual(self.answers(), first)

    def test_samples_differ_and_one_is_gone_on_with(self):
        self.set(n=4, temperature=1)
        self.send("Once upon a time")
        stories = self.answers()
        self.assertEqual(len(stories), 4)
        self.assertEqual(len(set(stories)), 4)
        self.find(".samples .choose").nth(2).click()
        self.assertEqual(self.answers(), [stories[2]])
        self.set(n=1)
        self.send(" And then")
        self.assertEqual(len(self.answers()), 2)

    def test_tokens_are_those_of_the_text(self):
        self.set(logprobs=True, top_logprobs=3)
        self.send("Once upon a time")
        tokens = "".join(self.find(".tokens span").all_text_contents())
        self.press("Plain text")
        self.assertEqual("".join(tokens.split()), "".join(self.answers()[0].split()))
        self.press("Tokens")
        self.find(".tokens span").nth(2).hover()
        expect(self.find("#tip strong")).to_have_text(re.compile(r"^[\d.e-]+ %$"))
        expect(self.find("#tip tr")).to_have_count(3)

    def test_stop_ends_an_answer_and_the_server_goes_on(self):
        self.set(max_tokens=400)
        self.send("Once upon a time", waits=False)
        expect(self.find(".assistant > .text")).not_to_be_empty(timeout=60_000)
        self.press("Stop")
        self.wait()
        expect(self.find(".note:visible")).to_have_text("Stopped.")
        self.set(max_tokens=3)
        self.send("And")
        expect(self.find(".note:visible").last).to_contain_text("Cut off")

    def test_a_wrong_setting_is_named_by_the_server(self):
        self.set(max_tokens=500000000000)
        self.send("Once")
        expect(self.find(".note:visible")).to_contain_text("max_tokens")

    def test_a_stop_text_ends_the_answer(self):
        self.send("Once upon a time")
        word = self.answers()[0].split()[3]
        self.set(stop=word)
        self.press("Regenerate")
        self.wait()
        self.assertNotIn(word, self.answers()[0])


class Guarded(Server):
    flags = ["--api-key", "opensesame"]

    def setUp(self):
        self.open(self.url)

    def test_the_key_opens_it(self):
        expect(self.find("[name=key]")).to_be_focused()
        self.find("[name=key]").fill("opensesame")
        self.press("Close")
        expect(self.find("#model")).to_have_text("tiny-stories")
        self.set(max_tokens=3)
        self.send("Once")
        self.assertEqual(len(self.answers()), 1)


if __name__ == "__main__":
    unittest.main()
