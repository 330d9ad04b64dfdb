//! Images are fetched once for a round, shown to the judge as images, and refused from inside the
//! network.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use futures::future::join_all;
use jurat_core::{
    judge::Question,
    round::replica::FailureCode,
    verifier::{InputContract, VerifierExample},
};
use jurat_testkit::fake_provider::{FakeProvider, ProviderReply, verdict};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpListener,
    task::JoinSet,
};

use super::{BOTH, JudgeTestNode, SharedImage, failure_of, question, task, verdict_of};

const PNG: &[u8] = b"\x89PNG\r\n\x1a\n and so on";

/// A server with one image that counts its requests.
struct ImageServer {
    url: String,
    visits: Arc<AtomicUsize>,
    _task: JoinSet<()>,
}

impl ImageServer {
    async fn open() -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let url = format!("http://{}/picture.png", listener.local_addr().unwrap());
        let visits = Arc::new(AtomicUsize::new(0));
        let seen = Arc::clone(&visits);
        let mut task = JoinSet::new();
        task.spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let mut request = [0; 4_096];
                let _ = stream.read(&mut request).await;
                seen.fetch_add(1, Ordering::SeqCst);
                let head = format!(
                    "HTTP/1.1 200 OK\r\ncontent-type: image/png\r\nconnection: close\r\ncontent-length: {}\r\n\r\n",
                    PNG.len()
                );
                let _ = stream.write_all(&[head.as_bytes(), PNG].concat()).await;
            }
        });
        Self { url, visits, _task: task }
    }
}

fn about_an_image(example_url: Option<&str>) -> Question {
    let mut question = Question { contract: InputContract::TextImage, ..question("A red door.") };
    question.examples.truncate(1);
    question.examples[0].media_url = example_url.map(str::to_owned);
    question
}

#[tokio::test]
async fn an_image_is_fetched_once_and_shown_as_an_image() {
    let gallery = ImageServer::open().await;
    for kind in BOTH {
        gallery.visits.store(0, Ordering::SeqCst);
        let fake = FakeProvider::saying([ProviderReply::Answer(verdict("met"))]).await;
        let range = "127.0.0.0/8".parse().unwrap();
        let court =
            JudgeTestNode::with(kind, &fake, |judges| judges.media_allow = vec![range]).await;
        let mut task = task(about_an_image(None));
        task.image = Some(Arc::new(SharedImage::new(&gallery.url)));
        let judged = join_all((0..3).map(|_| court.judge(&task))).await;
        for judged in &judged {
            let _met = verdict_of(judged);
        }
        assert_eq!(gallery.visits.load(Ordering::SeqCst), 1);
        let asked = fake.asked();
        let expected = ("image/png".to_owned(), STANDARD.encode(PNG));
        assert!(asked.iter().all(|asked| asked.images() == [expected.clone()]));
        // The example has no image, so it would show nothing.
        assert!(asked.iter().all(|asked| asked.conversation().len() == 1));
        let notes = &judged[0].outcome.as_ref().unwrap().notes;
        assert_eq!(notes, &["1 examples were not shown: their images were not available"]);
    }
}

#[tokio::test]
async fn examples_are_shown_with_their_images() {
    let gallery = ImageServer::open().await;
    for kind in BOTH {
        let fake = FakeProvider::saying([ProviderReply::Answer(verdict("met"))]).await;
        let range = "127.0.0.0/8".parse().unwrap();
        let court =
            JudgeTestNode::with(kind, &fake, |judges| judges.media_allow = vec![range]).await;
        let mut task = task(about_an_image(Some(&gallery.url)));
        task.image = Some(Arc::new(SharedImage::new(&gallery.url)));
        verdict_of(&court.judge(&task).await);
        let asked = &fake.asked()[0];
        assert_eq!((asked.images().len(), asked.conversation().len()), (2, 3));
        let bound = |examples: &[VerifierExample]| {
            let question = Question { examples: examples.to_vec(), ..(*task.question).clone() };
            court.engine.cost_ceiling_micros(&crate::judges::CostBasis {
                question: &question,
                model: &task.model,
                has_image: true,
                commit_first: false,
            })
        };
        assert!(bound(&[]) + 5_000 * 3 < bound(&task.question.examples));
    }
}

#[tokio::test]
async fn an_image_from_inside_is_not_fetched_and_no_judge_is_asked() {
    let gallery = ImageServer::open().await;
    let fake = FakeProvider::saying([ProviderReply::Answer(verdict("met"))]).await;
    let court = JudgeTestNode::new(BOTH[0], &fake).await;
    let plain = gallery.url.clone();
    for url in [plain.clone(), plain.replace("http:", "https:"), "https://localhost/".to_owned()] {
        let mut task = task(about_an_image(None));
        task.image = Some(Arc::new(SharedImage::new(url)));
        let judged = court.judge(&task).await;
        let expected =
            (FailureCode::MediaUnavailable, "the image could not be fetched from its address");
        assert_eq!(failure_of(&judged), expected);
    }
    assert_eq!(gallery.visits.load(Ordering::SeqCst), 0);
    assert!(fake.asked().is_empty());
}

#[tokio::test]
async fn an_address_is_checked_before_a_run_starts() {
    let fake = FakeProvider::saying([]).await;
    let closed = JudgeTestNode::new(BOTH[0], &fake).await.engine;
    let range = "127.0.0.0/8".parse().unwrap();
    let open =
        JudgeTestNode::with(BOTH[0], &fake, |judges| judges.media_allow = vec![range]).await.engine;
    let refusal = |engine: &crate::Engine, url: &str| {
        engine.media_url_check(url).map(drop).map_err(|refused| refused.to_string())
    };
    assert_eq!(refusal(&closed, "https://example.com/a.png"), Ok(()));
    assert_eq!(refusal(&closed, "http://127.0.0.1/").unwrap_err(), "must begin with `https://`");
    assert_eq!(refusal(&closed, "https://127.1/").unwrap_err(), "must name a public host");
    assert_eq!(refusal(&open, "http://127.1/"), Ok(()));
}
