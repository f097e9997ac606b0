"""What answers look like, and that none of them does anything."""

import random
import re
import time
import unittest

from page_fixture import PageTest

RENDER = """async (texts) => {
  const { renderMarkdown } = await import("/markdown.js");
  return texts.map((text) => {
    const target = document.createElement("div");
    renderMarkdown(target, text);
    return target.innerHTML;
  });
}"""

# What of a text's elements is not as the renderer makes them.
FOREIGN = """async (texts) => {
  const { renderMarkdown } = await import("/markdown.js");
  const elements = new Set(("a blockquote br button code div em figcaption figure h3 h4 h5 h6 hr input li ol p pre s " +
    "span strong table tbody td th thead tr ul").split(" "));
  const attributes = new Set("aria-label class dir disabled href rel role start tabindex target title type".split(" "));
  const found = [];
  for (const text of texts) {
    const target = document.createElement("div");
    document.getElementById("chat").append(target);
    renderMarkdown(target, text);
    for (const element of target.querySelectorAll("*")) {
      const isKnown = elements.has(element.localName) &&
        [...element.attributes].every(({ name }) => attributes.has(name));
      const isLink = element.localName === "a";
      const isSafe = !isLink || (/^(https?|mailto):/.test(element.href) && /noopener/.test(element.rel));
      if (!isKnown || !isSafe) found.push([text, element.outerHTML]);
    }
    target.remove();
  }
  return found;
}"""

LINK = '<a href="{0}" title="{0}" target="_blank" rel="noopener noreferrer nofollow">{1}</a>'
CASES = [
    ("plain", "<p>plain</p>"),
    ("a\n\nb\nc", "<p>a</p><p>b<br>c</p>"),
    ("# One\n#hash\n###### Six ##", "<h3>One</h3><p>#hash</p><h6>Six</h6>"),
    (
        "**b** *i* ***x*** __b__ _i_ ~~s~~",
        "<p><strong>b</strong> <em>i</em> <strong><em>x</em></strong> " "<strong>b</strong> <em>i</em> <s>s</s></p>",
    ),
    ("a **b *c* d** e", "<p>a <strong>b <em>c</em> d</strong> e</p>"),
    ("*a **b** c*", "<p><em>a <strong>b</strong> c</em></p>"),
    ("2 * 3 * 4 and a_b_c and __init__.py", "<p>2 * 3 * 4 and a_b_c and <strong>init</strong>.py</p>"),
    ("**open and `*code*` and \\*star\\*", "<p>**open and <code>*code*</code> and *star*</p>"),
    ("`` a`b `` and `c", "<p><code>a`b</code> and `c</p>"),
    (
        "- a\n- b\n  - c\n    1. d\n- e",
        '<ul><li>a</li><li>b<ul><li>c<ol start="1"><li>d</li></ol></li></ul></li><li>e</li></ul>',
    ),
    ("3. a\n4. b", '<ol start="3"><li>a</li><li>b</li></ol>'),
    ("1. a\n\n   more\n\n2. b", '<ol start="1"><li><p>a</p><p>more</p></li><li><p>b</p></li></ol>'),
    ("1. a\n   - x\n   - y\n2. b", '<ol start="1"><li>a<ul><li>x</li><li>y</li></ul></li><li>b</li></ol>'),
    ("Text:\n- a\n- b\nlazy\n\nafter", "<p>Text:</p><ul><li>a</li><li>b<br>lazy</li></ul><p>after</p>"),
    ("born in\n1986. A year", "<p>born in<br>1986. A year</p>"),
    ("> a\n> > b\n\nc", "<blockquote><p>a</p><blockquote><p>b</p></blockquote></blockquote><p>c</p>"),
    ("a\n\n---\n***\nb", "<p>a</p><hr><hr><p>b</p>"),
    (
        "| a | b |\n|:--|--:|\n| **1** | x \\| y |\n| 2 |\n\nend",
        '<div class="table" tabindex="0" role="group" aria-label="Table"><table><thead><tr><th class="left">a</th>'
        '<th class="right">b</th></tr></thead><tbody><tr><td class="left"><strong>1</strong></td><td class="right">x | y</td>'
        '</tr><tr><td class="left">2</td><td class="right"></td></tr></tbody></table></div><p>end</p>',
    ),
    ("a | b\nno table", "<p>a | b<br>no table</p>"),
    (
        "[a *b*](https://x.org/(y)) <https://z.org>",
        "<p>"
        + LINK.format("https://x.org/(y)", "a <em>b</em>")
        + " "
        + LINK.format("https://z.org/", "https://z.org")
        + "</p>",
    ),
    (
        "See https://x.org/a_b, (https://x.org/c).",
        "<p>See "
        + LINK.format("https://x.org/a_b", "https://x.org/a_b")
        + ", ("
        + LINK.format("https://x.org/c", "https://x.org/c")
        + ").</p>",
    ),
    ("![alt](https://x.org/i.png)", "<p>" + LINK.format("https://x.org/i.png", "alt") + "</p>"),
    ("[a](javascript:b) [c](/d)", "<p>[a](javascript:b) [c](/d)</p>"),
    ("<b>x</b> &amp; &lt;", "<p>&lt;b&gt;x&lt;/b&gt; &amp;amp; &amp;lt;</p>"),
]

