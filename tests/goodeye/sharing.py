"""What the users of the real Goodeye client do with each other: they register, save workflows that
name verifiers, share them, publish templates, and run and fork what others published."""

import json
import re
import time

from client import RULE, Client, deployed, expect, verifier

BODY = """---
name: {name}
description: Answers questions from one source.
outcome: Every answer names its source.
tags: [answers]
---

# Answer from a source

Ask the verifier `cites` before you send anything.
"""

SAVED = re.compile(r"Saved (\S+) v(\d+) \(\w+_id=([0-9a-f-]{36}), version_token=(\S{1,64})\)")
PUBLISHED = re.compile(r"Published template ([0-9a-f-]{36}) v(\d+) as @(\S+)")
SHORT = json.dumps({"response": "The source says so."})


def mailed(server, email, seen):
    """The code in the newest mail to an address; mails are files in the state folder."""
    for _ in range(600):
        for file in sorted((server.state / "mail").glob("*")):
            text = file.read_text()
            # The file is there before all of its words are.
            code = re.search(r"Your code is (\S+)\s", text)
            if file not in seen and email in text and code:
                seen.add(file)
                return code[1]
        # The mail is written after the answer.
        time.sleep(0.1)
    raise SystemExit(f"no mail to {email}")


def registers(server, client, name, folder):
    """Registers and logs in with codes from mails; returns the client as that person."""
    email, seen = f"{name}@example.com", set()
    home = folder / name
    home.mkdir()
    person = Client(client.program, client.env["GOODEYE_SERVER"], "", home)
    del person.env["GOODEYE_API_KEY"]
    person.run("register", "--email", email)
    done = person.run("register-verify", "--email", email, "--code", "000000", code=1)
    expect(done.stderr.startswith("invalid_credentials: "), "a wrong code was taken", done)
    person.run("register-verify", "--email", email, "--code", mailed(server, email, seen))
    body = person.json("whoami", "--json")
    assert body["email"] == email, body
    person.run("login", "--email", email)
    person.run("login-verify", "--email", email, "--code", mailed(server, email, seen))
    person.key = json.loads((home / "goodeye" / "credentials.json").read_text())["api_key"]
    account = json.loads(server.jurat("whoami", "--json", key=person.key))["id"]
    server.jurat("admin", "grant", account, "5", "--note", "to try it")
    return person


def saved(done):
    found = SAVED.search(done.stdout)
    expect(found, "not the line of a save", done)
    return int(found[2]), found[3], found[4]


def binds(group, owner, verifier_id, folder, name):
    """Saves a workflow with a file beside it, then a version; bindings are carried forward."""
    tree = folder / "tree"
    (tree / "notes").mkdir(parents=True)
    (tree / "SKILL.md").write_text(BODY.format(name=name))
    (tree / "notes" / "how.txt").write_text("Slowly.\n")
    done = owner.run(group, "publish", str(tree), "--verifier", f"cites={verifier_id}")
    version, identifier, token = saved(done)
    assert version == 1, version
    file = folder / "next.md"
    file.write_text(BODY.format(name=name) + "\nAnd again.\n")
    done = owner.run(group, "publish", str(file), code=1)
    expect(done.stderr.startswith("conflict: ") and token in done.stderr, "no conflict", done)
    done = owner.run(group, "publish", str(file), "--expected-version-token", token)
    version, same, _ = saved(done)
    assert (version, same) == (2, identifier), (version, same)
    body = owner.json(group, "get", name, "--json")
    assert body["version"] == 2 and "And again." in body["body"], body
    assert [it["verifier_id"] for it in body["verifiers"]] == [verifier_id], body
    assert [it["path"] for it in body["files"]] == ["notes/how.txt"], body
    first = owner.json(group, "get", identifier, "--version", "1", "--json")
    assert "And again." not in first["body"], first
    done = owner.run(group, "get", name)
    expect("# Answer from a source" in done.stdout, "no runbook", done)
    listed = owner.json(group, "list", "--json")
    assert [it["name"] for it in listed["items"]] == [name], listed
    found = owner.json(group, "search", "answers source", "--json")
    assert found["items"][0]["id"] == identifier, found
    return identifier


