"""A scripted model on a local socket, in the shapes of OpenAI's and of Anthropic's API.

It does what the rules of a recipe ask of a model: it has the claim validated by three replicas, acts
if the verdict is VALID, and names the verdict and the round at the end. All that it says after its
first tool call comes from the results of the tools.
"""

import http.server
import json
import threading

RULE = "consensus.replicas 3"
REPLICAS = 3
REQUEST = "Publish this claim: "


def objects(value):
    """Every object in the result of a tool, also in texts, because frameworks wrap results in JSON."""
    if isinstance(value, dict):
        yield value
        for inner in value.values():
            yield from objects(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from objects(inner)
    elif isinstance(value, str) and ("{" in value or "[" in value):
        start = min(at for at in (value.find("{"), value.find("[")) if at != -1)
        try:
            inner, _ = json.JSONDecoder().raw_decode(value, start)
        except ValueError:
            yield from objects(value[start + 1:])
        else:
            yield from objects(inner)


def next_step(request, claim, tools, results):
    """A tool with its arguments, or no tool and the final text."""
    assert RULE in json.dumps(request), "the rules of the recipe did not reach the model"
    if not results:
        # Hosts put the name of the server before that of the tool.
        name = next((name for name in tools if name.endswith("validate")), None)
        assert name is not None, f"the model got no tool `validate`, but {sorted(tools)}"
        assert '"replicas"' in json.dumps(tools[name]), tools[name]
        return name, {"claim": claim, "consensus": {"replicas": REPLICAS}}
    answer = next(found for found in objects(results[0]) if "round_id" in found)
    if answer["verdict"] == "VALID" and len(results) == 1:
        if "publish" in tools:
            return "publish", {"claim": claim}
        return "Write", {"file_path": "published.txt", "content": f"{claim}\n"}
    done = "published" if len(results) == 2 else "did not publish"
    return None, (f"I {done} the claim. The verdict is {answer['verdict']}, "
                  f"from round {answer['round_id']}.")


def claim_in(text):
    return text.split(REQUEST)[1].splitlines()[0]


def chat_completion(request):
    """The reply of `/v1/chat/completions`."""
    messages = request["messages"]
    texts = [json.dumps(it["content"]) for it in messages if it["role"] == "user"]
    results = [it["content"] for it in messages if it["role"] == "tool"]
    tools = {it["function"]["name"]: it["function"]["parameters"] for it in request["tools"]}
    tool, said = next_step(request, claim_in(texts[0]).strip('"'), tools, results)
    message = {"role": "assistant", "content": said}
    if tool is not None:
        function = {"name": tool, "arguments": json.dumps(said)}
        call = {"id": f"call_{len(results)}", "type": "function", "function": function}
        message = {"role": "assistant", "content": None, "tool_calls": [call]}
    finish = "stop" if tool is None else "tool_calls"
    return {
        "id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": request["model"],
        "choices": [{"index": 0, "message": message, "finish_reason": finish}],
        "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
    }


def message_events(request):
    """The events of `/v1/messages`, as a stream has them."""
    parts = [part for it in request["messages"] if isinstance(it["content"], list)
             for part in it["content"]]
    texts = [it["content"] for it in request["messages"] if isinstance(it["content"], str)]
    texts += [part["text"] for part in parts if part["type"] == "text"]
    claim = claim_in(next(text for text in texts if REQUEST in text))
    results = [part["content"] for part in parts if part["type"] == "tool_result"]
    tools = {it["name"]: it.get("input_schema") for it in request["tools"]}
    tool, said = next_step(request, claim, tools, results)
    if tool is None:
        block = {"type": "text", "text": ""}
        delta = {"type": "text_delta", "text": said}
        stop = "end_turn"
    else:
        block = {"type": "tool_use", "id": f"toolu_{len(results)}", "name": tool, "input": {}}
        delta = {"type": "input_json_delta", "partial_json": json.dumps(said)}
        stop = "tool_use"
    usage = {"input_tokens": 1, "output_tokens": 1}
    message = {"id": "msg_1", "type": "message", "role": "assistant", "model": request["model"],
               "content": [], "stop_reason": None, "stop_sequence": None, "usage": usage}
    return [
        {"type": "message_start", "message": message},
        {"type": "content_block_start", "index": 0, "content_block": block},
        {"type": "content_block_delta", "index": 0, "delta": delta},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": stop, "stop_sequence": None},
         "usage": {"output_tokens": 1}},
        {"type": "message_stop"},
    ]


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_arguments):
        pass

    def do_POST(self):
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        path = self.path.split("?")[0]
        try:
            if path == "/v1/messages":
                events = message_events(request)
                text = "".join(f"event: {it['type']}\ndata: {json.dumps(it)}\n\n" for it in events)
                return self.reply(200, "text/event-stream", text)
            assert path == "/v1/chat/completions", path
            return self.reply(200, "application/json", json.dumps(chat_completion(request)))
        except Exception as error:
            self.server.errors.append(repr(error))
            # With this status no client tries again.
            problem = {"error": {"message": repr(error), "type": "invalid_request_error"}}
            return self.reply(400, "application/json", json.dumps(problem))

    def reply(self, status, kind, text):
        body = text.encode()
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def start():
    """A model on a free port: `url` says where, and `errors` has the requests that it refused."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    server.errors = []
    server.url = f"http://127.0.0.1:{server.server_port}"
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server