PAYLOADS = [
    "<script>window.pwned=1</script>",
    "<img src=x onerror=window.pwned=1>",
    "<svg/onload=window.pwned=1>",
    "<iframe srcdoc='<script>parent.pwned=1</script>'></iframe>",
    "</p></div><script>pwned=1</script>",
    "<a href='javascript:pwned=1'>x</a><details open ontoggle=pwned=1>",
    "<style>*{background:url(https://evil.invalid/)}</style><link rel=stylesheet href=https://evil.invalid/>",
    "<meta http-equiv=refresh content='0;url=https://evil.invalid/'><base href=https://evil.invalid/>",
    "<form action=https://evil.invalid/><button>go</button></form>",
    "![x](https://evil.invalid/pixel.png)",
    '![x](x" onerror="pwned=1)',
    "![](javascript:pwned=1)",
    "[x](javascript:pwned=1)",
    "[x](JaVaScRiPt:pwned=1)",
    "[x](java\tscript:pwned=1)",
    "[x](\x01javascript:pwned=1)",
    "[x](<javascript:pwned=1>)",
    "[x](<java\\script:pwned=1>)",
    "[x](javascript&colon;pwned=1)",
    "[x](&#106;avascript:pwned=1)",
    "[x](data:text/html,<script>pwned=1</script>)",
    "[x](vbscript:pwned=1)",
    "[x](blob:https://x/1)",
    "[x](file:///etc/passwd)",
    "[x](//evil.invalid)",
    '[x](https://evil.invalid" onmouseover="pwned=1)',
    '[x](https://e.invalid "t" onclick=pwned=1)',
    "[<img src=x onerror=pwned=1>](https://e.invalid)",
    "[![x](javascript:pwned=1)](javascript:pwned=1)",
    "<javascript:pwned=1>",
    '<https://e.invalid/"onclick=pwned=1>',
    "https://e.invalid/'onclick='pwned=1",
    '```html" onload="pwned=1\n<script>pwned=1</script>\n```',
    "```<img/src=x/onerror=pwned=1>\nx\n```",
    "~~~\n</code></pre><script>pwned=1</script>",
    "`<script>pwned=1</script>`",
    "`</code><img src=x onerror=pwned=1>",
    "| <img src=x onerror=pwned=1> | b |\n|--|--|\n| <script>pwned=1</script> | `|<svg onload=pwned=1>` |",
    "> <script>pwned=1</script>\n> - <img src=x onerror=pwned=1>",
    "1. <script>pwned=1</script>\n   <img src=x onerror=pwned=1>",
    "# <img src=x onerror=pwned=1>",
    "- [x] <img src=x onerror=pwned=1>",
    "**<img src=x onerror=pwned=1>**",
    "<think><script>pwned=1</script></think><img src=x onerror=pwned=1>",
    "<br onmouseover=pwned=1>",
    "<br/onload=pwned=1>",
    "[__proto__](https://e.invalid) constructor `__proto__`",
    "```__proto__\nx\n```",
    "```constructor\nx\n```",
    "\u202e<script>pwned=1</script>",
    "<scr\x00ipt>pwned=1</scr\x00ipt>",
    "<<script>script>pwned=1<</script>/script>",
]

