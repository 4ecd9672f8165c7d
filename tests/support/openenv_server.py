"""A server with OpenEnv's wire for tests: ``/schema``, and a session for each WebSocket."""

import json
import random
from contextlib import contextmanager
from threading import Thread
from time import sleep

import uvicorn
from starlette.applications import Starlette
from starlette.responses import JSONResponse
from starlette.routing import Route, WebSocketRoute
from starlette.websockets import WebSocketDisconnect

SCHEMAS = {
    "text": {"properties": {"text": {"type": "string"}, "metadata": {"type": "object"}}, "required": ["text"]},
    "choice": {"properties": {"way": {"type": "string", "enum": ["left", "right"]}}, "required": ["way"]},
    "several": {"properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}, "required": ["a", "b"]},
}


class Guess:
    """Guess a number from 1 to 9 in eight attempts."""

    def reset(self, seed=None, goal=None, **_):
        self.goal, self.turns = goal or random.Random(seed).randint(1, 9), 0
        return self.observed(f"guess a number for {seed}")

    def step(self, data):
        self.turns += 1
        text = data.get("text", str(data.get("a", data.get("way"))))
        if text == "boom":
            raise ValueError("boom!")
        if text in SAYINGS:
            return SAYINGS[text]
        if text == str(self.goal):
            return self.observed("right", 1.0, True)
        return self.observed(f"no {text[:20]}", None, self.turns == 8)

    def observed(self, hint, reward=None, done=False):
        return {"observation": {"hint": hint, "left": 8 - self.turns, "extra": None}, "reward": reward, "done": done}


SAYINGS = {
    "nan": {"observation": {}, "reward": float("nan"), "done": False},
    "list": {"observation": [1, 2], "reward": 0.0, "done": False},
    "long": {"observation": {"hint": "x" * 200_000}, "reward": 0.0, "done": False},
}
"""Answers of a server that does not do as it should."""


def application(kind, room=100):
    open_sessions = []

    async def schema(_):
        return JSONResponse({"action": SCHEMAS[kind], "observation": {}, "state": {}})

    async def session(socket):
        await socket.accept()
        if len(open_sessions) >= room:
            await socket.send_text(
                json.dumps({"type": "error", "data": {"message": "at capacity", "code": "CAPACITY_REACHED"}})
            )
            await socket.close()
            return
        open_sessions.append(socket)
        env = Guess()
        try:
            while (message := json.loads(await socket.receive_text()))["type"] != "close":
                await socket.send_text(json.dumps(answer(env, message)))
        except WebSocketDisconnect:
            pass
        open_sessions.remove(socket)

    return Starlette(routes=[Route("/schema", schema), WebSocketRoute("/ws", session)])


def answer(env, message):
    try:
        played = env.reset(**message["data"]) if message["type"] == "reset" else env.step(message["data"])
    except (ValueError, AttributeError) as error:
        return {"type": "error", "data": {"message": str(error), "code": "EXECUTION_ERROR"}}
    return {"type": "observation", "data": played}


@contextmanager
def serving(kind="text", room=100):
    """Address of a server on loopback."""
    server = uvicorn.Server(
        uvicorn.Config(application(kind, room), port=0, log_level="critical", ws="websockets-sansio")
    )
    thread = Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        sleep(0.01)
    try:
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join()
