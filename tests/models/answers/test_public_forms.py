"""Answers in the forms of public agents, prompts and chat templates; each case names its source.

A source is a repository and a path in it. The cases are written anew in the form that the source describes.
"""
# ruff: noqa: E501  (a case is read best in one line)

import pytest

from coevo.models.answers.read import Reader

PATHS = {
    "langchain": "langchain-ai/langchain: libs/langchain/tests/unit_tests/agents/output_parsers/test_react_single_input.py",
    "qwen": "QwenLM/Qwen: examples/react_prompt.md",
    "hotpotqa": "ysymyth/ReAct: hotpotqa.ipynb",
    "fever": "ysymyth/ReAct: prompts/fever.json",
    "react webshop": "ysymyth/ReAct: WebShop.ipynb",
    "react alfworld": "ysymyth/ReAct: alfworld.ipynb",
    "webshop": "princeton-nlp/WebShop: web_agent_site/envs/web_agent_text_env.py",
    "verl-agent": "zhangyun04/verl-agent: agent_system/environments/env_package/alfworld/projection.py",
    "ragen": "RAGEN-AI/RAGEN: ragen/env/sokoban/env.py",
    "balrog": "balrog-ai/BALROG: balrog/agents/chain_of_thought.py",
    "balrog robust": "balrog-ai/BALROG: balrog/agents/robust_cot.py",
    "agentbench alfworld": "THUDM/AgentBench: src/server/tasks/alfworld/utils.py",
    "agentbench os": "THUDM/AgentBench: src/server/tasks/os_interaction/task.py",
    "agentbench db": "THUDM/AgentBench: src/server/tasks/dbbench/Interaction.py",
    "agentbench kg": "THUDM/AgentBench: src/server/tasks/knowledgegraph/task.py",
    "swe-agent": "SWE-agent/SWE-agent: tests/test_parsing.py",
    "smolagents": "huggingface/smolagents: tests/test_agents.py",
    "webarena": "web-arena-x/webarena: agent/prompts/raw/p_cot_id_actree_2s.py",
    "code-act": "xingyaoww/code-act: mint/agents/base.py",
    "hermes": "vllm-project/vllm: tests/entrypoints/openai/tool_parsers/test_hermes_tool_parser.py",
    "llama 3": "vllm-project/vllm: tests/entrypoints/openai/tool_parsers/test_llama3_json_tool_parser.py",
    "llama 4": "vllm-project/vllm: tests/entrypoints/openai/tool_parsers/test_llama4_pythonic_tool_parser.py",
    "pythonic": "vllm-project/vllm: tests/entrypoints/openai/tool_parsers/test_pythonic_tool_parser.py",
    "phi 4": "vllm-project/vllm: tests/entrypoints/openai/tool_parsers/test_phi4mini_tool_parser.py",
    "deepseek 3": "vllm-project/vllm: tests/entrypoints/openai/tool_parsers/test_deepseekv3_tool_parser.py",
    "deepseek 3.1": "vllm-project/vllm: tests/tool_use/test_deepseekv31_tool_parser.py",
    "mistral": "vllm-project/vllm: tests/tool_use/test_mistral_tool_parser.py",
    "kimi": "vllm-project/vllm: tests/tool_use/test_kimi_k2_tool_parser.py",
    "glm": "vllm-project/vllm: tests/tool_use/test_glm4_moe_tool_parser.py",
    "qwen coder": "vllm-project/vllm: tests/tool_use/test_qwen3coder_tool_parser.py",
    "gpt-oss": "vllm-project/vllm: tests/tool_use/test_openai_tool_parser.py",
    "seed": "vllm-project/vllm: tests/tool_use/test_seed_oss_tool_parser.py",
    "qwen-agent": "QwenLM/Qwen-Agent: qwen_agent/llm/fncall_prompts/qwen_fncall_prompt.py",
}

TEXTS = [
    ("langchain", "auto", "Thought: I should look it up\nAction: search\nAction Input: Rome", "search Rome"),
    ("langchain", "auto", "Thought: I know it\nFinal Answer: it is warm", ""),
    ("hotpotqa", "auto", "Thought 1: I need x.\nAction 1: Search[Colorado]\nObservation 1: It", "Search[Colorado]"),
    ("hotpotqa", "auto", "Thought 3: So it is it.\nAction 3: Finish[1,800 ft]", "Finish[1,800 ft]"),
    ("fever", "auto", "Action 2: Lookup[Fox Broadcasting Company]\n", "Lookup[Fox Broadcasting Company]"),
    ("react webshop", "auto", "Action: think[I should check 'dim 4.']", "think[I should check 'dim 4.']"),
    ("react webshop", "auto", "Action: click[Buy Now]\nObservation: Your score", "click[Buy Now]"),
    ("react alfworld", "plain", "> go to cabinet 1\n", "go to cabinet 1"),
    ("webshop", "auto", "Action: search[noise-cancelling headphones, $50.00]", "search[noise-cancelling headphones, $50.00]"),
    ("verl-agent", "auto", "<think>The mug is hot.</think>\n<action>put mug 1 in/on desk 1</action>", "put mug 1 in/on desk 1"),
    ("verl-agent", "tag", "<action>look</action>", "look"),
    ("verl-agent", "auto", "<think>I do <action>look</action></think><action>inventory</action>", "inventory"),
    ("ragen", "tag", "<think>up is free</think><answer>Up || Right</answer>", "Up || Right"),
    ("balrog", "auto", "1. The key is left.\n\nACTION: turn left", "turn left"),
    ("balrog", "auto", "So the best course is to advance. **ACTION: go forward**", "go forward"),
    ("balrog robust", "auto", "Think.\n<|ACTION|>go forward<|END|>", "go forward"),
    ("agentbench alfworld", "auto", "THOUGHT: the lamp is on the desk\n ACTION: go to desk 1", "go to desk 1"),
    ("agentbench os", "fence", "Think: list it.\n\nAct: bash\n\n```bash\nls -1 /etc | wc -l\n```", "ls -1 /etc | wc -l"),
    ("agentbench db", "fence", "Action: Operation\n```sql\nSELECT a FROM t;\n```", "SELECT a FROM t;"),
    ("agentbench kg", "auto", "Thought: next.\nAction: get_neighbors(#0, dining.area)", "get_neighbors(#0, dining.area)"),
    ("swe-agent", "fence", "Let's list the files.\n```\nls -l\n```", "ls -l"),
    ("swe-agent", "tag", "Let's list the files.\n<command>\nls -l\n</command>", "ls -l"),
    ("swe-agent", "plain", "ls -l", "ls -l"),
    ("smolagents", "fence", "Thought: compute.\nCode:\n```py\nx = 3.6\nprint(x)\n```<end_code>", "x = 3.6\nprint(x)"),
    ("smolagents", "tag", "Thought: compute.\n<code>\nfinal_answer(7)\n</code>", "final_answer(7)"),
    ("webarena", "fence", "In summary, the next action I will perform is ```click [1234]```", "click [1234]"),
    ("code-act", "tag", "I list them.\n<execute>\nprint(sum(v))\n</execute>", "print(sum(v))"),
]  # fmt: skip


