//! One request on every surface: the same decision, and for a bad request the same code.

mod desk;

use jurat_testkit::surface_table::{
    JobKind, Sending, Surface, assert_decided, bad_requests, decided_rounds, decision_of,
};
use jurat_wire::api::openai::profile;

use self::desk::Desk;

#[tokio::test]
async fn every_surface_gives_the_same_decision() {
    for round in decided_rounds() {
        let desk = Desk::with(round.executors.clone()).await;
        let mut first = None;
        let is_shown = |it: &Surface| it.has(round.kind) && it.shows_decisions();
        for surface in Surface::SERVED.into_iter().filter(is_shown) {
            let answer = desk.decide(surface, &round).await;
            assert_eq!(answer.code.as_deref(), round.code, "{surface:?}, {}", round.name);
            assert_decided(&round, &answer.reply, surface);
            let decision = decision_of(&answer.reply);
            let first = first.get_or_insert_with(|| decision.clone());
            assert_eq!(decision, *first, "{surface:?}, {}", round.name);
        }
    }
}

#[tokio::test]
async fn every_surface_refuses_a_bad_request_with_the_same_code() {
    let desk = Desk::honest().await;
    let mut good = 0;
    for bad in bad_requests() {
        for kind in JobKind::ALL {
            for surface in Surface::SERVED.into_iter().filter(|it| it.has(kind)) {
                let Some(expected) = bad.code(surface).filter(|_| bad.is_for(kind)) else {
                    continue;
                };
                // A used key was used by a good request to three executors.
                good += 3 * usize::from(bad.sending == Sending::UnderUsedKey);
                let refused = desk.refuse(surface, kind, &bad).await;
                assert_eq!(refused, expected, "{surface:?}, {kind:?}: {}", bad.name);
            }
        }
    }
    assert_eq!(desk.asked(), good, "no executor is asked for a refused request");
}

#[test]
fn no_profile_says_what_a_chat_cannot() {
    let unsaid: Vec<_> =
        bad_requests().into_iter().filter(|bad| bad.code(Surface::OpenAi).is_none()).collect();
    assert_eq!(unsaid.len(), 4);
    for bad in unsaid {
        let request = bad.request(JobKind::Delegate);
        let mut terms = request["consensus"].clone();
        if let Some(policy) = request.get("policy") {
            terms["policy"] = policy.clone();
        }
        assert!(profile::read("own", &terms).is_err(), "{}", bad.name);
    }
}