FRAGMENTS = [
    "*",
    "**",
    "***",
    "_",
    "__",
    "~~",
    "`",
    "``",
    "```\n",
    "```js\n",
    "\n",
    "\n\n",
    "  ",
    "    ",
    "- ",
    "* ",
    "1. ",
    "> ",
    "# ",
    "|",
    "|-|-|\n",
    "| a | b |\n|--|--|\n",
    "[",
    "](",
    "](https://e.invalid/x)",
    ")",
    "!",
    "<",
    ">",
    "<br>",
    "https://e.invalid/",
    "<https://e.invalid>",
    "\\",
    "---\n",
    "<script>",
    "</script>",
    "<img src=x onerror=pwned=1>",
    "javascript:pwned=1",
    "[x](javascript:pwned=1)",
    "&lt;",
    "é",
    "\U0001f600",
    "\u202e",
    "\t",
    "[ ] ",
    "- [x] ",
]


def random_texts(count, seed):
    """Fragments of markdown between words that differ, so that each can be found again."""
    chooser = random.Random(seed)
    return [
        "".join(
            chooser.choice(FRAGMENTS) if chooser.random() < 0.6 else f"w{i}w " for i in range(chooser.randint(1, 60))
        )
        for _ in range(count)
    ]


class Markdown(PageTest):
    def test_is_rendered(self):
        rendered = self.page.evaluate(RENDER, [text for text, _ in CASES])
        for (text, expected), got in zip(CASES, rendered):
            with self.subTest(text):
                self.assertEqual(got, expected)

    def test_code_has_a_language_and_a_button(self):
        self.mock.answers = ["```python\na = 1\n\n  b < c\n```\nafter"]
        self.send()
        self.assertEqual(self.find(".code code").inner_text(), "a = 1\n\n  b < c")
        self.assertEqual(self.find(".code figcaption").inner_text().split(), ["python", "Copy"])

    def test_thoughts_stand_apart(self):
        self.mock.answers = ["<think>\nHm, *well*.\n</think>\n\nYes."]
        self.send()
        self.assertEqual(self.answers(), ["Yes."])
        self.find("summary").click()
        self.assertEqual(self.find(".thoughts .text").inner_text(), "Hm, well.")

    def test_thoughts_that_the_server_tells_apart(self):
        self.mock.thought = "Hm, *well*."
        self.mock.answers = ["Yes, </think>."]
        self.send()
        self.assertEqual(self.answers(), ["Yes, </think>."])
        self.find("summary").click()
        self.assertEqual(self.find(".thoughts .text").inner_text(), "Hm, well.")

    def test_loses_no_word(self):
        texts = [text.replace("[x](javascript:pwned=1)", "") for text in random_texts(400, seed=1)]
        addresses = "[...target.querySelectorAll('a')].map((link) => link.href)"
        shown = self.page.evaluate(RENDER.replace("target.innerHTML", f"target.textContent + {addresses}"), texts)
        for text, got in zip(texts, shown):
            fences = [line for line in text.split("\n") if "```" in line]  # what stands behind is a language
            words = [word for word in re.findall(r"w\d+w", text) if not any(word in line for line in fences)]
            self.assertEqual([word for word in words if word not in got], [], text)

    def test_growing_text_ends_as_the_whole_one(self):
        texts = random_texts(60, seed=2)
        differing = self.page.evaluate(
            """async (texts) => {
          const { renderMarkdown } = await import("/markdown.js");
          return texts.filter((text) => {
            const [growing, whole] = [document.createElement("div"), document.createElement("div")];
            for (let end = 0; end <= text.length; end += 3) renderMarkdown(growing, text.slice(0, end));
            renderMarkdown(growing, text);
            renderMarkdown(whole, text);
            return growing.innerHTML !== whole.innerHTML;
          });
        }""",
            texts,
        )
        self.assertEqual(differing, [])

    def test_hard_texts_end(self):
        hard = [
            piece * 20_000
            for piece in (
                "*a ",
                "**a",
                "_a",
                "[",
                "[a](",
                "`",
                "``a`",
                "> ",
                "- ",
                "\\",
                "<",
                "|",
                "# ",
                "~~",
                "http://",
                " ",
                "((",
                "![",
            )
        ]
        hard += [
            "|" + " " * 50_000 + "x\n|-" + " " * 50_000 + "x",
            "-" + " " * 50_000 + "x",
            "```" + " " * 50_000 + "`",
            "".join(">" * i + "a\n" for i in range(400)),
            "".join(" " * i + "- a\n" for i in range(400)),
        ]
        self.page.set_default_timeout(60_000)
        for text in hard:
            start = time.monotonic()
            self.page.evaluate(RENDER, [text])
            self.assertLess(time.monotonic() - start, 20, text[:20])


