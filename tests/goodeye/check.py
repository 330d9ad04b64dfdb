"""Drives the real Goodeye client through what its users do, on a server of ours.

Each client gets a server of its own, because what one publishes everybody finds, and an account with
some credit: it deploys verifiers from a file and from
standard input, lists, shows, runs, revokes and deletes them, looks at its usage, makes and revokes
keys, and shares what it made with others (sharing.py). Verdicts come from `builtin/rules`; a
provider that nobody answers for makes the judge fail.

Everything happens in a folder of its own.
"""

import argparse
import concurrent.futures
import json
import pathlib
import re
import subprocess
import tempfile

import sharing
from client import PATIENCE, RULE, STRICTER, Client, Failed, Server, deployed, expect, user, verifier


def deploys(client, folder):
    """From a file, from standard input, with the token, and without it."""
    file = folder / "cites.json"
    file.write_text(json.dumps(verifier("cites-source")))
    version, first_id, token = deployed(client.run("verifiers", "deploy", str(file)))
    assert version == 1, version
    stdin = json.dumps(verifier("cites-source", STRICTER, expected_version_token=token))
    version, same_id, newer = deployed(client.run("verifiers", "deploy", "-", given=stdin))
    assert (version, same_id) == (2, first_id) and newer != token, (version, same_id, newer)
    # A stale token and a missing one are told the current one.
    for body in [stdin, json.dumps(verifier("cites-source"))]:
        done = client.run("verifiers", "deploy", "-", given=body, code=1)
        expect(done.stderr.startswith("conflict: "), "no conflict", done)
        expect("hint: " in done.stderr and newer in done.stderr, "no current token", done)
    for field, value in [
        ("name", "Not A Name"), ("input_fields", []),
        ("few_shot_examples", [{"inputs": {}, "passed": True}]),
    ]:
        body = json.dumps(verifier("other") | {field: value})
        done = client.run("verifiers", "deploy", "-", given=body, code=1)
        expect(done.stderr.startswith("validation_error: "), "not refused", done)
        expect(field.split("[")[0] in done.stderr, f"{field} is not named", done)
    done = client.run("verifiers", "deploy", "-", given=json.dumps(verifier("workflow-design-qa")), code=1)
    expect(done.stderr.startswith("conflict: "), "a reserved name was taken", done)
    return first_id, newer


def lists(client, server, first_id, token):
    for number in range(4):
        body = json.dumps(verifier(f"more-{number}"))
        server.jurat("verifiers", "deploy", "-", key=client.key, given=body)
    page = client.json("verifiers", "list", "--limit", "2")
    assert len(page["items"]) == 2 and page["next_cursor"], page
    rest = client.json("verifiers", "list", "--limit", "2", "--cursor", page["next_cursor"])
    names = [item["name"] for item in page["items"] + rest["items"]]
    assert len(set(names)) == 4, names
    whole = client.json("verifiers", "list", "--all", "--limit", "2", "--json")
    assert len(whole["items"]) == 5 and whole["next_cursor"] is None, whole
    found = next(item for item in whole["items"] if item["name"] == "cites-source")
    assert (found["verifier_id"], found["version_token"]) == (first_id, token), found
    assert (found["current_version"], found["status"]) == (2, "active"), found
    done = client.run("verifiers", "list", "--table", "--all")
    expect("cites-source" in done.stdout and first_id in done.stdout, "not in the table", done)


def shows(client, first_id):
    by_name = client.json("verifiers", "show", "cites-source", "--json")
    by_id = client.json("verifiers", "show", first_id, "--json")
    assert by_name == by_id, (by_name, by_id)
    assert by_name["version"] == 2 and json.loads(by_name["criterion"]) == STRICTER, by_name
    assert by_name["judge_model_config"]["model"] == "builtin/rules", by_name
    assert by_name["few_shot_examples"][0]["passed"] is True, by_name
    first = client.json("verifiers", "show", "cites-source", "--version", "1", "--json")
    assert first["version"] == 1 and json.loads(first["criterion"]) == RULE, first
    assert first["config_hash"] != by_name["config_hash"], first
    done = client.run("verifiers", "show", "cites-source")
    expect("cites-source" in done.stdout, "not shown", done)
    for name in ["no-such-verifier", "system:workflow-design-qa", "00000000-0000-7000-8000-000000000000"]:
        done = client.run("verifiers", "show", name, code=1)
        expect(done.stderr.startswith("not_found: "), "not masked", done)


def runs(client, first_id):
    short = json.dumps({"response": "The source says so."})
    long = json.dumps({"response": "The source says so, and says it again and again."})
    for verdict, name, inputs, more in [
        ("PASS", "cites-source", short, []),
        ("FAIL", first_id, long, []),
        ("PASS", "cites-source", long, ["--version", "1"]),
        ("FAIL", first_id, json.dumps({"response": "I know."}), ["-v", "1"]),
    ]:
        done = client.run("verifiers", "run", name, "--inputs-json", inputs, *more)
        expect(done.stdout.startswith(f"{verdict} verifier_run_id="), "another verdict", done)
        expect(len(done.stdout.splitlines()) > 1, "no reasoning", done)
    body = client.json("verifiers", "run", first_id, "--inputs-json", long, "--json")
    assert (body["status"], body["passed"], body["version"]) == ("success", False, 2), body
    assert body["verifier_run_id"] and body["reasoning"], body
    assert body["verifier_id"] == first_id and isinstance(body["duration_ms"], int), body
    for inputs in ["{}", json.dumps({"response": "x", "more": "y"})]:
        done = client.run("verifiers", "run", first_id, "--inputs-json", inputs, code=1)
        expect(done.stderr.startswith("validation_error: "), "not refused", done)
    done = client.run(
        "verifiers", "run", first_id, "--inputs-json", short, "--media-url", "https://h/i.png", code=1
    )
    expect(done.stderr.startswith("validation_error: "), "an image was taken", done)
    done = client.run("verifiers", "run", first_id, "--inputs-json", short, "--version", "9", code=1)
    expect(done.stderr.startswith("not_found: "), "a version that is not there", done)
    done = client.run(
        "verifiers", "run", "cites-source", "--inputs-json", short, "--run-id", "mine", "--json"
    )
    expect('"passed": true' in done.stdout, "no verdict", done)


