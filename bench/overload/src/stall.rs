//! Connections that stall in each of the known ways, and return when they are closed.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use jurat_bench_load::{announce, until_parent_goes};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

/// How often a dripping connection sends another byte.
const DRIP: Duration = Duration::from_secs(1);
/// The wait before a connection returns, so that the load consists of stalls and not of a flood.
const AGAIN: Duration = Duration::from_millis(500);

#[derive(Debug, Clone, Copy)]
struct StallKind {
    says: &'static str,
    drips: bool,
}

const KINDS: [StallKind; 7] = [
    StallKind { says: "", drips: false },
    StallKind { says: "P", drips: false },
    StallKind { says: "PRI * HT", drips: false },
    StallKind { says: "POST /api/v3/validate HTTP/1.1\r\nhost: x\r\nx-half: ", drips: false },
    StallKind { says: "POST /api/v3/validate HTTP/1.1\r\nhost: x\r\nx-half: ", drips: true },
    StallKind {
        says: "POST /v1/executors HTTP/1.1\r\nhost: x\r\ncontent-length: 1000\r\n\r\n",
        drips: false,
    },
    StallKind {
        says: "POST /v1/executors HTTP/1.1\r\nhost: x\r\ncontent-length: 1000\r\n\r\n",
        drips: true,
    },
];

/// Opens the requested number of connections, announces it, and keeps them open.
pub(crate) async fn stall(address: SocketAddr, count: usize) -> Result<()> {
    let opened = Arc::new(Semaphore::new(0));
    let mut stalled = JoinSet::new();
    for number in 0..count {
        let opened = Arc::clone(&opened);
        stalled.spawn(keep_up(address, KINDS[number % KINDS.len()], opened));
    }
    let _all = opened.acquire_many(u32::try_from(count)?).await?;
    announce(address.port(), "");
    until_parent_goes().await;
    Ok(())
}

async fn keep_up(address: SocketAddr, kind: StallKind, opened: Arc<Semaphore>) {
    let mut is_first = true;
    let mut again = tokio::time::interval(AGAIN);
    again.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        again.tick().await;
        let Ok(stream) = TcpStream::connect(address).await else { continue };
        if is_first {
            opened.add_permits(1);
            is_first = false;
        }
        hold(stream, kind).await;
    }
}

/// Returns when the server closes the connection.
async fn hold(mut stream: TcpStream, kind: StallKind) {
    let (mut reader, mut writer) = stream.split();
    if writer.write_all(kind.says.as_bytes()).await.is_err() {
        return;
    }
    let dripping = async {
        let mut ticks = tokio::time::interval(DRIP);
        loop {
            ticks.tick().await;
            if kind.drips && writer.write_all(b"a").await.is_err() {
                return;
            }
        }
    };
    let mut ignored = Vec::new();
    tokio::select! {
        () = dripping => {}
        _ = reader.read_to_end(&mut ignored) => {}
    }
}
