"""A small program in the place of a vLLM server, and what it is asked.

Its first argument is a file that takes the paths that it is asked for, and its last one is its port.
"""

from coevo.models.engines.vllm.server_check import ServerProbe

SERVER = """
import http.server, json, sys
asleep = set()
CHOICE = {
    "index": 0, "token_ids": [1], "prompt_logprobs": [None, {"4": {"logprob": -1.0}}],
    "logprobs": {"token_logprobs": [-2.5]},
}

def answer(path):
    if path.startswith("/sleep"):
        asleep.update(("weights", "kv_cache"))
        return {"status": "sleeping"}
    if path.startswith("/wake_up"):
        asleep.discard(path.partition("tags=")[2])
        return {"status": "sleeping" if asleep else "awake"}
    if "completions" in path:
        return None if asleep else {"choices": [CHOICE]}
    return {"success": True, "results": [{}]}

class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        with open(sys.argv[1], "a") as asked:
            asked.write(self.path + "\\n")
        said = answer(self.path)
        self.send_response(500 if said is None else 200)
        self.end_headers()
        self.wfile.write(json.dumps(said or {}).encode())

    def do_GET(self):
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_):
        pass

http.server.HTTPServer(("127.0.0.1", int(sys.argv[-1])), Handler).serve_forever()
"""
"""Answers as vLLM does: asleep it computes nothing, and it is awake once weights and cache are back."""
PROBE = ServerProbe(prompt=(3, 4), logprobs=(-1.0,), temperature=0.7, following=(-0.1, -2.5))
PROMPT = {"prompt": [[3]], "seeds": [1]}
