"""A page in headless Chromium, before the mock server."""

import os
import shutil
import unittest

from mock_server import MockServer
from playwright.sync_api import expect, sync_playwright

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
WIDE = {"viewport": {"width": 1280, "height": 860}}
PHONE = {"viewport": {"width": 390, "height": 844}, "is_mobile": True, "has_touch": True}


def chromium():
    return os.environ.get("SOLITON_CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)


class PageTest(unittest.TestCase):
    """Each test has a page of its own, in `screen`. It ends badly if the page has asked elsewhere or met an error."""

    screen = WIDE
    typed = ""  # into the next dialog that asks for a text

    @classmethod
    def setUpClass(cls):
        cls.playwright = sync_playwright().start()
        cls.addClassCleanup(cls.playwright.stop)
        # Containers seldom allow Chromium's own sandbox; what is shown here is ours.
        cls.browser = cls.playwright.chromium.launch(executable_path=chromium(), args=["--no-sandbox"])
        cls.addClassCleanup(cls.browser.close)
        cls.mock = MockServer()
        cls.addClassCleanup(cls.mock.shutdown)

    def setUp(self):
        self.mock.reset()
        self.open(self.mock.url)
        expect(self.page.locator("#model")).to_have_text("mock-8b")

    def open(self, url, **options):
        context = self.browser.new_context(**self.screen, **options)
        self.addCleanup(context.close)
        self.page = context.new_page()
        self.page.set_default_timeout(15_000)
        self.dialogs, self.errors, self.requests = [], [], []
        self.expected_errors = ["Failed to load resource"]  # what a server that refuses looks like
        self.addCleanup(self.check_page, url)
        self.page.on("dialog", self.take_dialog)
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on("console", lambda line: self.errors.append(line.text) if line.type == "error" else None)
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.goto(url)

    def take_dialog(self, dialog):
        self.dialogs.append(dialog.message)
        dialog.accept(self.typed) if dialog.type == "prompt" else dialog.accept()

    def check_page(self, url):
        self.assertEqual([e for e in self.errors if not any(known in e for known in self.expected_errors)], [])
        self.assertEqual([r for r in self.requests if not r.startswith((url, "data:image/svg+xml"))], [])

    # ---- What a user does and sees

    def find(self, selector):
        return self.page.locator(selector)

    def press(self, name):
        self.page.get_by_role("button", name=name, exact=True).last.click()

    def send(self, text="Hello", waits=True):
        self.find("#question").fill(text)
        self.press("Send")
        if waits:
            self.wait()

    def wait(self):
        """Until the answer is whole."""
        expect(self.find("#send")).to_be_visible(timeout=60_000)

    def set(self, **fields):
        self.press("Settings")
        for name, value in fields.items():
            field = self.find(f"#settings [name={name}]")
            field.set_checked(value) if isinstance(value, bool) else field.fill(str(value))
        self.press("Close")

    def answers(self):
        return [text.strip() for text in self.find(".assistant > .text:visible").all_inner_texts()]

    def last_messages(self):
        return [(message["role"], message["content"]) for message in self.mock.requests[-1]["messages"]]
