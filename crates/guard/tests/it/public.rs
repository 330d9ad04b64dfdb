//! Images from addresses that callers name: no spelling of an inside address leads to a connection,
//! and the caller learns only that there was no image.

use std::{
    collections::BTreeMap,
    io,
    net::{IpAddr, TcpListener},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use axum::{Router, http::StatusCode, response::Redirect, routing::get};
use jurat_core::{
    canonical::digest,
    round::{candidate::ArtifactRef, evidence::EvidenceStatus},
};
use jurat_guard::public::{FetchError, PublicClient, ResolveFuture, Resolver, check_media_url};
use parking_lot::Mutex;
use tokio::task::JoinSet;

const PATIENCE: Duration = Duration::from_secs(5);
const PNG: &[u8] = b"\x89PNG\r\n\x1a\n and the rest of it";
const HIDDEN: &str = "the image could not be fetched from its address";

/// Listens on every address of this machine, and counts connections.
struct Canary {
    port: u16,
    listeners: Vec<TcpListener>,
}

impl Canary {
    fn new() -> Self {
        let first = TcpListener::bind("0.0.0.0:0").unwrap();
        let port = first.local_addr().unwrap().port();
        // Some machines have no IPv6, so nothing can arrive that way.
        let listeners: Vec<_> = [Ok(first), TcpListener::bind(("::", port))]
            .into_iter()
            .filter_map(Result::ok)
            .collect();
        for listener in &listeners {
            listener.set_nonblocking(true).unwrap();
        }
        Self { port, listeners }
    }

    fn hits(&self) -> usize {
        self.listeners.iter().map(|it| std::iter::from_fn(|| it.accept().ok()).count()).sum()
    }
}

/// A resolver with a few names, which returns the answers of each name in sequence.
#[derive(Debug, Default)]
struct Names {
    answers: BTreeMap<&'static str, Vec<Vec<IpAddr>>>,
    asked: AtomicUsize,
    counts: Mutex<BTreeMap<String, usize>>,
}

impl Names {
    fn new(answers: &[(&'static str, &[&[&str]])]) -> Arc<Self> {
        let parse = |list: &&[&str]| list.iter().map(|text| text.parse().unwrap()).collect();
        let answers =
            answers.iter().map(|(name, lists)| (*name, lists.iter().map(parse).collect()));
        Arc::new(Self { answers: answers.collect(), ..Self::default() })
    }
}

impl Resolver for Names {
    fn resolve(&self, host: String) -> ResolveFuture {
        self.asked.fetch_add(1, Ordering::SeqCst);
        let mut counts = self.counts.lock();
        let count = counts.entry(host.clone()).or_insert(0);
        let known = self.answers.get(host.trim_end_matches('.'));
        let answer = known.map(|lists| lists[(*count).min(lists.len() - 1)].clone());
        *count += 1;
        Box::pin(async move { answer.ok_or_else(|| io::ErrorKind::NotFound.into()) })
    }
}

/// Spellings of an inside host, each of which has bypassed some real check.
const HOSTS: &[&str] = &[
    "127.0.0.1",
    "127.0.0.2",
    "127.1",
    "127.0.1",
    "127.255.255.254",
    "2130706433",
    "0x7f000001",
    "0x7f.0.0.1",
    "0x7f.1",
    "0177.0.0.1",
    "0177.1",
    "017700000001",
    "0",
    "0.0.0.0",
    "00.0.0.0",
    "127.0.0.1.",
    "127.000.000.001",
    "127%2e0%2e0%2e1",
    "%31%32%37.0.0.1",
    "①②⑦.⓪.⓪.①",
    "１２７.０.０.１",
    "127。0。0。1",
    "[::1]",
    "[::]",
    "[0:0:0:0:0:0:0:1]",
    "[0000:0000:0000:0000:0000:0000:0000:0001]",
    "[::ffff:127.0.0.1]",
    "[::ffff:7f00:1]",
    "[0:0:0:0:0:ffff:7f00:1]",
    "[::127.0.0.1]",
    "[64:ff9b::127.0.0.1]",
    "[64:ff9b::7f00:1]",
    "[64:ff9b:1::7f00:1]",
    "[2002:7f00:1::]",
    "[2001:0:7f00:1::]",
    "[fe80::1]",
    "[fc00::1]",
    "[fd00:ec2::254]",
    "[ff02::1]",
    "[::ffff:0:127.0.0.1]",
    "169.254.169.254",
    "2852039166",
    "0xa9fea9fe",
    "[::ffff:a9fe:a9fe]",
    "10.0.0.1",
    "172.16.0.1",
    "192.168.0.1",
    "100.64.0.1",
    "198.18.0.1",
    "192.0.0.1",
    "224.0.0.1",
    "240.0.0.1",
    "255.255.255.255",
    "localhost",
    "LOCALHOST",
    "localhost.",
    "inside",
    "inside.",
    "mixed",
    "mixed-v6",
    "mapped",
    "embedded",
    "metadata",
    "shared",
    "xn--inside",
    "nowhere",
];

/// Addresses that are strange as a whole; `PORT` is replaced by that of the canary.
const STRANGE: &[&str] = &[
    "https://good@127.0.0.1:PORT/",
    "https://good:word@inside:PORT/",
    "https://127.0.0.1:PORT#@good/",
    "https://127.0.0.1:PORT%23@good/",
    "https://127.0.0.1\\@good:PORT/",
    "https:\\\\127.0.0.1:PORT\\",
    "https:127.0.0.1:PORT/",
    "https:/127.0.0.1:PORT/",
    "https:///127.0.0.1:PORT/",
    "//127.0.0.1:PORT/",
    " https://127.0.0.1:PORT/",
    "https://127.0.0.1\t:PORT/",
    "https://127.0.0.1\n:PORT/",
    "https://127.0.0.1 :PORT/",
    "HTTPS://127.0.0.1:PORT/",
    "https://[::1%25lo]:PORT/",
    "https://[::1%lo]:PORT/",
    "gopher://127.0.0.1:PORT/",
    "ftp://127.0.0.1:PORT/",
    "ws://127.0.0.1:PORT/",
    "file:///etc/passwd",
    "data:image/png;base64,iVBORw0KGgo=",
    "https://",
    "https://?",
    "",
];

fn spellings(port: u16) -> Vec<String> {
    let plain = HOSTS.iter().flat_map(|host| {
        [format!("https://{host}:{port}/a.png"), format!("http://{host}:{port}/a.png")]
    });
    plain.chain(STRANGE.iter().map(|url| url.replace("PORT", &port.to_string()))).collect()
}

#[tokio::test]
async fn no_spelling_of_an_inside_address_reaches_anything() {
    let canary = Canary::new();
    let names = Names::new(&[
        ("localhost", &[&["127.0.0.1"]]),
        ("inside", &[&["127.0.0.1"]]),
        ("mixed", &[&["8.8.8.8", "127.0.0.1"]]),
        ("mixed-v6", &[&["2606:4700:4700::1111", "::1"]]),
        ("mapped", &[&["::ffff:127.0.0.1"]]),
        ("embedded", &[&["64:ff9b::7f00:1"]]),
        ("metadata", &[&["169.254.169.254"]]),
        ("shared", &[&["100.64.0.1"]]),
        ("xn--inside", &[&["127.0.0.1"]]),
    ]);
    let client = PublicClient::with_resolver(&[], names).unwrap();
    let spellings = spellings(canary.port);
    assert!(120 < spellings.len());
    for url in &spellings {
        let error = client.image(url, PATIENCE).await.unwrap_err();
        assert_eq!(error.to_string(), HIDDEN, "{url}");
        assert!(matches!(error, FetchError::Unavailable { .. }));
        let looked = client.look_at(&reference(url), PATIENCE).await;
        assert!(
            matches!(looked.found, EvidenceStatus::Denied | EvidenceStatus::Unreachable),
            "{url}"
        );
    }
    for url in ["https://127.0.0.1/", "http://10.0.0.1/"] {
        let looked = client.look_at(&reference(url), PATIENCE).await;
        assert_eq!(looked.found, EvidenceStatus::Denied, "{url}");
    }
    assert_eq!(canary.hits(), 0);
}

#[tokio::test(start_paused = true)]
async fn an_inside_name_looks_like_an_unknown_one() {
    let names = Names::new(&[
        ("inside", &[&["10.0.0.7"]]),
        ("mixed", &[&["8.8.8.8", "127.0.0.1"]]),
        ("metadata", &[&["169.254.169.254"]]),
    ]);
    let client = PublicClient::with_resolver(&[], names).unwrap();
    for url in ["https://inside/", "https://mixed/", "https://metadata/", "https://nobody/"] {
        let looked = client.look_at(&reference(url), PATIENCE).await;
        assert_eq!(looked.found, EvidenceStatus::Unreachable, "{url}");
    }
    // A resolver that does not answer reveals nothing about the name, either.
    let client = PublicClient::with_resolver(&[], Arc::new(Silent)).unwrap();
    let looked = client.look_at(&reference("https://inside/"), PATIENCE).await;
    assert_eq!(looked.found, EvidenceStatus::Unreachable);
}

/// A resolver that never answers.
#[derive(Debug)]
struct Silent;

impl Resolver for Silent {
    fn resolve(&self, _host: String) -> ResolveFuture {
        Box::pin(std::future::pending())
    }
}

/// Evidence at this address.
fn reference(url: &str) -> ArtifactRef {
    ArtifactRef {
        uri: url.to_owned(),
        digest: digest(b"a document"),
        size_bytes: 10,
        mime: "text/plain".to_owned(),
        created_at: 1,
        producer: "tests".to_owned(),
    }
}

#[tokio::test]
async fn the_canary_sees_connections_that_are_allowed() {
    // The same spellings with everything allowed: without this, the test above would prove nothing.
    let canary = Canary::new();
    let everything = ["0.0.0.0/0".parse().unwrap(), "::/0".parse().unwrap()];
    let client = PublicClient::with_resolver(&everything, Names::new(&[])).unwrap();
    for host in ["127.0.0.1", "2130706433", "0x7f.1", "[::ffff:7f00:1]", "0"] {
        let url = format!("https://{host}:{}/a.png", canary.port);
        // The canary does not speak TLS, so the call stalls until it times out.
        let _ = client.image(&url, Duration::from_millis(200)).await;
        assert_eq!(canary.hits(), 1, "{host}");
    }
}

/// A web server with one valid image and many invalid ones.
async fn gallery() -> (u16, Arc<AtomicUsize>, JoinSet<()>) {
    let visits = Arc::new(AtomicUsize::new(0));
    let seen = Arc::clone(&visits);
    let large = vec![0_u8; 5 * 1024 * 1024 + 1];
    let image = |kind: &'static str, bytes: Vec<u8>| {
        get(move || async move { ([("content-type", kind)], bytes) })
    };
    let encoded = [("content-type", "image/png"), ("content-encoding", "gzip")];
    let router = Router::new()
        .route("/good.png", image("image/png", PNG.to_vec()))
        .route("/wrong.jpg", image("image/jpeg", PNG.to_vec()))
        .route("/page", image("text/html", PNG.to_vec()))
        .route("/drawing.svg", image("image/svg+xml", b"<svg/>".to_vec()))
        .route("/large.png", image("image/png", [PNG, &large].concat()))
        .route("/packed.png", get(move || async move { (encoded, PNG) }))
        .route("/gone.png", get(|| async { StatusCode::NOT_FOUND }))
        .route("/moved.png", get(|| async { Redirect::temporary("/good.png") }))
        .route("/away.png", get(|| async { Redirect::permanent("http://169.254.169.254/") }))
        .route("/never.png", get(|| async { std::future::pending::<()>().await }))
        .layer(axum::middleware::from_fn(move |request, next: axum::middleware::Next| {
            seen.fetch_add(1, Ordering::SeqCst);
            next.run(request)
        }));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let mut tasks = JoinSet::new();
    tasks.spawn(async move { axum::serve(listener, router).await.unwrap() });
    (port, visits, tasks)
}

fn loopback() -> [jurat_guard::public::Range; 1] {
    ["127.0.0.0/8".parse().unwrap()]
}

#[tokio::test]
async fn an_image_from_an_allowed_range_is_fetched() {
    let (port, _, _tasks) = gallery().await;
    let client = PublicClient::new(&loopback()).unwrap();
    let fetched =
        client.image(&format!("http://127.0.0.1:{port}/good.png"), PATIENCE).await.unwrap();
    assert_eq!((fetched.mime, fetched.bytes().as_ref()), ("image/png", PNG));
}

#[tokio::test]
async fn anything_but_a_small_image_is_refused() {
    let (port, _, _tasks) = gallery().await;
    let client = PublicClient::new(&loopback()).unwrap();
    let no_image =
        "the content is not a PNG, JPEG, GIF or WebP image, or has another declared type";
    for (path, refused) in [
        ("wrong.jpg", no_image),
        ("page", no_image),
        ("drawing.svg", no_image),
        ("large.png", "the image has more than 5 MiB"),
        ("packed.png", HIDDEN),
        ("gone.png", HIDDEN),
        ("missing", HIDDEN),
    ] {
        let url = format!("http://127.0.0.1:{port}/{path}");
        let error = client.image(&url, PATIENCE).await.unwrap_err();
        assert_eq!(error.to_string(), refused, "{path}");
    }
}

#[tokio::test]
async fn redirects_are_not_followed() {
    let (port, visits, _tasks) = gallery().await;
    let client = PublicClient::new(&loopback()).unwrap();
    for (at, path) in ["moved.png", "away.png"].into_iter().enumerate() {
        let url = format!("http://127.0.0.1:{port}/{path}");
        let error = client.image(&url, PATIENCE).await.unwrap_err();
        assert_eq!(error.to_string(), HIDDEN);
        assert!(error.detail().contains("redirect"), "{}", error.detail());
        assert_eq!(visits.load(Ordering::SeqCst), at + 1);
    }
}

#[tokio::test]
async fn a_missing_image_times_out() {
    let (port, _, _tasks) = gallery().await;
    let client = PublicClient::new(&loopback()).unwrap();
    let url = format!("http://127.0.0.1:{port}/never.png");
    let error = client.image(&url, Duration::from_millis(50)).await.unwrap_err();
    assert_eq!(error.to_string(), HIDDEN);
    assert_eq!(error.detail(), "no answer before the deadline");
}

#[tokio::test]
async fn a_name_is_checked_each_time_it_is_resolved() {
    let (port, visits, _tasks) = gallery().await;
    let canary = Canary::new();
    let names = Names::new(&[("turncoat", &[&["127.0.0.1"], &["127.0.0.2"], &["10.0.0.1"]])]);
    let range = ["127.0.0.1/32".parse().unwrap()];
    let client = PublicClient::with_resolver(&range, Arc::<Names>::clone(&names)).unwrap();
    let good = format!("http://turncoat:{port}/good.png");
    assert!(client.image(&good, PATIENCE).await.is_ok());
    assert_eq!(names.asked.load(Ordering::SeqCst), 1);
    // Another port, so that no connection is reused; the name now leads elsewhere.
    let bad = format!("http://turncoat:{}/good.png", canary.port);
    for _ in 0..2 {
        let error = client.image(&bad, PATIENCE).await.unwrap_err();
        assert!(error.detail().contains("which is not allowed"), "{}", error.detail());
    }
    assert_eq!((canary.hits(), visits.load(Ordering::SeqCst)), (0, 1));
}

#[tokio::test]
async fn without_tls_only_allowed_ranges_are_reached() {
    let names = Names::new(&[("public", &[&["8.8.8.8"]])]);
    let client = PublicClient::with_resolver(&loopback(), names).unwrap();
    for url in ["http://public/a.png", "http://8.8.8.8/a.png"] {
        let error = client.image(url, PATIENCE).await.unwrap_err();
        assert_eq!(error.to_string(), HIDDEN);
    }
}

#[test]
fn a_refused_address_comes_with_advice() {
    let refusal =
        |text: &str| check_media_url(text).map(|url| url.to_string()).map_err(|it| it.to_string());
    assert_eq!(
        refusal("https://Example.com/a b.png").unwrap_err(),
        "must be a URL such as `https://example.com/picture.png`"
    );
    assert_eq!(refusal("https://Example.com/a.png"), Ok("https://example.com/a.png".to_owned()));
    assert_eq!(refusal("http://example.com/a.png").unwrap_err(), "must begin with `https://`");
    assert_eq!(
        refusal("https://u@example.com/").unwrap_err(),
        "must not contain a user name or password"
    );
    assert_eq!(refusal("https://0x7f.1/").unwrap_err(), "must name a public host");
    let long = format!("https://example.com/{}", "a".repeat(2_048));
    assert_eq!(refusal(&long).unwrap_err(), "must have at most 2048 characters");
}