def syncs(group, owner, folder, version):
    """A name with spaces is kept in a folder of its slug, and survives a push."""
    file, named, slug = folder / "spaced.md", f"Sync me {version}", f"sync-me-{version}"
    file.write_text("---\ndescription: Is kept in a folder.\noutcome: Nothing is lost.\n---\n\n# Keep\n")
    owner.run(group, "publish", str(file), "--name", named)
    target = folder / "mirror"
    owner.run(group, "sync", "target", "add", str(target), "--scope", "owned")
    owner.run(group, "sync", "pull")
    kept = target / slug / "SKILL.md"
    assert kept.read_text() == file.read_text(), kept
    kept.write_text(kept.read_text() + "\nAnd again.\n")
    owner.run(group, "sync", "push")
    body = owner.json(group, "get", slug, "--json")
    assert body["version"] == 2 and "And again." in body["body"], body
    assert body["name"] == named, body
    if group == "skills":
        file.write_text("# Rewritten\n")
        owner.run(group, "put-file", slug, "SKILL.md", "--from-file", str(file))
        body = owner.json(group, "get", slug, "--json")
        assert (body["version"], body["body"]) == (3, "# Rewritten\n"), body
        assert body["name"] == named and body["files"] == [], body
    owner.run(group, "delete", slug, "--yes")


def grants(group, owner, friend, identifier, verifier_id, names):
    """A friend runs what was shared and sees no more; revoking ends it."""
    handle, name = names
    run = ["verifiers", "run", verifier_id, "--inputs-json", SHORT]
    done = friend.run(*run, code=1)
    expect(done.stderr.startswith("not_found: "), "seen before it was shared", done)
    email = friend.json("whoami", "--json")["email"]
    done = owner.run(group, "grant", identifier, email, "view")
    expect("Granted view" in done.stdout, "not granted", done)
    done = friend.run(*run)
    expect(done.stdout.startswith("PASS "), "not run", done)
    # A bare name is one's own; the hint says what that of others is called.
    done = friend.run(group, "get", name, code=1)
    expect(done.stderr.startswith("not_found: "), "a bare name of another's", done)
    expect(f"@{handle}/{name}" in done.stderr, "no full name in the hint", done)
    assert friend.json(group, "get", f"@{handle}/{name}", "--json")["id"] == identifier
    listed = friend.json("verifiers", "list", "--json")["items"]
    assert [(it["verifier_id"], it["role"]) for it in listed] == [(verifier_id, "exec")], listed
    done = friend.run("verifiers", "show", verifier_id, code=1)
    expect(done.stderr.startswith("not_found: "), "a viewer sees the criterion", done)
    friend.json(group, "get", identifier, "--json")
    done = friend.run(group, "get", identifier, "--version", "1", code=1)
    expect(done.stderr.startswith("not_found: "), "the floor does not hold", done)
    shared = friend.json(group, "list", "--filter", "shared-with-me", "--json")["items"]
    assert [it["id"] for it in shared] == [identifier], shared
    rows = owner.json(group, "grants", identifier, "--json")
    rows = rows["items"] if isinstance(rows, dict) else rows
    assert [(it["role"], it["grantee_identifier"]) for it in rows] == [("view", email)], rows
    owner.run(group, "grant", identifier, email, "edit", "--include-history")
    friend.json("verifiers", "show", verifier_id, "--json")
    friend.json(group, "get", identifier, "--version", "1", "--json")
    done = owner.run(group, "revoke-grant", identifier, email)
    expect("Revoked grant" in done.stdout, "not revoked", done)
    for command in [run, [group, "get", identifier]]:
        done = friend.run(*command, code=1)
        expect(done.stderr.startswith("not_found: "), "still shared", done)


def teams(group, owner, friend, identifier, verifier_id, name):
    """A team is invited to, and what it may use its members may."""
    done = owner.run("teams", "create", f"team-{name}")
    expect(f"@team-{name}" in done.stdout, "no team", done)
    email = friend.json("whoami", "--json")["email"]
    done = owner.run("teams", "add-member", f"@team-{name}", email)
    invitation = re.search(r"id:\s+(\S+)", done.stdout)
    expect(invitation, "no invitation", done)
    owner.run(group, "grant", identifier, f"@team-{name}", "view")
    run = ["verifiers", "run", verifier_id, "--inputs-json", SHORT]
    friend.run(*run, code=1)
    listed = friend.json("invitations", "list", "--json")
    assert [it["id"] for it in listed["items"]] == [invitation[1]], listed
    friend.run("invitations", "accept", invitation[1])
    friend.run(*run)
    owner.run("teams", "remove-member", f"@team-{name}", email)
    done = friend.run(*run, code=1)
    expect(done.stderr.startswith("not_found: "), "still a member", done)