class Injection(PageTest):
    def test_no_answer_runs(self):
        self.mock.answers = PAYLOADS
        self.set(n=16)
        for first in range(0, len(PAYLOADS), 16):
            self.mock.answers = PAYLOADS[first : first + 16]
            self.send(PAYLOADS[first])
            self.find(".samples .choose").first.click()
        self.page.reload()  # what is kept is shown again
        self.set(n=1, logprobs=True, top_logprobs=2)
        self.mock.answers = [" ".join(PAYLOADS)]
        self.send("And as tokens")
        self.find(".tokens span").nth(1).hover()
        self.press("Plain text")
        self.check_harmless()

    def test_no_name_of_a_model_runs(self):
        self.page.route("**/v1/models", lambda route: route.fulfill(json={"data": [{"id": PAYLOADS[1]}]}))
        self.page.reload()
        self.mock.refusal = (400, PAYLOADS[1], [])
        self.send()
        self.assertEqual(self.find("#model").inner_text(), PAYLOADS[1])
        self.assertEqual(self.find(".assistant > .note:visible").inner_text(), PAYLOADS[1])
        self.check_harmless()

    def check_harmless(self):
        self.page.wait_for_timeout(200)
        self.assertIsNone(self.page.evaluate("window.pwned ?? null"))
        self.assertEqual(self.dialogs, [])
        foreign = "script, img, svg, iframe, style, link, meta, base, object, embed, [onerror], [onload]"
        self.assertEqual(self.find(f"main :is({foreign}, [style]:not(#question, #tip))").count(), 0)

    def test_no_element_but_the_renderers(self):
        texts = PAYLOADS + random_texts(1500, seed=3)
        texts += [f"{a}{b}{a}" for a in ("[x](", "<", "**", "| ", "`") for b in PAYLOADS]
        self.assertEqual(self.page.evaluate(FOREIGN, texts), [])
        self.check_harmless()

    def test_the_policy_holds_where_the_renderer_would_fail(self):
        self.expected_errors += ["Content Security Policy", "Trusted", "Refused to", "violates"]
        self.page.evaluate("""() => {
          const refused = (call) => { try { call(); } catch { /* at once */ } };
          const [script, image] = [document.createElement("script"), document.createElement("img")];
          refused(() => { document.body.innerHTML += "<img src=x onerror='pwned=1'>"; });
          refused(() => { script.textContent = "pwned=1"; });
          refused(() => { script.append("pwned=1"); });
          document.body.append(script);
          refused(() => { image.setAttribute("onerror", "pwned=1"); });
          image.src = "data:,";
          document.body.append(image);
        }""")
        reached = self.page.evaluate("fetch('http://127.0.0.2:1/').then(() => true, (error) => String(error))")
        self.assertIn("TypeError", reached)
        self.page.wait_for_timeout(200)
        self.assertIsNone(self.page.evaluate("window.pwned ?? null"))
        self.requests = [request for request in self.requests if request != "data:," and "127.0.0.2" not in request]


if __name__ == "__main__":
    unittest.main()
