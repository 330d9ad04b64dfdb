"""An executor in plain Python. Run `python3 executor.py 8787`, then change `answer` and `judge`.

A second argument is the name of the model, so that copies can be told apart. Port 0 takes a free one.
"""
import hashlib
import json
import re
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

CAPABILITIES = {
    "task_types": ["*"],  # "*" takes any
    "profiles": ["default"],
    "provider_family": "my-python",
    "model_id": "my-model-v1",
    "policies": ["vp.claim.v1"],
}
ANSWERS = {}  # execution_id -> [lock, request, answer]


def answer(task_type, inputs, output_schema):
    """Does the work. What it returns must match `output_schema`."""
    if task_type == "factcheck":
        verdict = {True: "TRUE", False: "FALSE", None: "UNSURE"}[judge(inputs.get("claim"))]
        return {"verdict": verdict, "confidence": 0.9}
    return {"answer": inputs.get("prompt", ""), "confidence": 0.9}


def judge(claim):
    """True, False, or None when it cannot tell. This one knows additions."""
    match = re.fullmatch(r"\s*(\d{1,9})\s*\+\s*(\d{1,9})\s*=\s*(\d{1,10})\s*\.?\s*", str(claim))
    return int(match[1]) + int(match[2]) == int(match[3]) if match else None


class Refused(Exception):
    def __init__(self, status, error, message):
        self.status, self.body = status, {"error": error, "message": message}


def sha256(text):
    return "sha256:" + hashlib.sha256(text.encode()).hexdigest()


def canonical(value):
    """RFC 8785 for everyday values: sorted keys, no spaces, whole floats without a fraction."""
    whole = lambda text: int(float(text)) if float(text).is_integer() else float(text)
    value = json.loads(json.dumps(value), parse_float=whole)
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def execute(request):
    # The same execution_id gets the same answer; whoever asks again meanwhile waits for it.
    entry = ANSWERS.setdefault(request["execution_id"], [threading.Lock(), request, None])
    if entry[1] != request:
        raise Refused(409, "execution_id_reused", "execution_id was used with another request")
    with entry[0]:
        schema = request["task_contract"].get("output_schema", {})
        entry[2] = entry[2] or answer(request["task_type"], request["inputs"], schema)
    while len(ANSWERS) > 10_000:
        ANSWERS.pop(next(iter(ANSWERS)), None)
    return {"candidate_output": entry[2], "evidence_inline": [], "evidence_refs": []}


def verify(request):
    candidate, policy = request["candidate"], request["policy"]
    policy_id, params = policy["policy_id"], policy["policy_params"]
    if policy["policy_hash"] != sha256(policy_id + canonical(params)):
        raise Refused(400, "policy_invalid", "policy binding invalid: policy_hash does not match")
    if policy_id == "vp.claim.v1":
        verdict = judge(candidate["output"])
    elif policy_id == "vp.schema_only.v1" and request["output_schema"] == {}:
        verdict = True  # an empty schema matches everything
    else:  # the kernel then says NEEDS_SPEC: better than a verdict that nobody computed
        raise Refused(422, "policy_unsupported", f"{policy_id} is not evaluated here with this schema")
    result = {
        "candidate_id": candidate["candidate_id"],
        "execution_id": candidate["execution_id"],
        "passed": verdict is True,
        "score": 0.5 if verdict is None else 0.9,  # confidence in the verdict
        "reason_codes": {True: [], False: [1020], None: [1021]}[verdict],
        "provider_family": CAPABILITIES["provider_family"],
        "model_id": CAPABILITIES["model_id"],
        "policy_hash": policy["policy_hash"],  # as received
    }
    text = json.dumps(result, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    status = {True: "passed", False: "failed", None: "inconclusive"}[verdict]
    return result | {"verification_status": status, "verifier_result_hash": sha256(text)}


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        routes = {"/health": {"status": "ok"}, "/capabilities": CAPABILITIES}
        self.reply(200 if self.path in routes else 404, routes.get(self.path, {"error": "not_found"}))

    def do_POST(self):
        try:
            length = int(self.headers.get("Content-Length", 0))
            if length > 2 * 1024 * 1024:
                raise Refused(413, "payload_too_large", "at most 2 MiB")
            if self.path not in ("/execute", "/verify"):
                raise Refused(404, "not_found", "POST /execute or /verify")
            do = execute if self.path == "/execute" else verify
            self.reply(200, do(json.loads(self.rfile.read(length))))
        except Refused as refused:
            self.reply(refused.status, refused.body)
        except json.JSONDecodeError as error:
            self.reply(400, {"error": "invalid_json", "message": str(error)})
        except (AttributeError, KeyError, TypeError) as error:
            self.reply(422, {"error": "request_invalid", "message": f"missing or wrong: {error}"})

    def reply(self, status, body):
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


def main(arguments):
    port, *model = arguments or ["8787"]
    CAPABILITIES["model_id"] = (model or [CAPABILITIES["model_id"]])[0]
    server = ThreadingHTTPServer(("127.0.0.1", int(port)), Handler)
    print(f"listening on http://127.0.0.1:{server.server_port}", flush=True)
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        pass


if __name__ == "__main__":
    main(sys.argv[1:])
