//! What to do about a refusal, in the words of the command line. The API gives hints too, which speak
//! of requests and headers.

use jurat_core::code::Code;
use serde_json::Value;

/// Fields of requests that are flags here.
const FLAGS: [(&str, &str); 27] = [
    ("agent_events_url", "--agent-events-url"),
    ("claim", "--claim"),
    ("consensus.aggregation", "--aggregation"),
    ("consensus.disagreement_policy", "--disagreement-policy"),
    ("consensus.early_stop", "--early-stop"),
    ("consensus.equivalence", "--equivalence"),
    ("consensus.min_agreement", "--min-agreement"),
    ("consensus.replicas", "--replicas"),
    ("consensus.session_pool", "--session"),
    ("consensus.timeout_policy", "--timeout-policy"),
    ("context", "--context"),
    ("execution.output_schema", "--schema"),
    ("execution.timeout_ms", "--timeout-ms"),
    ("input", "--input"),
    ("mode", "--mode"),
    ("objective", "--objective"),
    ("output_schema", "--schema"),
    ("policy.labels", "--label"),
    ("policy.policy_id", "--policy"),
    ("policy.policy_params", "--params"),
    ("policy.task_type", "--task-type"),
    ("policy.tier", "--tier"),
    ("price_micros", "--price-micros"),
    ("reliability", "--reliability"),
    ("session.price_micros", "--price-micros"),
    ("session.reliability", "--reliability"),
    ("token_env", "--token-env"),
];

/// The field that is wrong, with the flag that sets it.
pub(crate) fn field(name: &str) -> String {
    let is_it = |known: &str| {
        let below = name.strip_prefix(known);
        below.is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[', '/']))
    };
    match FLAGS.iter().find(|(known, _)| is_it(known)) {
        Some((_, flag)) => format!("field: {name}, which is `{flag}` here"),
        None => format!("field: {name}"),
    }
}

/// What to do, where the command line has words of its own for it. Where a problem has a hint of its
/// own, that says more than its code does.
pub(crate) fn of(code: Option<Code>, body: &Value) -> Option<String> {
    if let Some(token) = body["current_version_token"].as_str() {
        return Some(format!(
            "Look at the current version, then run the command again with `--expected-version-token {token}`."
        ));
    }
    let given = body["hint"].as_str()?;
    let ours = code.filter(|code| code.hint() == given).and_then(of_code);
    Some(ours.unwrap_or(given).to_owned())
}

/// Only codes whose hint would send people to HTTP.
fn of_code(code: Code) -> Option<&'static str> {
    #[expect(clippy::wildcard_enum_match_arm, reason = "the other hints are for everybody")]
    let hint = match code {
        Code::AuthRequired => {
            "Set JURAT_KEY to a key of this server, or log in with `jurat auth login`; the first start of `jurat serve` writes an admin key to `admin.key` in its state folder."
        }
        Code::Forbidden => {
            "Use a key with the scope that the message names; `jurat whoami` shows yours, and `jurat keys create` makes another."
        }
        Code::InvalidJson => {
            "Give one JSON document in UTF-8 without duplicate keys in the file or the flag."
        }
        Code::ValidationError | Code::RequestInvalid => {
            "Correct what the message names, in the flag or the file, and run the command again."
        }
        Code::PolicyInvalid => {
            "Check `--policy` and `--params` against the policy's page, docs/guide/policies.md."
        }
        Code::NotFound => {
            "Check the name or the id; the command `list` of the same kind shows what there is."
        }
        Code::MethodNotAllowed | Code::UnsupportedMediaType => {
            "The server is of another version; `jurat --version` shows that of this program."
        }
        Code::Conflict => {
            "Look at what is there with the command `show` or `list` of the same kind, then choose another name, or remove what is there."
        }
        Code::AnonymousDailyCap => "Use a key, or try again after the time that the message names.",
        Code::SessionPoolTooSmall => {
            "Give `--session` at least as often as `--replicas` says, or ask for fewer replicas."
        }
        Code::ExecutorUnavailable => {
            "Nothing was registered. Start it and run the command again, or register it as it is with `--no-check`."
        }
        Code::ConsensusDisagreement => {
            "Leave out `--disagreement-policy fail_hard` to see what each replica said."
        }
        Code::IdempotencyMismatch => {
            "Give a new `--idempotency-key` for a new request; repeat a request only as it was."
        }
        Code::RequestTimeout => "Run the command again, over a faster line.",
        Code::RateLimited => {
            "Wait for the seconds above, or ask the operator for higher limits on the key."
        }
        Code::ShuttingDown | Code::Overloaded => "Run the command again after the seconds above.",
        Code::PayloadTooLarge => "Give less: a smaller file, or fewer and shorter inputs.",
        Code::Internal => {
            "Run `jurat doctor`, and look into the log of the server, which has the cause."
        }
        _ => return None,
    };
    Some(hint)
}

#[cfg(test)]
mod tests {
    use jurat_wire::problem::Problem;

    use super::*;

    #[test]
    fn no_hint_sends_anybody_to_http() {
        let words = [
            "Authorization",
            "Bearer",
            "header",
            "`Allow`",
            "Retry-After",
            "Content-Type",
            "Idempotency-Key",
            "Send ",
            "send the request",
            "the address",
            " body ",
            "resets_at",
            "`consensus`",
        ];
        for code in Code::ALL {
            let body = Problem::new(*code, "x").body();
            let hint = of(Some(*code), &body).unwrap();
            for word in words {
                assert!(!hint.contains(word), "{code}: {hint}");
            }
        }
    }

    #[test]
    fn a_field_is_named_with_its_flag() {
        assert_eq!(
            field("consensus.replicas"),
            "field: consensus.replicas, which is `--replicas` here"
        );
        let below = "field: consensus.equivalence.numeric, which is `--equivalence` here";
        assert_eq!(field("consensus.equivalence.numeric"), below);
        assert_eq!(field("contextual"), "field: contextual");
    }

    #[test]
    fn a_hint_of_its_own_says_more() {
        let body = Problem::new(Code::NotFound, "x").hinted("Use `@kim/tone`.").body();
        assert_eq!(of(Some(Code::NotFound), &body).as_deref(), Some("Use `@kim/tone`."));
    }
}
