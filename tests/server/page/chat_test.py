"""Chatting on the page: what it sends, and what it does with what comes back."""

import re
import unittest

from page_fixture import PHONE, PageTest, expect

STORIES = ["A dragon reads.", "A **fox** swims.", "A hen sings.", "A whale waits."]


class Chat(PageTest):
    def test_shows_an_answer_while_it_comes(self):
        self.mock.answers = ["Once there was a **small** dragon." + " And a fox." * 6]
        self.mock.delay = 0.05
        self.send("Tell me a story", waits=False)
        expect(self.find(".assistant > .text")).to_contain_text("Once there was")
        expect(self.find(".assistant[aria-busy=true]")).to_have_count(1)
        expect(self.find("#stop")).to_be_visible()
        expect(self.find("#question")).to_have_value("")
        self.wait()
        expect(self.find(".assistant > .text strong").first).to_have_text("small")
        expect(self.find(".assistant .stats")).to_have_text(
            re.compile(r"^24 tokens · \d+\.\d tokens/s · first after 0\.\d\d s$")
        )
        expect(self.find("#context")).to_have_text("Prompt: 12 tokens of 4096, 5 of them cached")
        self.assertEqual(self.last_messages(), [("user", "Tell me a story")])
        self.assertTrue(self.mock.requests[-1]["stream"])
        self.assertEqual(self.mock.requests[-1]["stream_options"], {"include_usage": True})

    def test_the_end_stays_in_sight_unless_it_was_left(self):
        below = "(chat => chat.scrollHeight - chat.scrollTop - chat.clientHeight)(document.getElementById('chat'))"
        self.mock.answers = ["\n\n".join(f"Line {i}" for i in range(80))]
        self.mock.delay = 0.01
        self.send()
        self.assertLess(self.page.evaluate(below), 40)
        self.send(waits=False)
        expect(self.find(".assistant > .text").last).to_contain_text("Line 9")
        self.page.evaluate("document.getElementById('chat').scrollTop = 0")
        self.wait()
        self.assertEqual(self.page.evaluate("document.getElementById('chat').scrollTop"), 0)

    def test_goes_on_with_what_was_said(self):
        self.send("One")
        self.send("Two")
        self.assertEqual(self.last_messages(), [("user", "One"), ("assistant", "Well met."), ("user", "Two")])

    def test_stops(self):
        self.mock.answers = ["word " * 400]
        self.mock.delay = 0.02
        self.send(waits=False)
        expect(self.find(".assistant > .text")).to_contain_text("word word")
        self.press("Stop")
        self.wait()
        self.assertTrue(self.mock.cancelled.wait(10), "the server has to see that nobody reads")
        expect(self.find(".assistant > .note:visible")).to_have_text("Stopped.")
        kept = self.answers()[0]
        self.assertLess(len(kept), 1900)
        self.mock.answers, self.mock.delay = ["And then?"], 0
        self.send("Go on")
        self.assertEqual(self.last_messages()[1][1].strip(), kept)

    def test_regenerates(self):
        self.send()
        self.mock.answers = ["Another one."]
        self.press("Regenerate")
        self.wait()
        self.assertEqual(self.answers(), ["Another one."])
        self.assertEqual(self.last_messages(), [("user", "Hello")])
        self.press("Previous version")
        self.assertEqual(self.answers(), ["Well met."])
        expect(self.find(".assistant .switcher")).to_contain_text("1/2")

    def test_goes_on_from_an_edited_message(self):
        self.send("First")
        self.send("Second")
        self.mock.answers = ["To the edited one."]
        self.find(".user").first.get_by_role("button", name="Edit").click()
        self.find(".edit textarea").fill("Edited")
        self.find(".edit").get_by_role("button", name="Send").click()
        self.wait()
        self.assertEqual(self.last_messages(), [("user", "Edited")])
        self.assertEqual(self.answers(), ["To the edited one."])
        self.press("Previous version")  # what came before is not lost
        self.assertEqual(self.answers(), ["Well met.", "Well met."])
        self.send("Third")
        self.assertEqual([text for _, text in self.last_messages()][::2], ["First", "Second", "Third"])

    def test_an_edited_message_takes_the_place_of_an_answer_under_way(self):
        self.send("First")
        self.find(".user").get_by_role("button", name="Edit").click()
        self.mock.answers, self.mock.delay = ["word " * 400], 0.02
        self.send("Second", waits=False)
        expect(self.find(".assistant > .text").last).to_contain_text("word word")
        self.mock.answers, self.mock.delay = ["One word after another."], 0.3
        self.find(".edit textarea").fill("Edited")
        self.find(".edit").get_by_role("button", name="Send").click()
        expect(self.find(".assistant > .text")).to_contain_text("One word")
        self.assertTrue(self.find("#stop").is_visible())  # the end of the former one is not that of this one
        self.wait()
        self.assertEqual(self.answers(), ["One word after another."])
        self.assertEqual(self.last_messages(), [("user", "Edited")])
        expect(self.find("#stop")).to_be_hidden()

    def test_goes_on_from_an_edited_answer(self):
        self.send()
        self.find(".assistant").get_by_role("button", name="Edit").click()
        self.find(".edit textarea").fill("Never said.")
        self.press("Keep")
        self.assertEqual(len(self.mock.requests), 1)
        self.send("Really?")
        self.assertEqual(self.last_messages()[1], ("assistant", "Never said."))

    def test_samples_stand_side_by_side_and_one_is_chosen(self):
        self.set(n=4)
        self.mock.answers = STORIES
        self.send("A story")
        self.assertEqual([request["n"] for request in self.mock.requests], [4])
        self.assertEqual(self.answers(), [story.replace("**", "") for story in STORIES])
        boxes = [box.bounding_box() for box in self.find(".samples .message").all()]
        self.assertEqual(len({box["y"] for box in boxes}), 1)
        self.assertEqual(len({box["x"] for box in boxes}), 4)
        expect(self.find(".samples > .hint")).to_contain_text("12 tokens in 4 samples")
        self.send("Too early", waits=False)
        expect(self.find("#context")).to_have_text("Choose the sample to go on with.")
        self.assertEqual(len(self.mock.requests), 1)
        self.find(".samples .choose").nth(1).click()
        self.assertEqual(self.answers(), ["A fox swims."])
        self.set(n=1)
        self.send("And then?")
        self.assertEqual(self.last_messages()[1], ("assistant", "A **fox** swims."))

    def test_tokens_are_coloured_and_say_their_probability(self):
        self.set(logprobs=True, top_logprobs=2)
        self.mock.answers = ["One two three four fünf"]
        self.send()
        self.assertEqual((self.mock.requests[-1]["logprobs"], self.mock.requests[-1]["top_logprobs"]), (True, 2))
        tokens = self.find(".tokens span")
        self.assertEqual(tokens.all_text_contents(), ["One", " two", " three", " four", " fünf"])
        shades = [token.get_attribute("class") for token in tokens.all()]
        self.assertEqual(shades, ["likely", "fair", "unsure", "rare", "odd"])
        colours = [token.evaluate("e => getComputedStyle(e).backgroundColor") for token in tokens.all()]
        self.assertEqual(len(set(colours)), 5)
        self.touch(tokens.nth(3))
        expect(self.find("#tip strong")).to_have_text("10.0 %")
        expect(self.find("#tip tr").nth(1)).to_have_text("·else0.50 %")
        tokens.nth(0).focus()
        self.page.keyboard.press("ArrowRight")
        expect(self.find("#tip strong")).to_have_text("60.0 %")
        self.page.keyboard.press("End")
        expect(tokens.nth(4)).to_be_focused()
        expect(self.find("#tip strong")).to_have_text("1.0 %")
        expect(tokens.nth(4)).to_have_accessible_description(re.compile(r"^1\.0 %"))
        self.assertEqual(self.find(".tokens [tabindex='0']").count(), 1)
        self.press("Plain text")
        self.assertEqual(self.answers(), ["One two three four fünf"])

    def touch(self, token):
        token.hover()

    def test_settings_are_sent_and_kept(self):
        wanted = {
            "temperature": 0.7,
            "top_p": 0.9,
            "top_k": 40,
            "min_p": 0.05,
            "repetition_penalty": 1.1,
            "seed": 7,
            "max_tokens": 33,
        }
        self.set(system="Be brief.", stop="END\n\\n\\n", **wanted)
        self.page.reload()
        self.send()
        request = self.mock.requests[-1]
        self.assertEqual({name: request.get(name) for name in wanted}, wanted)
        self.assertEqual(request["stop"], ["END", "\n\n"])
        self.assertEqual(self.last_messages(), [("system", "Be brief."), ("user", "Hello")])
        self.press("Settings")
        self.press("Reset settings")
        self.press("Close")
        self.send()
        request = self.mock.requests[-1]
        self.assertEqual(set(request), {"path", "model", "messages", "n", "stream", "stream_options"})
        self.assertEqual(request["messages"][0]["role"], "user")

    def test_settings_that_cannot_be_are_not_sent(self):
        self.set(top_p=2)
        self.send(waits=False)
        expect(self.find("[name=top_p]")).to_be_focused()
        self.assertEqual(self.mock.requests, [])
        expect(self.find("#question")).to_have_value("Hello")

    def test_nothing_is_wider_than_the_screen(self):
        table = "|".join(["a long head"] * 12) + "\n" + "|".join(["-"] * 12) + "\n" + "|".join(["cell"] * 12)
        self.mock.answers = ["x" * 600 + "\n\n```c\n" + "y" * 400 + "\n```\n\n" + table]
        self.send("z" * 500)
        self.set(n=4)
        self.send()
        self.press("Settings")
        width = self.page.evaluate("document.documentElement.scrollWidth")
        self.assertLessEqual(width, self.screen["viewport"]["width"])
        for selector in (".user > .text", "#composer", "#settings", ".samples", "header"):
            box = self.find(selector).first.bounding_box()
            self.assertGreaterEqual(box["x"], 0, selector)
            self.assertLessEqual(box["x"] + box["width"], self.screen["viewport"]["width"], selector)