def templates(group, owner, friend, identifier, verifier_id, names):
    """Published for everybody, run without a key, forked, and kept from being deleted."""
    name, handle, file = names
    version = str(owner.json("verifiers", "show", verifier_id, "--json")["version"])
    anonymous = ["verifiers", "run", verifier_id, "--anonymous", "--version", version]
    anonymous += ["--inputs-json", SHORT]
    done = friend.run(*anonymous, code=1)
    expect("PASS" not in done.stdout, "run before it was published", done)
    done = owner.run("templates", "publish", identifier, "--release-notes", "The first.")
    found = PUBLISHED.search(done.stdout)
    expect(found and found[3] == handle, "not published", done)
    template = f"@{handle}/{name}"
    body = friend.json("templates", "get", template, "--json")
    assert body["version"] == 1 and body["verifier_snapshots"][0]["name"] == "cites", body
    done = friend.run("templates", "get", f"{template}@v1")
    expect("# Answer from a source" in done.stdout, "no runbook", done)
    friend.run("templates", "get-file", template, "notes/how.txt", "--output", str(file))
    assert file.read_text() == "Slowly.\n"
    found = friend.json("templates", "search", "answers source", "--json")
    assert [it["slug"] for it in found["items"]] == [name], found
    done = friend.run(*anonymous)
    expect(done.stdout.startswith("PASS "), "not run", done)
    done = owner.run("verifiers", "delete", verifier_id, "--yes", code=1)
    expect(done.stderr.startswith("conflict: ") and name in done.stderr, "no serving gate", done)
    done = friend.run("templates", "fork", template)
    expect("Forked" in done.stdout, "not forked", done)
    own = friend.json(group, "get", name, "--json")["verifiers"][0]["verifier_id"]
    assert own != verifier_id, own
    done = friend.run("verifiers", "run", own, "--inputs-json", SHORT)
    expect(done.stdout.startswith("PASS "), "the fork does not run", done)
    owner.run("templates", "unpublish", template, "1")
    done = friend.run(*anonymous, code=1)
    expect("PASS" not in done.stdout, "run after it was withdrawn", done)
    done = friend.run("templates", "get", template, code=1)
    expect(done.stderr.startswith("not_found: "), "still published", done)


def refuses_the_unsafe(group, owner, folder, name):
    file = folder / "unsafe.md"
    file.write_text(BODY.format(name=f"{name}-unsafe") + "\nFORBIDDEN\n")
    _, identifier, _ = saved(owner.run(group, "publish", str(file)))
    owner.run("templates", "publish", identifier, code=2)
    listed = owner.json("templates", "list", "--filter", "mine", "--json")
    assert f"{name}-unsafe" not in [it["slug"] for it in listed["items"]], listed


def check(server, client, version, folder):
    # The version without its dots.
    group = "workflows" if version.startswith("023") else "skills"
    folder = folder / "sharing"
    folder.mkdir()
    owner = registers(server, client, f"owner{version}", folder)
    friend = registers(server, client, f"friend{version}", folder)
    name, handle = f"answers-{version}", f"owner-{version}"
    done = owner.run("me", "claim-handle", handle)
    expect(f"@{handle}" in done.stdout, "no handle", done)
    done = owner.run("verifiers", "deploy", "-", given=json.dumps(verifier("cites", RULE)))
    _, verifier_id, _ = deployed(done)
    identifier = binds(group, owner, verifier_id, folder, name)
    grants(group, owner, friend, identifier, verifier_id, (handle, name))
    syncs(group, owner, folder, version)
    teams(group, owner, friend, identifier, verifier_id, version)
    templates(group, owner, friend, identifier, verifier_id, (name, handle, folder / "got.txt"))
    refuses_the_unsafe(group, owner, folder, name)
    spent = owner.json("usage", "--json")
    assert re.fullmatch(r"\d+\.\d{2,6}", spent["available_usd"]), spent
    done = owner.run("design")
    expect(len(done.stdout) > 500, "no prompt", done)
