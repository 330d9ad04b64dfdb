//! Hints in terms of the command line. The hints of the API refer to requests and headers.

use jurat_core::code::ProblemCode;
use jurat_wire::problem::ProblemBody;

/// Request fields, and the flags that set them.
const FLAGS: [(&str, &str); 38] = [
    ("addresses", "--address"),
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
    ("relays", "--relay"),
    ("reliability", "--reliability"),
    ("remote", "--remote"),
    ("scope", "--scope"),
    ("session.price_micros", "--price-micros"),
    ("session.reliability", "--reliability"),
    ("target_node", "--target-node"),
    ("terms.concurrent_jobs", "--concurrent-jobs"),
    ("terms.most_price_micros", "--most-price-micros"),
    ("terms.payload_bytes", "--payload-bytes"),
    ("terms.requests_per_minute", "--requests-per-minute"),
    ("terms.task_types", "--task-type"),
    ("token_env", "--token-env"),
    ("valid_seconds", "--valid-seconds"),
];

const PEER_UNAVAILABLE: &str = "Check that the other node is running and reachable from the server's machine, and that the ticket is new; then run the command again.";

/// The field that is wrong, with the flag that sets it.
pub(crate) fn field(name: &str) -> String {
    let is_it = |known: &str| {
        let below = name.strip_prefix(known);
        below.is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[', '/']))
    };
    match FLAGS.iter().find(|(known, _)| is_it(known)) {
        Some((_, flag)) => format!("field: {name}, set by `{flag}`"),
        None => format!("field: {name}"),
    }
}

/// The next step, in terms of the command line. A hint specific to the problem replaces the hint
/// for its code.
pub(crate) fn of(problem: &ProblemBody<'_>) -> Option<String> {
    if let Some(token) = &problem.current_version_token {
        return Some(format!(
            "Check the current version, then run the command again with `--expected-version-token {token}`."
        ));
    }
    let given = problem.hint.as_ref();
    let ours = problem.known_code().filter(|code| code.hint() == given).and_then(of_code);
    Some(ours.unwrap_or(given).to_owned()).filter(|hint| !hint.is_empty())
}

/// The hint for a code; `None` unless the hint of the API refers to HTTP.
fn of_code(code: ProblemCode) -> Option<&'static str> {
    #[expect(clippy::wildcard_enum_match_arm, reason = "the other hints fit every client")]
    let hint = match code {
        ProblemCode::AuthRequired => {
            "Set JURAT_KEY to a key of this server, or log in with `jurat auth login`; the first start of `jurat serve` writes an admin key to `admin.key` in its state folder."
        }
        ProblemCode::Forbidden => {
            "Use a key with the scope that the message names; `jurat whoami` shows your scopes, and `jurat keys create` creates a key."
        }
        ProblemCode::InvalidJson => {
            "Pass one UTF-8 JSON document without duplicate keys in the file or the flag."
        }
        ProblemCode::ValidationError | ProblemCode::RequestInvalid => {
            "Correct the flag or the file as the message says, and run the command again."
        }
        ProblemCode::PolicyInvalid => {
            "Check `--policy` and `--params` against the policy's page, docs/guide/policies.md."
        }
        ProblemCode::NotFound => {
            "Check the name or the id; the matching `list` command shows what exists."
        }
        ProblemCode::MethodNotAllowed | ProblemCode::UnsupportedMediaType => {
            "The server has a different version; `jurat --version` shows the version of this program."
        }
        ProblemCode::Conflict => {
            "Look at the existing entry with the matching `show` or `list` command, then choose another name or remove the entry."
        }
        ProblemCode::PaymentRequired | ProblemCode::PaymentUnavailable => {
            "Use a key: this program does not pay for single requests."
        }
        ProblemCode::AnonymousDailyCap => {
            "Use a key, or try again after the time that the message names."
        }
        ProblemCode::SessionPoolTooSmall => {
            "Pass at least as many `--session` flags as `--replicas` asks for, or lower `--replicas`."
        }
        ProblemCode::ExecutorUnavailable => {
            "Nothing was registered. Start the executor and run the command again, or skip the check with `--no-check`."
        }
        ProblemCode::PeerUnavailable => PEER_UNAVAILABLE,
        ProblemCode::ConsensusDisagreement => {
            "Leave out `--disagreement-policy fail_hard` to see the answer of each replica."
        }
        ProblemCode::IdempotencyMismatch => {
            "Use a new `--idempotency-key` for a new request, or repeat the old request unchanged."
        }
        ProblemCode::RequestTimeout => "Run the command again on a faster connection.",
        ProblemCode::RateLimited => {
            "Wait for the time shown above, or ask the operator for higher limits on the key."
        }
        ProblemCode::ShuttingDown | ProblemCode::Overloaded => {
            "Run the command again after the time shown above."
        }
        ProblemCode::PayloadTooLarge => "Use a smaller file, or fewer and shorter inputs.",
        ProblemCode::Internal => {
            "Run `jurat doctor`, and look for the cause in the log of the server."
        }
        _ => return None,
    };
    Some(hint)
}

#[cfg(test)]
mod tests {
    use jurat_wire::problem::Problem;

    use super::*;

    fn hint(problem: &Problem) -> String {
        of(&ProblemBody::read(&problem.body()).unwrap()).unwrap()
    }

    #[test]
    fn no_hint_mentions_http() {
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
        for code in ProblemCode::ALL {
            let hint = hint(&Problem::new(*code, "x"));
            for word in words {
                assert!(!hint.contains(word), "{code}: {hint}");
            }
        }
    }

    #[test]
    fn a_field_is_named_with_its_flag() {
        assert_eq!(field("consensus.replicas"), "field: consensus.replicas, set by `--replicas`");
        let below = "field: consensus.equivalence.numeric, set by `--equivalence`";
        assert_eq!(field("consensus.equivalence.numeric"), below);
        assert_eq!(field("contextual"), "field: contextual");
    }

    #[test]
    fn a_specific_hint_says_more() {
        let problem = Problem::new(ProblemCode::NotFound, "x").hinted("Use `@kim/tone`.");
        assert_eq!(hint(&problem), "Use `@kim/tone`.");
    }
}