class ChatOnAPhone(Chat):
    screen = PHONE

    def touch(self, token):
        token.tap()


class Failures(PageTest):
    def expect_note(self, text):
        self.wait()
        expect(self.find(".assistant > .note:visible")).to_have_text(text)
        self.mock.reset()
        self.press("Try again")
        self.wait()
        self.assertEqual(self.answers(), ["Well met."])

    def test_a_busy_server(self):
        self.mock.refusal = (429, "the queue is full", [("Retry-After", "7")])
        self.send()
        self.expect_note("The server is busy. It may have time in 7 s.")
        expect(self.find(".switcher:visible")).to_have_count(0)  # of what failed nothing is left

    def test_what_the_server_refuses(self):
        self.mock.refusal = (400, "temperature: expected a number from 0 to 100, got 1000", [])
        self.send()
        self.expect_note("temperature: expected a number from 0 to 100, got 1000")

    def test_an_error_amid_the_answer(self):
        self.mock.answers, self.mock.error_after = ["One two three"], 2
        self.send()
        self.assertEqual(self.answers(), ["One two"])
        self.expect_note("the kernel stalled")

    def test_a_connection_that_ends_amid_the_answer(self):
        self.mock.answers, self.mock.drops_after = ["One two three"], 2
        self.send()
        self.assertEqual(self.answers(), ["One two"])
        self.expect_note("The connection ended before the answer did.")

    def test_a_server_that_has_gone(self):
        self.page.route("**/v1/**", lambda route: route.abort())
        self.send()
        self.page.unroute("**/v1/**")
        self.expect_note("The server cannot be reached.")

    def test_an_answer_that_is_cut(self):
        self.mock.finish_reason = "length"
        self.send()
        expect(self.find(".assistant > .note:visible")).to_have_text("Cut off: it has as many tokens as it may.")

    def test_a_key_is_asked_for_and_not_kept_with_the_settings(self):
        self.mock.key = "opensesame"
        self.page.reload()
        expect(self.find("[name=key]")).to_be_focused()
        self.find("[name=key]").fill("opensesame")
        self.press("Close")
        self.send()
        self.assertEqual(self.answers(), ["Well met."])
        self.assertNotIn("opensesame", self.page.evaluate("JSON.stringify(localStorage)"))
        self.assertFalse(self.page.evaluate("location.href").count("opensesame"))

    def test_a_model_without_a_template_completes(self):
        self.mock.lacks_template = True
        self.mock.answers = [" a time."]
        self.set(logprobs=True, system="Be brief.")
        self.send("Once upon")
        self.assertEqual(self.find(".tokens span").all_text_contents(), [" a", " time."])
        self.send(" And")
        request = self.mock.requests[-1]
        self.assertEqual((request["path"], request["prompt"]), ("/v1/completions", "Once upon a time. And"))
        self.assertEqual(request["logprobs"], 0)
        self.press("Settings")
        expect(self.find("#system-hint")).to_be_visible()
        self.assertGreater(request["max_tokens"], 16)


