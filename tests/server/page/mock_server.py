"""A server that answers as a test says, also what no model can be made to say. It serves the page from its sources."""

import http.server
import json
import math
import pathlib
import re
import threading
import time

PAGE = pathlib.Path(__file__).parents[3] / "runtime/server/page"
TYPES = {".html": "text/html", ".css": "text/css", ".js": "text/javascript"}


class MockServer(http.server.ThreadingHTTPServer):
    """Answers are `answers`, one for each sample, in pieces, `delay` seconds apart. `requests` are those that came."""

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.reset()
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_port}/"

    def reset(self):
        self.answers = ["Well met."]
        self.thought = ""  # before each answer, in one piece
        self.delay = 0.0
        self.finish_reason = "stop"
        self.key = None
        self.refusal = None  # (status, error, headers)
        self.error_after = None  # pieces, then an error amid the stream
        self.drops_after = None  # pieces, then the connection ends
        self.lacks_template = False
        self.requests = []
        self.cancelled = threading.Event()


def pieces_of(text):
    return re.findall(r"\s*\S+|\s+$", text)


class Handler(http.server.BaseHTTPRequestHandler):
    def log_message(self, *arguments):
        pass

    def send(self, status, body, content_type="application/json", headers=()):
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(body)))
        for name, value in headers:
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def refuse(self, status, message, headers=(), param=None):
        error = {"message": message, "param": param, "code": None}
        self.send(status, json.dumps({"error": error}).encode(), headers=headers)

    def has_key(self):
        return self.server.key in (None, self.headers.get("Authorization", "").removeprefix("Bearer "))

    def do_GET(self):
        name = self.path.lstrip("/") or "page.html"
        file = PAGE / name
        if name == "v1/models":
            if not self.has_key():
                return self.refuse(401, "Authorization: expected the key")
            self.send(200, json.dumps({"data": [{"id": "mock-8b", "max_model_len": 4096}]}).encode())
        elif file.parent == PAGE and file.suffix in TYPES and file.exists():
            self.send(200, file.read_bytes(), TYPES[file.suffix])
        else:
            self.refuse(404, "path: expected one that there is")

    def do_POST(self):
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        server = self.server
        server.requests.append({"path": self.path, **request})
        if not self.has_key():
            return self.refuse(401, "Authorization: expected the key")
        if server.refusal:
            status, message, headers = server.refusal
            return self.refuse(status, message, headers)
        if server.lacks_template and self.path.endswith("chat/completions"):
            return self.refuse(400, "messages: expected a model with a chat template, got mock-8b", param="messages")
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        try:
            self.stream(request)
        except (BrokenPipeError, ConnectionResetError):
            server.cancelled.set()

    def tell(self, event):
        self.wfile.write(f"data: {event if isinstance(event, str) else json.dumps(event)}\n\n".encode())
        self.wfile.flush()

    def stream(self, request):
        server = self.server
        is_chat = self.path.endswith("chat/completions")
        num_choices = request.get("n", 1)
        samples = [pieces_of(server.answers[i % len(server.answers)]) for i in range(num_choices)]
        count = 0
        if server.thought:
            for index in range(num_choices):
                self.tell({"choices": [{"index": index, "delta": {"reasoning_content": server.thought}}]})
        for at in range(max(map(len, samples))):
            if at == server.error_after:
                self.tell({"error": {"message": "the kernel stalled", "code": "kernel_failed"}})
                return self.tell("[DONE]")
            if at == server.drops_after:
                return
            time.sleep(server.delay)
            for index, pieces in enumerate(samples):
                if at >= len(pieces):
                    continue
                count += 1
                self.tell({"choices": [choice(request, is_chat, index, pieces[at], at)], "usage": None})
        for index in range(num_choices):
            self.tell({"choices": [{"index": index, "delta": {}, "text": "", "finish_reason": server.finish_reason}]})
        usage = {"prompt_tokens": 12, "completion_tokens": count, "prompt_tokens_details": {"cached_tokens": 5}}
        self.tell({"choices": [], "usage": usage})
        self.tell("[DONE]")


def choice(request, is_chat, index, text, at):
    made = {"index": index, "finish_reason": None, "logprobs": None}
    made.update({"delta": {"content": text}} if is_chat else {"text": text})
    if "logprobs" in request:
        logprob = math.log([0.97, 0.6, 0.3, 0.1, 0.01][at % 5])
        best = [{"token": text, "logprob": logprob}, {"token": " else", "logprob": math.log(0.005)}]
        token = {"token": text, "bytes": list(text.encode()), "logprob": logprob}
        made["logprobs"] = {"content": [token | {"top_logprobs": best[: request.get("top_logprobs", 0)]}]}
        if not is_chat:
            made["logprobs"] = {"tokens": [text], "token_logprobs": [logprob], "top_logprobs": [None]}
    return made