@pytest.mark.parametrize("source, form, text, action", TEXTS)
def test_an_action_in_text(source, form, text, action):
    assert source in PATHS
    assert Reader(form).read(text).action == action


def tool(name, *required):
    return {"name": name, "parameters": {"type": "object", "required": list(required)}}


TOOLS = (tool("get_weather", "city"), tool("search", "query"), tool("ls", "path"))
ROME = '{"name": "get_weather", "arguments": {"city": "Rome"}}'
CALLS = [
    ("langchain", "Thought: look\nAction: search\nAction Input: Rome", '{"name": "search", "arguments": {"query": "Rome"}}'),
    ("qwen", 'Action: get_weather\nAction Input: {"city": "Rome"}\nObservation: 20 degrees', ROME),
    ("swe-agent", '{"thought": "list", "command": {"name": "ls", "arguments": {"path": "."}}}',
     '{"name": "ls", "arguments": {"path": "."}}'),
    ("smolagents", 'Action:\n{\n  "name": "get_weather",\n  "arguments": {"city": "Rome"}\n}', ROME),
    ("hermes", 'so I ask.\n</think>\n\n<tool_call>\n{"name": "get_weather", "arguments": {"city": "Rome"}}\n</tool_call>\n', ROME),
    ("llama 3", '<|python_tag|>{"name": "get_weather", "parameters": {"city": "Rome"}}', ROME),
    ("llama 3", '{"name": "get_weather", "parameters": {"city": "Rome"}}', ROME),
    ("llama 3", '<|python_tag|>search.call(query="Rome")', '{"name": "search", "arguments": {"query": "Rome"}}'),
    ("llama 4", "<|python_start|>[get_weather(city='Rome')]<|python_end|>", ROME),
    ("pythonic", "[search(query='Ostia'), get_weather(city='Rome')]", ROME),
    ("phi 4", 'functools[{"name": "get_weather", "arguments": {"city": "Rome"}}]', ROME),
    ("deepseek 3", '<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>get_weather\n```json\n{"city": "Rome"}\n```'
     "<｜tool▁call▁end｜><｜tool▁calls▁end｜>", ROME),
    ("deepseek 3.1", '<｜tool▁call▁begin｜>get_weather<｜tool▁sep｜>{"city": "Rome"}<｜tool▁call▁end｜>', ROME),
    ("mistral", '[TOOL_CALLS] [{"name": "get_weather", "arguments": {"city": "Rome"}}]', ROME),
    ("mistral", '[TOOL_CALLS]get_weather{"city": "Rome"}', ROME),
    ("mistral", '[TOOL_CALLS]get_weather[ARGS]{"city": "Rome"}', ROME),
    ("kimi", "I check. <|tool_calls_section_begin|><|tool_call_begin|>functions.get_weather:0"
     '<|tool_call_argument_begin|>{"city": "Rome"}<|tool_call_end|><|tool_calls_section_end|>', ROME),
    ("glm", "<tool_call>get_weather\n<arg_key>city</arg_key>\n<arg_value>Rome</arg_value>\n</tool_call>", ROME),
    ("qwen coder", "<tool_call>\n<function=get_weather>\n<parameter=city>\nRome\n</parameter>\n</function>\n</tool_call>", ROME),
    ("gpt-oss", "<|channel|>analysis<|message|>I ask.<|end|><|start|>assistant<|channel|>commentary to=functions.get_weather "
     '<|constrain|>json<|message|>{"city": "Rome"}<|call|>', ROME),
    ("seed", "<seed:think>I ask.</seed:think><seed:tool_call>\n<function=get_weather>\n<parameter=city>Rome</parameter>\n"
     "</function>\n</seed:tool_call>", ROME),
    ("qwen-agent", '✿FUNCTION✿: get_weather\n✿ARGS✿: {"city": "Rome"}', ROME),
]  # fmt: skip


@pytest.mark.parametrize("source, text, action", CALLS)
def test_a_tool_call(source, text, action):
    assert source in PATHS
    assert Reader(tools=TOOLS).read(text).action == action
    assert Reader(tools=(tool("fly"),)).read(text).fault == "unknown tool"


def test_every_source_has_a_case():
    assert {source for source, *_ in (*TEXTS, *CALLS)} == PATHS.keys()
    assert len(TEXTS) + len(CALLS) >= 30