class Page(PageTest):
    def test_the_conversation_is_kept_until_another_is_begun(self):
        self.send("Remember")
        self.page.reload()
        self.assertEqual(self.answers(), ["Well met."])
        self.send("Still there?")
        self.assertEqual(self.last_messages()[0], ("user", "Remember"))
        self.press("New chat")
        expect(self.find(".message")).to_have_count(0)
        self.page.reload()
        expect(self.find(".welcome")).to_be_visible()

    def test_what_is_kept_may_be_broken(self):
        for broken in ("{", "null", "[]", '{"role":"root"}', '{"role":"root","children":[{"role":"user"}],"picked":0}'):
            self.page.goto(self.mock.url + "page.css")  # as the page itself would keep what it shows
            self.page.evaluate("localStorage.clear(); sessionStorage.clear()")
            for name in ("conversation", "conversation.1", "settings"):
                self.page.evaluate("([name, text]) => { localStorage[name] = text; }", [f"soliton.{name}", broken])
            self.page.goto(self.mock.url)
            self.send()
            self.assertEqual(self.answers(), ["Well met."], broken)

    def test_an_answer_that_was_cut_by_a_reload_says_so(self):
        self.mock.answers, self.mock.delay = ["word " * 400], 0.02
        self.send(waits=False)
        expect(self.find(".assistant > .text")).to_contain_text("word word")
        self.page.reload()
        expect(self.find(".assistant > .note:visible")).to_have_text("Stopped.")
        self.assertTrue(self.mock.cancelled.wait(10))

    def test_keys_are_enough(self):
        keys = self.page.keyboard
        expect(self.find("#question")).to_be_focused()
        keys.type("One")
        keys.press("Shift+Enter")
        keys.type("two")
        keys.press("Enter")
        self.wait()
        self.assertEqual(self.last_messages(), [("user", "One\ntwo")])
        expect(self.find("#question")).to_be_focused()
        self.mock.answers, self.mock.delay = ["word " * 400], 0.02
        keys.type("More")
        keys.press("Enter")
        expect(self.find(".assistant > .text").last).to_contain_text("word word")
        keys.press("Escape")
        self.wait()
        expect(self.find(".assistant > .note:visible").last).to_have_text("Stopped.")
        self.mock.reset()
        keys.press("Shift+Tab")  # backwards from the question to the last button of the last answer
        expect(self.find(".assistant").last.get_by_role("button", name="Regenerate")).to_be_focused()
        outline = self.page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
        self.assertEqual(outline, "solid")
        keys.press("Shift+Tab")
        keys.press("Enter")
        expect(self.find(".edit textarea")).to_be_focused()
        keys.press("Escape")
        expect(self.find(".edit")).to_have_count(0)

    def test_the_settings_by_keys(self):
        self.find("#open-settings").focus()
        self.page.keyboard.press("Enter")
        expect(self.find("[name=system]")).to_be_focused()
        expect(self.find("#open-settings")).to_have_attribute("aria-expanded", "true")
        self.page.keyboard.press("Escape")
        expect(self.find("#open-settings")).to_be_focused()
        expect(self.find("#settings")).to_be_hidden()

    def test_answers_are_read_out_by_sentences(self):
        self.mock.answers = ["One **bold** sentence. And a second one, without an end"]
        self.send()
        spoken = [text.strip() for text in self.find("#spoken p").all_text_contents()]
        self.assertEqual(spoken, ["One bold sentence.", "And a second one, without an end"])
        expect(self.find("#spoken")).to_have_attribute("aria-live", "polite")

    def test_copies(self):
        self.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
        self.mock.answers = ["Text:\n```py\nprint(1)\n```"]
        self.send()
        self.find(".copy-code").click()
        expect(self.find(".copy-code")).to_have_text("Copied")
        self.assertEqual(self.page.evaluate("navigator.clipboard.readText()"), "print(1)")
        self.page.evaluate("Object.defineProperty(navigator, 'clipboard', { value: undefined, configurable: true })")
        self.find(".assistant footer").get_by_role("button", name="Copy").click()
        self.page.evaluate("delete navigator.clipboard")
        self.assertEqual(self.page.evaluate("navigator.clipboard.readText()"), "Text:\n```py\nprint(1)\n```")

    def test_dark_and_light(self):
        ground = lambda: self.page.evaluate("getComputedStyle(document.body).backgroundColor")
        light = ground()
        self.page.emulate_media(color_scheme="dark")
        dark = ground()
        self.assertNotEqual(light, dark)
        self.find("#theme").click()
        self.assertEqual(ground(), light)
        self.page.reload()
        self.assertEqual(ground(), light)
        self.find("#theme").click()
        self.page.emulate_media(color_scheme="light")
        self.assertEqual(ground(), dark)


if __name__ == "__main__":
    unittest.main()
