"""The conversations that the page keeps: begun, found again, opened, renamed, exported and deleted."""

import pathlib
import unittest

from page_fixture import PHONE, PageTest, expect


class Chats(PageTest):
    def setUp(self):
        super().setUp()
        self.mock.answers = ["A **fox** swims."]
        self.send("Tell me of foxes")
        self.press("New chat")
        self.mock.answers = ["A whale waits."]
        self.send("Tell me of whales")
        self.show_chats()

    def show_chats(self):
        if self.find("#chats").is_hidden():
            self.press("Chats")

    def titles(self):
        return self.find("#chat-list .title").all_text_contents()

    def test_all_are_kept_and_opened_again(self):
        self.assertEqual(self.titles(), ["Tell me of whales", "Tell me of foxes"])
        expect(self.find("#chat-list [aria-current]")).to_have_text("Tell me of whales")
        self.press("Tell me of foxes")
        self.assertEqual(self.answers(), ["A fox swims."])
        self.send("And then?")
        self.assertEqual(self.last_messages()[0], ("user", "Tell me of foxes"))
        self.page.reload()
        self.assertEqual(len(self.answers()), 2)  # this tab shows the one that it showed
        self.show_chats()
        self.assertEqual(len(self.titles()), 2)

    def test_are_found_by_what_was_said(self):
        search = self.find("#search")
        search.fill("SWIMS")
        self.assertEqual(self.titles(), ["Tell me of foxes"])
        expect(self.find("#chat-count")).to_have_text("1 of 2")
        search.fill("hedgehog")
        self.assertEqual(self.titles(), [])
        search.fill("")
        self.assertEqual(len(self.titles()), 2)

    def test_are_renamed(self):
        self.typed = "  The <b>sea</b> "
        self.press("Rename")
        self.assertEqual(self.titles(), ["The <b>sea</b>", "Tell me of foxes"])
        self.page.reload()
        self.show_chats()
        self.assertEqual(self.titles()[0], "The <b>sea</b>")
        self.typed = ""
        self.press("Rename")
        self.assertEqual(self.titles()[0], "Tell me of whales")

    def test_are_exported(self):
        self.typed = "Whales: 1/2"
        self.press("Rename")
        with self.page.expect_download() as download:
            self.press("Export")
        self.assertEqual(download.value.suggested_filename, "Whales 1 2.md")
        self.assertEqual(
            pathlib.Path(download.value.path()).read_text(),
            "# Whales: 1/2\n\n## You\n\nTell me of whales\n\n## Answer\n\nA whale waits.\n",
        )

    def test_are_deleted(self):
        self.press("Delete")
        self.assertEqual(self.dialogs, ['Delete "Tell me of whales"? It is kept nowhere else.'])
        self.assertEqual(self.titles(), ["Tell me of foxes"])
        expect(self.find(".message")).to_have_count(0)
        self.page.reload()
        self.show_chats()
        self.assertEqual(self.titles(), ["Tell me of foxes"])

    def test_one_that_is_deleted_under_way_stays_so(self):
        self.press("Close")
        self.mock.answers, self.mock.delay = ["word " * 400], 0.02
        self.send("More", waits=False)
        expect(self.find(".assistant > .text").last).to_contain_text("word word")
        self.show_chats()
        self.press("Delete")
        self.assertTrue(self.mock.cancelled.wait(10))
        expect(self.find(".message")).to_have_count(0)
        self.page.reload()
        self.show_chats()
        self.assertEqual(self.titles(), ["Tell me of foxes"])

    def test_an_answer_under_way_is_kept_with_its_own(self):
        self.press("Close")
        self.mock.answers, self.mock.delay = ["word " * 400], 0.02
        self.send("More", waits=False)
        expect(self.find(".assistant > .text").last).to_contain_text("word word")
        self.show_chats()
        self.press("Tell me of foxes")
        self.assertEqual(self.answers(), ["A fox swims."])
        self.show_chats()
        self.press("Tell me of whales")
        self.assertEqual(len(self.answers()), 2)
        expect(self.find(".assistant > .note:visible")).to_have_text("Stopped.")

    def test_tabs_do_not_write_over_one_another(self):
        other = self.page.context.new_page()
        other.goto(self.mock.url)
        other.locator("#question").fill("Tell me of hens")
        other.get_by_role("button", name="New chat").click()
        other.get_by_role("button", name="Send").click()
        expect(other.locator(".assistant .stats")).to_contain_text("tokens")
        self.show_chats()
        expect(self.find("#chat-list .title")).to_have_count(3)
        self.press("Close")
        self.send("And then?")
        self.page.reload()
        self.show_chats()
        self.assertEqual(self.titles(), ["Tell me of hens", "Tell me of whales", "Tell me of foxes"])
        other.close()

    def test_the_one_of_an_earlier_page_is_taken_over(self):
        text = '{"role":"root","text":"","children":[{"role":"user","text":"Old","children":[],"picked":0}],"picked":0}'
        self.page.goto(self.mock.url + "page.css")
        self.page.evaluate("text => { localStorage.clear(); localStorage['soliton.conversation'] = text; }", text)
        self.page.goto(self.mock.url)
        self.show_chats()
        self.assertEqual(self.titles(), ["Old"])
        self.assertIsNone(self.page.evaluate("localStorage.getItem('soliton.conversation')"))

    def test_a_full_browser_says_so(self):
        self.page.evaluate("localStorage['filler'] = 'x'.repeat(5_200_000 - JSON.stringify(localStorage).length)")
        self.press("Close")
        self.mock.answers = ["word " * 20_000]
        self.send("More")
        expect(self.find("#context")).to_contain_text("This browser has no room for the conversation")


class ChatsOnAPhone(Chats):
    screen = PHONE

    def test_the_list_goes_once_one_is_chosen(self):
        self.press("Tell me of foxes")
        expect(self.find("#chats")).to_be_hidden()
        self.assertEqual(self.answers(), ["A fox swims."])


if __name__ == "__main__":
    unittest.main()
