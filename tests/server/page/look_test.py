"""The page as it looks: what axe-core finds, on both screens and in both colours, and pictures for people."""

import importlib.util
import os
import pathlib
import unittest

from page_fixture import PHONE, PageTest

# The levels of headings are the model's.
RULES = "{ resultTypes: ['violations'], rules: { 'heading-order': { enabled: false } } }"
ANSWER = """## A page and a ring

The kernel streams **pages** through a *ring*; see [the paper](https://example.org/paper).

1. First the producer:
   - waits for a slot
   - issues one `cp.async.bulk`
2. Then the consumers

- [x] done

```python
def ring(pages):
    for page in pages:  # a comment, so that this line is wider than the screen of a phone
        yield page
```

| card | bandwidth |
| :--- | ---: |
| H200 | 4.8 TB/s |

> Quoted

---

<think> is not special here.
"""


class Look(PageTest):
    def look(self, name):
        """Names what axe-core finds; writes a picture if SOLITON_PICTURES names a folder."""
        if folder := os.environ.get("SOLITON_PICTURES"):
            self.page.screenshot(path=pathlib.Path(folder) / f"{self.id().split('.')[-1]}-{name}.png")
        package = importlib.util.find_spec("axe_playwright_python")
        if package is None:
            self.skipTest("no package axe-playwright-python")
        self.page.evaluate((pathlib.Path(package.origin).parent / "axe.min.js").read_text() + "; 0")
        found = self.page.evaluate(f"axe.run(document, {RULES})")["violations"]
        self.assertEqual([(rule["id"], node["html"]) for rule in found for node in rule["nodes"]], [], name)

    def walk(self):
        self.look("welcome")
        self.mock.answers = [ANSWER]
        self.send("Tell me about **pages**.\nIn two lines.")
        self.look("answer")
        self.press("Chats")
        self.look("chats")
        self.press("Close")
        self.press("Settings")
        self.look("settings")
        self.press("Close")
        self.set(n=4, logprobs=True, top_logprobs=2)
        self.mock.answers = ["A small dragon who reads.", "Another."]
        self.send("A story")
        self.find(".tokens span").nth(3).focus()
        self.look("samples")
        self.find(".samples .choose").first.click()
        self.set(n=1)
        self.mock.delay = 0.3
        self.mock.answers = ["word " * 9]
        self.send("More", waits=False)
        self.find(".tokens span").nth(8).wait_for()
        self.look("answering")
        self.press("Stop")
        self.wait()
        self.mock.reset()
        self.mock.refusal = (429, "the queue is full", [("Retry-After", "7")])
        self.send("More")
        self.find(".user").last.get_by_role("button", name="Edit").click()
        self.look("failed")

    def test_wide_and_light(self):
        self.walk()

    def test_wide_and_dark(self):
        self.page.emulate_media(color_scheme="dark")
        self.walk()


class LookOfAPhone(PageTest):
    screen = PHONE
    look, walk = Look.look, Look.walk

    def test_narrow_and_light(self):
        self.walk()

    def test_narrow_and_dark(self):
        self.page.emulate_media(color_scheme="dark")
        self.walk()


if __name__ == "__main__":
    unittest.main()
