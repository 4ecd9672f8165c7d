"""Tasksets of verifiers for tests: sums with a tool, and without. Only an interpreter with verifiers imports it."""

import verifiers.v1 as vf


class SumData(vf.TaskData):
    answer: int


class SumsConfig(vf.TasksetConfig):
    count: int = 30


class Log(vf.State):
    used: int = 0


class Calculator(vf.Toolset[vf.ToolsetConfig, Log]):
    TOOL_PREFIX = "calc"

    @vf.tool
    async def add(self, a: int, b: int) -> int:
        """Add two numbers."""
        self.state.used += 1
        return a + b


class Sum(vf.Task[SumData, Log]):
    @classmethod
    def toolsets(cls, config):
        return [Calculator(vf.ToolsetConfig())]

    @vf.reward
    async def right(self, trace) -> float:
        return float(trace.last_reply == str(self.data.answer))

    @vf.reward(weight=0.5)
    async def used(self, trace) -> float:
        return float(trace.state.used == 1 and len(trace.tool_messages) == 1)


class PlainSum(vf.Task[SumData]):
    @vf.reward
    async def right(self, trace) -> float:
        return float(trace.last_reply == str(self.data.answer))


class BoxedSum(PlainSum):
    NEEDS_CONTAINER = True


class Sums(vf.Taskset[Sum, SumsConfig]):
    kind = Sum

    def load(self):
        for n in range(self.config.count):
            data = SumData(prompt=f"{n} + {n + 1}", system_prompt="Be brief.", answer=2 * n + 1)
            yield self.kind(data, self.config.task)


class PlainSums(Sums):
    kind = PlainSum


class BoxedSums(Sums):
    kind = BoxedSum
