"""Calls every method of the Agent2Agent protocol with the client of its Python SDK.

Over JSON-RPC and over HTTP with JSON, against the real program with three executors that answer and
one that never does.
"""

import argparse
import asyncio
import base64
import hashlib
import http.server
import json
import os
import pathlib
import queue
import re
import subprocess
import sys
import threading
import uuid

import httpx
from a2a.client.card_resolver import A2ACardResolver
from a2a.client.client import ClientConfig
from a2a.client.client_factory import ClientFactory
from a2a.types import a2a_pb2 as pb
from a2a.utils import errors
from a2a.utils.signing import create_signature_verifier
from google.protobuf.json_format import MessageToDict, ParseDict
from jwt.api_jwk import PyJWK

from program import PATIENCE
from world import world

BINDINGS = ["JSONRPC", "HTTP+JSON"]
GUIDE = pathlib.Path(__file__).resolve().parents[2] / "docs" / "guide" / "a2a.md"


def message(part, **more):
    """A request to send a message with one part."""
    body = {"messageId": str(uuid.uuid4()), "role": "ROLE_USER", "parts": [part]} | more
    return {"message": body}


def request(body):
    return ParseDict(body, pb.SendMessageRequest())


async def sent(client, body):
    """The events of a message."""
    return [MessageToDict(event) async for event in client.send_message(request(body))]


async def task_of(client, body):
    events = await sent(client, body)
    assert len(events) == 1, events
    return events[0]["task"]


def part(task, artifact, member):
    artifact = next(it for it in task["artifacts"] if it["artifactId"] == artifact)
    return next(it[member] for it in artifact["parts"] if member in it)


async def refused(kind, call):
    try:
        await call
    except kind as error:
        return str(error)
    raise AssertionError(f"{kind} was expected")


def key_of(protected):
    header = json.loads(base64.urlsafe_b64decode(protected + "=" * (-len(protected) % 4)))
    return PyJWK.from_dict(header["jwk"] | {"alg": "EdDSA"})


async def card(http, url):
    """The card is signed by the key that it names."""
    resolver = A2ACardResolver(http, url)
    unchecked = await resolver.get_agent_card()
    key = key_of(unchecked.signatures[0].protected)
    verifier = create_signature_verifier(lambda kid, jku: key, ["EdDSA"])
    found = await resolver.get_agent_card(signature_verifier=verifier)
    old = await resolver.get_agent_card("/.well-known/agent.json")
    assert found == old
    found.name = "Somebody else"
    try:
        verifier(found)
    except Exception:
        return unchecked, verifier
    raise AssertionError("a forged card was accepted")


async def skills(client):
    """Each skill, and the task that it leaves."""
    three = {"consensus": {"replicas": 3, "session_pool": ["alpha", "beta", "gamma"]}}
    for skill, body, answer in [
        ("delegate", {"objective": "say it again", "input": {"n": 7}}, None),
        ("validate", {"claim": "12 * 12 = 144"}, "VALID"),
        ("factcheck", {"claim": "12 * 12 = 144"}, "TRUE"),
    ]:
        task = await task_of(client, message({"data": {"skill": skill} | body | three}))
        assert task["status"]["state"] == "TASK_STATE_COMPLETED", task
        assert part(task, "answer", "data")["consensus"]["replicas"] == 3, task
        assert answer in (None, part(task, "answer", "text")), task
        entry = base64.b64decode(part(task, "decision", "raw"))
        receipt = "sha256:" + hashlib.sha256(entry).hexdigest()
        assert part(task, "answer", "data")["receipt_id"] == receipt, task
        shown = await client.get_task(pb.GetTaskRequest(id=task["id"]))
        assert MessageToDict(shown) == task, (MessageToDict(shown), task)
    body = {"skill": "run-verifier", "verifier": "sourced", "inputs": {"answer": "Source: x"}}
    task = await task_of(client, message({"data": body}))
    assert part(task, "answer", "data")["passed"] is True, task
    text = {"text": "2 + 2"}
    task = await task_of(client, message(text, metadata={"skill": "delegate"}))
    assert task["history"][0]["parts"][0]["text"] == "2 + 2", task
    return task


