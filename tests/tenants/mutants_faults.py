"""Faults in how people come in, in what is offered to them, and in what is published.

Each is one that somebody could make, and that a test must notice.
"""

from mutants_list import Mutant, query

ENGINE = "crates/engine/src/"


def server(name, file, old, new):
    """One that only a request over HTTP meets."""
    return Mutant(name, file, old, new, "jurat-server", "^(v1::(logins|people|templates|workflows)|auth|tenants)::")


FAULTS = [
    # Codes that come by mail.
    query("login: a code is used again", "ops/logins.rs",
          "    tx.run(CODE_END, args![CODE_TRIES_OF_ALL, &used.email]).await?;\n", ""),
    query("login: a code does not end", "ops/logins.rs",
          "row.tries < CODE_TRIES_OF_ALL && tried.at < row.expires_at", "row.tries < CODE_TRIES_OF_ALL"),
    query("login: a code that was right does not end", "ops/logins.rs",
          "row.code_hash == used.code_hash && used.at < row.expires_at",
          "row.code_hash == used.code_hash"),
    query("login: a code of before is good", "ops/logins.rs",
          "row.code_hash == used.code_hash && used.at < row.expires_at", "used.at < row.expires_at"),
    query("login: tries are not counted", "ops/logins.rs",
          "    tx.run(CODE_TRY, args![&tried.email]).await?;\n", ""),
    query("login: tries have no end", "ops/logins.rs",
          "row.tries < CODE_TRIES_OF_ALL && tried.at < row.expires_at", "tried.at < row.expires_at"),
    query("login: one try more", "ops/logins.rs",
          "row.tries < CODE_TRIES_OF_ALL && tried.at", "row.tries <= CODE_TRIES_OF_ALL && tried.at"),
    query("login: codes without end", "ops/logins.rs",
          "(age < CODE_REST_MICROS || makes_more)", "(age < 0 * CODE_REST_MICROS || makes_more)"),
    query("login: makes an account", "ops/logins.rs",
          "if row.purpose != LoginPurpose::Register {", "if row.purpose > row.purpose {"),
    server("login: mail tells who is known", ENGINE + "accounts/logins.rs",
           "if is_known || purpose == LoginPurpose::Register {", "if is_known || true {"),
    server("login: tries of one network have no end", ENGINE + "accounts/logins.rs",
           "Self::Code(_) => CODE_TRIES,", "Self::Code(_) => 1_000 * CODE_TRIES,"),
    server("login: one try more of one network", ENGINE + "accounts/logins.rs",
           "counted.fetch_add(1, Ordering::Relaxed) < most", "counted.fetch_add(1, Ordering::Relaxed) <= most"),
    server("login: any code", ENGINE + "accounts/logins.rs",
           "if !bool::from(given.as_bytes().ct_eq(stored.as_bytes())) {",
           "if bool::from(stored.as_bytes().ct_eq(b\"\")) {"),
    # Programs that wait.
    query("device: a second account answers", "ops/logins.rs",
          "found.filter(|row| row.state == DeviceState::Pending)", "found"),
    query("device: the token is good again", "ops/logins.rs",
          "    tx.run(DEVICE_END, args![&row.device_hash]).await?;\n", ""),
    query("device: a second token", "ops/logins.rs",
          "DeviceState::Used => return Ok(Err(DeviceRefusal::Unknown)),\n",
          "DeviceState::Used => DevicePollOutcome::Approved,\n"),
    query("device: turned away and let in", "ops/logins.rs",
          "if answer.is_approved { DeviceState::Approved } else { DeviceState::Denied }",
          "if answer.is_approved { DeviceState::Approved } else { DeviceState::Approved }"),
    query("device: waits without end", "ops/logins.rs",
          "where device_hash = $1 and expires_at > $2", "where device_hash = $1 and $2 = $2"),
    query("device: answered after its end", "ops/logins.rs",
          "where user_code = $1 and expires_at > $2", "where user_code = $1 and $2 = $2"),
    query("device: the token does not end", "ops/logins.rs",
          "where token_hash = $1 and expires_at > $2", "where token_hash = $1 and $2 = $2"),
    query("device: another program's token", "ops/logins.rs",
          "where token_hash = $1 and expires_at > $2", "where token_hash is not null and expires_at > $2 and $1 = $1"),
    server("device: a key with few scopes lets in", ENGINE + "accounts/devices.rs",
           "        for scope in Scope::OWN {\n            require_scope(caller, scope)?;\n        }\n", ""),
    server("device: a key with few scopes lets in on the page", ENGINE + "accounts/devices.rs",
           "Scope::OWN.into_iter().find(|scope| !has(scope))",
           "Scope::OWN.into_iter().find(|scope| !has(scope) && false)"),
    server("key: revoked and still good", "crates/core/src/account/key.rs",
           "self.revoked_at.is_none() && self.expires_at", "self.expires_at"),
    # What is offered.
    query("invitation: accepted by who sent it", "ops/invitations.rs",
          "            found.to == answer.by.as_str()\n", "            found.to == answer.by.as_str() || true\n"),
    query("invitation: cancelled by who got it", "ops/invitations.rs",
          "InvitationOutcome::Cancelled => found.from == answer.by,",
          "InvitationOutcome::Cancelled => found.from == answer.by || true,"),
    query("invitation: does not end", "ops/invitations.rs",
          "    let found = found.at(answer.at);\n", ""),
    query("invitation: by address, never found", "ops/logins.rs",
          "    invitations_adopt(tx, &profile).await?;\n", ""),
    # Credit without a key.
    query("cap: one more than the day has", "ops/ledger.rs",
          "where day = $2 and micros + $1 <= $3", "where day = $2 and micros + $1 <= $3 + 1"),
    query("cap: one less than the day has", "ops/ledger.rs",
          "where day = $2 and micros + $1 <= $3", "where day = $2 and micros + $1 < $3"),
    query("cap: of all days together", "ops/ledger.rs",
          "where day = $2 and micros + $1 <= $3",
          "where day = $2 and (select sum(days.micros) from anonymous_days as days) + $1 <= $3"),
    query("cap: nothing is given back", "ops/ledger.rs",
          "set micros = micros - $1 where day = $2", "set micros = micros - 0 * $1 where day = $2"),
    query("month: credit with each request", "ops/templates/anonymous.rs",
          "if tx.run(MONTH, args![account, month]).await? == 0 {",
          "if tx.run(MONTH, args![account, month]).await? == 7 {"),
    query("month: added to what is left", "ops/templates/anonymous.rs",
          "micros: micros.saturating_sub(available).max(0),",
          "micros: micros.saturating_sub(available * 0).max(0),"),
    # What is published.
    query("redirect: to what is private", "ops/templates/read.rs",
          "    let args = args![&id, seen_by(asked.viewer.as_ref()), asked.version];\n",
          "    let template = tx.first(\"select id, account_id from templates where id = $1\", args![&id], |cells| RowReader::new(cells, \"templates\", \"id\")?.text(\"account_id\")).await?;\n"
          "    let args = args![&id, template.unwrap_or_default(), asked.version];\n"),
    query("serving: deprecated is not live", "ops/templates/read.rs",
          "and template_versions.unpublished_at is null \\\n    join templates",
          "and template_versions.unpublished_at is null and template_versions.deprecated_at is null \\\n    join templates"),
    query("serving: deletes what is live", "ops/verifiers/remove.rs",
          "if !serving.is_empty() {", "if serving.len() > 1_000 {"),
    server("fork: names the verifier of its author", ENGINE + "workflows/templates/fork.rs",
           "body = body.replace(&pinned, &new_id).replace(&snapshot.verifier_id, &new_id);",
           "let _ = &pinned;"),
    query("fork: keeps the names of others", "ops/templates/fork.rs",
          "verifier_id: it.id.clone(),", "verifier_id: fork.verifiers[0].name.clone(),"),
    query("fork: files of every version", "ops/templates/fork.rs",
          "from template_files where template_id = $3 and version = $4\"",
          "from template_files where template_id = $3 and $4 = $4\""),
    server("template: a key that reads no workflows sees private ones", ENGINE + "access.rs",
           "caller.filter(|caller| caller.may(Scope::WorkflowsRead)).map(", "caller.map("),
]
