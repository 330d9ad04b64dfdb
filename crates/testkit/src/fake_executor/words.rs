//! One word for each behaviour, so that a test needs one line.

use serde_json::{Value, json};

use super::answer::{FakeVerdict, ResultHashForm};
use super::behaviour::{AnswerPace, Behaviour};
use super::fault::ExecutorFault;
use super::gate::Gate;

/// Passes every candidate, with the score 1.0 and no reason codes.
pub fn says_valid() -> Behaviour {
    Behaviour::default()
}

/// Fails every candidate, with the score 1.0 and the reason code 101.
pub fn says_invalid() -> Behaviour {
    Behaviour::default().verdict(FakeVerdict::invalid())
}

/// Decides no candidate, with the reason code 200.
pub fn says_inconclusive() -> Behaviour {
    Behaviour::default().verdict(FakeVerdict::inconclusive())
}

/// Refuses `/verify` with 422, like an executor that does not know the policy.
pub fn needs_spec() -> Behaviour {
    let refusal = Some((422, json!({ "error": "policy_unsupported" })));
    Behaviour::default().verdict(FakeVerdict { refusal, ..FakeVerdict::invalid() })
}

/// Answers `/execute` with this `candidate_output`, and passes every candidate.
pub fn answers(output: Value) -> Behaviour {
    Behaviour::default().output(output)
}

/// Answers `/execute` with the verdict of a fact check: TRUE, FALSE or UNSURE.
pub fn fact(verdict: &str) -> Behaviour {
    answers(json!({ "verdict": verdict }))
}

/// Passes with this score; `says_invalid().score(x)` fails with it.
pub fn score(score: f64) -> Behaviour {
    says_valid().score(score)
}

/// Passes with a score outside its range.
pub fn wrong_score() -> Behaviour {
    score(1.7)
}

/// Reports that the candidate passed, together with a failed status.
pub fn contradicts() -> Behaviour {
    says_valid().verdict(FakeVerdict { status: Some("failed".to_owned()), ..FakeVerdict::valid() })
}

/// Passes, with a well-formed `verifier_result_hash` of something else.
pub fn wrong_hash() -> Behaviour {
    hashes(ResultHashForm::Wrong)
}

/// Passes, with `sha256:placeholder` for a hash.
pub fn placeholder_hash() -> Behaviour {
    hashes(ResultHashForm::Placeholder)
}

/// Passes, and omits `verifier_result_hash`.
pub fn no_hash() -> Behaviour {
    hashes(ResultHashForm::Absent)
}

/// Passes, with the correct hash but without the `sha256:` prefix.
pub fn bare_hash() -> Behaviour {
    hashes(ResultHashForm::Bare)
}

/// Accepts the request and never answers.
pub fn hangs() -> Behaviour {
    Behaviour::default().fault(ExecutorFault::Hangs)
}

/// Sends the headers, then a byte now and then, for ever.
pub fn drips() -> Behaviour {
    Behaviour::default().fault(ExecutorFault::Drips)
}

/// Accepts the request and closes the connection.
pub fn disconnects_before_headers() -> Behaviour {
    Behaviour::default().fault(ExecutorFault::HangsUp)
}

/// Sends less than `Content-Length` announces and closes the connection.
pub fn disconnects_mid_body() -> Behaviour {
    Behaviour::default().fault(ExecutorFault::HangsUpMidBody)
}

/// Answers 200 with a web page.
pub fn html() -> Behaviour {
    replies(200, "text/html", "<!doctype html><html><body><h1>It works!</h1></body></html>")
}

/// Answers this status with a small JSON body.
pub fn status(status: u16) -> Behaviour {
    replies(status, "application/json", r#"{"error":"fake_refusal"}"#)
}

/// Streams a JSON text of slightly more than this many bytes until the client leaves.
pub fn huge(bytes: u64) -> Behaviour {
    Behaviour::default().fault(ExecutorFault::Huge(bytes))
}

/// Answers with valid JSON that fits neither `/execute` nor `/verify`.
pub fn wrong_json() -> Behaviour {
    replies(200, "application/json", r#"{"passed":"maybe","score":"high","reason_codes":{}}"#)
}

/// Answers with the first half of the correct body.
pub fn truncated_json() -> Behaviour {
    Behaviour::default().fault(ExecutorFault::TruncatedJson)
}

/// Answers with the correct body, except that one key occurs twice with different values.
pub fn duplicate_keys() -> Behaviour {
    Behaviour::default().fault(ExecutorFault::DuplicateKeys)
}

/// Redirects with 307 to this address.
pub fn redirects_to(url: &str) -> Behaviour {
    Behaviour::default().fault(ExecutorFault::RedirectsTo { status: 307, url: url.to_owned() })
}

/// Redirects with 302 to this address.
pub fn moved_to(url: &str) -> Behaviour {
    Behaviour::default().fault(ExecutorFault::RedirectsTo { status: 302, url: url.to_owned() })
}

/// Sends half of the correct body, then nothing more.
pub fn hangs_mid_body() -> Behaviour {
    Behaviour::default().fault(ExecutorFault::HangsMidBody)
}

/// Sends half of the correct body, then resets the connection.
pub fn resets_mid_body() -> Behaviour {
    Behaviour::default().fault(ExecutorFault::ResetsMidBody)
}

/// Sends more than its `Content-Length`.
pub fn lies_about_length() -> Behaviour {
    Behaviour::default().fault(ExecutorFault::LiesAboutLength)
}

/// Answers correctly, and immediately a second time with something else.
pub fn replies_twice(inner: Behaviour) -> Behaviour {
    inner.fault(ExecutorFault::RepliesTwice)
}

/// Answers with `Content-Encoding: gzip` and a small body that unpacks to 100 MiB.
pub fn gzipped() -> Behaviour {
    Behaviour::default().fault(ExecutorFault::Gzipped)
}

/// Sends header after header until the client leaves.
pub fn endless_headers() -> Behaviour {
    Behaviour::default().fault(ExecutorFault::EndlessHeaders)
}

/// Answers exactly this.
pub fn replies(status: u16, content_type: &str, body: impl Into<Vec<u8>>) -> Behaviour {
    Behaviour::default().fault(ExecutorFault::Replies {
        status,
        content_type: content_type.to_owned(),
        body: body.into(),
    })
}

/// Answers like the inner behaviour, but only after `FakeExecutor::release`.
pub fn gated(inner: Behaviour) -> Behaviour {
    Behaviour { pace: AnswerPace::Gated, ..inner }
}

/// Answers like the inner behaviour, but only after the gate was released.
pub fn late(gate: &Gate, inner: Behaviour) -> Behaviour {
    Behaviour { pace: AnswerPace::Late(gate.clone()), ..inner }
}

fn hashes(hash: ResultHashForm) -> Behaviour {
    says_valid().verdict(FakeVerdict { hash, ..FakeVerdict::valid() })
}
