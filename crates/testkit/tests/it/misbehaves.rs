//! The faulty answers, on both endpoints.

use jurat_testkit::fake_executor::{
    answers, disconnects_before_headers, disconnects_mid_body, drips, duplicate_keys,
    endless_headers, gzipped, hangs, html, huge, redirects_to, replies, status as refuses,
    truncated_json, wrong_json,
};
use serde_json::Value;
use tokio::io::AsyncReadExt as _;

use crate::client::{WORK, posted, status};

#[tokio::test]
async fn hanging_accepts_the_call_and_sends_nothing() {
    for path in WORK {
        let (fake, client) = posted(hangs(), path).await;
        fake.wait_for_calls(1).await;
        assert!(client.0.try_read(&mut [0; 1]).is_err());
        drop(client);
        fake.abandoned(1).await;
    }
}

#[tokio::test]
async fn dripping_sends_headers_and_then_byte_after_byte() {
    for path in WORK {
        let (fake, mut client) = posted(drips(), path).await;
        let text = client.read(120).await;
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        assert_eq!(status(head), 200);
        assert!(body.starts_with("1\r\n \r\n1\r\n \r\n"), "{body:?}");
        drop(client);
        fake.abandoned(1).await;
    }
}

#[tokio::test]
async fn disconnecting_early_sends_nothing_at_all() {
    for path in WORK {
        let (_fake, mut client) = posted(disconnects_before_headers(), path).await;
        assert_eq!(client.rest().await, "");
    }
}

#[tokio::test]
async fn disconnecting_in_the_body_sends_less_than_promised() {
    for path in WORK {
        let (_fake, mut client) = posted(disconnects_mid_body(), path).await;
        let text = client.rest().await;
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        let promised = head.split("content-length: ").nth(1).unwrap().parse::<usize>().unwrap();
        assert!(!body.is_empty() && body.len() < promised, "{text}");
    }
}

#[tokio::test]
async fn other_answers_are_whole_but_not_what_was_asked() {
    for path in WORK {
        let (_fake, mut client) = posted(html(), path).await;
        let (head, body) = client.reply().await;
        assert_eq!(status(&head), 200);
        assert!(head.contains("content-type: text/html"), "{head}");
        assert!(body.starts_with(b"<!doctype html>"));

        let (_fake, mut client) = posted(refuses(500), path).await;
        assert_eq!(client.reply_json().await.0, 500);

        let (_fake, mut client) = posted(wrong_json(), path).await;
        let (code, body) = client.reply_json().await;
        assert_eq!(code, 200);
        assert!(body["passed"].is_string() && body.get("candidate_output").is_none());

        let (_fake, mut client) = posted(replies(200, "text/plain", "null"), path).await;
        assert_eq!(client.reply().await.1, b"null");
    }
}

#[tokio::test]
async fn ten_gigabytes_stream_until_the_client_leaves() {
    for path in WORK {
        let (fake, mut client) = posted(huge(10_000_000_000), path).await;
        let text = client.read(1_000_000).await;
        assert!(text.contains("transfer-encoding: chunked"));
        assert!(text.contains("\r\n10000\r\naaaa"));
        drop(client);
        fake.abandoned(1).await;
    }
}

#[tokio::test]
async fn a_huge_answer_that_is_read_to_its_end_is_valid_json_of_that_size() {
    let (fake, _client) = posted(huge(200_000), "/execute").await;
    let reply = reqwest::Client::default().post(fake.url() + "/execute").body("{}");
    let body = reply.send().await.unwrap().text().await.unwrap();
    let body: Value = serde_json::from_str(&body).unwrap();
    assert_eq!(body["filler"].as_str().unwrap().len(), 200_000);
}

#[tokio::test]
async fn truncated_json_has_an_honest_length_and_does_not_parse() {
    for path in WORK {
        let (_fake, mut client) = posted(truncated_json(), path).await;
        let (_, body) = client.reply().await;
        assert!(body.starts_with(b"{"));
        assert!(serde_json::from_slice::<Value>(&body).unwrap_err().is_eof());
    }
}

#[tokio::test]
async fn duplicate_keys_carry_two_values() {
    for (path, key) in [("/execute", "\"candidate_output\":"), ("/verify", "\"passed\":")] {
        let (_fake, mut client) = posted(duplicate_keys(), path).await;
        let body = String::from_utf8(client.reply().await.1).unwrap();
        assert_eq!(body.matches(key).count(), 2, "{body}");
        assert!(serde_json::from_str::<Value>(&body).is_ok());
    }
}

#[tokio::test]
async fn a_redirect_names_its_target() {
    for path in WORK {
        let (_fake, mut client) = posted(redirects_to("http://127.0.0.1:1/x"), path).await;
        let (head, _) = client.reply().await;
        assert_eq!(status(&head), 307);
        assert!(head.contains("location: http://127.0.0.1:1/x\r\n"), "{head}");
    }
}

#[tokio::test]
async fn a_gzipped_answer_is_small_and_says_how_large_it_unpacks() {
    for path in WORK {
        let behaviour = gzipped().output(Value::from("é"));
        let (_fake, mut client) = posted(behaviour, path).await;
        let (head, body) = client.reply().await;
        assert!(head.contains("content-encoding: gzip\r\n"), "{head}");
        assert!(body.starts_with(&[0x1f, 0x8b, 8]));
        assert!(body.len() < 1_000_000);
        let unpacked = u32::from_le_bytes(*body.last_chunk().unwrap());
        assert!(100_000_000 < unpacked, "{unpacked}");
    }
}

#[tokio::test]
async fn endless_headers_never_come_to_a_body() {
    for path in WORK {
        let (fake, mut client) = posted(endless_headers(), path).await;
        let text = client.read(500_000).await;
        assert!(text.contains("\r\nx-filler-100: aaa"));
        assert!(!text.contains("\r\n\r\n"));
        drop(client);
        fake.abandoned(1).await;
    }
}

#[tokio::test]
async fn a_fault_that_answers_leaves_the_connection_in_use() {
    let (fake, mut client) = posted(truncated_json(), "/verify").await;
    client.reply().await;
    fake.set(answers(Value::Null));
    client.post("/execute", &Value::Null).await;
    assert_eq!(client.reply_json().await.0, 200);
    assert!(client.0.try_read(&mut [0; 1]).is_err());
    drop(fake);
    assert_eq!(client.0.read(&mut [0; 1]).await.unwrap(), 0);
}