async def contexts(client, first):
    """A second task in the context of the first, and the list of both."""
    body = message({"text": "3 + 3"}, contextId=first["contextId"])
    second = await task_of(client, body)
    again = await task_of(client, body)
    assert second["contextId"] == first["contextId"] and again["id"] == second["id"], again
    page = await client.list_tasks(pb.ListTasksRequest(context_id=first["contextId"]))
    assert [task.id for task in page.tasks] == [second["id"], first["id"]], page
    page = await client.list_tasks(pb.ListTasksRequest(page_size=2))
    assert len(page.tasks) == 2 and page.next_page_token and page.total_size >= 6, page
    rest = pb.ListTasksRequest(page_size=100, page_token=page.next_page_token)
    rest = await client.list_tasks(rest)
    assert not {task.id for task in page.tasks} & {task.id for task in rest.tasks}, rest


async def streams(client):
    """A streamed message, and a task that is followed and cancelled."""
    events = await sent(client, message({"text": "4 + 4"}))
    assert [next(iter(event)) for event in events] == [
        "task", "artifactUpdate", "artifactUpdate", "statusUpdate"], events
    hanging = {"data": {"skill": "delegate", "objective": "x", "session_id": "hanging",
                        "policy": {"task_type": "hang"}}}
    # The stream stays open, so its first event is enough.
    async for event in client.send_message(request(message(hanging))):
        task = MessageToDict(event)["task"]
        break
    assert task["status"]["state"] == "TASK_STATE_WORKING", task
    followed = []

    async def follow():
        async for event in client.subscribe(pb.SubscribeToTaskRequest(id=task["id"])):
            followed.append(MessageToDict(event))
            if len(followed) == 1:
                began.set()

    began = asyncio.Event()
    following = asyncio.create_task(follow())
    await asyncio.wait_for(began.wait(), PATIENCE)
    ended = await client.cancel_task(pb.CancelTaskRequest(id=task["id"]))
    assert MessageToDict(ended)["status"]["state"] == "TASK_STATE_CANCELED", ended
    await asyncio.wait_for(following, PATIENCE)
    assert "task" in followed[0], followed
    status = followed[-1]["statusUpdate"]["status"]["state"]
    assert status == "TASK_STATE_CANCELED", followed
    return task


async def refusals(client, done):
    """Errors arrive as the errors of the SDK, with the code of the registry."""
    unknown = "rnd_01ARZ3NDEKTSV4RRFFQ69G5FAV"
    await refused(errors.TaskNotFoundError, client.get_task(pb.GetTaskRequest(id=unknown)))
    cancel = pb.CancelTaskRequest(id=done["id"])
    await refused(errors.TaskNotCancelableError, client.cancel_task(cancel))
    wrong = {"data": {"skill": "validate", "claim": "x", "replicas": 3}}
    text = await refused(errors.InvalidParamsError, sent(client, message(wrong)))
    assert "replicas" in text, text
    more = message({"text": "more"}, taskId=done["id"])
    await refused(errors.UnsupportedOperationError, sent(client, more))
    file = message({"url": "https://example.com/x"})
    await refused(errors.ContentTypeNotSupportedError, sent(client, file))
    private = pb.TaskPushNotificationConfig(task_id=done["id"], url="https://10.0.0.1/news")
    text = await refused(errors.InvalidParamsError, client.create_task_push_notification_config(private))
    assert "url" in text, text


class Receiver(http.server.BaseHTTPRequestHandler):
    """Receives push notifications."""
    received = queue.Queue()

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.received.put((self.headers, json.loads(body)))
        self.send_response(204)
        self.end_headers()

    def log_message(self, *_):
        pass