def judge_fails(client):
    settings = {"model_settings": {"model": "dead/model"}}
    client.run(
        "verifiers", "deploy", "-",
        given=json.dumps(verifier("unanswered", **settings) | {"criterion": "Be kind."}),
    )
    inputs = json.dumps({"response": "x"})
    done = client.run("verifiers", "run", "unanswered", "--inputs-json", inputs, code=1)
    expect(done.stdout.startswith("ERROR verifier_unavailable: "), "not an error", done)
    # This client exits with 0 here.
    body = client.json("verifiers", "run", "unanswered", "--inputs-json", inputs, "--json")
    assert (body["status"], body["passed"]) == ("error", None), body
    assert body["error_code"] == "verifier_unavailable" and body["error_message"], body


def removes(client, first_id):
    done = client.run("verifiers", "revoke", "more-0", "--yes")
    expect("Revoked more-0" in done.stdout, "not revoked", done)
    for command in [["show"], ["run", "--inputs-json", '{"response": "x"}']]:
        done = client.run("verifiers", command[0], "more-0", *command[1:], code=1)
        expect(done.stderr.startswith("not_found: "), "still there", done)
    done = client.run("verifiers", "deploy", "-", given=json.dumps(verifier("more-0")), code=1)
    expect(done.stderr.startswith("conflict: "), "the name of a revoked one was taken", done)
    listed = client.json("verifiers", "list", "--all")
    assert "more-0" not in [item["name"] for item in listed["items"]], listed
    done = client.run("verifiers", "delete", first_id, "--yes")
    expect("Permanently deleted cites-source" in done.stdout, "not deleted", done)
    done = client.run("verifiers", "show", first_id, code=1)
    expect(done.stderr.startswith("not_found: "), "still there", done)


def account(client):
    body = client.json("usage", "--json")
    assert body["tier"] and re.fullmatch(r"\d+\.\d{2,6}", body["available_usd"]), body
    done = client.run("usage")
    expect("Tier:" in done.stdout and "Available: $" in done.stdout, "no usage", done)
    body = client.json("whoami", "--json")
    assert "@" in body["email"], body
    done = client.run("whoami")
    expect("Email:" in done.stdout, "no email", done)


def keys(client):
    done = client.run("auth", "create-key", "--name", "spare")
    secret = re.search(r"Key:\s+(\S+)", done.stdout)
    identifier = re.search(r"ID:\s+(\S+)", done.stdout)
    expect(secret and identifier, "no key", done)
    client.run("verifiers", "list", key=secret[1])
    listed = client.json("auth", "list-keys", "--all")
    assert "spare" in [item["name"] for item in listed["items"]], listed
    assert secret[1] not in json.dumps(listed), "a secret is listed"
    client.run("auth", "revoke-key", identifier[1])
    done = client.run("verifiers", "list", key=secret[1], code=1)
    expect(done.stderr.startswith("auth_required: "), "the key still serves", done)


def others(client, stranger):
    """What belongs to one account does not exist for another."""
    done = client.run("verifiers", "deploy", "-", given=json.dumps(verifier("mine-alone")))
    _, identifier, _ = deployed(done)
    for command in [["show"], ["run", "--inputs-json", '{"response": "x"}'], ["revoke", "--yes"]]:
        done = client.run("verifiers", command[0], identifier, *command[1:], key=stranger, code=1)
        expect(done.stderr.startswith("not_found: "), "another's verifier is seen", done)


def check(ours, program, folder):
    version = subprocess.run([program, "--version"], capture_output=True, text=True, timeout=PATIENCE)
    name = re.sub(r"\W", "", version.stdout.split()[-1])
    folder = folder / name
    folder.mkdir()
    server = Server(ours, folder)
    try:
        uses(server, program, name, folder)
    except Failed as error:
        raise SystemExit(f"{error}\n\nthe log of the server:\n{''.join(server.lines[-20:])}")
    finally:
        server.stop()
    print(f"{version.stdout.strip()}: every step as its users expect")


def uses(server, program, name, folder):
    client = Client(program, server.url, user(server, f"client{name}"), folder)
    stranger = user(server, f"stranger{name}")
    first_id, token = deploys(client, folder)
    lists(client, server, first_id, token)
    shows(client, first_id)
    runs(client, first_id)
    judge_fails(client)
    removes(client, first_id)
    others(client, stranger)
    account(client)
    keys(client)
    sharing.check(server, client, name, folder)
    done = client.run("verifiers", "list", key="jrt_live_nobody", code=1)
    expect(done.stderr.startswith("auth_required: "), "no key is needed", done)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--program", required=True, help="our program, as the tests build it")
    parser.add_argument("--client", action="append", required=True, help="a client; may be given again")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        ours = str(pathlib.Path(args.program).resolve())
        # Each call starts a Python of its own, which is most of the time that this takes.
        with concurrent.futures.ThreadPoolExecutor() as pool:
            for done in [pool.submit(check, ours, program, folder) for program in args.client]:
                done.result()


if __name__ == "__main__":
    main()
