//! The request of one delivery: its headers, and its signature by the Standard Webhooks scheme.

use std::borrow::Cow;

use aws_lc_rs::hmac;
use base64::{Engine as _, engine::general_purpose::STANDARD};
use http::{HeaderMap, HeaderName, HeaderValue, header};
use jurat_core::{
    time::Timestamp,
    webhook::{PushProof, WebhookScheme, WebhookSecret, WebhookSecrets, notification},
};

use super::SECRET;

const ID: HeaderName = HeaderName::from_static("webhook-id");
const TIMESTAMP: HeaderName = HeaderName::from_static("webhook-timestamp");
const SIGNATURE: HeaderName = HeaderName::from_static("webhook-signature");
/// The header of the A2A protocol for a token that the receiver chose.
const TOKEN: HeaderName = HeaderName::from_static("x-a2a-notification-token");

/// The type of a push notification.
const PUSH_TYPE: HeaderValue = HeaderValue::from_static("application/a2a+json");

/// A delivery as it is sent.
pub(super) struct WebhookRequest<'a> {
    pub(super) headers: HeaderMap,
    pub(super) body: Cow<'a, str>,
}

/// The request that delivers an event.
pub(super) fn request<'a>(
    (scheme, secrets): (WebhookScheme, &WebhookSecrets),
    (id, event): (&str, &'a str),
    now: Timestamp,
) -> WebhookRequest<'a> {
    let seconds = now.millis().div_euclid(1_000).to_string();
    let mut headers = HeaderMap::new();
    let mut add = |name: HeaderName, text: &str| {
        if let Ok(mut value) = HeaderValue::from_str(text) {
            value.set_sensitive(name == TOKEN || name == header::AUTHORIZATION);
            headers.insert(name, value);
        }
    };
    add(ID, id);
    add(TIMESTAMP, &seconds);
    let body = match scheme {
        WebhookScheme::Standard => {
            let live = secrets.live(now);
            let signed: Vec<String> =
                live.into_iter().map(|secret| signature(secret, id, &seconds, event)).collect();
            add(SIGNATURE, &signed.join(" "));
            Cow::Borrowed(event)
        }
        WebhookScheme::Token => {
            let proof = PushProof::of_secret(&secrets.current);
            for (name, text) in
                [(TOKEN, &proof.token), (header::AUTHORIZATION, &proof.authorization)]
            {
                if let Some(text) = text {
                    add(name, text);
                }
            }
            headers.insert(header::CONTENT_TYPE, PUSH_TYPE);
            notification(event, &proof.context_id).map_or(Cow::Borrowed(event), Cow::Owned)
        }
    };
    WebhookRequest { headers, body }
}

/// Version 1: an HMAC with SHA-256 over the id, the time and the body.
fn signature(secret: &WebhookSecret, id: &str, seconds: &str, body: &str) -> String {
    let text = secret.reveal();
    let encoded = text.strip_prefix(SECRET).unwrap_or(text);
    // A secret of ours is always base64; another text is used as it is.
    let bytes = STANDARD.decode(encoded).unwrap_or_else(|_| text.as_bytes().to_vec());
    let key = hmac::Key::new(hmac::HMAC_SHA256, &bytes);
    let mut context = hmac::Context::with_key(&key);
    for part in [id, ".", seconds, ".", body] {
        context.update(part.as_bytes());
    }
    format!("v1,{}", STANDARD.encode(context.sign()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secrets(previous: Option<(&str, i64)>) -> WebhookSecrets {
        let secret = |text: &str| WebhookSecret::new(text.to_owned());
        WebhookSecrets {
            current: secret("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"),
            previous: previous
                .map(|(text, until)| (secret(text), Timestamp::from_millis(until * 1_000))),
        }
    }

    fn sent(scheme: WebhookScheme, secrets: &WebhookSecrets) -> Vec<(String, String)> {
        let now = Timestamp::from_millis(1_614_265_330_000);
        let body = r#"{"test": 2432232314}"#;
        let sent = ("msg_p5jXN8AQM9LWM0D4loKWxJek", body);
        let WebhookRequest { headers, .. } = request((scheme, secrets), sent, now);
        let pair = |(name, value): (&HeaderName, &HeaderValue)| {
            (name.to_string(), value.to_str().unwrap().to_owned())
        };
        headers.iter().map(pair).collect()
    }

    #[test]
    fn the_signature_is_that_of_the_published_example() {
        let found = sent(WebhookScheme::Standard, &secrets(None));
        assert_eq!(found[0].1, "msg_p5jXN8AQM9LWM0D4loKWxJek");
        assert_eq!(found[1].1, "1614265330");
        assert_eq!(found[2].1, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
    }

    #[test]
    fn the_previous_secret_signs_until_its_time() {
        let old = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD";
        let both = sent(WebhookScheme::Standard, &secrets(Some((old, 1_614_265_331))));
        let signatures: Vec<&str> = both[2].1.split(' ').collect();
        assert_eq!(signatures.len(), 2);
        assert_eq!(signatures[0], "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
        assert_ne!(signatures[0], signatures[1]);
        let later = sent(WebhookScheme::Standard, &secrets(Some((old, 1_614_265_330))));
        assert_eq!(later[2].1, signatures[0]);
    }

    #[test]
    fn a_push_notification_has_what_its_receiver_expects_instead_of_a_signature() {
        let proof = PushProof {
            context_id: "ctx_1".to_owned(),
            token: Some("chosen by the receiver".to_owned()),
            authorization: Some("Bearer xyzzy".to_owned()),
        };
        let secrets = WebhookSecrets { current: proof.to_secret(), previous: None };
        let found = sent(WebhookScheme::Token, &secrets);
        let has = |name: &str, text: &str| found.contains(&(name.into(), text.into()));
        assert!(has("x-a2a-notification-token", "chosen by the receiver"), "{found:?}");
        assert!(has("authorization", "Bearer xyzzy"), "{found:?}");
        assert!(has("content-type", "application/a2a+json"), "{found:?}");
        assert!(!found.iter().any(|(name, _)| name == "webhook-signature"));
    }
}