async def pushes(client, url):
    """A task that begins with a push notification, and the methods for others."""
    sending = ParseDict(message({"text": "Say hello."}), pb.SendMessageRequest())
    sending.configuration.task_push_notification_config.CopyFrom(
        pb.TaskPushNotificationConfig(id="mine", url=url, token="sesame"))
    async for event in client.send_message(sending):
        task = event.task
    headers, body = await asyncio.to_thread(Receiver.received.get, timeout=PATIENCE)
    update = ParseDict(body, pb.StreamResponse()).status_update
    assert headers["X-A2A-Notification-Token"] == "sesame", headers
    assert (update.task_id, update.context_id) == (task.id, task.context_id), body
    assert update.status.state == pb.TASK_STATE_COMPLETED, body

    named = {"task_id": task.id, "id": "mine"}
    found = await client.get_task_push_notification_config(
        pb.GetTaskPushNotificationConfigRequest(**named))
    assert (found.url, found.token) == (url, ""), found
    await client.create_task_push_notification_config(
        pb.TaskPushNotificationConfig(task_id=task.id, id="other", url=url))
    listed = await client.list_task_push_notification_configs(
        pb.ListTaskPushNotificationConfigsRequest(task_id=task.id))
    assert [config.id for config in listed.configs] == ["mine", "other"], listed
    await asyncio.to_thread(Receiver.received.get, timeout=PATIENCE)
    for name in ["mine", "other"]:
        await client.delete_task_push_notification_config(
            pb.DeleteTaskPushNotificationConfigRequest(task_id=task.id, id=name))
    listed = await client.list_task_push_notification_configs(
        pb.ListTaskPushNotificationConfigsRequest(task_id=task.id))
    assert not listed.configs, listed


async def conversation(http, found, verifier, binding):
    """Every method over one binding."""
    def client(streaming):
        config = ClientConfig(streaming=streaming, httpx_client=http,
                              supported_protocol_bindings=[binding], use_client_preference=True)
        return ClientFactory(config).create(found)

    whole, streaming = client(False), client(True)
    extended = await whole.get_extended_agent_card(
        pb.GetExtendedAgentCardRequest(), signature_verifier=verifier)
    assert "run-verifier:sourced" in [skill.id for skill in extended.skills], extended
    first = await skills(whole)
    await contexts(whole, first)
    await streams(streaming)
    await refusals(whole, first)
    return whole


async def old_client(http, url):
    """A client of version 0.3 is told which version is served."""
    body = {"jsonrpc": "2.0", "id": 1, "method": "message/send", "params": {"message": {
        "kind": "message", "messageId": "m", "role": "user", "parts": [{"kind": "text", "text": "x"}]}}}
    error = (await http.post(f"{url}/a2a", json=body)).json()["error"]
    assert error["code"] == -32009 and "A2A 1.0" in error["message"], error


async def check(url, key, receiver):
    headers = {"Authorization": f"Bearer {key}"}
    async with httpx.AsyncClient(headers=headers, timeout=PATIENCE, trust_env=False) as http:
        found, verifier = await card(http, url)
        await old_client(http, url)
        clients = await asyncio.gather(
            *(conversation(http, found, verifier, binding) for binding in BINDINGS))
        # One after the other: they share the receiver.
        for client in clients:
            await pushes(client, receiver)


def guide(url, key, news):
    """The snippets of the guide, in its order and as they are but for addresses and executors."""
    snippets = re.findall(r"^```(python|sh)\n(.*?)^```$", GUIDE.read_text(), re.M | re.S)
    assert [language for language, _ in snippets] == ["python", "sh", "sh"], snippets
    shown = []
    for language, text in snippets:
        three = '{"replicas": 3, "session_pool": ["alpha", "beta", "gamma"]}'
        for written, real in [("http://127.0.0.1:5872", url), ("https://example.com/news", news),
                              ('{"replicas": 3}', three)]:
            text = text.replace(written, real)
        command = [sys.executable, "-c", text] if language == "python" else ["bash", "-ec", text]
        env = os.environ | {"JURAT_KEY": key, "NO_PROXY": "127.0.0.1"}
        done = subprocess.run(command, env=env, timeout=PATIENCE, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        shown.append(done.stdout)
    assert "TASK_STATE_COMPLETED" in shown[0], shown[0]
    task = json.loads(shown[1])["task"]
    assert part(task, "answer", "text") == "VALID", task
    assert part(task, "answer", "data")["consensus"]["replicas"] == 3, task
    began = json.loads(shown[2])["task"]
    headers, body = Receiver.received.get(timeout=PATIENCE)
    assert headers["X-A2A-Notification-Token"] == "chosen-by-the-receiver", headers
    assert body["statusUpdate"]["taskId"] == began["id"], (body, began)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--program", default="target/debug/jurat", help="the program to try")
    program = parser.parse_args().program
    receiver = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
    threading.Thread(target=receiver.serve_forever, daemon=True).start()
    news = f"http://127.0.0.1:{receiver.server_port}/news"
    with world(program) as (url, key):
        asyncio.run(check(url, key, news))
        guide(url, key, news)
    print("the protocol holds")


if __name__ == "__main__":
    main()
